"""Exercises of chapter 7: which family for which task, the interview questions, counting parameters, comparing runs."""

from __future__ import annotations

import math

import torch

from .base import Mistake
from .code import Function, seeded
from .values import Field, Values, choice, options_as_text

_TICKETS = choice(
    "a",
    a=("encoder-only", "The whole ticket is there and nothing is to be written: one pass, both sides in view."),
    b=("decoder-only", "It can write the label, but at the price of a larger model and a generation loop."),
    c=("encoder–decoder", "Its decoder would be built to write one single token."))
_TRANSLATION = choice(
    "c",
    a=("encoder-only", "It can only write by adding masks and reading all again, for a target of unknown length."),
    b=("decoder-only", "Source and target behind one another in one context; with a large model this is as good."),
    c=("encoder–decoder", "A complete source, a target of its own length: what it was built for."))
_CHAT = choice(
    "b",
    a=("encoder-only", "With a mask at the end it can be asked what follows: one pass a token, nothing kept, the worst bits of the four."),
    b=("decoder-only", "Open-ended writing over a conversation that only grows, with one cache."),
    c=("encoder–decoder", "Every turn would change the source, and the encoder would read everything again."))
families = Values(
    chapter=7, number=1, name="families", title="A family for each task", difficulty=1, minutes=6,
    why="The first decision of a project, and the one that is hardest to take back.",
    statement="Which family would you try first for (1) classifying support tickets, (2) translating documents, (3) a chat "
              "assistant?\n\n- (a) encoder-only\n- (b) decoder-only\n- (c) encoder–decoder\n\nFor one of them two answers pass.",
    tip="Ask two things of each: is all of the input there before you begin? And is anything to be written?",
    knowing="The question is not which family is best but what is given and what is to be written.",
    fields={"tickets": _TICKETS, "translation": Field(want="c", options=_TRANSLATION.options, accepted=("b",)), "chat": _CHAT},
    mistakes=(
        Mistake("decoder for tickets", "at the price of a larger model", {"tickets": "b", "translation": "c", "chat": "b"}),
        Mistake("encoder translates", "a target of unknown length", {"tickets": "a", "translation": "a", "chat": "b"}),
        Mistake("encoder chats", "one pass a token, nothing kept", {"tickets": "a", "translation": "c", "chat": "a"}),
        Mistake("two towers chat", "would read everything again", {"tickets": "a", "translation": "c", "chat": "c"}),
        Mistake("names for letters", "answer with one letter", {"tickets": "encoder-only", "translation": "c", "chat": "b"}),
    ),
    also_right={"tickets": "A", "translation": "b", "chat": "(b)"},
)
_BERT = choice(
    "b",
    a=("It reads left to right.", "It does not; a decoder does. BERT sees both sides at once."),
    b=("It is the encoder's half alone: full attention, and no decoder that writes.", "The mask and the missing decoder make the name."),
    c=("It encodes a text into one single vector.", "It gives one vector per token; a single one is made from these."))
_ASSISTANTS = choice(
    "c",
    a=("A causal mask understands text better.", "It sees less. At equal size the encoder read better in this chapter."),
    b=("Encoders cannot be trained on unlabelled text.", "Masked language modelling does just that."),
    c=("One objective on all text, one stack, one cache, and every task can be put as a continuation.",
       "From pretraining to preference tuning the interface stays the same, and every parameter serves the writing."))
_STILL = choice(
    "a",
    a=("When a complete source is turned into another sequence: translation, summaries, speech.", "And when one source is read once and answered often."),
    b=("Never; large decoders have replaced it.", "Speech recognisers and many translators in use are encoder–decoders."),
    c=("Whenever the text is long.", "Length decides nothing by itself; a decoder's context may be just as long."))
_ADDS = choice(
    "b",
    a=("A second vocabulary.", "The towers usually share one."),
    b=("Cross-attention.", "Queries from the target, keys and values from the source, with weights of its own."),
    c=("A causal mask over the source.", "The source is read with both sides in view."))
_ASKED = {"why is BERT encoder-only": _BERT, "why decoder-only assistants": _ASSISTANTS, "when encoder-decoder still": _STILL,
          "what does it add": _ADDS}
_RIGHT = {name: one.want for name, one in _ASKED.items()}
interview = Values(
    chapter=7, number=2, name="interview", title="Four interview questions", difficulty=1, minutes=8,
    why="Each is asked often, and each has a wrong answer that sounds right.",
    statement="\n\n".join(f"**{name[0].upper() + name[1:]}?**\n\n{options_as_text(one)}" for name, one in _ASKED.items()),
    tip="Every wrong option names something true of another family, or something true of none.",
    knowing="If you can say why the wrong ones are wrong, you have the chapter.",
    fields=_ASKED,
    mistakes=(
        Mistake("left to right", "a decoder does", _RIGHT | {"why is BERT encoder-only": "a"}),
        Mistake("causal is better", "It sees less", _RIGHT | {"why decoder-only assistants": "a"}),
        Mistake("never", "Speech recognisers", _RIGHT | {"when encoder-decoder still": "b"}),
        Mistake("a causal source", "with both sides in view", _RIGHT | {"what does it add": "c"}),
    ),
    also_right={name: f"({letter.upper()})" for name, letter in _RIGHT.items()},
)


