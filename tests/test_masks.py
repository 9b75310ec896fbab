"""Masks: hand values, one convention (True = may attend), and what they refuse."""

import numpy as np
import pytest
import torch

from d2lmini import causal_mask, combine, padding_mask, prefix_mask
from d2lmini.masks import check_mask

T, F = True, False


def test_causal_by_hand():
    assert causal_mask(3).tolist() == [[T, F, F], [T, T, F], [T, T, T]]


@pytest.mark.parametrize("length", [1, 2, 7, 13])
def test_causal_blocks_the_upper_triangle(length):
    mask = causal_mask(length)
    assert mask.shape == (length, length) and mask.dtype == torch.bool
    assert (~mask).sum() == length * (length - 1) // 2
    assert mask.diagonal().all()


def test_prefix_by_hand():
    assert prefix_mask(4, 2).tolist() == [[T, T, F, F], [T, T, F, F], [T, T, T, F], [T, T, T, T]]
    assert torch.equal(prefix_mask(5, 0), causal_mask(5))
    assert torch.equal(prefix_mask(5, 1), causal_mask(5))
    assert prefix_mask(5, 5).all()


def test_padding_by_hand():
    mask = padding_mask([3, 1, 0], 4)
    assert mask.shape == (3, 1, 1, 4) and mask.dtype == torch.bool
    assert mask[:, 0, 0].tolist() == [[T, T, T, F], [T, F, F, F], [F, F, F, F]]


@pytest.mark.parametrize("lengths", [
    [2, 5, 3], (2, 5, 3), np.array([2, 5, 3]), torch.tensor([2, 5, 3]), torch.tensor([2, 5, 3], dtype=torch.uint8)])
def test_padding_takes_lengths_of_any_integer_kind(lengths):
    assert torch.equal(padding_mask(lengths), padding_mask([2, 5, 3], 5))
    assert padding_mask(lengths, 257).sum() == 10  # in uint8, 257 would be 1


def test_padding_of_nothing_but_empty_sequences():
    assert padding_mask([0, 0]).tolist() == [[[[F]]], [[[F]]]]


def test_devices():
    assert causal_mask(3, device="meta").device.type == "meta"
    assert prefix_mask(3, 1, device="meta").device.type == "meta"


def test_combine_is_and():
    both = combine(causal_mask(3), padding_mask([2, 3]))
    assert both.shape == (2, 1, 3, 3)
    assert both[0, 0].tolist() == [[T, F, F], [T, T, F], [T, T, F]]
    assert torch.equal(both[1, 0], causal_mask(3))


def test_combine_leaves_none_out():
    mask = causal_mask(3)
    assert combine() is None and combine(None, None) is None
    assert torch.equal(combine(None, mask, None), mask)
    three = combine(mask, prefix_mask(3, 2), padding_mask([3]))
    assert torch.equal(three[0, 0], mask)


def test_combine_leaves_its_arguments_as_they_were():
    a, b = causal_mask(3), padding_mask([2], 3)
    combine(a, b)
    assert torch.equal(a, causal_mask(3)) and torch.equal(b, padding_mask([2], 3))


@pytest.mark.parametrize("shape", [(), (1,), (5,), (1, 5), (3, 5), (1, 1, 5), (7, 3, 5), (2, 1, 1, 5), (2, 7, 3, 5)])
def test_whatever_broadcasts_is_a_mask_of_four_axes(shape):
    mask = torch.ones(shape, dtype=torch.bool)
    got = check_mask(mask, (2, 7, 3, 5))
    assert got.ndim == 4 and got.expand(2, 7, 3, 5).all()


@pytest.mark.parametrize("call, message", [
    (lambda: causal_mask(0), "length=0 is out of range"),
    (lambda: causal_mask(2.0), "length=2.0 is not an integer"),
    (lambda: causal_mask(True), "length=True is not an integer"),
    (lambda: prefix_mask(0, 0), "length=0 is out of range"),
    (lambda: prefix_mask(5, 6), "prefix=6 is out of range; .*at most 5"),
    (lambda: prefix_mask(5, -1), "prefix=-1 is out of range"),
    (lambda: prefix_mask(5, None), "prefix=None is not an integer"),
    (lambda: padding_mask([]), r"lengths=\[\] is not a list of whole numbers"),
    (lambda: padding_mask(3), "lengths=3 is not a list"),
    (lambda: padding_mask(None), "lengths=None is not a list"),
    (lambda: padding_mask("abc"), "lengths='abc' is not a list"),
    (lambda: padding_mask([1.5]), r"lengths=\[1.5\] is not a list"),
    (lambda: padding_mask([True, False]), r"lengths=\[True, False\] is not a list"),
    (lambda: padding_mask([[1], [2]]), r"lengths=\[\[1\], \[2\]\] is not a list"),
    (lambda: padding_mask([[1], [2, 3]]), r"lengths=\[\[1\], \[2, 3\]\] is not a list"),
    (lambda: padding_mask(torch.tensor([1j])), "lengths=.* is not a list"),
    (lambda: padding_mask([10**30]), "lengths=.* is not a list"),
    (lambda: padding_mask([-1, 2]), r"lengths=\[-1, 2\] do not all lie in \[0, 2\]"),
    (lambda: padding_mask([1, 6], 5), r"lengths=\[1, 6\] do not all lie in \[0, 5\]"),
    (lambda: padding_mask([1], 0), "size=0 is out of range"),
    (lambda: padding_mask([1], 2.5), "size=2.5 is not an integer"),
    (lambda: combine(torch.ones(3)), r"mask is torch\.float32; give a boolean tensor .*mask == 0"),
    (lambda: combine(None, [[True]]), "mask is list; give a boolean tensor"),
    (lambda: combine(np.ones(3, bool)), "mask is ndarray; give a boolean tensor"),
    (lambda: combine(causal_mask(3), causal_mask(4)), r"mask shapes \(3, 3\) and \(4, 4\) do not broadcast"),
    (lambda: combine(causal_mask(3), causal_mask(3, "meta")), "one mask is on cpu and another on meta"),
    (lambda: check_mask(torch.ones(3, 5), (2, 7, 3, 5)), r"mask is torch\.float32"),
    (lambda: check_mask(torch.ones(2, 5, dtype=torch.bool), (2, 7, 3, 5)),
     r"mask has shape \(2, 5\), which does not broadcast to \(B, H, T, S\) = \(2, 7, 3, 5\)"),
    (lambda: check_mask(torch.ones(1, 2, 7, 3, 5, dtype=torch.bool), (2, 7, 3, 5)), r"mask has shape \(1, 2, 7, 3, 5\)"),
    (lambda: check_mask(causal_mask(3, "meta"), (2, 7, 3, 3), torch.device("cpu")), "mask is on meta .* on cpu; move it"),
])
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
