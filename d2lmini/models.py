"""The families as models: a config, a tower of blocks, and the three wirings."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from .blocks import ACTIVATIONS, NORMS, Block, make_norm
from .checks import check_choice, check_flags, check_heads, check_ids, check_int, check_number, check_width
from .masks import causal_mask, check_is_bool, combine
from .positions import AddedPositions, Rotary, check_positions

POSITIONS = ("rotary", "learned", "sinusoidal", "none")


@dataclass(frozen=True)
class Config:
    """Everything that fixes a model's shape. Frozen: a model's config cannot change under it.

    Args:
        vocab_size: V, number of token ids, special tokens included.
        max_len: longest sequence, in tokens.
        d_model: width D of the residual stream (128).
        num_heads: attention heads H, must divide D (4).
        num_layers: blocks (4).
        d_ff: inner width F of the feed-forward; round(8D/3) for swiglu and 4D for gelu when 0.
        norm: "rms" or "layer".
        norm_first: pre-norm if True, post-norm if False.
        activation: "swiglu" or "gelu".
        positions: "rotary", "learned", "sinusoidal" or "none".
        bias: biases in output projections and feed-forward.
        qkv_bias: biases in query, key and value projections.
        dropout: in [0, 1), in training only.
        tied: the output head is the token table itself.
    Raises:
        ValueError: on any value that makes no sense, at construction.
    """

    vocab_size: int
    max_len: int
    d_model: int = 128
    num_heads: int = 4
    num_layers: int = 4
    d_ff: int = 0
    norm: str = "rms"
    norm_first: bool = True
    activation: str = "swiglu"
    positions: str = "rotary"
    bias: bool = False
    qkv_bias: bool = False
    dropout: float = 0.0
    tied: bool = True

    def __post_init__(self):
        for name in ("vocab_size", "max_len"):
            check_int(name, getattr(self, name))
        check_int("num_layers", self.num_layers, minimum=0)
        check_int("d_ff", self.d_ff, minimum=0)
        check_choice("norm", self.norm, NORMS)
        check_choice("activation", self.activation, ACTIVATIONS)
        check_choice("positions", self.positions, POSITIONS)
        check_number("dropout", self.dropout, 0, 1, high_open=True)
        check_flags(norm_first=self.norm_first, bias=self.bias, qkv_bias=self.qkv_bias, tied=self.tied)
        check_heads(self.d_model, self.num_heads, rotary=self.positions == "rotary")
        if self.positions == "sinusoidal" and self.d_model % 2:
            raise ValueError(f"d_model={self.d_model} is odd; sinusoidal positions pair a sine with a cosine: "
                             f"use an even width.")

    @property
    def inner_width(self) -> int:
        """F: ``d_ff``, or its default for the activation."""
        return self.d_ff or (round(8 * self.d_model / 3) if self.activation == "swiglu" else 4 * self.d_model)


class Tower(nn.Module):
    """Token table, positions and a stack of blocks: the part that all wirings share.

    Args:
        config: the shape.
        kind: "encoder" or "decoder"; names the weights in a trace.
        cross: give each block cross-attention to a context of width D.
    """

    def __init__(self, config: Config, kind: str, cross: bool = False):
        super().__init__()
        if not isinstance(config, Config):
            raise ValueError(f"config is {type(config).__name__}; give a Config(vocab_size=..., max_len=..., ...).")
        c = self.config = config
        self.kind = kind
        self.tokens = nn.Embedding(c.vocab_size, c.d_model)
        rotary = Rotary(c.d_model // c.num_heads, c.max_len) if c.positions == "rotary" else None
        self.added = (AddedPositions(c.max_len, c.d_model, learned=c.positions == "learned")
                      if c.positions in ("learned", "sinusoidal") else None)
        self.blocks = nn.ModuleList(
            Block(c.d_model, c.num_heads, c.inner_width, cross=cross, norm=c.norm, norm_first=c.norm_first,
                  activation=c.activation, rotary=rotary, bias=c.bias, qkv_bias=c.qkv_bias, dropout=c.dropout)
            for _ in range(c.num_layers))
        self.norm = make_norm(c.norm, c.d_model) if c.norm_first else None  # a post-norm block ends in one already
        nn.init.normal_(self.tokens.weight, std=0.02)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor | None = None, context: torch.Tensor | None = None,
                context_mask: torch.Tensor | None = None, *, positions: torch.Tensor | None = None, cache=None,
                trace: dict | None = None) -> torch.Tensor:
        """ids (B, T) int64, mask to (B, H, T, S) -> states (B, T, D)."""
        ids = check_ids("ids", ids, self.config.vocab_size)
        start = 0 if cache is None else cache.length
        positions = check_positions(positions, *ids.shape, self.config.max_len, ids.device, start)
        x = self.tokens(ids)
        if self.added is not None:
            x = self.added(x, positions)
        for i, block in enumerate(self.blocks):
            x = block(x, mask, context, context_mask, positions=positions, cache=cache, trace=trace,
                      name=f"{self.kind}.{i}")
        if cache is not None:
            cache.advance(ids.shape[1])
        return x if self.norm is None else self.norm(x)


class LanguageModel(nn.Module):
    """A tower with an output head: token ids in, logits over the vocabulary out."""

    def __init__(self, config: Config, kind: str):
        super().__init__()
        self.tower = Tower(config, kind)
        self.config = config
        self.untied = None if config.tied else nn.Linear(config.d_model, config.vocab_size, bias=False)

    def head(self, states: torch.Tensor) -> torch.Tensor:
        """Turn states (..., D) into logits (..., V); with a tied head, by the token table: h E^T."""
        check_width("states", states, self.config.d_model, ndim=None)
        return F.linear(states, self.tower.tokens.weight) if self.untied is None else self.untied(states)


class Encoder(LanguageModel):
    """Encoder-only: every position sees every real token, on both sides.

    Args:
        config: the shape; see ``Config``.
    Source: Devlin et al. 2019 (BERT) for the wiring. Built in chapter 2.
    """

    def __init__(self, config: Config):
        super().__init__(config, "encoder")

    def states(self, ids: torch.Tensor, mask: torch.Tensor | None = None, *, trace: dict | None = None) -> torch.Tensor:
        """Return the final states.

        Args:
            ids: (B, T) int64 in [0, V), T at most ``max_len``.
            mask: bool, True = may attend, broadcastable to (B, H, T, T): ``padding_mask(lengths)`` for a ragged
                batch; None when every token is real.
            trace: a dict of yours that receives ``encoder.<layer>.self``, each (B, H, T, T).
        Returns:
            (B, T, D).
        Raises:
            ValueError: on ids outside the vocabulary, too long a sequence, or a mask that does not fit.
        """
        return self.tower(ids, mask, trace=trace)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor | None = None, *, trace: dict | None = None) -> torch.Tensor:
        """Return the logits (B, T, V); arguments as in ``states``."""
        return self.head(self.states(ids, mask, trace=trace))


class Decoder(LanguageModel):
    """Decoder-only: each position sees itself and what came before it.

    Args:
        config: the shape; see ``Config``.
    Source: Radford et al. 2018 (GPT) for the wiring. Built in chapter 3.
    """

    def __init__(self, config: Config):
        super().__init__(config, "decoder")

    def states(self, ids: torch.Tensor, mask: torch.Tensor | None = None, *, causal: bool = True,
               positions: torch.Tensor | None = None, cache=None, trace: dict | None = None) -> torch.Tensor:
        """Return the final states; the causal mask is applied here and cannot be forgotten.

        Args:
            ids: (B, T) int64 in [0, V).
            mask: further restrictions, combined with the causal mask by AND: bool, broadcastable to
                (B, H, T, S), where S counts the cached positions too.
            causal: False leaves the causal mask out, for a prefix-LM that brings ``prefix_mask`` itself.
            positions: (T,) or (B, T) int64; counted on from the cache by default. Give them for left padding.
            cache: a ``generation.Cache``; its keys and values stand before these T tokens.
            trace: receives ``decoder.<layer>.self``, each (B, H, T, S).
        Returns:
            (B, T, D).
        Raises:
            ValueError: on ids outside the vocabulary, more than ``max_len`` positions, or a mask that does not
                fit; if ``causal`` is False and no mask is given.
        """
        check_ids("ids", ids, self.config.vocab_size)
        check_flags(causal=causal)
        if not causal and mask is None:
            raise ValueError("causal=False without a mask would let every position see the token it predicts; "
                             "give mask=prefix_mask(length, prefix), or use an Encoder.")
        if mask is not None:
            check_is_bool(mask)
        if causal:
            start = 0 if cache is None else cache.length
            size = start + ids.shape[-1]
            mask = combine(causal_mask(size, ids.device)[start:], mask)
        return self.tower(ids, mask, positions=positions, cache=cache, trace=trace)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor | None = None, **kwargs) -> torch.Tensor:
        """Return the logits (B, T, V); arguments as in ``states``."""
        return self.head(self.states(ids, mask, **kwargs))
