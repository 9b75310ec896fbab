"""What a forward pass costs: FLOPs by formula, and the two designs of chapter 5 ready to be timed."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from .blocks import Block
from .checks import check_choice, check_int
from .perceiver import Perceiver

DESIGNS = ("full", "perceiver")


def encoder_flops(num_inputs: int, d_model: int, num_layers: int, d_ff: int = 0) -> int:
    """Count the FLOPs of L blocks over N inputs, in matrix products alone (a multiply and an add are 2).

        L (8 N D^2 + 4 N^2 D + 6 N D F):   four projections, scores and weighted sum, three SwiGLU matrices

    Args:
        num_inputs: N; d_model: D; num_layers: L; d_ff: F, round(8D/3) when 0.
    Returns:
        FLOPs of one forward pass of one sequence.
    Built in chapter 5.
    """
    n, d, f = num_inputs, d_model, d_ff or round(8 * d_model / 3)
    return num_layers * (8 * n * d * d + 4 * n * n * d + 6 * n * d * f)


def perceiver_flops(num_inputs: int, num_latents: int, num_outputs: int = 0, *, d_model: int, num_layers: int,
                    d_input: int = 0, d_ff: int = 0) -> int:
    """Count the FLOPs of a Perceiver, or with O > 0 of a Perceiver IO, in matrix products alone.

        read    4 N d_input D + 4 M D^2 + 4 M N D + 6 M D F
        blocks  L (8 M D^2 + 4 M^2 D + 6 M D F)
        write   4 M D^2 + 4 O D^2 + 4 O M D + 6 O D F      (nothing if O = 0)

    Args:
        num_inputs: N; num_latents: M; num_outputs: O.
        d_model: D; num_layers: L; d_input: D when 0; d_ff: F, round(8D/3) when 0.
    Returns:
        FLOPs of one forward pass of one sequence.
    Built in chapter 5.
    """
    n, m, o, d = num_inputs, num_latents, num_outputs, d_model
    f, d_input = d_ff or round(8 * d / 3), d_input or d
    read = 4 * n * d_input * d + 4 * m * d * d + 4 * m * n * d + 6 * m * d * f
    write = 4 * m * d * d + 4 * o * d * d + 4 * o * m * d + 6 * o * d * f if o else 0
    return read + encoder_flops(m, d, num_layers, f) + write


class Forget(dict):
    """A trace that keeps nothing: attention builds its weights, and they are freed as soon as they are used."""

    def __setitem__(self, name, weights):
        pass


def forward_case(num_inputs: int, *, design: str = "perceiver", num_latents: int = 64, fused: bool = True,
                 d_model: int = 256, num_heads: int = 4, num_layers: int = 2) -> Callable[[], torch.Tensor]:
    """Return one forward pass, ready to be called: a model and random inputs (1, N, D), without gradients.

    Args:
        num_inputs: N.
        design: "full" (L blocks over all N inputs) or "perceiver" (M latents read them, then L blocks over M).
        num_latents: M; no matter for "full".
        fused: True for the kernel that never builds the weights, False to build them, as a trace does.
        d_model, num_heads, num_layers: D, H, L.
    Returns:
        A function without arguments: (1, N, D) from "full", (1, M, D) from "perceiver".
    Raises:
        ValueError: on an unknown design or numbers out of range.
    Built in chapter 5.
    """
    check_int("num_inputs", num_inputs)
    check_choice("design", design, DESIGNS)
    trace = None if fused else Forget()
    x = torch.randn(1, num_inputs, d_model)
    if design == "perceiver":
        model = Perceiver(d_model, num_latents, d_model, num_heads, num_layers).eval().requires_grad_(False)
        return lambda: model(x, trace=trace)
    check_int("num_layers", num_layers)
    blocks = nn.ModuleList(Block(d_model, num_heads, round(8 * d_model / 3)) for _ in range(num_layers))
    blocks.eval().requires_grad_(False)

    def forward() -> torch.Tensor:
        y = x
        for block in blocks:
            y = block(y, trace=trace)
        return y

    return forward


def weight_bytes(num_inputs: int, num_heads: int = 4) -> int:
    """Bytes that unfused self-attention needs for scores and weights at once: 2 H N^2 float32 numbers."""
    return 2 * 4 * num_heads * num_inputs**2
