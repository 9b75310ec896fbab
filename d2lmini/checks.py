"""Argument checks: every message names the argument, the value given, what was expected and what to do."""

from __future__ import annotations

import math
from numbers import Integral, Real

import torch
from torch import nn


def check_int(name: str, value, minimum: int = 1, maximum: int | None = None) -> int:
    """Return ``value`` as an int, or raise ValueError unless ``minimum <= value <= maximum``."""
    upper = f" and at most {maximum}" if maximum is not None else ""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ValueError(f"{name}={value!r} is not an integer; give a whole number of at least {minimum}{upper}.")
    if value < minimum or (maximum is not None and value > maximum):
        raise ValueError(f"{name}={value} is out of range; give a whole number of at least {minimum}{upper}.")
    return int(value)


def check_number(name: str, value, low: float, high: float = math.inf, *,
                 low_open: bool = False, high_open: bool = False) -> float:
    """Return ``value`` as a float, or raise ValueError unless it lies between ``low`` and ``high``.

    ``low_open`` and ``high_open`` leave the end point itself out.
    """
    interval = f"{'(' if low_open else '['}{low:g}, {high:g}{')' if high_open else ']'}"
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError(f"{name}={value!r} is not a number; give one in {interval}.")
    inside = (value > low if low_open else value >= low) and (value < high if high_open else value <= high)
    if not inside:  # NaN fails both comparisons
        raise ValueError(f"{name}={value} is outside {interval}; give a number in that range.")
    return float(value)


def seeded_generator(seed: int) -> torch.Generator:
    """Return a generator on the CPU with that seed, or raise ValueError unless the seed is an integer of at least 0."""
    return torch.Generator().manual_seed(check_int("seed", seed, minimum=0, maximum=2**63 - 1))


