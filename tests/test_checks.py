"""Argument checks: what passes comes back, what does not raises a ValueError that names the argument and the value."""

import math
import operator
from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import nn

from d2lmini import checks


def test_integers_of_any_kind_come_back_as_int():
    for value in (3, np.int64(3), np.uint8(3)):
        got = checks.check_int("length", value, 1, 3)
        assert got == 3 and type(got) is int


@pytest.mark.parametrize("value", [True, 3.0, np.float64(3), "3", None, torch.tensor(3), [3]])
def test_what_is_no_integer_is_refused(value):
    with pytest.raises(ValueError, match=r"^length=.* is not an integer"):
        checks.check_int("length", value)


def test_integer_bounds_are_inclusive():
    assert [checks.check_int("n", n, 2, 4) for n in (2, 3, 4)] == [2, 3, 4]
    for n in (1, 5):
        with pytest.raises(ValueError, match=rf"^n={n} is out of range; .*at least 2 and at most 4"):
            checks.check_int("n", n, 2, 4)


def test_numbers_of_any_kind_come_back_as_float():
    for value in (1, 0.5, np.float32(0.5), Fraction(1, 2)):
        assert type(checks.check_number("share", value, 0, 1)) is float


@pytest.mark.parametrize("low_open, high_open, inside", [
    (False, False, (0, 0.5, 1)), (True, False, (0.5, 1)), (False, True, (0, 0.5)), (True, True, (0.5,))])
def test_open_and_closed_ends(low_open, high_open, inside):
    interval = f"{'(' if low_open else '['}0, 1{')' if high_open else ']'}"
    for value in (-0.1, 0, 0.5, 1, 1.1, math.nan, math.inf, -math.inf):
        if value in inside:
            assert checks.check_number("share", value, 0, 1, low_open=low_open, high_open=high_open) == value
        else:
            with pytest.raises(ValueError) as error:
                checks.check_number("share", value, 0, 1, low_open=low_open, high_open=high_open)
            assert str(error.value) == f"share={value} is outside {interval}; give a number in that range."


def test_infinity_passes_only_a_closed_end():
    assert checks.check_number("limit", math.inf, 0) == math.inf
    with pytest.raises(ValueError, match=r"lr=inf is outside \(0, inf\)"):
        checks.check_number("lr", math.inf, 0, low_open=True, high_open=True)


@pytest.mark.parametrize("value", [True, "a", None, 1j, torch.tensor(0.5), [0.5]])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(ValueError, match=r"^share=.* is not a number"):
        checks.check_number("share", value, 0, 1)


@pytest.mark.parametrize("value", ["ring", None, 3, ["rms"], torch.tensor([1, 2])])
def test_choice_names_the_alternatives(value):
    assert checks.check_choice("norm", "rms", ("rms", "layer")) == "rms"
    with pytest.raises(ValueError, match=r"^norm=.* is unknown; choose one of 'rms', 'layer'"):
        checks.check_choice("norm", value, ("rms", "layer"))


@pytest.mark.parametrize("value", ["no", 0, 1, None, np.True_])
def test_flags_are_true_or_false(value):
    checks.check_flags(tied=True, bias=False)
    with pytest.raises(ValueError, match=r"^bias=.* is neither True nor False"):
        checks.check_flags(tied=True, bias=value)


def test_heads_divide_the_width():
    assert checks.check_heads(91, 13) == 7
    assert checks.check_heads(26, 13, rotary=True) == 2
    with pytest.raises(ValueError, match=r"d_model=91 does not divide among num_heads=11"):
        checks.check_heads(91, 11)
    with pytest.raises(ValueError, match=r"d_model=91 and num_heads=13 give a head width of 7, which is odd"):
        checks.check_heads(91, 13, rotary=True)


def test_ids_come_back_as_int64():
    for dtype in (torch.int32, torch.int64):
        ids = torch.tensor([[0, 6], [3, 5]], dtype=dtype)
        got = checks.check_ids("ids", ids, 7)
        assert got.dtype == torch.int64 and torch.equal(got, ids.long())
    assert checks.check_ids("ids", torch.zeros(0, dtype=torch.int64), 7, ndim=1).shape == (0,)


