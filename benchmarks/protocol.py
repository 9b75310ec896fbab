"""The published split and evaluation of the encoder on The Time Machine, shared by both recipes.

Windows of 64 characters at stride 1; training windows start at characters 0...99,999 of the normalised text,
validation windows at 100,000...102,999. In validation 15% of the characters are hidden, always behind <mask>, in
five passes over all windows. "Interior" is the mean over positions 16...47 of the loss at each position; accuracy
counts every hidden character. The last training windows overlap the first validation windows by up to 63
characters, and only 3,063 characters are scored: that is how the published figures were made.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

from d2lmini.text import ALPHABET, load_text

LENGTH, TRAINING, VALIDATION = 64, 100_000, 3_000
HIDDEN, PASSES = 0.15, 5
INTERIOR = slice(16, 48)
CHARACTERS = len(ALPHABET)  # 27; then <unk>, which this text never needs, and <mask>
MASK, ROWS = CHARACTERS + 1, CHARACTERS + 2
BAR_INTERIOR, BAR_ACCURACY = 1.118, 0.639


@dataclass(frozen=True)
class Text:
    """train (100000, 64) and valid (3000, 64), int64 ids in [0, 27); ``ids`` is the whole text."""

    ids: torch.Tensor

    @property
    def train(self) -> torch.Tensor:
        return self.ids.unfold(0, LENGTH, 1)[:TRAINING]

    @property
    def valid(self) -> torch.Tensor:
        return self.ids.unfold(0, LENGTH, 1)[TRAINING:TRAINING + VALIDATION]


class Quality(NamedTuple):
    """What one evaluation measured: losses in nats, accuracy in [0, 1], and the loss at each position (64,)."""

    loss: float
    interior: float
    accuracy: float
    positions: list[float]

    @property
    def reaches_the_bar(self) -> bool:
        return self.interior <= BAR_INTERIOR and self.accuracy >= BAR_ACCURACY


class CorpusMissing(Exception):
    """The Time Machine is neither on this machine nor to be had; the message says what to do."""


def load() -> Text:
    """Return the normalised text as ids; raise ``CorpusMissing`` if it is not to be had."""
    try:
        raw = load_text("timemachine")
    except (ValueError, ConnectionError) as error:
        raise CorpusMissing(f"This benchmark needs The Time Machine, the text of the published figures.\n{error}") from None
    number = {c: i for i, c in enumerate(ALPHABET)}
    return Text(torch.tensor([number[c] for c in re.sub("[^a-z]+", " ", raw.lower())]))


@torch.no_grad()
def evaluate(model: nn.Module, text: Text, passes: int = PASSES, stride: int = 1) -> Quality:
    """Score a model (ids (B, 64) -> logits (B, 64, V)) as published; the masks are the same for every model."""
    was_training = model.training
    model.eval()
    chance = torch.Generator().manual_seed(20_000)
    total, count, right = torch.zeros(LENGTH, dtype=torch.float64), torch.zeros(LENGTH, dtype=torch.float64), 0
    for _ in range(passes):
        for ids in text.valid[::stride].split(250):
            hidden = torch.rand(ids.shape, generator=chance) < HIDDEN
            logits = model(ids.masked_fill(hidden, MASK))[hidden]
            losses = torch.zeros(ids.shape, dtype=torch.float64)
            losses[hidden] = F.cross_entropy(logits, ids[hidden], reduction="none").double()
            total, count = total + losses.sum(0), count + hidden.sum(0)
            right += (logits.argmax(-1) == ids[hidden]).sum().item()
    model.train(was_training)
    positions = total / count
    return Quality((total.sum() / count.sum()).item(), positions[INTERIOR].mean().item(), right / count.sum().item(),
                   positions.tolist())
