"""Perceiver IO on characters: the wrapper that chapter 5 trains."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from .blocks import make_norm
from .checks import check_ids, check_int, check_length
from .perceiver import PerceiverIO, fourier_positions


class TextPerceiver(nn.Module):
    """Perceiver IO on characters: inputs are token plus position, output queries are positions alone.

        x_t = norm(E[c_t]) + p_t W,   q_t = p_t W,   logits_t = y_t E^T

    A query knows where it asks and nothing of what stands there or around it: all that reaches an answer has
    been through the M latents. ``states`` and ``head`` make it fit ``masked_loss``.

    Args:
        vocab_size: V, token ids including special ones.
        max_len: longest text, in tokens.
        num_latents: M.
        d_model, num_heads, num_layers: as in ``Perceiver``.
        num_bands: frequencies of the Fourier positions p; 0 for a learned table instead.
        placed: start the latents evenly along the text, with ``place_latents``; False leaves them without a place.
    Raises:
        ValueError: on numbers out of range, ids outside the vocabulary or too long a text.
    Source: Jaegle et al. 2022, section 4.1, on characters, with a tied head; the places are ours. Chapter 5.
    """

    def __init__(self, vocab_size: int, max_len: int, num_latents: int, d_model: int = 128, num_heads: int = 4,
                 num_layers: int = 2, num_bands: int = 64, placed: bool = True):
        super().__init__()
        self.tokens = nn.Embedding(check_int("vocab_size", vocab_size), check_int("d_model", d_model))
        nn.init.normal_(self.tokens.weight, std=0.02)
        self.token_norm = make_norm("rms", d_model)
        if check_int("num_bands", num_bands, minimum=0):
            self.register_buffer("table", fourier_positions((check_int("max_len", max_len),), num_bands), persistent=False)
            self.project = nn.Linear(self.table.shape[1], d_model, bias=False)
            nn.init.normal_(self.project.weight, std=(2 / self.table.shape[1]) ** 0.5)  # codes of about unit length per feature
        else:
            self.table = nn.Parameter(torch.randn(check_int("max_len", max_len), d_model))
            self.project = nn.Identity()
        # The name tells make_optimizers that the matrices inside belong to Muon.
        self.blocks = PerceiverIO(d_model, num_latents, None, d_model, num_heads, num_layers)
        if placed:
            middles = ((torch.arange(num_latents) + 0.5) * max_len / num_latents).long()
            self.blocks.place_latents(self.project(self.table[middles]))

    def latents(self, ids: torch.Tensor, mask: torch.Tensor | None = None, *, trace: dict | None = None) -> torch.Tensor:
        """ids (B, N) int64, mask to (B, H, M, N) -> what the latents hold, (B, M, D)."""
        check_ids("ids", ids, self.tokens.num_embeddings)
        codes = self.project(self.table[:check_length("ids", ids.shape[1], len(self.table))])
        return self.blocks.perceiver(self.token_norm(self.tokens(ids)) + codes, mask, trace=trace)

    def states(self, ids: torch.Tensor, mask: torch.Tensor | None = None, *, trace: dict | None = None) -> torch.Tensor:
        """ids (B, N), mask to (B, H, M, N) -> one answer for every position, (B, N, D)."""
        return self.blocks.write(self.latents(ids, mask, trace=trace), self.project(self.table[:ids.shape[1]]), trace=trace)

    def head(self, states: torch.Tensor) -> torch.Tensor:
        """Turn states (..., D) into logits (..., V) by the token table."""
        return F.linear(states, self.tokens.weight)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor | None = None, *, trace: dict | None = None) -> torch.Tensor:
        """ids (B, N), mask to (B, H, M, N) -> logits (B, N, V)."""
        return self.head(self.states(ids, mask, trace=trace))
