"""Sequence to sequence: the encoder-decoder, its batches, its loss, and greedy decoding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from .batches import pad_batch
from .checks import check_choice, check_ids, check_int, check_length, check_width
from .generation import Cache
from .masks import causal_mask, padding_mask
from .models import Config, Tower
from .training import _undisturbed


class EncoderDecoder(nn.Module):
    """Read a source with an encoder, write a target with a decoder that looks at it through cross-attention.

        M = encoder(source),   p(y_t | y_1 ... y_{t-1}, source) = softmax(decoder(y_1 ... y_{t-1}; M) E^T)

    Every source position sees every real source position; every target position sees itself, what came
    before it, and the whole real source.

    Args:
        encoder: shape of the source side.
        decoder: shape of the target side; the encoder's by default. Both need the same d_model.
        shared: one token table for both sides, which needs equal vocab_size; False gives each its own.
    Raises:
        ValueError: if the widths differ, or ``shared`` and the vocabularies differ in size.
    Source: Vaswani et al. 2017, figure 1 and section 3.4 (one table for both embeddings and the head); the
    blocks are pre-norm by default. Built in chapter 4.
    """

    def __init__(self, encoder: Config, decoder: Config | None = None, *, shared: bool = True):
        super().__init__()
        decoder = encoder if decoder is None else decoder
        if encoder.d_model != decoder.d_model:
            raise ValueError(f"the encoder has d_model={encoder.d_model}, the decoder d_model={decoder.d_model}; "
                             f"cross-attention here needs equal widths.")
        if shared and encoder.vocab_size != decoder.vocab_size:
            raise ValueError(f"the encoder has vocab_size={encoder.vocab_size}, the decoder {decoder.vocab_size}; "
                             f"to share the token table make them equal, or pass shared=False.")
        self.encoder_config, self.decoder_config = encoder, decoder
        self.encoder = Tower(encoder, "encoder")
        self.decoder = Tower(decoder, "decoder", cross=True)
        if shared:
            self.encoder.tokens = self.decoder.tokens
        self.untied = None if decoder.tied else nn.Linear(decoder.d_model, decoder.vocab_size, bias=False)

    def encode(self, source: torch.Tensor, source_mask: torch.Tensor | None = None, *,
               trace: dict | None = None) -> torch.Tensor:
        """Return the memory (B, S, D): one vector per source token.

        Args:
            source: (B, S) int64, S from 1 to the encoder's ``max_len``.
            source_mask: (B, 1, 1, S) bool, True = real token, as ``padding_mask`` makes it; None if all are.
            trace: receives ``encoder.<layer>.self``, each (B, H, S, S).
        Raises:
            ValueError: on an empty source, ids outside the vocabulary, or a mask that does not fit.
        """
        check_ids("source", source, self.encoder_config.vocab_size)
        check_length("source", source.shape[1], self.encoder_config.max_len)
        return self.encoder(source, source_mask, trace=trace)

    def decode(self, target: torch.Tensor, memory: torch.Tensor, source_mask: torch.Tensor | None = None, *,
               cache: Cache | None = None, trace: dict | None = None) -> torch.Tensor:
        """Return the decoder's states (B, T, D); the causal mask is applied here and cannot be forgotten.

        Args:
            target: (B, T) int64, the start token first; with a cache, the tokens that follow those it holds.
            memory: (B, S, D) from ``encode``.
            source_mask: as in ``encode``; pass the same one.
            cache: a ``generation.Cache``, one per source; the memory's keys and values are computed at the first
                call and kept.
            trace: receives ``decoder.<layer>.self`` (B, H, T, T) and ``decoder.<layer>.cross`` (B, H, T, S).
        Raises:
            ValueError: on an empty target, if the batch sizes differ, or if the cache was filled from another memory.
        """
        check_ids("target", target, self.decoder_config.vocab_size)
        check_length("target", target.shape[1], self.decoder_config.max_len)
        check_width("memory", memory, self.decoder_config.d_model)
        if len(target) != len(memory):
            raise ValueError(f"target holds {len(target)} sequences and the source {len(memory)}; "
                             f"give one target per source.")
        start = 0 if cache is None else cache.length
        if cache is not None and cache.once("decoder.memory", lambda: (memory, memory))[0] is not memory:
            raise ValueError("cache was filled from another memory; use a new Cache for each source.")
        mask = causal_mask(start + target.shape[1], target.device)[start:]
        return self.decoder(target, mask, memory, source_mask, cache=cache, trace=trace)

    def states(self, source: torch.Tensor, target: torch.Tensor, source_mask: torch.Tensor | None = None, *,
               trace: dict | None = None) -> torch.Tensor:
        """Encode and decode in one pass: (B, S), (B, T) -> (B, T, D)."""
        return self.decode(target, self.encode(source, source_mask, trace=trace), source_mask, trace=trace)

    def head(self, states: torch.Tensor) -> torch.Tensor:
        """Turn states (..., D) into logits (..., V); with a tied head, by the token table: h E^T."""
        return F.linear(states, self.decoder.tokens.weight) if self.untied is None else self.untied(states)

    def forward(self, source: torch.Tensor, target: torch.Tensor, source_mask: torch.Tensor | None = None, *,
                trace: dict | None = None) -> torch.Tensor:
        """Return the logits (B, T, V) of the token after each target token; arguments as in ``states``."""
        return self.head(self.states(source, target, source_mask, trace=trace))


@dataclass(frozen=True)
class PairBatch:
    """Source and target sequences for teacher forcing.

    source (B, S) int64; inputs (B, T) int64: the start token, then the target without its last token;
    targets (B, T) int64: what to predict; source_mask (B, 1, 1, S) bool or None: which source tokens are
    real; real (B, T) bool or None: which target tokens are, the only ones that count in the loss.
    """

    source: torch.Tensor
    inputs: torch.Tensor
    targets: torch.Tensor
    source_mask: torch.Tensor | None = None
    real: torch.Tensor | None = None


def pair_batch(sources: Sequence[torch.Tensor], targets: Sequence[torch.Tensor], start_id: int,
               pad_id: int = 0) -> PairBatch:
    """Pad pairs of sequences into a batch, shift the targets, and keep the masks.

    Args:
        sources, targets: B tensors (length,) int64 each, none empty; lengths may differ.
        start_id: the token that stands before every target.
        pad_id: written behind the shorter ones; any valid id, since masks say what is real.
    Returns:
        A ``PairBatch``.
    Raises:
        ValueError: if the numbers of sources and targets differ, or a sequence is empty.
    """
    if len(sources) != len(targets):
        raise ValueError(f"there are {len(sources)} sources and {len(targets)} targets; give one target per source.")
    check_int("start_id", start_id, minimum=0)
    source, source_lengths = pad_batch(sources, pad_id)
    target, target_lengths = pad_batch(targets, pad_id)
    start = torch.full((len(target), 1), start_id)
    return PairBatch(source, torch.cat((start, target[:, :-1]), dim=1), target, padding_mask(source_lengths),
                     padding_mask(target_lengths)[:, 0, 0])


def seq2seq_loss(model: EncoderDecoder, batch: PairBatch) -> torch.Tensor:
    """Return -log p(y_t | y_1 ... y_{t-1}, source) for every real target token.

    Args:
        model: an ``EncoderDecoder``.
        batch: a ``PairBatch``.
    Returns:
        (number of real target tokens,) losses in nats, row by row.
    Source: Sutskever et al. 2014, section 3. Built in chapter 4.
    """
    states = model.states(batch.source, batch.inputs, batch.source_mask)
    real = torch.ones_like(batch.targets, dtype=torch.bool) if batch.real is None else batch.real
    return F.cross_entropy(model.head(states[real]), batch.targets[real], reduction="none")


def greedy_decode(model: EncoderDecoder, source: torch.Tensor, start_id: int, max_new: int,
                  source_mask: torch.Tensor | None = None, *, end_id: int | None = None,
                  method: str = "cache") -> torch.Tensor:
    """Write the likeliest next token until the end token or ``max_new``; the source is encoded once.

    Args:
        model: an ``EncoderDecoder``; it runs in evaluation mode without gradients, and is left as it was.
        source: (B, S) int64.
        start_id: the first input of the decoder; it is not part of the answer.
        max_new: most tokens to write, from 1 to the decoder's ``max_len``.
        source_mask: (B, 1, 1, S) bool for a ragged batch.
        end_id: a row is over after it; None writes ``max_new`` tokens.
        method: "cache" computes each position once; "buffer" runs the decoder over a fixed (B, max_new) buffer
            for each token, and the causal mask makes what is not yet written count for nothing.
    Returns:
        (B, up to max_new) int64: each row up to and with its end token, then ``end_id`` again.
    Raises:
        ValueError: on a bad source, ``max_new`` out of range or an unknown method.
    Built in chapter 4.
    """
    check_choice("method", method, ("cache", "buffer"))
    check_int("max_new", max_new, maximum=model.decoder_config.max_len)
    check_int("start_id", start_id, minimum=0, maximum=model.decoder_config.vocab_size - 1)
    with _undisturbed(model):
        memory = model.encode(source, source_mask)
        cache = Cache(max_new) if method == "cache" else None
        inputs = torch.full((len(source), max_new), start_id, device=source.device)
        written = torch.full((len(source), max_new), 0 if end_id is None else end_id, device=source.device)
        over = torch.zeros(len(source), dtype=torch.bool, device=source.device)
        for t in range(max_new):
            if cache is None:
                states = model.decode(inputs, memory, source_mask)[:, t]
            else:
                states = model.decode(inputs[:, t:t + 1], memory, source_mask, cache=cache)[:, -1]
            best = model.head(states).argmax(dim=-1)
            written[:, t] = best if end_id is None else best.masked_fill(over, end_id)
            if end_id is not None:
                over |= best == end_id
                if over.all():
                    return written[:, :t + 1]
            if t + 1 < max_new:
                inputs[:, t + 1] = written[:, t]
        return written


def exact_match(model: EncoderDecoder, batch: PairBatch, *, end_id: int | None = None, method: str = "cache") -> float:
    """Return the share of rows whose greedy answer equals the target in every real token.

    Args:
        batch: a ``PairBatch``; the start token is read from its inputs.
        end_id: the targets' last token, if they have one.
        method: as in ``greedy_decode``.
    """
    length = batch.targets.shape[1]
    answer = greedy_decode(model, batch.source, int(batch.inputs[0, 0]), length, batch.source_mask, end_id=end_id,
                           method=method)
    right = F.pad(answer, (0, length - answer.shape[1]), value=-1) == batch.targets
    return (right if batch.real is None else right | ~batch.real).all(dim=1).float().mean().item()
