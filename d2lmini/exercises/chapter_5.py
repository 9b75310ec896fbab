"""Exercises of chapter 5: what a read costs, where it pays, and a head that answers queries from latents."""

from __future__ import annotations

import math

import torch

from .base import Mistake
from .code import Function, seeded
from .values import Field, Values, choice, options_as_text


def _read_flops(n, m, d):
    """FLOPs of M latents of width D that read N inputs, then attend to each other."""
    read = 4 * n * d**2 + 4 * m * d**2 + 4 * m * n * d
    among_themselves = 8 * m * d**2 + 4 * m**2 * d
    return read + among_themselves


_LARGEST = choice(
    "a",
    a=("4ND²", "The keys and values of all the inputs: it does not depend on M, and is the largest as long as M < D."),
    b=("4MND", "Scores and weighted sum of the read: it grows with M, and passes 4ND² at M = D."),
    c=("12MD²", "The latents' own projections: N does not occur in it."),
    d=("4M²D", "What the latents spend among themselves; it stays small while M is far below N."),
)
read_flops = Function(
    chapter=5, number=1, name="read_flops", title="FLOPs of a read", difficulty=2, minutes=12,
    why="A cost that you can write as a formula tells you which knob to turn before you have measured anything.",
    statement="Count the FLOPs of one cross-attention (M latents of width D read N inputs of width D) and of one self-attention "
              "among the latents. A multiply and an add count as two; matrix products only; leave out feed-forward layers. Four "
              "projections each: the read's keys and values are made for all N inputs, all else for M latents.",
    tip="A product of (a, b) with (b, c) costs 2abc. The read: keys and values 2 × 2ND²; queries and output 2 × 2MD²; scores and "
        "weighted sum 2 × 2MND. Then the same for M latents among themselves.",
    knowing="N occurs only to the first power: that is the whole point of the design.",
    answer=_read_flops, cases=lambda: [dict(n=4096, m=64, d=128), dict(n=101, m=7, d=13), dict(n=7, m=11, d=3)],
    mistakes=(
        Mistake("multiplies only", "a factor 2 is missing: a multiply and an add count as two operations",
                lambda n, m, d: _read_flops(n, m, d) / 2),
        Mistake("N squared", "you count N × N scores; M latents score N inputs, M × N", lambda n, m, d:
                _read_flops(n, m, d) - 4 * m * n * d + 4 * n * n * d),
        Mistake("keys for latents", "keys and values are made from the inputs, so their cost grows with N, not with M",
                lambda n, m, d: _read_flops(n, m, d) - 4 * n * d * d + 4 * m * d * d),
        Mistake("no projections", "only scores and weighted sums are counted; the projections are missing",
                lambda n, m, d: 4 * m * n * d + 4 * m * m * d),
        Mistake("read alone", "the self-attention among the latents is missing: 8MD² + 4M²D",
                lambda n, m, d: 4 * n * d * d + 4 * m * d * d + 4 * m * n * d),
    ),
    also_right=lambda n, m, d: float(2 * (2 * n * d * d + 6 * m * d * d + 2 * m * n * d + 2 * m * m * d)),
)
largest_term = Values(
    chapter=5, number=2, name="largest_term", title="Which term is the largest?", difficulty=1, minutes=6,
    why="A term that does not contain M cannot be made smaller by fewer latents.",
    statement="N = 4,096 inputs, width D = 128. Which term of exercise 5.1 is the largest at M = 16, 64 and 256 latents?\n\n"
              + options_as_text(_LARGEST),
    tip="Put the numbers in. Two of the terms meet where M equals D.",
    knowing="Below M = D the cost is that of making keys and values for all inputs; fewer latents then save almost nothing.",
    fields={"M = 16": _LARGEST, "M = 64": _LARGEST, "M = 256": Field(want="b", options=_LARGEST.options)},
    mistakes=(
        Mistake("the read at 16", "it grows with M", {"M = 16": "b", "M = 64": "a", "M = 256": "b"}),
        Mistake("inputs at 256", "the largest as long as M < D", {"M = 16": "a", "M = 64": "a", "M = 256": "a"}),
        Mistake("latents at 64", "it stays small while M is far below N", {"M = 16": "a", "M = 64": "d", "M = 256": "b"}),
        Mistake("one left out", "'M = 64' is still empty", {"M = 16": "a", "M = 64": None, "M = 256": "b"}),
    ),
    also_right={"M = 16": "A", "M = 64": "(a)", "M = 256": "b "},
)


