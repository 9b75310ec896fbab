"""Attention: one function for the weights, one for the weighted sum, one module with heads."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from .checks import check_flags, check_heads, check_int, check_number, check_tensor, check_width
from .masks import check_mask
from .positions import Rotary


def attention_weights(q: torch.Tensor, k: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
    """Say how much each query takes from each key.

        A = softmax(Q K^T / sqrt(d_k) + M),   M = 0 where the mask is True, -inf where it is False

    Args:
        q: queries (B, H, T, d_k), floating.
        k: keys (B, H, S, d_k).
        mask: bool, True = may attend, broadcastable to (B, H, T, S); None allows everything.
    Returns:
        (B, H, T, S). Rows sum to 1; a row whose every key is masked is all zeros.
    Raises:
        ValueError: if q or k is not a floating tensor of four axes, if batch, heads, head width, dtype or device
            differ, or if the mask is not boolean or does not broadcast.
    Source: Vaswani et al. 2017, equation 1. Built in chapter 1.
    """
    _check_queries_keys(q, k)
    mask = check_mask(mask, (*q.shape[:3], k.shape[2]), q.device)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is None:
        return scores.softmax(dim=-1)
    blind = ~mask.any(dim=-1, keepdim=True)  # softmax over nothing is 0/0: such a row becomes zeros below
    return scores.masked_fill(~(mask | blind), -math.inf).softmax(dim=-1).masked_fill(blind, 0.0)


def _check_queries_keys(q, k):
    check_tensor("q", q, ndim=4)
    check_tensor("k", k, ndim=4)
    if q.shape[:2] != k.shape[:2] or q.shape[-1] != k.shape[-1] or q.shape[-1] == 0:
        raise ValueError(f"q has shape {tuple(q.shape)} and k {tuple(k.shape)}; "
                         f"expected (B, H, T, d_k) and (B, H, S, d_k) with equal B, H and d_k >= 1.")
    _check_alike(q=q, k=k)


def _check_alike(**tensors):
    if len({(x.dtype, x.device) for x in tensors.values()}) > 1:
        kinds = ", ".join(f"{name} {x.dtype} on {x.device}" for name, x in tensors.items())
        raise ValueError(f"{kinds}: expected one dtype and one device; convert with .to().")


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None = None, *,
              dropout: float = 0.0, trace: dict | None = None, name: str = "attention") -> torch.Tensor:
    """Mix the values by the attention weights: A V.

    Without ``trace`` the fused kernel runs, which never builds A; with one, A is built, stored in
    ``trace[name]`` detached and before dropout, and used. Both paths give the same result.

    Args:
        q, k, v: (B, H, T, d_k), (B, H, S, d_k), (B, H, S, d_v).
        mask: bool, True = may attend, broadcastable to (B, H, T, S).
        dropout: share of the weights zeroed, in [0, 1); pass 0 outside training.
        trace: a dict of the caller's that receives the weights (B, H, T, S).
        name: the key under which they are stored.
    Returns:
        (B, H, T, d_v); a query with every key masked gets zeros.
    Raises:
        ValueError: as in ``attention_weights``; if B, H or S differs between k and v, ``dropout`` is out of range,
            or ``trace`` is no dict.
    Source: Vaswani et al. 2017, equation 1. Built in chapter 1.
    """
    _check_queries_keys(q, k)
    if check_tensor("v", v, ndim=4).shape[:3] != k.shape[:3]:
        raise ValueError(f"k has shape {tuple(k.shape)} and v {tuple(v.shape)}; every key needs one value.")
    _check_alike(k=k, v=v)
    check_number("dropout", dropout, 0, 1, high_open=True)
    if trace is not None:
        if not isinstance(trace, dict):
            raise ValueError(f"trace is {type(trace).__name__}; give a dict of yours, such as trace = {{}}.")
        weights = attention_weights(q, k, mask)
        trace[name] = weights.detach()
        return F.dropout(weights, dropout) @ v
    mask = check_mask(mask, (*q.shape[:3], k.shape[2]), q.device)
    if mask is None:
        return F.scaled_dot_product_attention(q, k, v, dropout_p=dropout)
    blind = ~mask.any(dim=-1, keepdim=True)
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask | blind, dropout_p=dropout)
    return out.masked_fill(blind, 0.0)


class MultiHeadAttention(nn.Module):
    """Let H heads of width d_k = D/H attend side by side, then mix them.

        head_h = attention(X W_h^Q, C W_h^K, C W_h^V),   out = [head_1 ... head_H] W^O

    with C = X for self-attention, C = another sequence (the "context") for cross-attention.

    Args:
        d_model: width D of the queries and of the output.
        num_heads: H, must divide D.
        d_context: width of the context; D by default.
        rotary: a ``Rotary`` of width D/H that turns queries and keys; only for self-attention.
        bias: add a bias to the output projection.
        qkv_bias: add biases to the query, key and value projections.
        dropout: share of attention weights dropped in training, in [0, 1).
    Raises:
        ValueError: if H does not divide D, or ``rotary`` has another width; in ``forward``, if a width does not match.
    Source: Vaswani et al. 2017, section 3.2.2. Built in chapter 1; cross-attention in chapter 4.
    """

    def __init__(self, d_model: int, num_heads: int, *, d_context: int | None = None, rotary: Rotary | None = None,
                 bias: bool = False, qkv_bias: bool = False, dropout: float = 0.0):
        super().__init__()
        d_k = check_heads(d_model, num_heads, rotary=rotary is not None)
        check_flags(bias=bias, qkv_bias=qkv_bias)
        if rotary is not None and (not isinstance(rotary, Rotary) or rotary.d_k != d_k):
            raise ValueError(f"rotary={rotary!r} does not turn heads of width {d_k}; give Rotary({d_k}, max_len).")
        self.d_model, self.num_heads, self.rotary = d_model, num_heads, rotary
        self.d_context = d_model if d_context is None else check_int("d_context", d_context)
        self.dropout = check_number("dropout", dropout, 0, 1, high_open=True)
        self.query = nn.Linear(d_model, d_model, bias=qkv_bias)
        self.key = nn.Linear(self.d_context, d_model, bias=qkv_bias)
        self.value = nn.Linear(self.d_context, d_model, bias=qkv_bias)
        self.out = nn.Linear(d_model, d_model, bias=bias)

    def split(self, x: torch.Tensor) -> torch.Tensor:
        """(B, length, D) -> (B, H, length, d_k)."""
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def keys_values(self, context: torch.Tensor, positions: torch.Tensor | None = None):
        """Project the context (B, S, d_context) to keys and values, each (B, H, S, d_k)."""
        check_width("context", context, self.d_context)
        k, v = self.split(self.key(context)), self.split(self.value(context))
        return (k if self.rotary is None else self.rotary(k, positions)), v

    def forward(self, x: torch.Tensor, context: torch.Tensor | None = None, mask: torch.Tensor | None = None, *,
                positions: torch.Tensor | None = None, cache=None, trace: dict | None = None,
                name: str = "attention") -> torch.Tensor:
        """Attend from x (B, T, D) to the context (B, S, d_context), or to x itself without one.

        Args:
            x: queries' inputs (B, T, D).
            context: keys' and values' inputs (B, S, d_context); None means self-attention.
            mask: bool, True = may attend, broadcastable to (B, H, T, S).
            positions: (T,) or (B, T) int64, for rotary; 0...T-1 by default, counted on from the cache.
            cache: a ``generation.Cache`` that keeps keys and values under ``name``.
            trace: receives this call's weights under ``name``.
        Returns:
            (B, T, D).
        """
        check_width("x", x, self.d_model)
        if context is not None and self.rotary is not None:
            raise ValueError("rotary positions compare places in one sequence; "
                             "build cross-attention with rotary=None.")
        q = self.split(self.query(x))
        if self.rotary is not None:
            if positions is None:
                start = 0 if cache is None else cache.length
                positions = torch.arange(start, start + x.shape[1], device=x.device)
            q = self.rotary(q, positions)
        if cache is None:
            k, v = self.keys_values(x if context is None else context, positions)
        elif context is None:
            k, v = cache.extend(name, *self.keys_values(x, positions))
        else:
            k, v = cache.once(name, lambda: self.keys_values(context))
        out = attention(q, k, v, mask, dropout=self.dropout if self.training else 0.0, trace=trace, name=name)
        return self.out(out.transpose(1, 2).flatten(2))