@pytest.mark.parametrize("ids, ndim, message", [
    ([[1]], 2, "ids is list; give a tensor of token ids"),
    (np.array([[1]]), 2, "ids is ndarray; give a tensor"),
    (torch.ones(2, 3), 2, r"ids is torch\.float32; give a tensor"),
    (torch.ones(2, 3, dtype=torch.bool), 2, r"ids is torch\.bool; give a tensor"),
    (torch.tensor([1]), 2, r"ids has shape \(1,\); expected \(B, T\).*ids\.unsqueeze\(0\)"),
    (torch.tensor(1), 2, r"ids has shape \(\); expected \(B, T\)\.$"),
    (torch.tensor([[1]]), 1, r"ids has shape \(1, 1\); expected \(length,\)\.$"),
    (torch.tensor([[0, 7]]), 2, r"ids holds the token id 7, outside the vocabulary \[0, 7\)"),
    (torch.tensor([[0, -1]]), 2, r"ids holds the token id -1, outside the vocabulary \[0, 7\)"),
])
def test_bad_ids(ids, ndim, message):
    with pytest.raises(ValueError, match=message):
        checks.check_ids("ids", ids, 7, ndim)


def test_length():
    assert [checks.check_length("x", n, 5) for n in (1, 5)] == [1, 5]
    with pytest.raises(ValueError, match="x has length 0; give at least one token"):
        checks.check_length("x", 0, 5)
    with pytest.raises(ValueError, match="x has length 6, longer than max_len=5"):
        checks.check_length("x", 6, 5)


def test_width():
    x = torch.zeros(2, 3, 5)
    assert checks.check_width("x", x, 5) is x
    assert checks.check_width("x", x[0, 0], 5, ndim=None).shape == (5,)
    for bad, ndim, message in [
        (x, 3, r"x has shape \(2, 3, 5\); expected \(B, length, 7\)"), (x[0], 3, r"x has shape \(3, 5\)"),
        (x[0, 0, 0], None, r"x has shape \(\); expected \(\.\.\., 7\)"), (x.long(), 3, r"x is torch\.int64"),
        (x.tolist(), 3, "x is list"),
    ]:
        with pytest.raises(ValueError, match=message):
            checks.check_width("x", bad, 7, ndim)


def test_tensor():
    with pytest.raises(ValueError, match="q is NoneType; give a floating-point tensor"):
        checks.check_tensor("q", None)
    with pytest.raises(ValueError, match=r"q is torch\.bool"):
        checks.check_tensor("q", torch.tensor(True))
    with pytest.raises(ValueError, match=r"q has shape \(3,\); expected 4 axes"):
        checks.check_tensor("q", torch.zeros(3), ndim=4)


def test_seeded_generator_repeats_itself():
    draws = [torch.rand(5, generator=checks.seeded_generator(s)) for s in (3, np.int64(3), 4)]
    assert torch.equal(draws[0], draws[1]) and not torch.equal(draws[0], draws[2])
    for seed in (-1, 1.5, None, "a", 2**63):
        with pytest.raises(ValueError, match="seed="):
            checks.seeded_generator(seed)


def test_callable_text_and_module():
    checks.check_callable("loss", operator.add)
    with pytest.raises(ValueError, match="loss=3 is not a function"):
        checks.check_callable("loss", 3)
    assert checks.check_text("text", "") == ""
    with pytest.raises(ValueError, match="text is bytes; give a str"):
        checks.check_text("text", b"a")
    with pytest.raises(ValueError, match="model is list; give an nn.Module"):
        checks.check_module("model", [nn.ReLU()])


def test_optimizers_must_hold_a_parameter_of_the_model():
    model, other = nn.Linear(3, 2), nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    assert checks.check_optimizers(optimizer, model) == [optimizer]
    assert checks.check_optimizers((optimizer,), model) == [optimizer]
    with pytest.raises(ValueError, match="optimizers hold no parameter of this model"):
        checks.check_optimizers(optimizer, other)
    for bad in ([], None, "adam", [3]):
        with pytest.raises(ValueError, match=r"optimizers=.* are not optimizers"):
            checks.check_optimizers(bad, model)


@pytest.mark.parametrize("losses", [torch.tensor(1.0), torch.ones(2, 3), torch.ones(0)])
def test_losses_are_one_per_token(losses):
    assert len(checks.check_losses(torch.ones(5))) == 5
    with pytest.raises(ValueError, match=r"loss\(model, batch\) has shape .*expected one loss per scored token"):
        checks.check_losses(losses)


@pytest.mark.parametrize("losses", [1.0, None, torch.ones(3, dtype=torch.int64)])
def test_losses_are_floats(losses):
    with pytest.raises(ValueError, match=r"loss\(model, batch\) is "):
        checks.check_losses(losses)
