"""Perceiver and Perceiver IO in one sitting: queries that belong to no sequence.

Shapes: B batch, N inputs of width d_input, M latents and O output queries of width D.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from .attention import MultiHeadAttention
from .blocks import Block, FeedForward, make_norm
from .checks import check_int, check_number, check_width


def fourier_positions(sizes, num_bands: int) -> torch.Tensor:
    """Describe each place of a regular grid by its coordinates and their sines and cosines.

        p(x) = [x, sin(pi f_1 x) ... sin(pi f_K x), cos(pi f_1 x) ... cos(pi f_K x)],   x in [-1, 1]

    for every axis of the grid; the K frequencies are spaced evenly from 1 to n/2, the highest that n places
    along the axis can tell apart.

    Args:
        sizes: places along each axis: (N,) for a sequence, (height, width) for an image; each at least 1.
        num_bands: K, frequencies per axis, at least 1.
    Returns:
        (product of sizes, number of axes * (2K + 1)) float32, the last axis of the grid varying fastest.
    Raises:
        ValueError: if a size or ``num_bands`` is below 1, or ``sizes`` is empty.
    Source: Jaegle et al. 2021 (Perceiver), section 3.2. Built in chapter 5.
    """
    sizes = [check_int("sizes", size) for size in (sizes if isinstance(sizes, (tuple, list)) else [sizes])]
    check_int("num_bands", num_bands)
    if not sizes:
        raise ValueError("sizes is empty; give the number of places along each axis, such as (N,).")
    axes = [torch.linspace(-1, 1, size) if size > 1 else torch.zeros(1) for size in sizes]
    places = torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1).flatten(0, -2)
    features = []
    for axis, size in enumerate(sizes):
        x = places[:, axis, None]
        angles = math.pi * x * torch.linspace(1, max(size / 2, 1), num_bands)
        features += [x, angles.sin(), angles.cos()]
    return torch.cat(features, dim=-1)


class Read(nn.Module):
    """Let a few queries read a context: cross-attention, then a feed-forward, both pre-norm and residual.

        z <- z + attention(norm(z) W^Q, norm(c) W^K, norm(c) W^V) W^O,   z <- z + feed_forward(norm(z))

    The queries do not attend to each other, so the cost is linear in both lengths.

    Args:
        d_model: width D of the queries.
        num_heads: H, must divide D.
        d_ff: inner width F.
        d_context: width of what is read; D by default.
        dropout: on weights, inner features and branches, in training only.
    Source: Jaegle et al. 2021, section 3.1. Built in chapter 5.
    """

    def __init__(self, d_model: int, num_heads: int, d_ff: int, d_context: int | None = None, dropout: float = 0.0):
        super().__init__()
        self.dropout = check_number("dropout", dropout, 0, 1, high_open=True)
        self.query_norm = make_norm("rms", d_model)
        self.context_norm = make_norm("rms", d_model if d_context is None else d_context)
        self.attention = MultiHeadAttention(d_model, num_heads, d_context=d_context, dropout=dropout)
        self.ff_norm = make_norm("rms", d_model)
        self.feed_forward = FeedForward(d_model, d_ff, dropout=dropout)

    def forward(self, z: torch.Tensor, context: torch.Tensor, mask: torch.Tensor | None = None, *,
                trace: dict | None = None, name: str = "read") -> torch.Tensor:
        """z (B, T, D), context (B, S, d_context), mask to (B, H, T, S) -> (B, T, D)."""
        read = self.attention(self.query_norm(z), self.context_norm(context), mask, trace=trace, name=name)
        z = z + F.dropout(read, self.dropout, self.training)
        return z + F.dropout(self.feed_forward(self.ff_norm(z)), self.dropout, self.training)


class Perceiver(nn.Module):
    """M learned latents read N inputs once, then talk among themselves.

        Z_0 = read(latents, inputs),   Z_l = block_l(Z_{l-1}),   cost O(MN + L M^2)

    Nothing here knows where an input stands: permuted inputs give the same latents. Put positions into the
    inputs, with ``fourier_positions`` or ``AddedPositions``, before you hand them over.

    Args:
        d_input: width of an input, at least 1; need not be D.
        num_latents: M, at least 1.
        d_model: width D of the latents (128).
        num_heads: H, must divide D (4).
        num_layers: L, self-attention blocks on the latents (2); may be 0.
        d_ff: inner width F; round(8D/3) when 0.
        dropout: in [0, 1), in training only.
    Raises:
        ValueError: on numbers out of range; in ``forward``, if the inputs have another width or the mask does not fit.
    Source: Jaegle et al. 2021, figure 1, with one read and unshared blocks. Built in chapter 5.
    """

    def __init__(self, d_input: int, num_latents: int, d_model: int = 128, num_heads: int = 4, num_layers: int = 2,
                 d_ff: int = 0, dropout: float = 0.0):
        super().__init__()
        check_int("d_input", d_input)
        check_int("num_latents", num_latents)
        check_int("d_model", d_model)
        check_int("num_layers", num_layers, minimum=0)
        d_ff = check_int("d_ff", d_ff, minimum=0) or round(8 * d_model / 3)
        self.d_input, self.d_model = d_input, d_model
        self.latents = nn.Parameter(torch.randn(num_latents, d_model) * 0.02)
        self.reader = Read(d_model, num_heads, d_ff, d_input, dropout)
        self.blocks = nn.ModuleList(Block(d_model, num_heads, d_ff, dropout=dropout) for _ in range(num_layers))
        self.norm = make_norm("rms", d_model)

    def forward(self, inputs: torch.Tensor, mask: torch.Tensor | None = None, *,
                trace: dict | None = None) -> torch.Tensor:
        """Read the inputs into the latents.

        Args:
            inputs: (B, N, d_input) floating, N at least 1; any N, also one never trained on.
            mask: bool, True = may be read, broadcastable to (B, H, M, N): ``padding_mask(lengths)``. Latents of
                a sequence with every input masked take nothing from it and stay finite.
            trace: receives ``perceiver.read`` (B, H, M, N) and ``perceiver.<layer>.self`` (B, H, M, M).
        Returns:
            (B, M, D), whatever N was.
        """
        check_width("inputs", inputs, self.d_input)
        if inputs.shape[1] < 1:
            raise ValueError(f"inputs has shape {tuple(inputs.shape)}; give at least one input to read.")
        z = self.latents.expand(len(inputs), -1, -1)
        z = self.reader(z, inputs, mask, trace=trace, name="perceiver.read")
        for i, block in enumerate(self.blocks):
            z = block(z, trace=trace, name=f"perceiver.{i}")
        return self.norm(z)


class PerceiverIO(nn.Module):
    """A Perceiver whose latents are read in turn, by O output queries: one per answer wanted.

        Y = read(queries, perceiver(inputs)),   cost O(MN + L M^2 + OM)

    The number of outputs is the number of queries: N is free, and so is O.

    Args:
        d_input, num_latents, d_model, num_heads, num_layers, d_ff, dropout: as in ``Perceiver``.
        num_outputs: O learned queries, at least 1; None if each call brings its own.
    Raises:
        ValueError: on numbers out of range; in ``forward``, without queries or with queries that do not fit.
    Source: Jaegle et al. 2022 (Perceiver IO), figure 2. Built in chapter 5.
    """

    def __init__(self, d_input: int, num_latents: int, num_outputs: int | None = None, d_model: int = 128,
                 num_heads: int = 4, num_layers: int = 2, d_ff: int = 0, dropout: float = 0.0):
        super().__init__()
        self.perceiver = Perceiver(d_input, num_latents, d_model, num_heads, num_layers, d_ff, dropout)
        self.queries = None
        if num_outputs is not None:
            self.queries = nn.Parameter(torch.randn(check_int("num_outputs", num_outputs), d_model) * 0.02)
        self.writer = Read(d_model, num_heads, d_ff or round(8 * d_model / 3), dropout=dropout)
        self.norm = make_norm("rms", d_model)

    @torch.no_grad()
    def place_latents(self, codes: torch.Tensor, sharpness: float = 10.0) -> None:
        """Start each latent at a place: it first reads there, and is found by queries that ask about there.

            latents <- codes,   W^K <- W^Q,   W^Q <- sharpness W^Q   in both reads

        With equal key and query matrices the score of two codes is largest where they are alike. Everything
        stays trainable; without this, latents start with no preference, all reading the same average.

        Args:
            codes: (M, D), position codes of about unit size, made as those inside the inputs and queries are.
            sharpness: > 0; the larger, the narrower the first look.
        Raises:
            ValueError: if d_input is not D, ``codes`` is not (M, D), or ``sharpness`` is out of range.
        """
        check_number("sharpness", sharpness, 0, low_open=True)
        if self.perceiver.d_input != self.perceiver.d_model or codes.shape != self.perceiver.latents.shape:
            raise ValueError(f"codes has shape {tuple(codes.shape)}; expected {tuple(self.perceiver.latents.shape)}, and "
                             f"d_input={self.perceiver.d_input} equal to d_model: inputs must contain such codes.")
        self.perceiver.latents.copy_(codes)
        for read in (self.perceiver.reader, self.writer):
            read.attention.key.weight.copy_(read.attention.query.weight)
            read.attention.query.weight.mul_(sharpness)

    def write(self, latents: torch.Tensor, queries: torch.Tensor | None = None, *,
              trace: dict | None = None) -> torch.Tensor:
        """Answer queries from latents: (B, M, D) and (O, D) or (B, O, D) -> (B, O, D).

        Several sets of queries can be answered from latents that were computed once.

        Args:
            latents: (B, M, D), from ``perceiver``.
            queries: one row per answer; the learned queries by default.
            trace: receives ``perceiver.write`` (B, H, O, M).
        Returns:
            (B, O, D).
        Raises:
            ValueError: if there are no queries, or their width or batch does not fit.
        """
        check_width("latents", latents, self.perceiver.d_model)
        queries = self.queries if queries is None else queries
        if queries is None:
            raise ValueError("queries is None and the model was built with num_outputs=None; give queries of shape "
                             f"(O, {latents.shape[-1]}) or (B, O, {latents.shape[-1]}), or build it with num_outputs=O.")
        if isinstance(queries, torch.Tensor) and queries.ndim == 2:
            queries = queries.expand(len(latents), -1, -1)
        check_width("queries", queries, self.perceiver.d_model)
        if queries.shape[0] != len(latents) or queries.shape[1] < 1:
            raise ValueError(f"queries has shape {tuple(queries.shape)} for a batch of {len(latents)}; give at least "
                             f"one query, as (O, {latents.shape[-1]}) for all or one set per sequence.")
        return self.norm(self.writer(queries, latents, trace=trace, name="perceiver.write"))

    def forward(self, inputs: torch.Tensor, queries: torch.Tensor | None = None, mask: torch.Tensor | None = None, *,
                trace: dict | None = None) -> torch.Tensor:
        """inputs (B, N, d_input), queries (O, D) or (B, O, D), mask to (B, H, M, N) -> (B, O, D)."""
        return self.write(self.perceiver(inputs, mask, trace=trace), queries, trace=trace)
