"""Losses: functions of (model, batch) that return one loss per scored token, so that padding never enters a mean."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from .batches import MaskedBatch
from .checks import check_ids, check_number


def masked_loss(model: nn.Module, batch: MaskedBatch) -> torch.Tensor:
    """Return -log p(x_t | the rest) at the chosen positions only.

    The head runs on those positions alone, so the others cost nothing there.

    Args:
        model: has ``states(inputs, mask)`` and ``head(states)``.
        batch: a ``MaskedBatch``.
    Returns:
        (number of chosen positions,) losses in nats, in the order of ``batch.chosen.nonzero()``.
    Raises:
        ValueError: if the batch is of another kind, its shapes differ, or a target is outside the vocabulary.
    Source: Devlin et al. 2019, section 3.1. Built in chapter 2.
    """
    if not isinstance(batch, MaskedBatch) or batch.chosen.dtype != torch.bool or \
            not batch.inputs.shape == batch.targets.shape == batch.chosen.shape:
        raise ValueError(f"batch ({type(batch).__name__}) is not a MaskedBatch of inputs, targets and chosen, all "
                         f"(B, T), the last one boolean; make one with mask_tokens.")
    logits = model.head(model.states(batch.inputs, batch.mask)[batch.chosen])
    return _cross_entropy(logits, batch.targets[batch.chosen])


def _cross_entropy(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    # Checked here because F.cross_entropy takes the target -100 in silence and calls its loss 0.
    targets = check_ids("targets", targets, logits.shape[-1], ndim=1)
    return F.cross_entropy(logits, targets, reduction="none")


def next_token_loss(model: nn.Module, ids: torch.Tensor) -> torch.Tensor:
    """Return -log p(x_{t+1} | x_1 ... x_t) for every t: T tokens hold T-1 predictions.

    Args:
        model: maps ids (B, T-1) to logits (B, T-1, V).
        ids: (B, T) int64, T at least 2.
    Returns:
        (B * (T-1),) losses in nats, row by row.
    Raises:
        ValueError: if ``ids`` is not (B, T) with T >= 2, or an id is outside the vocabulary.
    Source: Radford et al. 2018, equation 1. Built in chapter 3.
    """
    ids = check_ids("ids", ids)
    if ids.shape[1] < 2:
        raise ValueError(f"ids has shape {tuple(ids.shape)}; next-token prediction needs (B, T) with T >= 2.")
    return _cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())


def perplexity(mean_nats: float) -> float:
    """Return e^L: among how many equally likely tokens a model that loses L nats per token is in doubt.

    Args:
        mean_nats: mean loss in nats per token, >= 0.
    Returns:
        A number of at least 1; infinity where e^L overflows.
    Raises:
        ValueError: if the loss is negative or NaN.
    Built in chapter 3.
    """
    try:
        return math.exp(check_number("mean_nats", mean_nats, 0))
    except OverflowError:
        return math.inf


def bits_per_token(mean_nats: float) -> float:
    """Return L / ln 2: the loss in bits; with characters as tokens, bits per character.

    Args:
        mean_nats: mean loss in nats per token, >= 0.
    Raises:
        ValueError: if the loss is negative or NaN.
    Built in chapter 3.
    """
    return check_number("mean_nats", mean_nats, 0) / math.log(2)
