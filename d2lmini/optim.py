"""The optimizer and the learning-rate schedules that the chapters share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from .checks import check_int, check_module, check_number, check_tensor

# Coefficients of the odd polynomial a x + b x^3 + c x^5 that drives every singular value towards 1.
NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)


def orthogonalize(matrices: torch.Tensor, steps: int = 5) -> torch.Tensor:
    """Replace each matrix U S V^T by nearly U V^T: all singular values pushed into about [0.7, 1.2].

        X <- a X + b (X X^T) X + c (X X^T)^2 X,   from X = G / ||G||_F

    Args:
        matrices: (..., rows, columns), floating.
        steps: iterations, at least 1.
    Returns:
        The same shape and dtype; zeros stay zeros.
    Raises:
        ValueError: if ``matrices`` is not a floating tensor of two or more axes, or ``steps`` < 1.
    Source: Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural networks".
    """
    if check_tensor("matrices", matrices).ndim < 2:
        raise ValueError(f"matrices has shape {tuple(matrices.shape)}; expected (..., rows, columns).")
    check_int("steps", steps)
    a, b, c = NEWTON_SCHULZ
    tall = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.mT if tall else matrices
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.mT if tall else x


class Muon(torch.optim.Optimizer):
    """Momentum whose update is made orthogonal, for the matrices inside the blocks.

        M <- mu M + G,   W <- W - lr * sqrt(max(1, rows/columns)) * orthogonalize(G + mu M)

    Plain gradient descent moves a weight matrix mostly along its few largest singular directions; this
    moves it equally far along all of them.

    Args:
        params: 2-D parameters only; use AdamW for embeddings and gains.
        lr: step size, > 0; 0.01 suits the book's models.
        momentum: mu in [0, 1).
        weight_decay: share of a weight removed per step and unit of lr, >= 0.
        steps: Newton-Schulz iterations.
        tile: cut each matrix along its longer side into pieces this wide (a head's rows, say) and make every
            piece orthogonal by itself, which costs less; 0 keeps it whole. The update's norm stays the same.
    Raises:
        ValueError: if a parameter is not a matrix, or a number is out of range.
    Source: Jordan et al. 2024. We run it in float32, and all matrices of one shape as one batch.
    """

    def __init__(self, params, lr: float = 0.01, momentum: float = 0.95, weight_decay: float = 0.0, steps: int = 5,
                 tile: int = 0):
        super().__init__(params, dict(lr=lr, momentum=momentum, weight_decay=weight_decay, steps=steps, tile=tile))

    def add_param_group(self, group: dict) -> None:
        """Check and add a group of matrices, which may bring settings of its own."""
        super().add_param_group(group)
        group = self.param_groups[-1]
        check_number("lr", group["lr"], 0, low_open=True, high_open=True)
        check_number("momentum", group["momentum"], 0, 1, high_open=True)
        check_number("weight_decay", group["weight_decay"], 0, high_open=True)
        check_int("steps", group["steps"])
        check_int("tile", group["tile"], minimum=0)
        for p in group["params"]:
            if p.ndim != 2 or not p.is_floating_point():
                raise ValueError(f"params hold a tensor of shape {tuple(p.shape)} and dtype {p.dtype}; Muon takes "
                                 f"floating matrices only: give the others to AdamW, as make_optimizers does.")

    @torch.no_grad()
    def step(self, closure=None):
        """Update every matrix that has a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            by_shape = defaultdict(list)
            for p in group["params"]:
                if p.grad is not None:
                    by_shape[p.shape, p.dtype, p.device].append(p)
                    if not self.state[p]:
                        self.state[p]["momentum"] = torch.zeros_like(p)
            for params in by_shape.values():
                momenta = [self.state[p]["momentum"] for p in params]
                grads = [p.grad for p in params]
                torch._foreach_mul_(momenta, group["momentum"])
                torch._foreach_add_(momenta, grads)
                updates = torch._foreach_add(grads, momenta, alpha=group["momentum"])
                steps = _orthogonal_updates(torch.stack(updates), group["steps"], group["tile"]).unbind()
                if group["weight_decay"]:
                    torch._foreach_mul_(params, 1 - group["lr"] * group["weight_decay"])
                torch._foreach_add_(params, steps, alpha=-group["lr"])
        return loss


def _orthogonal_updates(updates: torch.Tensor, steps: int, tile: int) -> torch.Tensor:
    rows, columns = updates.shape[1:]
    if not 0 < tile < min(rows, columns):
        return orthogonalize(updates, steps) * max(1, rows / columns) ** 0.5
    x = updates.mT if columns > rows else updates
    x = F.pad(x, (0, 0, 0, -x.shape[1] % tile))  # rows of zeros fill the last tile and stay zeros
    x = orthogonalize(x.unflatten(1, (-1, tile)), steps).flatten(1, 2)[:, :max(rows, columns)]
    # Tiles of unit rows have the norm sqrt(longer side), the whole one sqrt(shorter side): this makes up for it.
    return (x.mT if columns > rows else x) * min(1, rows / columns) ** 0.5


def make_optimizers(model: nn.Module, *, lr: float = 0.01, adam_lr: float = 0.003, weight_decay: float = 0.0,
                    momentum: float = 0.95, tile: int = 0) -> list[torch.optim.Optimizer]:
    """Give the matrices inside blocks to Muon and all else (tables, gains, heads) to AdamW.

    Args:
        model: any module; a matrix counts as inside a block if it belongs to an ``nn.Linear`` under ``blocks``.
        lr: Muon's step size, > 0.
        adam_lr: AdamW's step size, > 0.
        weight_decay: of both, >= 0.
        momentum: Muon's, in [0, 1).
        tile: Muon's; 0 for whole matrices.
    Returns:
        [Muon, AdamW], for ``fit``; only one of them where the other would have nothing to train. Parameters that
        need no gradient are left out.
    Raises:
        ValueError: on a number out of range, or if the model has nothing to train.
    """
    check_number("lr", lr, 0, low_open=True, high_open=True)
    check_number("adam_lr", adam_lr, 0, low_open=True, high_open=True)
    check_number("weight_decay", weight_decay, 0, high_open=True)
    check_number("momentum", momentum, 0, 1, high_open=True)
    inside = {m.weight for name, m in check_module("model", model).named_modules() if isinstance(m, nn.Linear) and "blocks." in name}
    params = [p for p in model.parameters() if p.requires_grad]
    if not params:
        raise ValueError(f"model ({type(model).__name__}) has no parameter that needs a gradient; "
                         f"there is nothing to train.")
    matrices, others = [p for p in params if p in inside], [p for p in params if p not in inside]
    optimizers = [Muon(matrices, lr, momentum, weight_decay, tile=tile)] if matrices else []
    if others:
        optimizers.append(
            torch.optim.AdamW(others, adam_lr, betas=(0.9, 0.95), weight_decay=weight_decay, fused=True))
    return optimizers


def constant() -> Callable[[float], float]:
    """Return the schedule that never changes the learning rate."""
    return lambda progress: 1.0


def linear_decay(warmup: float = 0.0, hold: float = 0.0) -> Callable[[float], float]:
    """Return a schedule: rise over the first ``warmup``, stay until ``hold``, then fall linearly to 0.

    Args:
        warmup: share of training spent rising from 0, in [0, 1).
        hold: share of training at which the fall begins, in [0, 1); never before the rise has ended.
    Returns:
        A function of progress in [0, 1) to a factor in [0, 1] for the learning rates.
    Raises:
        ValueError: if a share is out of range.
    """
    check_number("warmup", warmup, 0, 1, high_open=True)
    hold = max(check_number("hold", hold, 0, 1, high_open=True), warmup)

    def factor(progress: float) -> float:
        if progress < warmup:
            return progress / warmup
        return max(0.0, min(1.0, (1 - progress) / (1 - hold)))

    return factor
