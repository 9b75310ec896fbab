"""The published encoder recipe, written from its description alone; it shares no model code with d2lmini.

D = 128, 4 heads, 4 pre-norm blocks with RMSNorm, SwiGLU of width 341, no biases, no dropout, learned positions,
both tables from N(0, 0.02^2), head tied to the token table: 798,976 parameters. AdamW at a constant 1e-3 without
weight decay, 64 windows of 64 characters a step, 2,000 steps, 15% of the characters hidden behind <mask>.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from .protocol import LENGTH, MASK, ROWS, Text

STEPS, BATCH, LR, HIDDEN = 2000, 64, 1e-3, 0.15
PARAMETERS = 798_976


class PublishedBlock(nn.Module):
    def __init__(self, d_model: int, num_heads: int, d_ff: int):
        super().__init__()
        self.num_heads = num_heads
        self.norm1, self.norm2 = nn.RMSNorm(d_model, eps=1e-6), nn.RMSNorm(d_model, eps=1e-6)
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(d_model, d_model, bias=False) for _ in range(4))
        self.w1, self.w3 = (nn.Linear(d_model, d_ff, bias=False) for _ in range(2))
        self.w2 = nn.Linear(d_ff, d_model, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.norm1(x)
        q, k, v = (w(h).view(*h.shape[:2], self.num_heads, -1).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        x = x + self.wo(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        h = self.norm2(x)
        return x + self.w2(F.silu(self.w1(h)) * self.w3(h))


class PublishedEncoder(nn.Module):
    """ids (B, 64) -> logits (B, 64, 29)."""

    def __init__(self, d_model: int = 128, num_heads: int = 4, num_blocks: int = 4, d_ff: int = 341):
        super().__init__()
        self.token_table, self.position_table = nn.Embedding(ROWS, d_model), nn.Embedding(LENGTH, d_model)
        self.blocks = nn.Sequential(*(PublishedBlock(d_model, num_heads, d_ff) for _ in range(num_blocks)))
        self.norm = nn.RMSNorm(d_model, eps=1e-6)
        for table in (self.token_table, self.position_table):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.token_table(ids) + self.position_table.weight[: ids.shape[1]]
        return self.norm(self.blocks(x)) @ self.token_table.weight.T


def train(text: Text, seed: int, steps: int = STEPS, evaluate_at: tuple[int, ...] = (),
          evaluate: Callable[[nn.Module], object] | None = None):
    """Train by the published recipe.

    Args:
        text: from ``protocol.load``.
        seed: of the weights, the windows and the masks.
        steps: updates.
        evaluate_at: steps after which ``evaluate(model)`` is called, off the clock.
        evaluate: a function of the model.
    Returns:
        (model, seconds of training, list of (step, seconds so far, value of ``evaluate``)).
    """
    torch.manual_seed(seed)
    model = PublishedEncoder()
    assert sum(p.numel() for p in model.parameters()) == PARAMETERS
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR, weight_decay=0.0)
    chance = torch.Generator().manual_seed(seed)
    curve, seconds, order = [], 0.0, torch.empty(0, dtype=torch.int64)
    for step in range(1, steps + 1):
        start = time.perf_counter()
        if len(order) < BATCH:  # every window once before any window twice
            order = torch.randperm(len(text.train), generator=chance)
        picked, order = order[:BATCH], order[BATCH:]
        ids = text.train[picked]
        hidden = torch.rand(ids.shape, generator=chance) < HIDDEN
        logits = model(ids.masked_fill(hidden, MASK))
        loss = F.cross_entropy(logits[hidden], ids[hidden])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        seconds += time.perf_counter() - start
        if step in evaluate_at:
            curve.append((step, seconds, evaluate(model)))
    return model, seconds, curve
