"""Generation: one token at a time, with a cache of keys and values or without."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import nn

from .checks import check_callable, check_flags, check_ids, check_int
from .masks import combine, padding_mask, prefix_mask
from .models import Encoder
from .sampling import check_sampling, make_generator, sample_token
from .training import _undisturbed


class Cache:
    """Keys and values of the tokens read so far, one pair of fixed buffers per attention layer.

    Read the prompt once, then one token at a time: ``model(prompt, cache=cache)``, ``model(token, cache=cache)``...
    Each call writes its tokens' keys and values behind those of the calls before it and attends to all.

    A cache belongs to one model and one prompt; make a new one for each, as ``generate`` does. Reading several
    tokens into a cache that is not empty is refused, for the old prompt would then stand before the new one, and so
    is a model with other layers or widths. What cannot be told apart is not: a single token from the next one of
    the text, or a model from another of the same shape.

    Args:
        capacity: tokens that fit, at least 1; usually the model's ``max_len``.
    Raises:
        ValueError: if ``capacity`` is below 1; in use, if the tokens do not fit, the batch or the widths are not
            those that the cache was filled with, a second prompt is read into it, or gradients are on.
    Built in chapter 3; the cross-attention half in chapter 4.
    """

    def __init__(self, capacity: int):
        self.capacity = check_int("capacity", capacity)
        self.length = 0
        self.written: set[str] = set()  # layers that the call under way has filled
        self.buffers: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}
        self.fixed: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}

    def extend(self, name: str, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Write k, v (B, H, T, d_k) of layer ``name`` behind what is there; return all, (B, H, length + T, d_k)."""
        tokens = k.shape[2]
        if self.length and tokens > 1:
            raise ValueError(f"cache already holds {self.length} tokens of a prompt, and {tokens} more were read at "
                             f"once; a cache serves one prompt: make a new Cache({self.capacity}) for the next one.")
        if self.length + tokens > self.capacity:
            raise ValueError(f"cache has capacity={self.capacity} and holds {self.length} tokens; {tokens} more do not "
                             f"fit: make it larger, or generate fewer tokens.")
        _check_no_gradients(k)
        if name not in self.buffers:
            if self.length:
                raise ValueError(f"cache holds {self.length} tokens but no layer {name!r}; it was filled by another "
                                 f"model: make a new Cache({self.capacity}).")
            shape = (*k.shape[:2], self.capacity, k.shape[3])
            self.buffers[name] = k.new_empty(shape), v.new_empty(shape)
        keys, values = self.buffers[name]
        if keys.shape[:2] != k.shape[:2] or keys.shape[3] != k.shape[3]:
            raise ValueError(f"cache was filled with {keys.shape[0]} sequences, {keys.shape[1]} heads of width "
                             f"{keys.shape[3]}, and got {k.shape[0]}, {k.shape[1]} and {k.shape[3]}; "
                             f"make a new Cache({self.capacity}) for another batch or model.")
        end = self.length + tokens
        keys[:, :, self.length:end] = k
        values[:, :, self.length:end] = v
        self.written.add(name)
        return keys[:, :, :end], values[:, :, :end]

    def once(self, name: str, make: Callable[[], tuple[torch.Tensor, torch.Tensor]]):
        """Return the keys and values of layer ``name`` that never grow, made on the first call."""
        if name not in self.fixed:
            pair = make()
            _check_no_gradients(pair[0])
            self.fixed[name] = pair
        return self.fixed[name]

    def advance(self, tokens: int) -> None:
        """Count ``tokens`` as read, once every layer has written them."""
        missed = self.buffers.keys() - self.written
        if missed:
            raise ValueError(f"cache holds layer {min(missed)!r}, which this model did not fill; it was filled by "
                             f"another model: make a new Cache({self.capacity}).")
        self.written.clear()
        self.length += tokens