def check_choice(name: str, value, choices) -> str:
    """Return ``value``, or raise ValueError unless it is one of ``choices``."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name}={value!r} is unknown; choose one of {', '.join(map(repr, choices))}.")
    return value


def check_flags(**flags) -> None:
    """Raise ValueError unless every value is True or False: any other value would pass for one of them in silence."""
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise ValueError(f"{name}={value!r} is neither True nor False; give one of them.")


def check_callable(name: str, value) -> None:
    """Raise ValueError unless ``value`` can be called."""
    if not callable(value):
        raise ValueError(f"{name}={value!r} is not a function; give one.")


def check_text(name: str, text) -> str:
    """Return ``text``, or raise ValueError unless it is a str."""
    if not isinstance(text, str):
        raise ValueError(f"{name} is {type(text).__name__}; give a str.")
    return text


def check_tensor(name: str, x, ndim: int | None = None) -> torch.Tensor:
    """Return ``x``, or raise ValueError unless it is a floating-point tensor (of ``ndim`` axes, if given)."""
    if not isinstance(x, torch.Tensor) or not x.is_floating_point():
        kind = x.dtype if isinstance(x, torch.Tensor) else type(x).__name__
        raise ValueError(f"{name} is {kind}; give a floating-point tensor.")
    if ndim is not None and x.ndim != ndim:
        raise ValueError(f"{name} has shape {tuple(x.shape)}; expected {ndim} axes.")
    return x


def check_heads(d_model: int, num_heads: int, rotary: bool = False) -> int:
    """Return the head width ``d_model / num_heads``, or raise ValueError.

    The width must divide evenly among the heads; with rotary positions, which turn features in
    pairs, the head width must also be even.
    """
    check_int("d_model", d_model)
    check_int("num_heads", num_heads)
    if d_model % num_heads:
        raise ValueError(f"d_model={d_model} does not divide among num_heads={num_heads}; "
                         f"choose a d_model that is a multiple of num_heads.")
    d_k = d_model // num_heads
    if rotary and d_k % 2:
        raise ValueError(f"d_model={d_model} and num_heads={num_heads} give a head width of {d_k}, which is odd; "
                         f"rotary positions turn features in pairs: make d_model/num_heads even.")
    return d_k


def check_ids(name: str, ids: torch.Tensor, vocab_size: int | float = math.inf, ndim: int = 2) -> torch.Tensor:
    """Return ``ids`` as int64, or raise ValueError unless it is an int64 or int32 tensor of ``ndim`` axes whose
    entries lie in [0, vocab_size).
    """
    if not isinstance(ids, torch.Tensor) or ids.dtype not in (torch.int64, torch.int32):
        kind = ids.dtype if isinstance(ids, torch.Tensor) else type(ids).__name__
        raise ValueError(f"{name} is {kind}; give a tensor of token ids with dtype torch.int64.")
    if ids.ndim != ndim:
        want = {1: "(length,)", 2: "(B, T)"}.get(ndim, f"{ndim} axes")
        hint = f" For a single sequence add the batch axis: {name}.unsqueeze(0)." if (ids.ndim, ndim) == (1, 2) else ""
        raise ValueError(f"{name} has shape {tuple(ids.shape)}; expected {want}.{hint}")
    if ids.numel():
        low, high = ids.min().item(), ids.max().item()
        if low < 0 or high >= vocab_size:
            bad = low if low < 0 else high
            raise ValueError(f"{name} holds the token id {bad}, outside the vocabulary [0, {vocab_size}); "
                             f"encode the text with the vocabulary that the model was built for.")
    return ids.long()


def check_length(name: str, length: int, max_len: int) -> int:
    """Return ``length``, or raise ValueError unless ``1 <= length <= max_len``."""
    if length < 1:
        raise ValueError(f"{name} has length 0; give at least one token.")
    if length > max_len:
        raise ValueError(f"{name} has length {length}, longer than max_len={max_len}; "
                         f"shorten it, or build the model with a larger max_len.")
    return length


def check_width(name: str, x: torch.Tensor, d_model: int, ndim: int | None = 3) -> torch.Tensor:
    """Return ``x``, or raise ValueError unless it is a floating (B, length, d_model) tensor.

    With ``ndim=None`` any number of axes will do, as long as the last has width ``d_model``.
    """
    want = f"({'...' if ndim is None else 'B, length'}, {d_model})"
    if not isinstance(x, torch.Tensor) or not x.is_floating_point():
        kind = x.dtype if isinstance(x, torch.Tensor) else type(x).__name__
        raise ValueError(f"{name} is {kind}; give a floating-point tensor of shape {want}.")
    if x.ndim != (ndim or max(x.ndim, 1)) or x.shape[-1] != d_model:
        raise ValueError(f"{name} has shape {tuple(x.shape)}; expected {want}.")
    return x


def check_module(name: str, module) -> nn.Module:
    """Return ``module``, or raise ValueError unless it is an nn.Module."""
    if not isinstance(module, nn.Module):
        raise ValueError(f"{name} is {type(module).__name__}; give an nn.Module.")
    return module


def check_optimizers(optimizers, model: nn.Module) -> list[torch.optim.Optimizer]:
    """Return one optimizer or several as a list, or raise ValueError unless they hold a parameter of the model."""
    optimizers = list(optimizers) if isinstance(optimizers, (list, tuple)) else [optimizers]
    if not optimizers or not all(isinstance(o, torch.optim.Optimizer) for o in optimizers):
        raise ValueError(f"optimizers={optimizers!r} are not optimizers; give make_optimizers(model), for example.")
    held = {p for optimizer in optimizers for group in optimizer.param_groups for p in group["params"]}
    if held.isdisjoint(check_module("model", model).parameters()):
        raise ValueError("optimizers hold no parameter of this model, so that nothing would be trained; "
                         "make them from it: make_optimizers(model).")
    return optimizers


def check_losses(losses: torch.Tensor) -> torch.Tensor:
    """Return what a loss function gave, or raise ValueError unless it is (n,) floating with n >= 1."""
    if check_tensor("loss(model, batch)", losses).ndim != 1 or len(losses) == 0:
        raise ValueError(f"loss(model, batch) has shape {tuple(losses.shape)}; expected one loss per scored token (n,) "
                         f"with n >= 1: leave out the mean, and give batches in which something is scored.")
    return losses
