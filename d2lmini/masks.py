"""The only makers of masks. One convention, everywhere in this package:

    a mask is boolean, True = may attend, and broadcasts to (B, H, T, S).

That is the polarity of ``F.scaled_dot_product_attention`` and the opposite of
``nn.MultiheadAttention``, whose boolean masks mark what to leave out.
"""

from __future__ import annotations

import torch

from .checks import check_int


def causal_mask(length: int, device=None) -> torch.Tensor:
    """Let each position see itself and what came before it.

        allowed[t, s] = (s <= t)

    Args:
        length: number of positions T, at least 1.
        device: where to put the mask; the CPU by default.
    Returns:
        (T, T) bool, lower triangle True; T(T-1)/2 entries are False.
    Raises:
        ValueError: if ``length`` is not an integer of at least 1.
    Source: Vaswani et al. 2017, section 3.2.3. Built in chapter 1.
    """
    check_int("length", length)
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()


def prefix_mask(length: int, prefix: int, device=None) -> torch.Tensor:
    """Let everyone see the prefix, and the rest see only backwards (prefix-LM).

        allowed[t, s] = (s <= t) or (s < prefix)

    Args:
        length: number of positions T, at least 1.
        prefix: how many leading positions are visible to all, 0 to ``length``.
        device: where to put the mask.
    Returns:
        (T, T) bool. ``prefix=0`` is the causal mask, ``prefix=length`` the full square.
    Raises:
        ValueError: if ``length`` < 1 or ``prefix`` is outside [0, length].
    Source: Raffel et al. 2020 (T5), section 3.2.1. Built in chapter 1.
    """
    mask = causal_mask(length, device)
    check_int("prefix", prefix, minimum=0, maximum=length)
    mask[:, :prefix] = True
    return mask


def padding_mask(lengths, size: int | None = None, device=None) -> torch.Tensor:
    """Hide the padding behind each sequence of a ragged batch, on the key side.

        allowed[b, ., ., s] = (s < lengths[b])

    Args:
        lengths: B real lengths, each from 0 to ``size``: a list or a 1-D integer tensor.
        size: padded length S; the longest real length by default, and at least 1.
        device: where to put the mask; by default where ``lengths`` is.
    Returns:
        (B, 1, 1, S) bool: the same keys for every head and every query.
    Raises:
        ValueError: if ``lengths`` is empty or not 1-D, or a length is outside [0, size].
    Built in chapter 1.
    """
    try:
        given = torch.as_tensor(lengths, device=device)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        given = torch.empty(0)
    if given.ndim != 1 or given.numel() == 0 or given.dtype.is_floating_point or given.dtype.is_complex \
            or given.dtype == torch.bool:
        raise ValueError(f"lengths={lengths!r} is not a list of whole numbers; give one real length per sequence.")
    lengths = given.long()
    size = check_int("size", max(int(lengths.max()), 1) if size is None else size)
    if lengths.min() < 0 or lengths.max() > size:
        raise ValueError(f"lengths={lengths.tolist()} do not all lie in [0, {size}]; "
                         f"give the number of real tokens of each sequence, padded to size={size}.")
    return (torch.arange(size, device=lengths.device) < lengths[:, None])[:, None, None, :]


def combine(*masks: torch.Tensor | None) -> torch.Tensor | None:
    """Allow what every mask allows (AND); None stands for "no restriction".

    Args:
        masks: bool tensors that broadcast together, or None.
    Returns:
        Their AND, or None if all are None.
    Raises:
        ValueError: if a mask is not boolean, the shapes do not broadcast, or the devices differ.
    Built in chapter 1.
    """
    result = None
    for mask in masks:
        if mask is None:
            continue
        check_is_bool(mask)
        if result is not None and result.device != mask.device:
            raise ValueError(f"one mask is on {result.device} and another on {mask.device}; move one: mask.to(device).")
        try:
            result = mask if result is None else result & mask
        except RuntimeError:
            raise ValueError(f"mask shapes {tuple(result.shape)} and {tuple(mask.shape)} do not broadcast together; "
                             f"give masks that broadcast to (B, H, T, S), such as (T, S) or (B, 1, 1, S).") from None
    return result


def check_is_bool(mask) -> torch.Tensor:
    """Return ``mask``, or raise ValueError unless it is a boolean tensor."""
    if not isinstance(mask, torch.Tensor) or mask.dtype != torch.bool:
        kind = mask.dtype if isinstance(mask, torch.Tensor) else type(mask).__name__
        raise ValueError(f"mask is {kind}; give a boolean tensor in which True means 'may attend' "
                         f"(for a mask of 0 and -inf use mask == 0).")
    return mask


def check_mask(mask: torch.Tensor | None, shape: tuple[int, int, int, int], device=None) -> torch.Tensor | None:
    """Return ``mask`` with four axes, or raise ValueError unless it is boolean, broadcasts to ``shape`` = (B, H, T, S),
    and is on ``device`` (if given).
    """
    if mask is None:
        return None
    check_is_bool(mask)
    if device is not None and mask.device != device:
        raise ValueError(f"mask is on {mask.device} and what it masks on {device}; move it: mask.to({str(device)!r}).")
    try:
        fits = torch.broadcast_shapes(mask.shape, shape) == torch.Size(shape)
    except RuntimeError:
        fits = False
    if not fits:
        raise ValueError(f"mask has shape {tuple(mask.shape)}, which does not broadcast to (B, H, T, S) = {shape}; "
                         f"use (T, S) for all sequences alike or (B, 1, 1, S) for padding.")
    return mask.reshape((1,) * (4 - mask.ndim) + mask.shape)