def _check_no_gradients(k: torch.Tensor) -> None:
    if k.requires_grad:
        raise ValueError("cache was used while gradients are on; it keeps plain numbers for generation: "
                         "call the model under torch.no_grad().")


def generate(model: nn.Module, prompt_ids: torch.Tensor, max_new_tokens: int, *, greedy: bool = False,
             temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None, seed: int | None = None,
             generator: torch.Generator | None = None, stop_ids: Iterable[int] = (),
             stop: Callable[[torch.Tensor], bool] | None = None, lengths=None, prefix_lm: bool = False,
             use_cache: bool = True) -> list[torch.Tensor]:
    """Continue each prompt, one token at a time.

        x_{t+1} ~ adjusted p(. | x_1 ... x_t),   or its most likely token if greedy

    With the cache, each step reads one token and attends to stored keys and values. Without it, the whole fixed
    buffer (B, P + max_new_tokens) goes through the model at every step: what stands behind the last token yet
    is never seen, because the mask is causal. Both choose from the same distribution to rounding.

    Args:
        model: a ``Decoder``; any module with ``config.vocab_size`` and ``config.max_len`` that maps ids (B, T) to
            causal logits (B, T, V) will do with ``use_cache=False`` and no ``lengths``.
        prompt_ids: (B, P) int64, or (P,) for one prompt; P at least 1.
        max_new_tokens: at least 1; the longest prompt and these must fit into ``max_len``.
        greedy: take the most likely token; then temperature, top_k and top_p must be left alone.
        temperature, top_k, top_p: see ``next_token_distribution``.
        seed: of a generator of this call's own; a different text on every call if None.
        generator: a ``torch.Generator`` of yours instead of a seed.
        stop_ids: token ids that end a sequence; the one that ended it is kept.
        stop: called as ``stop(row)`` with a sequence so far, prompt included, (length,) int64 on the CPU; ends it
            when true.
        lengths: real lengths of prompts padded on the left, as ``pad_batch(prompts, pad_id, left=True)`` makes them:
            B numbers in [1, P]; None if all have length P. Each prompt sees only its own tokens; which random
            numbers it gets depends on its row.
        prefix_lm: let the prompt's tokens see each other on both sides, for a model trained with ``prefix_mask``.
        use_cache: keep keys and values; False recomputes.
    Returns:
        B tensors (length,) int64 on the CPU: the real tokens of the prompt, then the new ones.
    Raises:
        ValueError: on an empty prompt, ids outside the vocabulary, too many tokens for ``max_len``, a number out
            of range, greedy together with sampling settings, or a model that is an ``Encoder``.
    Source: temperature, top-k and top-p as in ``next_token_distribution``. Built in chapter 3.
    """
    config = _check_model(model)
    check_flags(greedy=greedy, prefix_lm=prefix_lm, use_cache=use_cache)
    if stop is not None:
        check_callable("stop", stop)
    own = make_generator(seed, generator)
    if greedy and (temperature, top_k, top_p) != (1.0, None, None):
        raise ValueError(f"greedy=True with temperature={temperature}, top_k={top_k}, top_p={top_p} is contradictory: "
                         f"greedy ignores them; give one or the other.")
    check_sampling(config.vocab_size, temperature, top_k, top_p)
    draw = dict(temperature=temperature, top_k=top_k, top_p=top_p,
                generator=None if greedy else own)
    if not isinstance(stop_ids, Iterable):
        raise ValueError(f"stop_ids={stop_ids!r} is not a list; give the token ids that end a text, such as [0].")
    stop_ids = {check_int("stop_ids", i, minimum=0, maximum=config.vocab_size - 1) for i in stop_ids}
    prompt, lengths = _check_prompt(prompt_ids, lengths, check_int("max_new_tokens", max_new_tokens), config)

    batch, start = prompt.shape
    total = start + max_new_tokens
    buffer = torch.cat((prompt, prompt[:, :1].expand(batch, max_new_tokens)), dim=1)
    ends = torch.full((batch,), total)
    running = torch.ones(batch, dtype=torch.bool)
    next_logits = _reader(model, buffer, start - lengths, start if prefix_lm else 0, use_cache)
    with _undisturbed(model):
        for n in range(start, total):
            token = sample_token(next_logits(n), **draw)
            buffer[:, n] = token.to(buffer.device)
            for b in running.nonzero()[:, 0].tolist():
                row = buffer[b, start - lengths[b]:n + 1]
                if token[b].item() in stop_ids or (stop is not None and stop(row.cpu().clone())):
                    running[b], ends[b] = False, n + 1
            if not running.any():
                break
    return [buffer[b, start - lengths[b]:ends[b]].cpu() for b in range(batch)]


