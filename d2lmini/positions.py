"""Three ways to say where a token stands: a learned table, sinusoids, rotary."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from .checks import check_flags, check_int, check_length, check_number, check_tensor, check_width


def sinusoidal_table(max_len: int, d_model: int, base: float = 10000.0) -> torch.Tensor:
    """Return fixed codes of sines and cosines at geometrically spaced wavelengths.

        table[t, 2i] = sin(t / base^(2i/D)),   table[t, 2i+1] = cos(t / base^(2i/D))

    Args:
        max_len: number of positions, at least 1.
        d_model: width D, even.
        base: sets the longest wavelength, 2 pi base; > 0.
    Returns:
        (max_len, D) float32.
    Raises:
        ValueError: if ``max_len`` or ``d_model`` is below 1, ``d_model`` is odd, or ``base`` is not positive.
    Source: Vaswani et al. 2017, section 3.5. Built in chapter 1.
    """
    check_int("max_len", max_len)
    if check_int("d_model", d_model) % 2:
        raise ValueError(f"d_model={d_model} is odd; sinusoidal codes pair a sine with a cosine: use an even width.")
    check_number("base", base, 0, low_open=True, high_open=True)
    rates = torch.exp(-math.log(base) * torch.arange(0, d_model, 2) / d_model)
    angles = torch.arange(max_len)[:, None] * rates
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)


class AddedPositions(nn.Module):
    """Add a position code to each token vector: x[b, t] + table[positions[b, t]].

    Args:
        max_len: positions that the table holds.
        d_model: width D.
        learned: a trainable table drawn from N(0, 0.02^2) if True, sinusoids if False.
    Raises:
        ValueError: if a size is below 1; in ``forward``, if a position does not lie in [0, max_len).
    Source: learned as in Devlin et al. 2019 (BERT); sinusoidal as in Vaswani et al. 2017.
    """

    def __init__(self, max_len: int, d_model: int, learned: bool):
        super().__init__()
        self.max_len, self.d_model = check_int("max_len", max_len), check_int("d_model", d_model)
        check_flags(learned=learned)
        if learned:
            self.table = nn.Parameter(torch.randn(max_len, d_model) * 0.02)
        else:
            self.register_buffer("table", sinusoidal_table(max_len, d_model), persistent=False)

    def forward(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """x (B, T, D), positions (T,) or (B, T) int64 -> (B, T, D)."""
        check_width("x", x, self.d_model)
        return x + _look_up(self.table, positions, x)


class Rotary(nn.Module):
    """Turn queries and keys by an angle proportional to their position.

        (x_i, x_{i+d_k/2}) -> rotation by t * base^(-2i/d_k)

    The dot product of a query turned by t and a key turned by s then depends on t - s alone.

    Args:
        d_k: head width, even.
        max_len: positions for which the angles are tabulated.
        base: sets the slowest rotation; > 0.
    Raises:
        ValueError: if ``d_k`` is odd, ``max_len`` < 1 or ``base`` is not positive; in ``forward``, if a position
            does not lie in [0, max_len).
    Source: Su et al. 2021 (RoFormer), equation 34; pairs are (i, i + d_k/2) rather than (2i, 2i+1), a
    relabelling of features. Built in chapter 1.
    """

    def __init__(self, d_k: int, max_len: int, base: float = 10000.0):
        super().__init__()
        if check_int("d_k", d_k) % 2:
            raise ValueError(f"d_k={d_k} is odd; rotary positions turn features in pairs: use an even head width.")
        self.d_k, self.max_len = d_k, check_int("max_len", max_len)
        check_number("base", base, 0, low_open=True, high_open=True)
        angles = torch.arange(max_len)[:, None] * base ** (-torch.arange(0, d_k, 2) / d_k)
        self.register_buffer("cos", angles.cos().repeat(1, 2), persistent=False)
        self.register_buffer("sin", torch.cat((-angles.sin(), angles.sin()), dim=1), persistent=False)

    def forward(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """x (B, H, T, d_k), positions (T,) or (B, T) int64 -> (B, H, T, d_k)."""
        if check_tensor("x", x, ndim=4).shape[-1] != self.d_k:
            raise ValueError(f"x has shape {tuple(x.shape)}; expected (B, H, T, {self.d_k}).")
        cos, sin = _look_up(self.cos, positions, x), _look_up(self.sin, positions, x)
        if positions.ndim == 2:  # one row of positions per sequence: make room for the heads
            cos, sin = cos[:, None], sin[:, None]
        return (x * cos + x.roll(self.d_k // 2, dims=-1) * sin).to(x.dtype)


def _look_up(table: torch.Tensor, positions: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Return the rows of a table (max_len, width) at the positions of x (B, ..., T, width)."""
    _check_shape(positions, x.shape[0], x.shape[-2])
    try:
        return F.embedding(positions, table)  # unlike table[positions], it does not count -1 from the end
    except IndexError:
        raise _outside(positions, len(table)) from None


def check_positions(positions: torch.Tensor | None, batch: int, length: int, max_len: int, device,
                    start: int = 0) -> torch.Tensor:
    """Return positions (T,) or (B, T): ``start, start+1, ...`` when none are given.

    Raises:
        ValueError: if ``start + length`` exceeds ``max_len``, or given positions have another shape,
            another dtype or values outside [0, max_len).
    """
    if positions is None:
        check_length("the sequence", start + length, max_len)
        return torch.arange(start, start + length, device=device)
    _check_shape(positions, batch, length)
    if positions.numel() and (positions.min() < 0 or positions.max() >= max_len):
        raise _outside(positions, max_len)
    return positions


def _check_shape(positions, batch: int, length: int) -> None:
    want = f"expected an int64 tensor of shape ({length},) or ({batch}, {length})."
    if not isinstance(positions, torch.Tensor):
        raise ValueError(f"positions is {type(positions).__name__}; {want}")
    if positions.dtype != torch.int64 or positions.shape not in ((length,), (batch, length)):
        raise ValueError(f"positions has shape {tuple(positions.shape)} and dtype {positions.dtype}; {want}")


def _outside(positions, max_len: int) -> ValueError:
    return ValueError(f"positions reach from {positions.min().item()} to {positions.max().item()}; expected values "
                      f"in [0, max_len={max_len}): shorten the sequence, or build with a larger max_len.")
