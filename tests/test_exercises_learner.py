"""As a new learner would: wrong attempts, typed into cells, and whether what is said leads to the mistake."""

import linecache
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from d2lmini import exercises
from d2lmini.exercises.base import reset


@pytest.fixture(autouse=True)
def new_kernel():
    reset()
    yield
    reset()


def attempt(name, source, capsys):
    """Type `source` into a cell, run the check, return what it prints."""
    cell = {"math": math, "torch": torch, "F": F, "nn": nn}
    file = f"<cell of {name}>"
    linecache.cache[file] = (len(source), None, [line + "\n" for line in source.split("\n")], file)
    exec(compile(source, file, "exec"), cell)
    getattr(exercises, name).check(cell[f"my_{name}"])
    return capsys.readouterr().out


ATTENTION = """def my_safe_attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) {scale}
    scores = scores.masked_fill({blocked}, -math.inf)
    return scores.softmax(dim={dim}).nan_to_num(0.0) @ v"""


@pytest.mark.parametrize("change, said", [
    (dict(scale="* 1"), "the scale is missing: divide the scores by the square root of d_k"),
    (dict(scale="/ q.shape[-1]"), "divided by d_k; divide by its square root"),
    (dict(blocked="mask"), "the mask is inverted"),
    (dict(dim="-2"), "the softmax runs over the wrong axis"),
])
def test_attention_with_one_thing_wrong(change, said, capsys):
    parts = dict(scale="/ math.sqrt(q.shape[-1])", blocked="~mask", dim="-1") | change
    out = attempt("safe_attention", ATTENTION.format(**parts), capsys)
    assert out.startswith("✘ 1.4") and said in out and "expected" in out and "index" in out


def test_of_two_mistakes_the_one_that_shows_first_is_named(capsys):
    out = attempt("safe_attention", "def my_safe_attention(q, k, v, mask):\n    scores = q @ k.mT\n"
                  "    return scores.masked_fill(~mask, -math.inf).softmax(-1) @ v", capsys)
    assert "the scale is missing" in out  # and once it is there:
    out = attempt("safe_attention", "def my_safe_attention(q, k, v, mask):\n    scores = q @ k.mT / q.shape[-1] ** 0.5\n"
                  "    return scores.masked_fill(~mask, -math.inf).softmax(-1) @ v", capsys)
    assert "a row in which everything is masked gives NaN" in out


def test_attention_that_is_right_in_float64_is_right(capsys):
    source = ATTENTION.format(scale="/ q.shape[-1] ** 0.5", blocked="~mask", dim="-1").replace("q @", "q.double() @ ", 1)
    source = source.replace("k.transpose", "k.double().transpose").replace("@ v", "@ v.double()")
    assert attempt("safe_attention", source, capsys).startswith("✔ 1.4")


@pytest.mark.parametrize("body, said", [
    ("return torch.ones(n, n).tril()", "dtype torch.float32; masks here must be boolean"),
    ("return torch.ones(n, n).tril().bool().numpy()", "is a NumPy array where a tensor is wanted"),
    ("return [[s <= t for s in range(n)] for t in range(n)]", "is a list where a tensor is wanted"),
    ("torch.ones(n, n).tril().bool()", "is None; is a `return` missing?"),
    ("return ~torch.ones(n, n).tril().bool()", "the mask is inverted: True means"),
    ("return torch.ones(n, n).tril(-1).bool()", "off by one"),
    ("return torch.ones(n, n).triu().bool()", "queries and keys are exchanged"),
    ("return torch.ones(n).bool()", "has shape (5,); expected (5, 5)"),
])
def test_masks_of_other_kinds(body, said, capsys):
    out = attempt("causal_mask", f"def my_causal_mask(n):\n    {body}", capsys)
    assert out.startswith("✘ 1.2") and said in out


def test_the_mean_over_padding_is_called_that(capsys):
    out = attempt("sentence_vector", "def my_sentence_vector(states, lengths):\n    return torch.mean(states, dim=1)", capsys)
    assert "the mean runs over the padding too" in out


def test_argmax_over_the_wrong_axis_is_called_that(capsys):
    out = attempt("hidden_accuracy", "def my_hidden_accuracy(logits, targets, chosen):\n"
                  "    guess = torch.argmax(logits, dim=1)\n    return (guess == targets)[chosen].float().mean()", capsys)
    assert "the argmax runs over the wrong axis" in out


def test_an_argument_changed_in_place_is_named(capsys):
    out = attempt("mask_tokens", "def my_mask_tokens(ids, mask_id, generator):\n"
                  "    chosen = torch.rand(ids.shape, generator=generator) < 0.15\n"
                  "    ids[chosen] = mask_id\n    return ids, chosen", capsys)
    assert "your function changes its argument `ids` in place" in out


def test_an_error_inside_is_shown_as_the_learners_with_its_line(capsys):
    out = attempt("causal_mask", "def my_causal_mask(n):\n    square = torch.ones(n, n)\n    return square.trill()", capsys)
    assert "line 3 of my_causal_mask: return square.trill()" in out
    assert "AttributeError: 'Tensor' object has no attribute 'trill'" in out
    assert "It was called with n=5" in out


def test_an_error_in_a_helper_is_shown_where_it_happened(capsys):
    out = attempt("causal_mask", "def helper(n):\n    return 1 / (n - n)\n\ndef my_causal_mask(n):\n    return helper(n)", capsys)
    assert "line 2 of helper: return 1 / (n - n)" in out and "ZeroDivisionError" in out


def test_an_error_inside_pytorch_points_at_the_learners_line(capsys):
    out = attempt("safe_attention", "def my_safe_attention(q, k, v, mask):\n    return F.softmax(q @ k, -1) @ v", capsys)
    assert "line 2 of my_safe_attention" in out and "q=a tensor of shape (2, 3, 5, 11)" in out


def test_other_parameters_are_a_sentence_and_no_traceback(capsys):
    out = attempt("causal_mask", "def my_causal_mask():\n    return 1", capsys)
    assert "your function could not be called" in out and "n=5" in out


def test_a_result_handed_over_for_the_function(capsys):
    out = attempt("causal_mask", "my_causal_mask = torch.ones(3, 3)", capsys)
    assert "hand over the function itself" in out


@pytest.mark.parametrize("stub", [
    "def my_causal_mask(n):\n    pass", "def my_causal_mask(n):\n    ...", "def my_causal_mask(n):\n    \"\"\"Doc.\"\"\"",
    "def my_causal_mask(n):\n    raise NotImplementedError", "my_causal_mask = None", "my_causal_mask = ...",
])
def test_every_kind_of_untouched(stub, capsys):
    assert attempt("causal_mask", stub, capsys) == "○ 1.2 Write the causal mask: not attempted yet.\n"


def test_rows_may_be_tensors_and_an_empty_one_is_named(capsys):
    exercises.restart_rows.check(dict(encoder=torch.ones(6), decoder=None, cross=[1] * 5))
    assert "'decoder' is still empty" in capsys.readouterr().out
    exercises.restart_rows.check(dict(encoder=None, decoder=None, cross=None))
    assert "not attempted yet" in capsys.readouterr().out
    exercises.restart_rows.check([1] * 6)
    assert "keep the dict of the stub" in capsys.readouterr().out


def test_a_choice_explains_the_wrong_letter_and_takes_it_in_any_case(capsys):
    exercises.always_mask.check("D")
    assert "(d) is not it. It slows the masked loss down" in capsys.readouterr().out
    exercises.always_mask.check("(c)")
    assert capsys.readouterr().out.startswith("✔ 2.4")
