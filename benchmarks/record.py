"""Our recipe for the published encoder's quality, as settings of d2lmini, and one run of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import accumulate

import torch
from torch import nn

from d2lmini import (Config, Encoder, constant, fit, linear_decay, make_optimizers, masked_batches, masked_loss,
                     random_windows, seed_everything)

from .protocol import LENGTH, MASK, ROWS, TRAINING, Text

BUDGET = 798_976  # parameters of the published model


@dataclass(frozen=True)
class Recipe:
    """Everything that distinguishes one run from another; the defaults are the record."""

    blocks: int = 2
    positions: str = "rotary"
    batch: int = 8
    steps: int = 2100
    hidden: float = 0.3
    optimizer: str = "muon"
    tile: int = 32
    lr: float = 0.01
    adam_lr: float = 0.015
    decay: bool = True


RECIPE = Recipe()


def describe(recipe: Recipe = RECIPE) -> str:
    """Return the settings in one line."""
    return ", ".join(f"{name} {value}" for name, value in asdict(recipe).items())


def make_model(recipe: Recipe) -> Encoder:
    """Build the recipe's encoder; refuse one above the published model's number of parameters."""
    model = Encoder(Config(ROWS, LENGTH, num_layers=recipe.blocks, positions=recipe.positions))
    size = sum(p.numel() for p in model.parameters())
    if size > BUDGET:
        raise ValueError(f"the recipe's model has {size:,} parameters, more than the published {BUDGET:,}.")
    return model


def make_optimizer(model: nn.Module, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """Muon and AdamW, or AdamW for everything."""
    if recipe.optimizer == "muon":
        return make_optimizers(model, lr=recipe.lr, adam_lr=recipe.adam_lr, tile=recipe.tile)
    return [torch.optim.AdamW(model.parameters(), recipe.adam_lr, betas=(0.9, 0.95), weight_decay=0.0, fused=True)]


def train(text: Text, seed: int, recipe: Recipe = RECIPE, checkpoints: int = 1,
          evaluate: Callable[[nn.Module], object] = lambda model: None):
    """Train by a recipe.

    Args:
        text: from ``protocol.load``.
        seed: of the weights, the windows and the masks.
        recipe: the settings.
        checkpoints: number of evaluations, evenly spaced, the last one at the end.
        evaluate: a function of the model, called off the clock.
    Returns:
        (model, list of (step, seconds of training so far, value of ``evaluate``)).
    """
    seed_everything(seed)
    model = make_model(recipe)
    windows = random_windows(text.ids[:TRAINING + LENGTH - 1], LENGTH, recipe.batch, seed)
    batches = masked_batches(windows, MASK, seed + 1000, fraction=recipe.hidden, replace=1.0, shuffle=0.0)
    every = recipe.steps // checkpoints
    gaps, values, resumed = [], [], time.perf_counter()

    def checkpoint(model):
        nonlocal resumed
        gaps.append(time.perf_counter() - resumed)
        values.append(evaluate(model) if len(gaps) > 1 else None)  # fit calls first before its first step
        resumed = time.perf_counter()

    fit(model, masked_loss, batches, steps=recipe.steps, optimizers=make_optimizer(model, recipe),
        schedule=linear_decay() if recipe.decay else constant(), evaluate_every=every, evaluation=checkpoint)
    return model, list(zip(range(0, recipe.steps + 1, every), accumulate(gaps), values))[1:]
