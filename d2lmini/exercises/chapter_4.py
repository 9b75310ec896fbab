"""Exercises of chapter 4: a wider model, other alignments, span corruption, and what an alignment score measures."""

from __future__ import annotations

import torch

from .base import Mistake
from .code import Function, seeded
from .values import Field, Values, choice, options_as_text, share

_SOLVED = share(0.95, 1.0, "the task is not solved yet, so the map says nothing; train longer before you compare", "")
_RUN = {"exact match": 1.0, "hit rate": 0.4, "mass": 0.3}

two_blocks = Values(
    chapter=4, number=1, name="two_blocks", title="Two blocks and more heads", difficulty=2, minutes=25,
    why="A map that was readable in a small model invites you to read it in a large one; try before you trust it.",
    statement="Build the chapter's model with two blocks per tower and eight heads, train it on the same strings, and measure the "
              "three numbers of this chapter on fresh ones: greedy exact match, the alignment's hit rate and its mass (take the "
              "last block's cross-attention, averaged over the heads). First predict: which of the three will move?",
    tip="`Config(..., num_layers=2, num_heads=8)` is all that changes; the trace then holds `decoder.1.cross`. Give it more steps than "
        "the chapter's model: with the same ones the wider model is not there yet, and its map says nothing.",
    knowing="Solved or nearly, and hit rate and mass are free to go anywhere: more blocks are more places to move content. In the "
            "worked solution one seed hits everywhere and the other almost nowhere.",
    fields={"exact match": Field(judge=_SOLVED), "hit rate": Field(judge=share(0, 1, "", "")), "mass": Field(judge=share(0, 1, "", ""))},
    given=_RUN,
    mistakes=(
        Mistake("not trained", "the task is not solved yet", _RUN | {"exact match": 0.4}),
        Mistake("percent", "divide the percentage by 100", _RUN | {"hit rate": 40}),
        Mistake("weights summed", "is not a share between 0 and 1", _RUN | {"mass": 120.0}),
        Mistake("mass left out", "'mass' is still empty", _RUN | {"mass": None}),
    ),
    also_right={"exact match": 0.998, "hit rate": 1.0, "mass": 0.92},
    worked="04_two_blocks",
)


def _alignment(task, length):
    """For each target position the source position whose letter it writes, a list.

    task is "copy", "reverse" or "reverse-then-copy"; positions count from 0.
    """
    places = list(range(length))
    return {"copy": places, "reverse": places[::-1], "reverse-then-copy": places[::-1] + places}[task]


alignment = Function(
    chapter=4, number=2, name="alignment", title="Predict the heatmap", difficulty=1, minutes=12,
    why="A figure that you could have drawn beforehand confirms something; one that you could not have drawn only decorates.",
    statement="For copying, reversing, and reversing then copying: which source position does each target position have to look "
              "at? Write the list. Then train on `ToyTask(\"copy\")` and on `ToyTask(\"reverse-then-copy\")` and hold the heatmap "
              "of cross-attention against your list.",
    tip="Target position 0 is the step at which the model has read only the start token and *writes* the first letter. Where does "
        "that letter stand in the source?",
    knowing="Copying gives the diagonal, reversing the anti-diagonal, and the two together a V lying on its side.",
    answer=_alignment, cases=lambda: [dict(task=t, length=n) for t in ("copy", "reverse", "reverse-then-copy") for n in (5, 7)],
    mistakes=(
        Mistake("the read letter", "off by one: these are the positions of the letters already read; a position *writes* the next",
                lambda task, length: [max(i - 1, 0) for i in _alignment(task, length)] if task == "copy" else
                [i + 1 for i in _alignment(task, length)]),
        Mistake("counts from 1", "off by one: positions count from 0",
                lambda task, length: [i + 1 for i in _alignment(task, length)]),
        Mistake("always reversed", "copying does not reverse: its map is the diagonal",
                lambda task, length: (list(range(length))[::-1] * 2)[:len(_alignment(task, length))]),
        Mistake("copies first", "in reverse-then-copy the reversed half comes first",
                lambda task, length: _alignment(task, length)[length:] + _alignment(task, length)[:length]),
        Mistake("goes on counting", "the second half copies the same source again: its positions are 0 to length - 1, not beyond",
                lambda task, length: _alignment(task, length)[:length] + [i + length for i in _alignment(task, length)[length:]]),
    ),
    also_right=lambda task, length: torch.tensor(
        [length - 1 - t for t in range(length) if task != "copy"] + [t for t in range(length) if task != "reverse"]),
    worked="04_copy_and_reverse",
)


def _corrupt(tokens, spans, sentinels):
    """T5's span corruption: (input, target), two lists.

    spans are (start, end) pairs in order, end exclusive; one sentinel stands for each
    in the input; the target names it and writes the span, and one more ends it.
    """
    source, target, place = [], [], 0
    for (start, end), sentinel in zip(spans, sentinels):
        source += [*tokens[place:start], sentinel]
        target += [sentinel, *tokens[start:end]]
        place = end
    return source + list(tokens[place:]), target + [sentinels[len(spans)]]


def _cut(tokens, spans, sentinels, *, close=True, behind=False, one=False, keep=False, tail=True, inclusive=False):
    source, target, place = [], [], 0
    for i, (start, end) in enumerate(spans):
        mark, end = sentinels[0 if one else i], end + inclusive
        source += [*tokens[place:start], mark, *(tokens[start:end] if keep else ())]
        target += [*tokens[start:end], mark] if behind else [mark, *tokens[start:end]]
        place = end
    return source + list(tokens[place:] if tail else ()), target + ([sentinels[len(spans)]] if close else [])


