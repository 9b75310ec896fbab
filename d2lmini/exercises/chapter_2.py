"""Exercises of chapter 2: hiding characters, scoring what was hidden, and one vector for a text."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .base import Mistake
from .code import Complaint, Function, seeded
from .values import Field, Values, choice, options_as_text, share


def _mask_tokens(ids, mask_id, generator):
    """BERT's 80/10/10 rule: ids (B, T) -> (inputs (B, T) int64, chosen (B, T) bool).

    15% of the positions are chosen; random tokens come from 0 ... mask_id - 1.
    """
    chosen = torch.rand(ids.shape, generator=generator) < 0.15
    fate = torch.rand(ids.shape, generator=generator)
    strangers = torch.randint(mask_id, ids.shape, generator=generator)
    inputs = torch.where(chosen & (fate < 0.8), mask_id, ids)
    inputs = torch.where(chosen & (fate >= 0.8) & (fate < 0.9), strangers, inputs)
    return inputs, chosen


def _rule(ids, mask_id, generator, *, fraction=0.15, replace=0.8, shuffle=0.1, top=None, everywhere=False, lose_kept=False):
    """The rule with its shares as arguments, and room for mistakes."""
    chosen = torch.rand(ids.shape, generator=generator) < fraction
    fate = torch.rand(ids.shape, generator=generator)
    inputs = ids.clone()
    inputs[chosen & (fate < replace)] = mask_id
    swap = (fate >= replace) & (fate < replace + shuffle) & (torch.ones_like(chosen) if everywhere else chosen)
    inputs[swap] = torch.randint(top or mask_id, ids.shape, generator=generator)[swap]
    return inputs, (chosen & (inputs != ids) if lose_kept else chosen)


MASK_ID = 29


def _probe_rule(f):
    """The proportions over 50,399 positions, far outside what chance does."""
    ids = torch.randint(MASK_ID, (499, 101), generator=torch.Generator().manual_seed(1))
    result = f(ids, MASK_ID, torch.Generator().manual_seed(2))
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise Complaint("two things are wanted, (inputs, chosen): return both, separated by a comma")
    inputs, chosen = result
    for name, x, dtype in (("inputs", inputs, torch.int64), ("chosen", chosen, torch.bool)):
        if not isinstance(x, torch.Tensor) or x.dtype != dtype or x.shape != ids.shape:
            kind = f"{x.dtype} of shape {tuple(x.shape)}" if isinstance(x, torch.Tensor) else type(x).__name__
            raise Complaint(f"{name} is {kind}; expected a tensor of {dtype} and shape {tuple(ids.shape)}")
    if (outside := (inputs != ids) & ~chosen).any():
        where = outside.nonzero()[0].tolist()
        raise Complaint(f"a position that was not chosen has changed, the first at index {where}: the loss covers only chosen "
                        f"ones, so the model would be misled there and never told")
    masked, same = inputs == MASK_ID, inputs == ids
    rate, n = chosen.float().mean().item(), chosen.sum().item()
    if n and masked.sum() == n:
        raise Complaint("every chosen position became the mask token: that is the rule without its two tenths")
    if n and not (chosen & same & ~masked).sum() > 0.06 * n and 0.12 <= rate <= 0.145:
        raise Complaint("the chosen positions that keep their token are missing from `chosen`: the loss must cover all chosen "
                        "positions, also those that look untouched")
    if not 0.14 < rate < 0.16:
        raise Complaint(f"{rate:.1%} of the positions are chosen; expected 15%")
    shares = {"become the mask token": (masked & chosen, 0.8), "become a random token": (~masked & ~same & chosen, 0.1 * (1 - 1 / 29)),
              "keep their token": (same & chosen, 0.1 + 0.1 / 29)}
    for what, (where, want) in shares.items():
        if abs((got := where.sum().item() / n) - want) > 0.02:
            raise Complaint(f"{got:.1%} of the chosen positions {what}; expected about {want:.0%}")
    strangers = inputs[chosen & ~masked & ~same]
    if strangers.max() > MASK_ID or strangers.unique().numel() < MASK_ID:
        raise Complaint(f"the random tokens do not cover the ids 0 to {MASK_ID - 1} and nothing else: they run from "
                        f"{strangers.min()} to {strangers.max()}, {strangers.unique().numel()} different ones")


mask_tokens = Function(
    chapter=2, number=1, name="mask_tokens", title="The 80/10/10 rule", difficulty=2, minutes=15,
    why="It decides what an encoder is asked, and the common bug in it (a loss over too few positions) is silent.",
    statement="Implement the rule: each position is chosen with probability 0.15; of the chosen, 80% become the mask token, 10% "
              "a random token, 10% stay. Draw all chance from `generator`. The loss will be taken where `chosen` is True.",
    tip="Draw two random tables of the shape of ids: one decides who is chosen, the other each one's fate. `torch.where` keeps "
        "the original as it was.",
    knowing="The tenth that stays is still in the loss: the model must distrust every token it reads, also the plain ones.",
    answer=_mask_tokens, probe=_probe_rule,
    mistakes=(
        Mistake("always masks", "every chosen position became the mask token", lambda i, m, g: _rule(i, m, g, replace=1.0, shuffle=0.0)),
        Mistake("swaps anywhere", "a position that was not chosen has changed", lambda i, m, g: _rule(i, m, g, everywhere=True)),
        Mistake("kept ones lost", "missing from `chosen`", lambda i, m, g: _rule(i, m, g, lose_kept=True)),
        Mistake("chooses 30%", "of the positions are chosen; expected 15%", lambda i, m, g: _rule(i, m, g, fraction=0.3)),
        Mistake("80/20", "of the chosen positions become a random token", lambda i, m, g: _rule(i, m, g, shuffle=0.2)),
        Mistake("ten letters", "the random tokens do not cover", lambda i, m, g: _rule(i, m, g, top=10)),
        Mistake("in place", "changes its argument `ids` in place", lambda i, m, g: (i.masked_fill_(
            c := torch.rand(i.shape, generator=g) < 0.15, m), c)),
    ),
    also_right=_rule,
)
rule_run = Values(
    chapter=2, number=2, name="rule_run", title="80/10/10 against the mask always", difficulty=3, minutes=30,
    why="A rule that spends a fifth of its questions on tokens that are not masked must pay somewhere; here you find where.",
    statement="Train the chapter's encoder twice with a small budget: once with 80/10/10, once with every chosen token masked "
              "(`mask_tokens(..., replace=1.0, shuffle=0.0)`). Measure for both (a) the accuracy at masked positions, and (b) the "
              "mean loss of naming the token at *every* position of a text that holds no mask token at all. Fill in what you got.",
    tip="For (b) run the model on the plain ids and take the cross-entropy with these same ids. `masked_batches` passes `replace` "
        "and `shuffle` on. A few hundred steps will do: the difference in (b) is not subtle.",
    knowing="On plain text the always-masked model was never asked anything, and its answers there were never corrected.",
    fields={
        "accuracy with the rule": Field(judge=share(0.2, 0.95, "that is hardly better than always guessing the space: train longer",
                                                    "that is more than letters allow: is the text in the inputs unmasked?")),
        "accuracy always masked": Field(judge=share(0.2, 0.95, "that is hardly better than always guessing the space: train longer",
                                                    "that is more than letters allow: is the text in the inputs unmasked?")),
        "plain loss with the rule": Field(judge=lambda x: None if isinstance(x, (int, float)) and 0 <= x < 2 else
                                          f"{x} is not plausible: with the rule, most plain tokens are simply confirmed (below 2 nats)"),
        "plain loss always masked": Field(judge=lambda x: None if isinstance(x, (int, float)) and x >= 0 else
                                          f"{x} is not a loss in nats"),
    },
    given={"accuracy with the rule": 0.5, "accuracy always masked": 0.52, "plain loss with the rule": 0.3,
           "plain loss always masked": 2.0},
    mistakes=(
        Mistake("percentages", "divide the percentage by 100", {"accuracy with the rule": 50, "accuracy always masked": 52,
                "plain loss with the rule": 0.3, "plain loss always masked": 2.0}),
        Mistake("untrained", "hardly better than always guessing", {"accuracy with the rule": 0.05, "accuracy always masked": 0.5,
                "plain loss with the rule": 0.3, "plain loss always masked": 2.0}),
        Mistake("inputs unmasked", "more than letters allow", {"accuracy with the rule": 0.5, "accuracy always masked": 0.999,
                "plain loss with the rule": 0.3, "plain loss always masked": 2.0}),
        Mistake("arms exchanged", "not plausible", {"accuracy with the rule": 0.5, "accuracy always masked": 0.52,
                "plain loss with the rule": 2.4, "plain loss always masked": 0.3}),
    ),
    also_right={"accuracy with the rule": 0.41, "accuracy always masked": 0.4, "plain loss with the rule": 0.05,
                "plain loss always masked": 0.9},
    worked="02_eighty_ten_ten",
)


def _pair_losses(model, ids, t, mask_id):
    """Hide positions t and t + 1 at once; return the mean losses there, (2,), in nats.

    model maps ids (B, T) int64 to logits (B, T, V).
    """
    hidden = ids.clone()
    hidden[:, t:t + 2] = mask_id
    log_p = model(hidden)[:, t:t + 2].log_softmax(-1)
    return -log_p.gather(-1, ids[:, t:t + 2, None])[..., 0].mean(0)


def _toy_model(ids):
    """Logits that depend on a token and its two neighbours, without training."""
    table = 2 * seeded(11, 31, 29)
    return table[ids] + table.roll(1, 0)[ids.roll(1, 1)] + table.roll(2, 0)[ids.roll(-1, 1)]


def _pair_but(width=2, start=0, sign=-1, softmax=-1, targets=None):
    def wrong(model, ids, t, mask_id):
        hidden = ids.clone()
        hidden[:, t + start:t + start + width] = mask_id
        log_p = model(hidden)[:, t:t + 2].log_softmax(softmax)
        aim = hidden if targets == "hidden" else ids
        return sign * log_p.gather(-1, aim[:, t:t + 2, None].clamp(max=28))[..., 0].mean(0)
    return wrong


def _one_by_one(model, ids, t, mask_id):
    first, second = _pair_but(1)(model, ids, t, mask_id)[0], _pair_but(1, 1)(model, ids, t, mask_id)[1]
    return torch.stack((first, second))


pair_losses = Function(
    chapter=2, number=3, name="pair_losses", title="Two adjacent masks", difficulty=2, minutes=12,
    why="What one hole costs is known from 2.7; two in a row show how much a letter leans on its neighbour.",
    statement="Hide two adjacent characters at once and return the mean loss at each of the two. Then call it on this chapter's "
              "`model` at some places, and compare with the losses when only one of the two is hidden.",
    tip="Copy ids, write mask_id at both places, run the model once, and look at the log-probabilities of the *original* characters.",
    knowing="Both losses rise: each character has lost its nearest witness, and the two are guessed as if independent.",
    answer=_pair_losses,
    cases=lambda: [dict(model=_toy_model, ids=torch.randint(29, (5, 11), generator=torch.Generator().manual_seed(3)), t=t,
                        mask_id=29) for t in (3, 0, 9)],
    mistakes=(
        Mistake("one at a time", "you hide one character, measure, and then hide the other: here both are hidden in one pass",
                _one_by_one),
        Mistake("only the first", "only position t is hidden; t + 1 must be hidden too", _pair_but(1)),
        Mistake("hides nothing", "nothing was hidden: the model reads the characters that it should guess", _pair_but(0)),
        Mistake("sign", "the sign is missing: a loss is minus the log of a probability", _pair_but(sign=1)),
        Mistake("softmax over positions", "the softmax runs over the wrong axis; it belongs on the vocabulary, dim=-1",
                _pair_but(softmax=1)),
        Mistake("in place", "changes its argument `ids` in place", lambda model, ids, t, mask_id: (
            ids[:, t:t + 2].fill_(mask_id), model(ids)[:, t:t + 2].mean((0, 2)))[1]),
    ),
    also_right=lambda model, ids, t, mask_id: torch.stack([
        F.cross_entropy(model(torch.cat((ids[:, :t], torch.full_like(ids[:, :2], mask_id), ids[:, t + 2:]), 1))[:, t + i].double(),
                        ids[:, t + i]) for i in (0, 1)]),
)

_ALWAYS = choice(
    "c",
    a=("The model sees too few mask tokens to learn from.",
       "It sees more of them than under the rule: every chosen token becomes one."),
    b=("The loss is taken at too few positions.",
       "The number of chosen positions does not depend on what is put there."),
    c=("In use no mask token occurs, and the model has learned that only mask tokens need an answer.",
       "So at ordinary tokens its states were never asked to predict anything; training and use do not match."),
    d=("Nothing: 80/10/10 only speeds training up.",
       "It slows the masked loss down a little, if anything; what it buys shows on text without masks (exercise 2.2)."),
)
always_mask = Values(
    chapter=2, number=4, name="always_mask", title="If every chosen token became the mask token", difficulty=1, minutes=4,
    why="The clearest case in this book of a model that learns the exam and not the subject.",
    statement="What goes wrong if every chosen token becomes the mask token?\n\n" + options_as_text(_ALWAYS),
    tip="Think of the day after training: what stands in the text that the encoder is given then?",
    knowing="On the exam always masking does as well; it is the use on plain text that suffers (exercise 2.2).",
    fields={"": _ALWAYS},
    mistakes=(
        Mistake("a", "more of them than under the rule", "a"),
        Mistake("b", "does not depend on what is put there", "b"),
        Mistake("d", "slows the masked loss down", "d"),
        Mistake("text for a letter", "answer with one letter", "the mask token"),
    ),
    also_right=" (C) ",
)
