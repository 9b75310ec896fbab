"""The cost dial of chapter 5: what full self-attention and a Perceiver cost, as N, M and D move."""

from __future__ import annotations

from ..checks import check_int
from ..costs import encoder_flops, perceiver_flops
from .page import InteractiveFigure, table

# Exponents of 2 that the sliders reach.
RANGES = {"num_inputs": (4, 17), "num_latents": (3, 11), "d_model": (4, 12)}


def cost_dial(num_inputs: int = 2048, num_latents: int = 64, d_model: int = 256, num_layers: int = 2) -> InteractiveFigure:
    """Show the FLOPs of both designs of chapter 5 against each other, by ``encoder_flops`` and ``perceiver_flops``.

    Args:
        num_inputs: N at the start, a power of 2 from 16 to 131,072.
        num_latents: M, a power of 2 from 8 to 2,048.
        d_model: D, a power of 2 from 16 to 4,096.
        num_layers: L of both designs, 1 to 128; fixed in the figure.
    Returns:
        A figure with sliders for N, M and D; without scripts, a table over N.
    Raises:
        ValueError: if a number is out of range or not a power of 2.
    Built in chapter 5.
    """
    start = dict(num_inputs=num_inputs, num_latents=num_latents, d_model=d_model)
    for name, value in start.items():
        low, high = RANGES[name]
        check_int(name, value, 2**low, 2**high)
        if value & (value - 1):
            raise ValueError(f"{name}={value} is not a power of 2; the slider goes by powers of 2: give {2**(value.bit_length() - 1)} "
                             f"or {2**value.bit_length()}.")
    check_int("num_layers", num_layers, 1, 128)
    sizes = [2**k for k in range(7, 18, 2)]
    rows = []
    for n in sizes:
        full = encoder_flops(n, d_model, num_layers)
        read = perceiver_flops(n, num_latents, d_model=d_model, num_layers=num_layers)
        rows.append([f"{n:,}", f"{full / 1e9:.3g}", f"{read / 1e9:.3g}", f"{full / read:.3g}"])
    static = table(f"GFLOPs of one forward pass, M = {num_latents:,}, D = {d_model:,}, {num_layers} blocks. They cross at N = "
                   f"{crossover(num_latents, d_model, num_layers):,}.", ["inputs N", "full self-attention", "Perceiver", "ratio"], rows)
    return InteractiveFigure("cost_dial", "Cost dial", f"It begins at N = {num_inputs:,}, M = {num_latents:,}, D = {d_model:,}.",
                             {**start, "num_layers": num_layers, "ranges": RANGES}, static)


def crossover(num_latents: int, d_model: int, num_layers: int) -> int:
    """Return the smallest N at which full self-attention costs more FLOPs than a Perceiver with M latents."""
    dearer = lambda n: encoder_flops(n, d_model, num_layers) > \
        perceiver_flops(n, num_latents, d_model=d_model, num_layers=num_layers)
    low, high = 0, 1
    while not dearer(high):
        low, high = high, 2 * high
    while high - low > 1:  # the difference is a parabola in N, below zero at 0, so it crosses once
        middle = (low + high) // 2
        low, high = (low, middle) if dearer(middle) else (middle, high)
    return high