def _crossing(value) -> str | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return f"{value!r} is not a number; give the number of inputs at which the two times are equal"
    if value < 1:
        return f"{value} is not a number of inputs; was the ratio of the times entered?"
    return None if value < 100_000 else f"{value} inputs is beyond any crossover here; were milliseconds or bytes entered?"


sweep_latents = Values(
    chapter=5, number=3, name="sweep_latents", title="Sweep M and find the crossover", difficulty=2, minutes=25,
    why="A cheaper order of growth says nothing about where it begins to be cheaper.",
    statement="Measure the forward time of full attention and of the Perceiver with M = 16, 64 and 256 latents at N from 32 to "
              "4,096, and find for each M the number of inputs from which the Perceiver is faster "
              "(`d2lmini.timing.sweep`, `crossover`). Predict first: does the crossover double when M doubles?",
    tip="`forward_case` of `d2lmini.costs` builds either design, `sweep(forward_case, sizes, kwargs=...)` times it, "
        "`crossover(sizes, full, perceiver)` reads the size between the points.",
    knowing="The crossover grows with M, but the FLOPs alone do not place it: the fixed cost of small calls has a say.",
    fields={name: Field(judge=_crossing) for name in ("M = 16", "M = 64", "M = 256")},
    given={"M = 16": 40, "M = 64": 90, "M = 256": 330},
    mistakes=(
        Mistake("a ratio", "was the ratio of the times entered?", {"M = 16": 0.4, "M = 64": 90, "M = 256": 330}),
        Mistake("bytes", "were milliseconds or bytes entered?", {"M = 16": 40, "M = 64": 4.7e9, "M = 256": 330}),
        Mistake("none found", "is still empty", {"M = 16": 40, "M = 64": 90, "M = 256": None}),
        Mistake("a text", "is not a number", {"M = 16": "about 40", "M = 64": 90, "M = 256": 330}),
    ),
    also_right={"M = 16": 32.0, "M = 64": 120.5, "M = 256": 400},
    worked="05_sweep_latents",
)


def _io_head(latents, queries, w_q, w_k, w_v):
    """K output queries read the latents, one head: (B, M, D), (K, D) -> (B, K, d_v).

    w_q and w_k (D, d_k), w_v (D, d_v).
    """
    scores = queries @ w_q @ (latents @ w_k).transpose(-2, -1) / math.sqrt(w_q.shape[-1])
    return scores.softmax(dim=-1) @ (latents @ w_v)


def _head_case(seed):
    shapes = dict(latents=(2, 7, 7), queries=(5, 7), w_q=(7, 3), w_k=(7, 3), w_v=(7, 11))
    return {name: seeded(seed + i, *shape) for i, (name, shape) in enumerate(shapes.items())}


def _head(latents, queries, w_q, w_k, w_v, *, scale=True, dim=-1, swap=False, pool=False, raw=False):
    asks, answers = (latents, queries.expand(len(latents), -1, -1)) if swap else (queries, latents)
    scores = asks @ w_q @ (answers @ w_k).mT / (math.sqrt(w_q.shape[-1]) if scale else 1)
    weights = torch.full_like(scores, 1 / scores.shape[-1]) if pool else scores.softmax(dim)
    return weights if raw else weights @ (answers @ w_v)