def _parameters(vocab, d, layers, f):
    """Parameters of a decoder, (tied, untied): the head is the token table, or its own.

    Pre-norm RMSNorm with a final norm, no biases, SwiGLU of width f, rotary positions.
    """
    block = 4 * d * d + 3 * d * f + 2 * d
    tied = vocab * d + layers * block + d
    return tied, tied + vocab * d


def _count_but(**other):
    parts = dict(norms=2, final=1, matrices=3, attention=4, tables=(1, 2)) | other

    def wrong(vocab, d, layers, f):
        inside = layers * (parts["attention"] * d * d + parts["matrices"] * d * f + parts["norms"] * d) + parts["final"] * d
        return tuple(inside + tables * vocab * d for tables in parts["tables"])
    return wrong


parameters = Function(
    chapter=7, number=3, name="parameters", title="Tied and untied", difficulty=2, minutes=10,
    why="A large vocabulary can be a third of a small model; tying decides whether it is paid once or twice.",
    statement="Count the parameters of a decoder with tied and with an untied output head. Put in a small model (V = 29, D = 128, 4 "
              "layers, F = 341) and one the size of the smallest GPT-2 (V = 50,257, D = 768, 12 layers, F = 2,048): what share of the "
              "untied model is its second table?",
    tip="A block: four square matrices, three of D × F, two gains. Outside: a table, and the final norm's gain.",
    knowing="With 29 characters tying saves half a percent; with 50,257 tokens at D = 768, nearly a quarter of the untied model.",
    answer=_parameters, cases=lambda: [dict(vocab=29, d=128, layers=4, f=341), dict(vocab=101, d=13, layers=3, f=7)],
    mistakes=(
        Mistake("two matrices", "SwiGLU has three matrices of D × F: gate, up and down", _count_but(matrices=2)),
        Mistake("no final norm", "the final norm is missing: D gains", _count_but(final=0)),
        Mistake("one norm a block", "a block has two norms, one before each branch", _count_but(norms=1)),
        Mistake("three projections", "attention has four square matrices: query, key, value and output", _count_but(attention=3)),
        Mistake("no table when tied", "tying shares the table between input and head; it still exists once", _count_but(tables=(0, 1))),
        Mistake("exchanged", "the two are exchanged: tied first, the smaller one", _count_but(tables=(2, 1))),
    ),
    also_right=lambda vocab, d, layers, f: [float(n * vocab * d + d + layers * (d * (4 * d + 3 * f) + 2 * d)) for n in (1, 2)],
)


def _paired(first, second):
    """Mean difference first - second over the seeds, and its standard error.

    first, second (n,): one result per seed, the same seeds in the same order.
    """
    differences = first - second
    return differences.mean(), differences.std(unbiased=True) / math.sqrt(len(differences))


def _paired_case(seed, n):
    common = 3 * seeded(seed, n)  # what a seed does to both arms
    return dict(first=common + 0.2 * seeded(seed + 1, n) + 0.4, second=common + 0.2 * seeded(seed + 2, n))


paired = Function(
    chapter=7, number=4, name="paired", title="Is the difference real?", difficulty=2, minutes=10,
    why="Three seeds a family: without an interval the tournament's table is an anecdote.",
    statement="Two families were trained with the same seeds on the same data. Return the mean of the differences, seed by seed, and "
              "its standard error. Then apply it to two rows of this chapter's table.",
    tip="First subtract, then average. The standard error is the standard deviation of the differences (dividing by n - 1) over the "
        "root of n.",
    knowing="What a seed does to both arms cancels in the difference; compare unpaired, and it drowns what you look for.",
    answer=_paired, cases=lambda: [_paired_case(0, 3), _paired_case(4, 5)],
    mistakes=(
        Mistake("unpaired", "the spread of each family enters by itself; take the differences first, seed by seed",
                lambda first, second: ((first - second).mean(), ((first.var() + second.var()) / len(first)).sqrt())),
        Mistake("no root of n", "this is the standard deviation of a single difference; the mean's is smaller by the root of n",
                lambda first, second: ((first - second).mean(), (first - second).std())),
        Mistake("divides by n", "with so few seeds divide the squares by n - 1, not by n",
                lambda first, second: ((first - second).mean(), (first - second).std(unbiased=False) / len(first) ** 0.5)),
        Mistake("divides by n twice", "divide the standard deviation by the root of n, not by n",
                lambda first, second: ((first - second).mean(), (first - second).std() / len(first))),
        Mistake("second minus first", "the sign is turned: first minus second is asked for",
                lambda first, second: ((second - first).mean(), (first - second).std() / len(first) ** 0.5)),
    ),
    also_right=lambda first, second: [float((first - second).double().mean()), float(torch.stack(
        [(x - (first - second).mean()) ** 2 for x in first - second]).sum() / (len(first) - 1) / len(first)) ** 0.5],
)
