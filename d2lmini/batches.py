"""From ids to training batches: windows, masked tokens, padding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from .checks import check_flags, check_ids, check_int, check_number, seeded_generator
from .masks import check_mask


def windows(ids: torch.Tensor, length: int, stride: int | None = None) -> torch.Tensor:
    """Cut a run of ids into windows.

    Args:
        ids: (characters,) int64.
        length: window length in tokens.
        stride: distance between starts; ``length`` by default, so that windows do not overlap.
    Returns:
        (number of windows, length) int64; a last window that would be too short is left out.
    Raises:
        ValueError: if the text is shorter than one window, or ``stride`` < 1.
    """
    ids, stride = _check_window(ids, length), check_int("stride", length if stride is None else stride)
    return ids.unfold(0, length, stride).contiguous()


def random_windows(ids: torch.Tensor, length: int, batch_size: int, seed: int) -> Iterator[torch.Tensor]:
    """Yield, without end, batches of windows that start at uniformly random places.

    Args:
        ids: (characters,) int64.
        length: window length in tokens.
        batch_size: B, windows per batch.
        seed: of a generator of its own; the same seed gives the same batches.
    Yields:
        (B, length) int64.
    Raises:
        ValueError: if the text is shorter than one window, ``batch_size`` < 1 or ``seed`` < 0.
    """
    ids = _check_window(ids, length)
    return _random_windows(ids.unfold(0, length, 1), check_int("batch_size", batch_size), seeded_generator(seed))


def _random_windows(all_windows, batch_size, generator):
    while True:
        yield all_windows[torch.randint(len(all_windows), (batch_size,), generator=generator)]


def _check_window(ids: torch.Tensor, length: int) -> torch.Tensor:
    ids = check_ids("ids", ids, ndim=1)
    if len(ids) < check_int("length", length):
        raise ValueError(f"the text has {len(ids)} characters, fewer than one window of length={length}; "
                         f"use a longer text or a shorter window.")
    return ids


@dataclass(frozen=True)
class MaskedBatch:
    """A batch for masked language modelling.

    inputs (B, T) int64: what the model reads; targets (B, T) int64: the text as it was;
    chosen (B, T) bool: the positions to predict, and the only ones that count in the loss;
    mask (B, 1, 1, T) bool or None: which tokens are real.
    """

    inputs: torch.Tensor
    targets: torch.Tensor
    chosen: torch.Tensor
    mask: torch.Tensor | None = None


def mask_tokens(ids: torch.Tensor, mask_id: int, *, fraction: float = 0.15, replace: float = 0.8,
                shuffle: float = 0.1, num_random: int = 0, generator: torch.Generator | None = None,
                mask: torch.Tensor | None = None) -> MaskedBatch:
    """Choose positions to predict, and hide what stands there.

    Each position is chosen independently with probability ``fraction``. Of the chosen, a share
    ``replace`` becomes the mask token, a share ``shuffle`` a random token, and the rest stays.

    Args:
        ids: (B, T) int64.
        mask_id: id of the mask token.
        fraction: in (0, 1), 0.15 by default.
        replace: in [0, 1], 0.8 by default; 1.0 for the mask token always.
        shuffle: in [0, 1], 0.1 by default; replace + shuffle must not exceed 1.
        num_random: random tokens are drawn from [0, num_random); 0 means ``mask_id``, which leaves out the
            mask token when it is the last id.
        generator: source of chance; PyTorch's global one by default.
        mask: (B, 1, 1, T) bool, True = real token, as ``padding_mask`` makes it; padding is never chosen.
            Anything that broadcasts to that will do.
    Returns:
        A ``MaskedBatch`` on the device of ``ids``; ``ids`` itself is left as it was. A batch in which chance
        chose nothing gets one position, so that its loss exists.
    Raises:
        ValueError: on a share out of range, shares that sum above 1, a mask_id below 1, ids not (B, T), a generator
            or a mask of another kind, or if there is no real token.
    Source: Devlin et al. 2019, section 3.1. Built in chapter 2.
    """
    check_number("fraction", fraction, 0, 1, low_open=True, high_open=True)
    check_number("replace", replace, 0, 1)
    check_number("shuffle", shuffle, 0, 1)
    if replace + shuffle > 1 + 1e-9:
        raise ValueError(f"replace={replace} and shuffle={shuffle} sum to more than 1; "
                         f"they are shares of the chosen positions: lower one of them.")
    check_int("mask_id", mask_id)
    ids = check_ids("ids", ids)
    num_random = check_int("num_random", num_random, minimum=0) or mask_id
    if generator is not None and not isinstance(generator, torch.Generator):
        raise ValueError(f"generator={generator!r} is not a torch.Generator; give one, or None for the global one.")
    real = torch.ones(ids.shape, dtype=torch.bool)
    if mask is not None:
        real &= check_mask(mask, (len(ids), 1, 1, ids.shape[1]))[:, 0, 0].cpu()
    on_cpu = dict(generator=generator)
    chosen = (torch.rand(ids.shape, **on_cpu) < fraction) & real
    if not chosen.any():
        places = real.flatten().nonzero()[:, 0]
        if len(places) == 0:
            raise ValueError("ids holds no real token to choose from; give at least one, and a mask that admits it.")
        chosen.view(-1)[places[torch.randint(len(places), (1,), **on_cpu)]] = True
    fate = torch.rand(ids.shape, **on_cpu)
    random_ids = torch.randint(num_random, ids.shape, **on_cpu)
    chosen, fate, random_ids = (t.to(ids.device) for t in (chosen, fate, random_ids))
    inputs = ids.masked_fill(chosen & (fate < replace), mask_id)
    inputs = torch.where(chosen & (fate >= replace) & (fate < replace + shuffle), random_ids, inputs)
    return MaskedBatch(inputs, ids, chosen, mask)


def masked_batches(text_windows: Iterator[torch.Tensor], mask_id: int, seed: int, **how) -> Iterator[MaskedBatch]:
    """Yield a ``MaskedBatch`` for each batch of windows; ``how`` goes to ``mask_tokens``.

    Raises:
        ValueError: if ``seed`` < 0; as in ``mask_tokens``, with the first batch.
    """
    generator = seeded_generator(seed)
    return (mask_tokens(ids, mask_id, generator=generator, **how) for ids in text_windows)


def pad_batch(sequences: Sequence[torch.Tensor], pad_id: int, left: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """Stack sequences of different lengths, padded on the right, or on the left for ``generate``.

    Args:
        sequences: B tensors (length,) int64, none empty.
        pad_id: the id written beside the shorter ones. Any valid id will do: what makes it padding is the mask.
        left: pad in front, so that the last tokens stand in one column: what ``generate`` continues.
    Returns:
        ids (B, longest) int64 and lengths (B,) int64, from which ``padding_mask(lengths)`` makes the mask of a batch
        padded on the right; ``generate(..., lengths=lengths)`` takes one padded on the left.
    Raises:
        ValueError: if there are no sequences, or one is empty, not 1-D or holds no ids.
    Built in chapter 1.
    """
    if not isinstance(sequences, (list, tuple)) or len(sequences) == 0:
        raise ValueError(f"sequences={sequences!r} is not a list of tensors; give at least one.")
    sequences = [check_ids(f"sequences[{i}]", s, ndim=1) for i, s in enumerate(sequences)]
    if any(len(s) == 0 for s in sequences):
        raise ValueError(f"sequences have lengths {[len(s) for s in sequences]}; expected length >= 1 for each.")
    check_int("pad_id", pad_id, minimum=0)
    check_flags(left=left)
    side = "left" if left else "right"
    ids = torch.nn.utils.rnn.pad_sequence(sequences, batch_first=True, padding_value=pad_id, padding_side=side)
    return ids, torch.tensor([len(s) for s in sequences])