io_head = Function(
    chapter=5, number=4, name="io_head", title="A Perceiver IO head", difficulty=2, minutes=12,
    why="One set of latents, any number of questions: this is the part that makes the design an interface.",
    statement="From latents (B, M, D) and K output queries (K, D), shared by the batch, compute K answers per sequence by "
              "cross-attention with one head.",
    tip="Who asks? The output queries. Who answers? The latents. (K, d_k) @ (B, d_k, M) broadcasts over the batch by itself.",
    knowing="M never appears in the shape of the result: the number of answers is the number of questions.",
    answer=_io_head, cases=lambda: [_head_case(0), _head_case(20)],
    mistakes=(
        Mistake("latents ask", "the roles are exchanged: the output queries ask, and the latents hold keys and values",
                lambda *a: _head(*a, swap=True)),
        Mistake("no scale", "the scale is missing: divide the scores by the square root of d_k", lambda *a: _head(*a, scale=False)),
        Mistake("softmax over queries", "the softmax runs over the wrong axis, the queries; it belongs on the latents, dim=-1",
                lambda *a: _head(*a, dim=-2)),
        Mistake("mean of latents", "every query gets the mean of the latents: the scores are not used",
                lambda *a: _head(*a, pool=True)),
        Mistake("weights returned", "these are the weights; multiply them with the values", lambda *a: _head(*a, raw=True)),
    ),
    also_right=lambda *a: _head(*(t.double() for t in a)),
)
_WHEN = choice(
    "c",
    a=("Always: a read of M latents is cheaper than a read of N inputs.",
       "The latents must be made first, and that costs a read of all N inputs; one question alone does not pay it back."),
    b=("When there is exactly one output.", "Then one query can read the inputs itself at O(N), as much as filling one latent costs."),
    c=("When there are many outputs, or the latents think in several layers between reading and answering.",
       "O(MN + LM² + KM) against O(KN): with K well above M the second is larger, and it has no depth."),
    d=("When M is larger than N.", "Then nothing is compressed and every step costs more."),
)
io_when = Values(
    chapter=5, number=5, name="io_when", title="When the detour pays", difficulty=2, minutes=5,
    why="A bottleneck is a price; know what you buy with it.",
    statement="K output queries could also read the N inputs directly, at O(KN). When does the way over M latents win?\n\n"
              + options_as_text(_WHEN),
    tip="Compare MN + LM² + KM with KN, at K = 1 and at K = N.",
    knowing="With one output per input (K = N) the direct read is quadratic in N; over latents it stays linear.",
    fields={"": _WHEN},
    mistakes=(
        Mistake("always", "must be made first", "a"), Mistake("one output", "read the inputs itself", "b"),
        Mistake("M above N", "nothing is compressed", "d"), Mistake("no such letter", "answer with one letter", "e"),
    ),
    also_right="C",
)


def _weight_bytes(n, m, num_heads):
    """Bytes of float32 attention weights: (full self-attention, M latents reading)."""
    return 4 * num_heads * n * n, 4 * num_heads * m * n


weight_bytes = Function(
    chapter=5, number=6, name="weight_bytes", title="What the weights would weigh", difficulty=1, minutes=5,
    why="Long before time runs out, memory does: this is the number that ends a run.",
    statement="If the attention weights of all heads are written down in float32, how many bytes do they take, for full "
              "self-attention over N inputs and for M latents that read them? Put in N = 16,384 and four heads.",
    tip="A float32 has four bytes. How many weights are there per head?",
    knowing="At N = 16,384 and four heads that is 4.3 GB for a single layer; the fused kernel exists so as not to write it.",
    answer=_weight_bytes, cases=lambda: [dict(n=16384, m=64, num_heads=4), dict(n=101, m=7, num_heads=3)],
    mistakes=(
        Mistake("one head", "the heads are missing: each has weights of its own", lambda n, m, num_heads: (4 * n * n, 4 * m * n)),
        Mistake("counts numbers", "these are numbers, not bytes: a float32 has four bytes",
                lambda n, m, num_heads: (num_heads * n * n, num_heads * m * n)),
        Mistake("M squared", "the latents read the inputs: M × N weights, not M × M",
                lambda n, m, num_heads: (4 * num_heads * n * n, 4 * num_heads * m * m)),
        Mistake("lower half", "full attention has no mask: all N² weights are written, not half of them",
                lambda n, m, num_heads: (2 * num_heads * n * n, 4 * num_heads * m * n)),
    ),
    also_right=lambda n, m, num_heads: [torch.empty(num_heads, q, n, device="meta").nbytes for q in (n, m)],
)