_WORDS = "Thank you for inviting me to your party last week".split()
corrupt = Function(
    chapter=4, number=3, name="corrupt", title="Span corruption", difficulty=2, minutes=12,
    why="It turns any text into a source and a target, which is how an encoder–decoder learns from unlabelled text.",
    statement="Write it: `Thank you for inviting me to your party last week` with two spans cut out becomes "
              "`Thank you <X> me to your party <Y> week`, and the target is `<X> for inviting <Y> last <Z>`.",
    tip="Walk through the spans and remember where the last one ended. What stands between two spans goes to the input.",
    knowing="The target is short: the decoder writes 15% of the text and not all of it, and that is what makes it cheap.",
    answer=_corrupt,
    cases=lambda: [dict(tokens=list(_WORDS), spans=[(2, 4), (8, 9)], sentinels=["<X>", "<Y>", "<Z>"]),
                   dict(tokens=list("abcdefg"), spans=[(0, 1), (2, 5)], sentinels=["1", "2", "3"])],
    mistakes=(
        Mistake("no closing sentinel", "the closing sentinel is missing: the target ends in one more, which says that nothing follows",
                lambda *a: _cut(*a, close=False)),
        Mistake("sentinel behind", "in the target the sentinel comes before its span: it says what is coming",
                lambda *a: _cut(*a, behind=True)),
        Mistake("one for all", "every span needs a sentinel of its own, or the target cannot say which one it fills",
                lambda *a: _cut(*a, one=True)),
        Mistake("cuts nothing", "the spans are still in the input: replace them, or there is nothing to predict",
                lambda *a: _cut(*a, keep=True)),
        Mistake("loses the end", "what stands behind the last span is missing from the input", lambda *a: _cut(*a, tail=False)),
        Mistake("end inclusive", "the spans are one token too long: their end is exclusive, as in a slice",
                lambda *a: _cut(*a, inclusive=True)),
    ),
    also_right=_cut,
)
_WHY = choice(
    "b",
    a=("Because a causal mask needs a square, and T × S is a rectangle.",
       "A triangle can be cut from a rectangle as well; here it would only hide source tokens that are needed."),
    b=("Because the whole source is there before the first target token: no key lies in the future.",
       "Causality concerns tokens that are not written yet, and those are the target's own."),
    c=("Because the encoder's mask was causal already.", "An encoder's is not; it reads both ways."),
    d=("Because cross-attention is not trained in parallel.", "It is, at all target positions at once, and still needs no mask but padding's."),
)
no_causal = Values(
    chapter=4, number=4, name="no_causal", title="No causal mask across", difficulty=1, minutes=4,
    why="Interviewers ask it, because the answer shows whether a mask is a shape to you or a reason.",
    statement="Why is there no causal mask in cross-attention?\n\n" + options_as_text(_WHY),
    tip="What does the causal mask protect against? Is there anything of the kind among the keys of cross-attention?",
    knowing="The last letter of the source may decide the first of the target; in reversal it does.",
    fields={"": _WHY},
    mistakes=(
        Mistake("a", "cut from a rectangle as well", "a"), Mistake("c", "it reads both ways", "c"),
        Mistake("d", "at all target positions at once", "d"), Mistake("a number", "answer with one letter", 2),
    ),
    also_right="B",
)


def _hit_rate(weights, alignment):
    """The share of target positions whose head-averaged weight is largest in place.

    weights (B, H, T, S); alignment (T,) int64: each one's right source position.
    """
    return (weights.mean(dim=1).argmax(dim=-1) == alignment).float().mean().item()


def _map_case(seed):
    order = torch.randperm(7, generator=torch.Generator().manual_seed(seed))
    right = torch.nn.functional.one_hot(order, 7)
    return dict(weights=(1.5 * seeded(seed, 5, 3, 7, 7) + right).softmax(-1), alignment=order)


hit_rate = Function(
    chapter=4, number=5, name="hit_rate", title="The hit rate", difficulty=2, minutes=8,
    why="Average first or argmax first: two numbers, both called alignment in papers, and they can differ by half.",
    statement="Write the measure of this chapter: average the weights over the heads, take for each target position the source "
              "position with the largest weight, and count how often it is the right one.",
    tip="(B, H, T, S): the heads are axis 1. After the mean over them the source is the last axis; compare its argmax with "
        "`alignment`, which broadcasts over the batch.",
    knowing="One head that looks elsewhere with all its weight can outvote three that look right: a rate hides who looked.",
    answer=_hit_rate, cases=lambda: [_map_case(0), _map_case(6)],
    mistakes=(
        Mistake("argmax over targets", "the argmax runs over the wrong axis, the target positions; it belongs on the source, dim=-1",
                lambda weights, alignment: (weights.mean(1).argmax(1) == alignment).float().mean()),
        Mistake("heads after argmax", "you take the argmax of each head and average the hits; average the weights first",
                lambda weights, alignment: (weights.argmax(-1) == alignment).float().mean()),
        Mistake("the mass", "this is the mean weight at the right place, the mass; the hit rate counts argmaxes",
                lambda weights, alignment: weights.mean(1)[:, torch.arange(len(alignment)), alignment].mean()),
        Mistake("whole rows", "you count strings in which every position hits; count positions",
                lambda weights, alignment: (weights.mean(1).argmax(-1) == alignment).all(-1).float().mean()),
        Mistake("first head", "you look at one head only; average over all of them",
                lambda weights, alignment: (weights[:, 0].argmax(-1) == alignment).float().mean()),
        Mistake("a count", "this is a count; divide by the number of positions",
                lambda weights, alignment: (weights.mean(1).argmax(-1) == alignment).sum()),
    ),
    also_right=lambda weights, alignment: (weights.double().sum(1).max(-1).indices == alignment).double().mean(),
)
