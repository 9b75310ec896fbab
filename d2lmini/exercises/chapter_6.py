"""Exercises of chapter 6: the stream as a sum, a norm on both sides, and the norm itself."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .base import Mistake
from .code import Complaint, Function, seeded
from .values import Field, Values


def _unrolled(x0, branches, norm):
    """The terms that a pre-norm stack adds to x0, one per sub-layer, as a list.

    branches are functions of (B, T, D), so is norm: x0 + sum of the terms = output.
    """
    x, terms = x0, []
    for branch in branches:
        terms.append(branch(norm(x)))
        x = x + terms[-1]
    return terms


def _terms_add_up(terms, arguments):
    """The list of terms as one tensor."""
    x0, count = arguments["x0"], len(arguments["branches"])
    if not isinstance(terms, (list, tuple)) or not all(isinstance(t, torch.Tensor) for t in terms):
        kind = f"a tensor of shape {tuple(terms.shape)}" if isinstance(terms, torch.Tensor) else f"of type {type(terms).__name__}"
        raise Complaint(f"a list of {count} tensors is wanted, the terms added to x0; this is {kind}"
                        if terms is not None else "the result is None; is a `return` missing?")
    if len(terms) == count + 1 and terms[0].shape == x0.shape and torch.allclose(terms[0].double(), x0.double()):
        raise Complaint("the first entry is x0 itself; the list should hold only what is added to it")
    if len(terms) != count:
        raise Complaint(f"the list has {len(terms)} terms; there are {count} sub-layers, and each adds one")
    return torch.stack([t.double() for t in terms])


def _branch(seed):
    w = seeded(seed, 7, 7)
    return lambda x: torch.tanh(x @ w)


def _stack_cases():
    norm = lambda x: F.layer_norm(x, x.shape[-1:])  # noqa: E731
    return [dict(x0=3 * seeded(1, 2, 5, 7), branches=[_branch(s) for s in range(n)], norm=norm) for n in (3, 5)]


def _outputs(x0, branches, norm):
    x, found = x0, []
    for branch in branches:
        x = x + branch(norm(x))
        found.append(x)
    return found


def _post(x0, branches, norm):
    x, terms = x0, []
    for branch in branches:
        terms.append(branch(x))
        x = norm(x + terms[-1])
    return terms


def _bare(x0, branches, norm):
    return [b - a for a, b in zip([x0, *_outputs(x0, branches, lambda x: x)], _outputs(x0, branches, lambda x: x))]


unrolled = Function(
    chapter=6, number=1, name="unrolled", title="Unroll the pre-norm stack", difficulty=2, minutes=12,
    why="The identity term of the chapter's argument is not a metaphor; here you can hold it in your hand.",
    statement="Write out three pre-norm sub-layers by hand first, until only $x_0$ and branches are left: "
              "$x_3 = x_0 + \\dots$ Then write the function that returns the terms behind the first plus sign, for any number of "
              "sub-layers. The check adds them up.",
    tip="What goes into the second branch's norm is the stream at that point: x0 plus the first term, and not x0.",
    knowing="x₃ = x₀ + f₀(LN(x₀)) + f₁(LN(x₁)) + f₂(LN(x₂)): a gradient at the end reaches x₀ through the first term untouched.",
    answer=_unrolled, cases=_stack_cases, tidy=_terms_add_up,
    mistakes=(
        Mistake("all from x0", "every branch reads x0; each should read the stream as it is then, with the earlier terms in it",
                lambda x0, branches, norm: [b(norm(x0)) for b in branches]),
        Mistake("no norm", "the branches read the stream without the norm: f(norm(x)), not f(x)", _bare),
        Mistake("post-norm", "this is post-norm: the stream is normalised after the sum; in pre-norm it is never touched", _post),
        Mistake("the streams", "these are the streams x₁, x₂, x₃ and not the terms that are added", _outputs),
        Mistake("x0 included", "the first entry is x0 itself", lambda x0, branches, norm: [x0, *_unrolled(x0, branches, norm)]),
        Mistake("norm of the term", "the norm is applied to what the branch gives; pre-norm applies it to what the branch reads",
                lambda x0, branches, norm: [norm(t) for t in _bare(x0, branches, norm)]),
        Mistake("the sum", "a list of 3 tensors is wanted", lambda x0, branches, norm: sum(_unrolled(x0, branches, norm))),
    ),
    also_right=lambda x0, branches, norm: tuple(
        b.double() - a.double() for a, b in zip([x0, *_outputs(x0, branches, norm)], _outputs(x0, branches, norm))),
)


def _sandwich(x, norm_in, branch, norm_out):
    """One sub-layer with a norm on both sides of its branch; all (B, T, D)."""
    return x + norm_out(branch(norm_in(x)))


def _sandwich_cases():
    gain = 1 + seeded(5, 7) / 3
    scale = lambda x: 2 * F.rms_norm(x, (7,))  # noqa: E731
    return [dict(x=seeded(s, 2, 5, 7), norm_in=lambda x: F.layer_norm(x, (7,), gain), branch=_branch(s + 3), norm_out=scale)
            for s in (0, 1)]


sandwich = Function(
    chapter=6, number=2, name="sandwich", title="A sandwich norm", difficulty=2, minutes=25,
    why="Several large models of today put a norm on both sides; you can measure what the second one does.",
    statement="Write the sub-layer whose branch is normalised on both sides: before it reads and before it is added. Then put it into "
              "the gradient experiment of this chapter as a third arm: how do the gradients run from the last layer to the "
              "embeddings? Predict first: like pre-norm, or like post-norm?",
    tip="The stream itself must stay untouched; both norms act inside the branch.",
    knowing="The stream keeps its identity term, as in pre-norm, and every branch now adds the same amount, however large its weights.",
    answer=_sandwich, cases=_sandwich_cases,
    mistakes=(
        Mistake("post on the sum", "the second norm is applied to the sum; it belongs to the branch, before the sum, so that the "
                "stream stays untouched", lambda x, norm_in, branch, norm_out: norm_out(x + branch(norm_in(x)))),
        Mistake("pre-norm only", "this is pre-norm: the norm behind the branch is missing",
                lambda x, norm_in, branch, norm_out: x + branch(norm_in(x))),
        Mistake("norm behind only", "the norm in front of the branch is missing",
                lambda x, norm_in, branch, norm_out: x + norm_out(branch(x))),
        Mistake("no residual", "the residual connection is missing: add x itself",
                lambda x, norm_in, branch, norm_out: norm_out(branch(norm_in(x)))),
        Mistake("exchanged", "the two norms are exchanged", lambda x, norm_in, branch, norm_out: x + norm_in(branch(norm_out(x)))),
        Mistake("normed residual", "the stream is replaced by its normalised form; what is added to must be x itself",
                lambda x, norm_in, branch, norm_out: norm_in(x) + norm_out(branch(norm_in(x)))),
    ),
    also_right=lambda x, norm_in, branch, norm_out: norm_out(branch(norm_in(x.clone()))).double() + x,
    worked="06_sandwich_norm",
)


def _layer_norm(x, gain, bias, eps):
    """LayerNorm over the last axis of x (B, T, D); gain and bias are (D,)."""
    centred = x - x.mean(dim=-1, keepdim=True)
    variance = centred.square().mean(dim=-1, keepdim=True)
    return gain * centred / (variance + eps).sqrt() + bias


def _norm_but(centre=True, unbiased=False, dim=-1, outside=False, swap=False):
    def wrong(x, gain, bias, eps):
        middle = x.mean(dim, keepdim=True) if centre else 0
        v = x.var(dim, keepdim=True, unbiased=unbiased) if centre else x.square().mean(dim, keepdim=True)
        y = (x - middle) / (v.sqrt() + eps if outside else (v + eps).sqrt())
        return (y + bias) * gain if swap else gain * y + bias
    return wrong


layer_norm = Function(
    chapter=6, number=3, name="layer_norm", title="LayerNorm by hand", difficulty=1, minutes=8,
    why="Five small decisions hide in one name, and two libraries that decide differently will not load each other's weights.",
    statement="Write LayerNorm for the last axis: subtract the mean, divide by the root of the variance plus `eps`, scale by the gain, "
              "add the bias. Then compare with chapter 1's RMSNorm: what is left out there?",
    tip="`mean(dim=-1, keepdim=True)`. The variance here is the mean of the squares, divided by D and not by D - 1.",
    knowing="RMSNorm leaves out the mean and the bias; LLaMA and its successors do without both.",
    answer=_layer_norm,
    cases=lambda: [dict(x=2 + seeded(s, 5, 7, 5), gain=seeded(s + 1, 5), bias=seeded(s + 2, 5), eps=0.1) for s in (0, 7)],
    mistakes=(
        Mistake("D - 1", "the variance divides by D - 1 (torch's default); LayerNorm divides by D: unbiased=False",
                _norm_but(unbiased=True)),
        Mistake("no mean", "the mean is not subtracted: this is RMSNorm with a bias", _norm_but(centre=False)),
        Mistake("wrong axis", "mean and variance run over the wrong axis; each token is normalised by itself, dim=-1", _norm_but(dim=0)),
        Mistake("std() + eps", "two things: torch's std divides by D - 1 where LayerNorm divides by D (unbiased=False), and eps belongs "
                "under the root", _norm_but(unbiased=True, outside=True)),
        Mistake("eps outside", "eps is added to the root; it belongs under it", _norm_but(outside=True)),
        Mistake("bias before gain", "the bias is scaled too: multiply by the gain first, then add", _norm_but(swap=True)),
    ),
    also_right=lambda x, gain, bias, eps: F.layer_norm(x.double(), (5,), gain.double(), bias.double(), eps),
)
norm_count = Values(
    chapter=6, number=4, name="norm_count", title="Count the norms", difficulty=1, minutes=5,
    why="The final norm of pre-norm is the one that is forgotten when weights are ported.",
    statement="A decoder of 12 blocks, each with self-attention and a feed-forward layer. How many norms does the whole stack hold "
              "under post-norm, under pre-norm (with the final norm it needs), and as a sandwich (with a final norm too)?",
    tip="Count per sub-layer, then ask what the last stream has passed through before it meets the output head.",
    knowing="Pre-norm has one more: its stream is never normalised on the way, so somebody must do it at the end.",
    fields={
        "post": Field(want=24, wrong=((25, "post-norm needs no final norm: the stream leaves its last norm just before the head"),
                                      (12, "that is one per block; each block has two sub-layers"))),
        "pre": Field(want=25, wrong=((24, "the final norm is missing"), (13, "each block has two sub-layers"))),
        "sandwich": Field(want=49, wrong=((48, "the final norm is missing"), (25, "each branch has a norm on both sides"),
                                          (50, "one final norm, not two"))),
    },
    mistakes=(
        Mistake("final for post", "post-norm needs no final norm", {"post": 25, "pre": 25, "sandwich": 49}),
        Mistake("none for pre", "pre: the final norm is missing", {"post": 24, "pre": 24, "sandwich": 49}),
        Mistake("per block", "each block has two sub-layers", {"post": 12, "pre": 13, "sandwich": 25}),
        Mistake("one side", "on both sides", {"post": 24, "pre": 25, "sandwich": 25}),
    ),
    also_right={"post": 24.0, "pre": torch.tensor(25), "sandwich": 49},
)
