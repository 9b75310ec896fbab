"""From logits to a next token: the adjusted distribution, and draws from it with a random state of their own."""

from __future__ import annotations

import torch

from .checks import check_int, check_number


def next_token_distribution(logits: torch.Tensor, temperature: float = 1.0, top_k: int | None = None,
                            top_p: float | None = None) -> torch.Tensor:
    """Turn logits into the probabilities from which the next token is drawn.

        p_i proportional to exp(z_i / temperature), i among the k most likely tokens, and among the fewest
        most likely ones whose probabilities (after temperature and top-k) sum to at least top_p

    Args:
        logits: (..., V), floating; -inf forbids a token.
        temperature: > 0; below 1 sharpens, above 1 flattens. Greedy choice is its limit at 0, but is asked
            for with ``generate(..., greedy=True)``.
        top_k: keep this many tokens, 1 to V; None keeps all. Of equals, the lower ids are kept.
        top_p: keep this much probability, in (0, 1]; None keeps all.
    Returns:
        (..., V) in the dtype and on the device of ``logits``; rows sum to 1. No gradient flows through it.
    Raises:
        ValueError: on a number out of range, or logits that are NaN, +inf, or -inf for every token of a row.
    Source: top-p is Holtzman et al. 2020, section 3.1; top-k Fan et al. 2018. Built in chapter 3.
    """
    check_logits(logits)
    check_sampling(logits.shape[-1], temperature, top_k, top_p)
    z = logits.detach().to("cpu", torch.float64)  # in double, so that a small temperature cannot overflow
    p = ((z - z.max(dim=-1, keepdim=True).values) / temperature).softmax(dim=-1)
    ranked, order = p.sort(dim=-1, descending=True, stable=True)
    if top_k is not None:
        ranked[..., top_k:] = 0
        ranked /= ranked.sum(dim=-1, keepdim=True)
    if top_p is not None and top_p < 1:
        before = ranked.cumsum(dim=-1) - ranked  # what the more likely tokens already cover
        beyond = before >= top_p - 1e-9  # with a margin, since sums of equal shares round either way
        beyond[..., 0] = False  # the most likely token stays, however small top_p is
        ranked[beyond] = 0
        ranked /= ranked.sum(dim=-1, keepdim=True)
    return torch.zeros_like(p).scatter(-1, order, ranked).to(logits.device, logits.dtype)


def sample_token(logits: torch.Tensor, generator: torch.Generator | None, **how) -> torch.Tensor:
    """Draw one token per row, (B, V) -> (B,) int64; the most likely one if ``generator`` is None.

    The draw happens on the CPU, so that one seed gives one text on every device; PyTorch's global random
    state is neither read nor changed. ``how`` goes to ``next_token_distribution``.
    """
    if generator is None:
        return check_logits(logits).argmax(dim=-1).cpu()
    return torch.multinomial(next_token_distribution(logits, **how).cpu(), 1, generator=generator)[:, 0]


def check_logits(logits: torch.Tensor) -> torch.Tensor:
    """Return ``logits``, or raise ValueError unless every row can be made a distribution."""
    if not isinstance(logits, torch.Tensor) or not logits.is_floating_point() or logits.ndim < 1 or not logits.numel():
        kind = f"{logits.dtype} {tuple(logits.shape)}" if isinstance(logits, torch.Tensor) else type(logits).__name__
        raise ValueError(f"logits is {kind}; give a floating-point tensor of shape (..., V) that is not empty.")
    top = logits.max(dim=-1).values  # NaN if any is NaN
    if not top.isfinite().all():
        raise ValueError(f"logits hold a row whose largest value is {top[~top.isfinite()][0].item()}; every row needs "
                         f"a finite one and no NaN: look for a model whose training diverged.")
    return logits


def check_sampling(vocab_size: int, temperature: float, top_k: int | None, top_p: float | None) -> None:
    """Raise ValueError unless the three numbers can adjust a distribution over ``vocab_size`` tokens."""
    try:
        check_number("temperature", temperature, 0, low_open=True, high_open=True)
    except ValueError as error:
        raise ValueError(f"{error} For the most likely token every time, which is the limit at 0, "
                         f"use greedy=True.") from None
    if top_k is not None:
        check_int("top_k", top_k, minimum=1, maximum=vocab_size)
    if top_p is not None:
        check_number("top_p", top_p, 0, 1, low_open=True)


def make_generator(seed: int | None, generator: torch.Generator | None) -> torch.Generator:
    """Return the given generator, or a new one: seeded with ``seed``, or differently on every call without one."""
    if generator is not None:
        if seed is not None:
            raise ValueError(f"seed={seed} and generator are both given; give one: a seed for a repeatable text, or "
                             f"a torch.Generator of yours to draw on from where it stands.")
        if not isinstance(generator, torch.Generator) or generator.device.type != "cpu":
            raise ValueError(f"generator={generator!r} is not a torch.Generator on the CPU; "
                             f"make one with torch.Generator().manual_seed(0).")
        return generator
    fresh = torch.Generator()
    if seed is None:
        fresh.seed()  # from the operating system's entropy
    else:
        fresh.manual_seed(check_int("seed", seed, minimum=0, maximum=2**63 - 1))
    return fresh
