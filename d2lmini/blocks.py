"""The transformer block: norm, attention, feed-forward, and two residual connections around them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from .attention import MultiHeadAttention
from .checks import check_choice, check_flags, check_int, check_number, check_width
from .positions import Rotary

NORMS = ("rms", "layer")
ACTIVATIONS = ("swiglu", "gelu")


class RMSNorm(nn.Module):
    """Scale each vector to root mean square 1, then by a learned gain.

        y = g * x / sqrt(mean(x^2) + eps)

    Args:
        d_model: width D of the last axis.
        eps: added under the root, > 0; 1e-6.
    Raises:
        ValueError: if ``d_model`` < 1 or ``eps`` is not positive; in ``forward``, if the last axis is not D wide.
    Source: Zhang and Sennrich 2019, equation 4. Built in chapter 1; compared in chapter 6.
    """

    def __init__(self, d_model: int, eps: float = 1e-6):
        super().__init__()
        self.eps = check_number("eps", eps, 0, low_open=True, high_open=True)
        self.weight = nn.Parameter(torch.ones(check_int("d_model", d_model)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        check_width("x", x, len(self.weight), ndim=None)
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)


def make_norm(kind: str, d_model: int) -> nn.Module:
    """Return an ``RMSNorm`` ("rms") or an ``nn.LayerNorm`` ("layer") of width ``d_model``."""
    check_choice("norm", kind, NORMS)
    check_int("d_model", d_model)
    return RMSNorm(d_model) if kind == "rms" else nn.LayerNorm(d_model)


class FeedForward(nn.Module):
    """Transform every position by itself, through a wider layer.

        swiglu: W_down(silu(x W_gate) * (x W_up))        gelu: W_down(gelu(x W_up))

    Args:
        d_model: width D.
        d_ff: inner width F.
        activation: "swiglu" (three matrices) or "gelu" (two).
        bias: add biases.
        dropout: share of inner features dropped in training, in [0, 1).
    Raises:
        ValueError: if a width is below 1 or the activation unknown; in ``forward``, if the last axis is not D wide.
    Source: Shazeer 2020, equation 6 (swiglu); Vaswani et al. 2017, section 3.3, with GELU for ReLU. Chapter 1.
    """

    def __init__(self, d_model: int, d_ff: int, activation: str = "swiglu", bias: bool = False, dropout: float = 0.0):
        super().__init__()
        check_choice("activation", activation, ACTIVATIONS)
        self.d_model = check_int("d_model", d_model)
        check_int("d_ff", d_ff)
        check_flags(bias=bias)
        self.dropout = check_number("dropout", dropout, 0, 1, high_open=True)
        self.gate = nn.Linear(d_model, d_ff, bias=bias) if activation == "swiglu" else None
        self.up = nn.Linear(d_model, d_ff, bias=bias)
        self.down = nn.Linear(d_ff, d_model, bias=bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        check_width("x", x, self.d_model, ndim=None)
        inner = F.gelu(self.up(x)) if self.gate is None else F.silu(self.gate(x)) * self.up(x)
        return self.down(F.dropout(inner, self.dropout, self.training))


class Block(nn.Module):
    """Self-attention and feed-forward, each with a norm and a residual connection.

        pre-norm   x <- x + f(norm(x))        post-norm   x <- norm(x + f(x))

    The encoder-only and the decoder-only block are this same class: only the mask differs. With
    ``cross=True`` a third sub-layer attends to a context between the two: the decoder block of an
    encoder-decoder.

    Args:
        d_model, num_heads, d_ff: widths D and F, heads H.
        cross: add cross-attention to a context.
        d_context: width of that context; D by default.
        norm: "rms" or "layer".
        norm_first: pre-norm if True, post-norm if False.
        activation: "swiglu" or "gelu".
        rotary: shared ``Rotary`` of width D/H, or None.
        bias, qkv_bias: biases in output projection and feed-forward; in query, key, value.
        dropout: on attention weights, inner features and every branch, in training only.
    Raises:
        ValueError: on widths that do not fit; if ``cross`` and no context in ``forward``, or the reverse.
    Source: Vaswani et al. 2017, figure 1; pre-norm as in Xiong et al. 2020. Chapter 1; chapter 4 with cross.
    """

    def __init__(self, d_model: int, num_heads: int, d_ff: int, *, cross: bool = False, d_context: int | None = None,
                 norm: str = "rms", norm_first: bool = True, activation: str = "swiglu", rotary: Rotary | None = None,
                 bias: bool = False, qkv_bias: bool = False, dropout: float = 0.0):
        super().__init__()
        check_flags(cross=cross, norm_first=norm_first)
        if d_context is not None and not cross:
            raise ValueError(f"d_context={d_context} without cross=True has no use; add cross=True or leave it out.")
        self.d_model, self.norm_first = d_model, norm_first
        self.dropout = check_number("dropout", dropout, 0, 1, high_open=True)
        kinds = dict(bias=bias, qkv_bias=qkv_bias, dropout=dropout)
        self.self_norm = make_norm(norm, d_model)
        self.self_attention = MultiHeadAttention(d_model, num_heads, rotary=rotary, **kinds)
        if cross:
            self.cross_norm = make_norm(norm, d_model)
            self.cross_attention = MultiHeadAttention(d_model, num_heads, d_context=d_context, **kinds)
        else:
            self.cross_attention = None
        self.ff_norm = make_norm(norm, d_model)
        self.feed_forward = FeedForward(d_model, d_ff, activation, bias, dropout)

    def residual(self, x: torch.Tensor, norm: nn.Module, branch) -> torch.Tensor:
        """Add a branch to the stream, with the norm inside it (pre) or after the sum (post)."""
        if self.norm_first:
            return x + F.dropout(branch(norm(x)), self.dropout, self.training)
        return norm(x + F.dropout(branch(x), self.dropout, self.training))

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None, context: torch.Tensor | None = None,
                context_mask: torch.Tensor | None = None, *, positions: torch.Tensor | None = None, cache=None,
                trace: dict | None = None, name: str = "block") -> torch.Tensor:
        """x (B, T, D), mask to (B, H, T, T), context (B, S, d_context), context_mask to (B, H, T, S) -> (B, T, D).

        A trace receives the weights of this block under ``name.self`` and ``name.cross``.
        """
        check_width("x", x, self.d_model)
        if context_mask is not None and context is None:
            raise ValueError("context_mask is given without a context; give the context (B, S, d_context) that it masks.")
        if (context is None) != (self.cross_attention is None):
            raise ValueError(f"context is {'missing' if context is None else 'given'} but the block was built with "
                             f"cross={self.cross_attention is not None}; a block with cross-attention needs a context "
                             f"(B, S, d_context), one without takes none.")
        x = self.residual(x, self.self_norm, lambda y: self.self_attention(
            y, mask=mask, positions=positions, cache=cache, trace=trace, name=f"{name}.self"))
        if self.cross_attention is not None:
            x = self.residual(x, self.cross_norm, lambda y: self.cross_attention(
                y, context, context_mask, cache=cache, trace=trace, name=f"{name}.cross"))
        return self.residual(x, self.ff_norm, self.feed_forward)