def _reader(model, buffer, padding, prefix, use_cache):
    """Return a function of n to the logits (B, V) for slot n, given the n tokens before it in the buffer."""
    total = buffer.shape[1]
    cache = Cache(total) if use_cache else None
    ragged = bool(padding.any())
    positions = (torch.arange(total) - padding[:, None]).clamp(min=0).to(buffer.device) if ragged else None

    def next_logits(n):
        first = 0 if cache is None else cache.length
        last = total if cache is None else n  # the fixed buffer goes in whole, the cache takes what is new
        inputs = {} if cache is None else {"cache": cache}
        if ragged:  # every key but the padding in front
            inputs |= dict(mask=~padding_mask(padding, last, device=buffer.device), positions=positions[:, first:last])
        if prefix and first == 0:  # with a cache, only the prompt's own pass looks both ways
            inputs |= dict(mask=combine(prefix_mask(last, prefix, buffer.device), inputs.get("mask")), causal=False)
        return model(buffer[:, first:last], **inputs)[:, n - 1 - first]

    return next_logits


def _check_model(model):
    if isinstance(model, Encoder):
        raise ValueError("model is an Encoder, which sees both sides and so predicts no next token; give a Decoder.")
    config = getattr(model, "config", None)
    if not (hasattr(config, "vocab_size") and hasattr(config, "max_len")):
        raise ValueError(f"model is a {type(model).__name__} without config.vocab_size and config.max_len; "
                         f"give a Decoder, or a module with such a config.")
    return config


def _as_lengths(lengths):
    try:
        return torch.as_tensor(lengths, device="cpu")
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"lengths={lengths!r} is not a list of whole numbers; give the real length of each "
                         f"prompt.") from None


def _check_prompt(prompt_ids, lengths, new, config):
    if isinstance(prompt_ids, torch.Tensor) and prompt_ids.ndim == 1:
        prompt_ids = prompt_ids[None]
    if isinstance(prompt_ids, torch.Tensor) and prompt_ids.numel() == 0:
        raise ValueError("prompt_ids is empty; give at least one token to continue, such as a space or a line end.")
    prompt_ids = check_ids("prompt_ids", prompt_ids, config.vocab_size)
    batch, size = prompt_ids.shape
    lengths = torch.full((batch,), size) if lengths is None else _as_lengths(lengths)
    if lengths.shape != (batch,) or lengths.dtype not in (torch.int64, torch.int32) or \
            lengths.min() < 1 or lengths.max() > size:
        raise ValueError(f"lengths={lengths.tolist()} do not fit {batch} prompts padded to {size} tokens; give the "
                         f"real length of each, from 1 to {size}, with the padding on the left.")
    longest = int(lengths.max())
    if longest > config.max_len:
        raise ValueError(f"prompt_ids has {longest} tokens, more than max_len={config.max_len} of the model; "
                         f"keep fewer of its last tokens, or build the model with a larger max_len.")
    if longest + new > config.max_len:
        raise ValueError(f"prompt_ids has {longest} tokens and max_new_tokens={new}, together more than "
                         f"max_len={config.max_len} of the model; ask for at most {config.max_len - longest} new "
                         f"tokens, or shorten the prompt.")
    return prompt_ids[:, size - longest:], lengths.long()
