"""Exercises of chapter 2, the rest: from states to one vector for a text, and accuracy where it counts."""

from __future__ import annotations

import torch

from .base import Mistake
from .code import Function, seeded


def _sentence_vector(states, lengths):
    """The mean state over each text's real tokens.

    states (B, T, D), lengths (B,) int64 -> (B, D).
    """
    real = torch.arange(states.shape[1]) < lengths[:, None]
    return (states * real[..., None]).sum(1) / lengths[:, None]


def _by_loop(states, lengths):
    return torch.stack([s[:n].double().mean(0) for s, n in zip(states, lengths)])


sentence_vector = Function(
    chapter=2, number=5, name="sentence_vector", title="One vector for a text", difficulty=2, minutes=8,
    why="Search engines compare exactly such vectors; padding that slips into the mean makes short texts all alike.",
    statement="Encoders are used through one vector per text. Average the final states over the *real* tokens of each text in a "
              "batch that is padded on the right. Then encode a few sentences of the novella with this chapter's `model.states` "
              "and look which are nearest by cosine.",
    tip="Make a table (B, T) that says which tokens are real, give it a last axis, multiply, sum over the tokens, and divide by "
        "how many real ones there were.",
    knowing="Divide by the real length and not by T: otherwise a text's vector shrinks when a longer one joins its batch.",
    answer=_sentence_vector,
    cases=lambda: [dict(states=seeded(1, 3, 7, 5), lengths=torch.tensor([7, 2, 4])),
                   dict(states=seeded(2, 2, 5, 11), lengths=torch.tensor([1, 3]))],
    mistakes=(
        Mistake("mean over padding", "the mean runs over the padding too; only the first lengths[b] states of a text count",
                lambda states, lengths: states.mean(1)),
        Mistake("divides by T", "padding is left out of the sum, but you divide by the padded length; divide by the real one",
                lambda states, lengths: _by_loop(states, lengths) * lengths[:, None] / states.shape[1]),
        Mistake("sum for mean", "this is the sum over the real tokens; divide by how many there are",
                lambda states, lengths: _by_loop(states, lengths) * lengths[:, None]),
        Mistake("over features", "the mean runs over the features; average over the tokens, axis 1",
                lambda states, lengths: states.mean(2)),
        Mistake("last token", "this is the last real token's state, not the mean",
                lambda states, lengths: states[torch.arange(len(states)), lengths - 1]),
        Mistake("NumPy", "NumPy array where a tensor is wanted", lambda states, lengths: _by_loop(states, lengths).numpy()),
        Mistake("a list", "a list where a tensor is wanted", lambda states, lengths: list(_by_loop(states, lengths))),
    ),
    also_right=_by_loop,
)


def _hidden_accuracy(logits, targets, chosen):
    """Share of the chosen positions whose likeliest token is the target, in [0, 1].

    logits (B, T, V), targets (B, T) int64, chosen (B, T) bool.
    """
    return (logits.argmax(-1) == targets)[chosen].float().mean().item()


def _accuracy_case(seed):
    generator = torch.Generator().manual_seed(seed)
    targets = torch.randint(7, (11, 7), generator=generator)
    logits = seeded(seed + 1, 11, 7, 7) + 2 * torch.nn.functional.one_hot(targets, 7)  # T = V, so that no axis stands out
    return dict(logits=logits, targets=targets, chosen=torch.rand(11, 7, generator=generator) < 0.4)


hidden_accuracy = Function(
    chapter=2, number=6, name="hidden_accuracy", title="Accuracy, where it was asked", difficulty=1, minutes=6,
    why="A right number over the wrong positions is the most convincing kind of wrong number.",
    statement="Compute the accuracy at the chosen positions: the share of them where the most likely token is the right one.",
    tip="`argmax` over the vocabulary, which is the last axis; compare; keep the chosen positions by indexing with the boolean "
        "table; then the mean.",
    knowing="Over all positions the accuracy would look better: at those that were not hidden the answer can be copied.",
    answer=_hidden_accuracy, cases=lambda: [_accuracy_case(0), _accuracy_case(9)],
    mistakes=(
        Mistake("argmax over positions", "the argmax runs over the wrong axis, the positions; it belongs on the vocabulary, dim=-1",
                lambda logits, targets, chosen: (logits.argmax(1) == targets)[chosen].float().mean()),
        Mistake("all positions", "you average over all positions; only the chosen ones count",
                lambda logits, targets, chosen: (logits.argmax(-1) == targets).float().mean()),
        Mistake("divides by all", "hits are counted at the chosen positions but divided by the number of all positions",
                lambda logits, targets, chosen: ((logits.argmax(-1) == targets) & chosen).float().mean()),
        Mistake("mean of rows", "you average each row first; rows with few chosen positions then count too much",
                lambda logits, targets, chosen: torch.stack([(z.argmax(-1) == t)[c].float().mean()
                                                             for z, t, c in zip(logits, targets, chosen)]).nanmean()),
        Mistake("percent", "this is a percentage; the share is asked for, between 0 and 1",
                lambda logits, targets, chosen: 100 * (logits.argmax(-1) == targets)[chosen].float().mean()),
        Mistake("a count", "this is a count; divide by the number of chosen positions",
                lambda logits, targets, chosen: (logits.argmax(-1) == targets)[chosen].sum()),
    ),
    also_right=lambda logits, targets, chosen: ((logits.double().softmax(-1).argmax(-1) == targets) & chosen).sum() / chosen.sum(),
)
