"""Compare a learner's result with the expected one, and say in words how they differ."""

from __future__ import annotations

import copy
import math
from numbers import Number

import numpy as np
import torch

WIDE, NARROW = (1e-4, 1e-5), (3e-2, 1e-2)  # relative and absolute tolerance; NARROW for 16-bit floats
ORDINALS = ("first", "second", "third", "fourth", "fifth")


def clone(value):
    """A deep copy in which tensors are fresh leaves; functions and modules are passed on as they are."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, (list, tuple)):
        return type(value)(clone(v) for v in value)
    if isinstance(value, dict):
        return {k: clone(v) for k, v in value.items()}
    if isinstance(value, torch.Generator):
        fresh = torch.Generator()
        fresh.set_state(value.get_state())
        return fresh
    return value if callable(value) else copy.deepcopy(value)


def changed(before, after) -> bool:
    """Did a function write into one of its arguments?"""
    if isinstance(before, torch.Tensor):
        return before.shape != after.shape or not torch.equal(before.nan_to_num(), after.detach().nan_to_num())
    if isinstance(before, (list, tuple)):
        return len(before) != len(after) or any(map(changed, before, after))
    if isinstance(before, dict):
        return before.keys() != after.keys() or any(changed(before[k], after[k]) for k in before)
    return not callable(before) and not isinstance(before, torch.Generator) and before != after


def same(got, want) -> bool:
    """Equal in kind, shape and, within the tolerance of the narrower float, in value."""
    return difference(got, want) is None


def difference(got, want, what: str = "the result") -> str | None:
    """Say how ``got`` differs from ``want``, or return None if it does not.

    Args:
        got: anything.
        want: a tensor, a number, a string, or a list, tuple or dict of these.
        what: how to name ``got`` in the sentence.
    Returns:
        A sentence that names the likely mistake if its kind is plain from the two values, else where they first differ.
    """
    if got is None and want is not None:
        return f"{what} is None; is a `return` missing?"
    if isinstance(want, torch.Tensor) and want.ndim == 0 and want.dtype != torch.bool:
        want = want.item()  # then a plain number will do as well
    if isinstance(want, torch.Tensor):
        return _kind(got, want, what) or _shape(got, want, what) or _values(got, want, what)
    if isinstance(want, dict):
        return _dict(got, want, what)
    if isinstance(want, tuple):
        return _tuple(got, want, what)
    if isinstance(want, list):
        return _list(got, want, what)
    if isinstance(want, Number):
        return _number(got, want, what)
    return None if got == want else f"{what} is {got!r}; expected {want!r}"


def _kind(got, want: torch.Tensor, what: str) -> str | None:
    if isinstance(got, np.ndarray):
        return f"{what} is a NumPy array where a tensor is wanted; use torch.from_numpy, or stay in PyTorch throughout"
    if isinstance(got, (list, tuple)):
        return f"{what} is a {type(got).__name__} where a tensor is wanted; wrap it in torch.tensor(...) or torch.stack(...)"
    if not isinstance(got, torch.Tensor):
        return f"{what} is a {type(got).__name__} where a tensor is wanted"
    if want.dtype == torch.bool and got.dtype != torch.bool:
        if got.is_floating_point() and got.isinf().any():
            return f"{what} holds 0 and -inf, the mask of the formula; code here takes boolean masks, True = may attend"
        return f"{what} has dtype {got.dtype}; masks here must be boolean: compare, or use .bool() or dtype=torch.bool"
    if want.dtype == torch.int64 and (got.is_floating_point() or got.dtype == torch.bool):
        return f"{what} has dtype {got.dtype}; whole numbers (torch.int64) are wanted here"
    return None


def _shape(got: torch.Tensor, want: torch.Tensor, what: str) -> str | None:
    if got.shape == want.shape:
        return None
    line = f"{what} has shape {tuple(got.shape)}; expected {tuple(want.shape)}"
    if sorted(got.shape) == sorted(want.shape) and got.ndim == want.ndim:
        return line + ": the axes are in another order"
    if got.squeeze().shape == want.squeeze().shape:
        return line + ": an axis of length 1 too many or too few"
    return line


def _values(got: torch.Tensor, want: torch.Tensor, what: str) -> str | None:
    narrow = got.dtype in (torch.float16, torch.bfloat16)
    relative, absolute = NARROW if narrow else WIDE
    exact = want.dtype in (torch.bool, torch.int64)
    a, b = got.detach().cpu().double(), want.detach().cpu().double()
    right = a == b if exact else torch.isclose(a, b, rtol=relative, atol=absolute, equal_nan=True)
    if right.all():
        return None
    where = tuple((~right).nonzero()[0].tolist())
    place = f"first difference at index {list(where)}: expected {_show(want[where])}, got {_show(got[where])}"
    if got.ndim and got.shape[-1] <= 8 and got.ndim > 1:
        row = where[:-1]
        place += f"\n  that row expected {_show(want[row])}\n  that row got      {_show(got[row])}"
    return f"{_name_it(a, b, want, what)}{place}"


def _name_it(a: torch.Tensor, b: torch.Tensor, want: torch.Tensor, what: str) -> str:
    """The mistakes that two tensors of one shape give away by themselves."""
    if a.isnan().any() and not b.isnan().any():
        return f"{what} holds NaN: somewhere 0/0, 0 × inf or inf - inf was computed; "
    if want.dtype == torch.bool and bool((a != b).all()):
        return f"{what} is inverted: True and False are exchanged everywhere; "
    if a.ndim >= 2 and a.shape[-1] == a.shape[-2] and torch.allclose(a.mT, b, rtol=1e-4, atol=1e-5):
        return f"{what} is transposed: its last two axes are exchanged; "
    if want.dtype != torch.bool and a.numel() > 1:
        if torch.allclose(a.flatten().sort().values, b.flatten().sort().values, rtol=1e-4, atol=1e-5):
            return f"{what} has the right numbers in the wrong order; "
        scale = (a * b).sum() / (b * b).sum()
        if scale.isfinite() and scale != 0 and torch.allclose(a, scale * b, rtol=1e-4, atol=1e-5):
            return f"{what} is {scale:.4g} times the expected one everywhere; "
    return ""


def _number(got, want, what: str) -> str | None:
    if isinstance(got, (torch.Tensor, np.ndarray)) and math.prod(got.shape) != 1:
        return f"{what} has shape {tuple(got.shape)} where one number is wanted; is a sum or mean missing?"
    try:
        if isinstance(got, (str, bool)) and not isinstance(want, bool):
            raise TypeError
        value = float(got)
    except (TypeError, ValueError):
        return f"{what} is {got!r} where a number is wanted"
    if math.isnan(value) or not math.isclose(value, float(want), rel_tol=WIDE[0], abs_tol=WIDE[1]):
        return f"expected {want:.6g}, got {value:.6g}"
    return None


def _tuple(got, want: tuple, what: str) -> str | None:
    if not isinstance(got, (tuple, list)):
        kind = f"one {type(got).__name__}"
        return f"{what} is {kind} where {len(want)} things are wanted: return them all, separated by commas"
    if len(got) != len(want):
        return f"{what} holds {len(got)} things where {len(want)} are wanted"
    parts = (difference(g, w, f"the {ORDINALS[i]} of the {len(want)} results") for i, (g, w) in enumerate(zip(got, want)))
    return next((p for p in parts if p), None)


def _list(got, want: list, what: str) -> str | None:
    if isinstance(got, (torch.Tensor, np.ndarray)):
        got = got.tolist()
    if not isinstance(got, (list, tuple)):
        return f"{what} is {type(got).__name__} where a list is wanted"
    if list(got) == want:
        return None
    if len(got) != len(want):
        return f"{what} has {len(got)} entries; expected {len(want)}. Expected {want}, got {list(got)}"
    first = next(i for i, (g, w) in enumerate(zip(got, want)) if g != w)
    return f"{what} first differs at index {first}: expected {want[first]!r}, got {got[first]!r}. Expected {want}, got {list(got)}"


def _dict(got, want: dict, what: str) -> str | None:
    if not isinstance(got, dict):
        return f"{what} is {type(got).__name__} where a dict with the keys {', '.join(want)} is wanted"
    if missing := [k for k in want if k not in got]:
        return f"{what} lacks the key {missing[0]!r}"
    return next((p for k in want if (p := difference(got[k], want[k], f"{what} at {k!r}"))), None)


def _show(value: torch.Tensor) -> str:
    if value.ndim:
        return "[" + ", ".join(_show(v) for v in value) + "]"
    x = value.item()
    return str(x) if isinstance(x, (bool, int)) else f"{x:.4g}"
