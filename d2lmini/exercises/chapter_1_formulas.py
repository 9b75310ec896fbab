"""Exercises of chapter 1, the rest: the three formulas side by side, and how to see that order is lost."""

from __future__ import annotations

import math

import torch

from .base import Mistake
from .code import Function, seeded


def _formulas(x, y, w_q, w_k, w_v):
    """Attention without heads: (full over x, causal over x, cross from y to x).

    x (B, S, D), y (B, T, D); w_q and w_k (D, d_k), w_v (D, d_v): queries are x @ w_q.
    """
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    scores = q @ k.transpose(-2, -1) / math.sqrt(w_q.shape[-1])
    seen = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
    full = scores.softmax(-1) @ v
    causal = scores.masked_fill(~seen, -math.inf).softmax(-1) @ v
    cross = (y @ w_q @ k.transpose(-2, -1) / math.sqrt(w_q.shape[-1])).softmax(-1) @ v
    return full, causal, cross


def _case(seed):
    shapes = dict(x=(2, 5, 11), y=(2, 7, 11), w_q=(11, 3), w_k=(11, 3), w_v=(11, 13))
    return {name: seeded(seed + i, *shape) / (1 if name in "xy" else 3) for i, (name, shape) in enumerate(shapes.items())}


def _variant(scale=None, hide=1, keys="x", queries="y", cross_hide=None, dim=-1):
    """The three formulas with one thing wrong."""
    def attend(a, b, w_q, w_k, w_v, diagonal=None, values=None):
        scores = (a @ w_q) @ (b @ w_k).mT / (math.sqrt(w_q.shape[-1]) if scale is None else scale(w_q))
        if diagonal is not None:
            scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(diagonal), -math.inf)
        return scores.softmax(dim).nan_to_num() @ ((b if values is None else values) @ w_v)

    def answer(x, y, *w):
        sides = dict(x=x, y=y)
        return attend(x, x, *w), attend(x, x, *w, diagonal=hide), attend(sides[queries], sides[keys], *w, diagonal=cross_hide)
    return answer


formulas = Function(
    chapter=1, number=6, name="formulas", title="Three formulas from memory", difficulty=2, minutes=12,
    why="If you can write these three without looking, you own the chapter.",
    statement="From memory, in one function: full self-attention over $x$, causal self-attention over $x$, and cross-attention "
              "in which $y$ asks and $x$ answers. One head, no masks but the causal one.",
    tip="All three are softmax(Q K^T / sqrt(d_k) + M) V. Only two things change: M, and whose rows become Q. "
        "Keys and values always come from the same sequence.",
    knowing="Between the three only the mask and the origin of the queries changed: the two open questions of the chapter.",
    answer=_formulas, cases=lambda: [_case(0), _case(30)],
    mistakes=(
        Mistake("no scale", "the scale is missing: divide the scores by the square root of d_k, the width of a query",
                _variant(scale=lambda w: 1.0)),
        Mistake("scales by D", "the scores are divided by the root of D; what counts is d_k, the width of a query",
                _variant(scale=lambda w: math.sqrt(w.shape[0]))),
        Mistake("cross reversed", "in cross-attention the roles are exchanged: y asks (queries), x answers (keys and values)",
                _variant(queries="x", keys="y")),
        Mistake("cross is self", "the third is self-attention over y; its keys and values should come from x",
                _variant(keys="y")),
        Mistake("causal cross", "cross-attention has a causal mask; the whole of x is there, so none is needed",
                _variant(cross_hide=1)),
        Mistake("blind to itself", "the causal mask hides the diagonal: a position may see itself",
                _variant(hide=0)),
        Mistake("softmax over queries", "the softmax runs over the wrong axis, the queries; it belongs on the keys, dim=-1",
                _variant(dim=-2)),
    ),
    also_right=lambda *a: _variant()(*(t.double() for t in a)),
)


def _shuffle_gap(f, x, order):
    """The largest absolute difference between shuffling tokens after f and before f.

    f maps x (B, T, D) to (B, T, D); order (T,) int64 is the permutation.
    """
    return (f(x)[:, order] - f(x[:, order])).abs().max()


def _mix(x):
    """Attention of every token to every token: order does not matter."""
    return (x @ x.mT).softmax(-1) @ x


def _running_mean(x):
    """What uniform causal attention gives: order matters."""
    return x.cumsum(1) / torch.arange(1, x.shape[1] + 1)[:, None]


def _gap_cases():
    order = torch.randperm(7, generator=torch.Generator().manual_seed(2))
    return [dict(f=f, x=seeded(3, 3, 7, 5), order=order) for f in (_running_mean, _mix, lambda x: x)]


shuffle_gap = Function(
    chapter=1, number=7, name="shuffle_gap", title="Does it notice the order?", difficulty=2, minutes=8,
    why="One number tells whether a layer reads a sentence or a bag of words.",
    statement="Write the measurement of section 1.6 for any layer $f$: how far apart are \"shuffle, then $f$\" and \"$f$, then "
              "shuffle\"? Return the largest absolute difference. Then try it on `F.layer_norm`, on your attention, on anything.",
    tip="Indexing with a permutation along the token axis is `x[:, order]`. Apply it to the input of one and the output of "
        "the other.",
    knowing="0 means equivariant: without positions or a causal mask, no amount of such layers can tell an order.",
    answer=_shuffle_gap, cases=_gap_cases,
    mistakes=(
        Mistake("only the input", "you compare the shuffled run with the plain one; the plain output must be shuffled as well",
                lambda f, x, order: (f(x) - f(x[:, order])).abs().max()),
        Mistake("no absolute value", "the largest difference with its sign; take the absolute value first, or negative ones vanish",
                lambda f, x, order: (f(x)[:, order] - f(x[:, order])).max()),
        Mistake("mean for max", "this is the mean difference; the largest one is asked for",
                lambda f, x, order: (f(x)[:, order] - f(x[:, order])).abs().mean()),
        Mistake("shuffles features", "you shuffle another axis than the tokens",
                lambda f, x, order: (f(x)[:, :, order % 5] - f(x[:, :, order % 5])).abs().max()),
    ),
    also_right=lambda f, x, order: float((f(x.double())[:, order] - f(x.double()[:, order])).abs().max()),
)
