"""What a learner is told when a result is not the expected one."""

import numpy as np
import pytest
import torch

from d2lmini.exercises.code import describe, is_untouched
from d2lmini.exercises.compare import changed, clone, difference, same

WANT = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]])
MASK = torch.ones(3, 3, dtype=torch.bool).tril()


@pytest.mark.parametrize("got", [
    WANT, WANT.double(), WANT.half(), WANT.bfloat16(), WANT.int(), WANT + 1e-6, WANT.clone().requires_grad_(),
])
def test_every_width_of_the_right_numbers_is_right(got):
    assert same(got, WANT)


@pytest.mark.parametrize("got, said", [
    (None, "is None; is a `return` missing"),
    (WANT.numpy(), "a NumPy array where a tensor is wanted"),
    (WANT.tolist(), "a list where a tensor is wanted"),
    (3.0, "a float where a tensor is wanted"),
    (WANT.T, "shape (3, 2); expected (2, 3): the axes are in another order"),
    (WANT[None], "an axis of length 1 too many or too few"),
    (WANT[:, :2], "shape (2, 2); expected (2, 3)"),
    (2.5 * WANT, "is 2.5 times the expected one everywhere"),
    (WANT.flip(1), "the right numbers in the wrong order"),
    (WANT * torch.nan, "holds NaN"),
    (WANT + torch.eye(3)[:2], "first difference at index [0, 0]: expected 1, got 2"),
])
def test_tensors(got, said):
    assert said in difference(got, WANT)


def test_the_row_in_question_is_shown():
    text = difference(WANT + torch.tensor([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]), WANT)
    assert "index [1, 1]: expected 5, got 6" in text
    assert "that row expected [4, 5, 7]" in text and "that row got      [4, 6, 7]" in text


@pytest.mark.parametrize("got, said", [
    (~MASK, "inverted: True and False are exchanged everywhere"),
    (MASK.T, "transposed: its last two axes are exchanged"),
    (MASK.float(), "dtype torch.float32; masks here must be boolean"),
    (MASK.int(), "dtype torch.int32; masks here must be boolean"),
    (torch.zeros(3, 3).masked_fill(~MASK, -torch.inf), "0 and -inf, the mask of the formula"),
])
def test_masks(got, said):
    assert said in difference(got, MASK)


def test_whole_numbers_must_be_whole():
    ids = torch.tensor([1, 2, 3])
    assert "dtype torch.float32; whole numbers (torch.int64) are wanted" in difference(ids.float(), ids)
    assert same(ids.int(), ids) and not same(ids + 1, ids)


@pytest.mark.parametrize("got, want, said", [
    (torch.tensor(2.0), 2, None), (np.float64(2), 2.0, None), (2, torch.tensor(2.0), None),
    ("2", 2, "'2' where a number is wanted"), (True, 1, "True where a number is wanted"), (3, 2, "expected 2, got 3"),
    (torch.ones(2), 2.0, "is a sum or mean missing"), (float("nan"), 2.0, "expected 2, got nan"),
    ((1, 2), (1, 2), None), ([1, 2], (1, 2), None), ((1,), (1, 2), "holds 1 things where 2 are wanted"),
    (1, (1, 2), "one int where 2 things are wanted"), ((1, 3), (1, 2), "expected 2, got 3"),
    ([1, 2, 4], [1, 2, 3], "first differs at index 2: expected 3, got 4"), ((1, 2), [1, 2, 3], "has 2 entries; expected 3"),
    (torch.tensor([1, 2, 3]), [1, 2, 3], None), (dict(a=1), dict(a=1, b=2), "lacks the key 'b'"), ("x", "y", "'x'; expected 'y'"),
])
def test_numbers_lists_tuples_and_dicts(got, want, said):
    found = difference(got, want)
    assert (found is None) if said is None else said in found


def test_arguments_are_copied_and_changes_seen():
    generator = torch.Generator().manual_seed(3)
    before = dict(x=WANT, words=["a", "b"], f=len, g=generator)
    after = clone(before)
    assert not changed(before, after) and after["x"] is not WANT
    after["words"][0] = "c"
    assert changed(before, after)
    x = WANT.clone()
    x[0, 0] = 9
    assert changed(WANT, x)
    assert torch.equal(torch.rand(2, generator=clone(generator)), torch.rand(2, generator=generator))


def test_untouched_means_that_nothing_was_written():
    def stub(x):
        """Doc."""
        ...  # your code

    def constant(x):
        return 0

    assert is_untouched(stub) and not is_untouched(constant) and not is_untouched(len)
    assert is_untouched(lambda: None)


def test_arguments_are_described_in_few_words():
    said = describe(dict(n=5, x=WANT, m=MASK, f=len, g=torch.Generator(), words=["w" * 99], fs=[len, abs]))
    assert said.startswith("n=5, x=a tensor of shape (2, 3), m=a tensor of shape (3, 3) bool, f=the function len, "
                           "g=a seeded generator, words=['www") and said.endswith("fs=2 functions")
