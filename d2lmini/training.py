"""Training in four pieces: a loss of (model, batch), one step, evaluate, and fit, which returns a History."""

from __future__ import annotations

import math
import os
import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import islice

import numpy as np
import torch
from torch import nn
from tqdm.auto import tqdm

from .checks import check_callable, check_int, check_losses, check_module, check_number, check_optimizers
from .optim import constant

Loss = Callable[[nn.Module, object], torch.Tensor]  # (model, batch) -> one loss per scored token, (n,)


def seed_everything(seed: int) -> None:
    """Seed Python's, NumPy's and PyTorch's random generators; ValueError unless 0 <= seed < 2^63."""
    seed = check_int("seed", seed, minimum=0, maximum=2**63 - 1)
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def device() -> torch.device:
    """Return the best device present: CUDA, else Apple's MPS, else the CPU."""
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def to_device(batch, where):
    """Move a tensor, a tuple, list or dict of tensors, or a dataclass of tensors."""
    if isinstance(batch, torch.Tensor):
        return batch.to(where)
    if isinstance(batch, (tuple, list)):
        moved = [to_device(b, where) for b in batch]
        return type(batch)(*moved) if hasattr(batch, "_fields") else type(batch)(moved)  # a named tuple, or a plain one
    if isinstance(batch, dict):
        return {k: to_device(b, where) for k, b in batch.items()}
    if is_dataclass(batch) and not isinstance(batch, type):
        return replace(batch, **{f.name: to_device(getattr(batch, f.name), where) for f in fields(batch)})
    return batch


def progress(iterable: Iterable, desc: str = "", total: int | None = None):
    """Wrap an iterable in a progress bar that vanishes when done; none if D2LMINI_PROGRESS is "0"."""
    return tqdm(iterable, desc=desc, total=total, leave=False, disable=os.environ.get("D2LMINI_PROGRESS") == "0")


@dataclass
class History:
    """What a training run did: the loss of every step, in nats per token, and the seconds it took.

    losses: one mean per step; seconds: training time alone, evaluations left out; evaluations: pairs
    (step, value returned by the caller's function).
    """

    losses: list[float] = field(default_factory=list)
    seconds: float = 0.0
    evaluations: list[tuple[int, object]] = field(default_factory=list)

    @property
    def steps(self) -> int:
        return len(self.losses)

    def smoothed(self, width: int = 50) -> list[float]:
        """The losses averaged over the last ``width`` steps (fewer at the start)."""
        check_int("width", width)
        total = np.concatenate([[0.0], np.cumsum(self.losses)])
        ends = np.arange(1, len(self.losses) + 1)
        starts = np.maximum(ends - width, 0)
        return ((total[ends] - total[starts]) / (ends - starts)).tolist()


class NonFiniteLoss(ValueError):
    """Training met a loss that is NaN or infinite; the model was put back to its last good state."""

    def __init__(self, step: int, what: str, history: History):
        self.step, self.history = step, history
        super().__init__(f"{what} at step {step}; training stopped, and the model was put back to the last parameters "
                         f"that gave a finite loss. Lower the learning rate or clip the gradient (clip=1.0).")


def train_step(model: nn.Module, loss: Loss, batch, optimizers, clip: float | None = None,
               before_update: Callable[[], None] | None = None) -> float:
    """One step: losses, their mean, gradients, update. Returns the mean loss in nats per token.

    If the loss is not finite nothing is updated; ``before_update`` runs only when it is.
    """
    mean = check_losses(loss(model, batch)).mean()
    if not mean.requires_grad:
        raise ValueError("loss(model, batch) has no gradient; compute it from the model's parameters, without detach.")
    value = mean.item()
    if not math.isfinite(value):
        return value
    for optimizer in optimizers:
        optimizer.zero_grad(set_to_none=True)
    mean.backward()
    if clip is not None:
        nn.utils.clip_grad_norm_(model.parameters(), clip)
    if before_update is not None:
        before_update()
    for optimizer in optimizers:
        optimizer.step()
    return value


def fit(model: nn.Module, loss: Loss, batches: Iterable, *, steps: int, optimizers,
        schedule: Callable[[float], float] | None = None, clip: float | None = None,
        evaluate_every: int = 0, evaluation: Callable[[nn.Module], object] | None = None,
        desc: str = "training") -> History:
    """Train a model.

    Args:
        model: any module, on any device; batches are moved to it.
        loss: (model, batch) -> one loss per scored token (n,), in nats; its mean is minimised.
        batches: at least ``steps`` batches.
        steps: number of updates, at least 1.
        optimizers: one optimizer or a list, as ``make_optimizers`` returns.
        schedule: progress in [0, 1) -> factor >= 0 on every learning rate; constant by default.
        clip: largest norm of the whole gradient, > 0; None leaves it alone.
        evaluate_every: call ``evaluation(model)`` before the first step, after every so many, and at the end;
            0 for never. Its time is not counted, and the random state is as it was afterwards.
        evaluation: a function of the model.
        desc: label of the progress bar.
    Returns:
        A ``History``.
    Raises:
        ValueError: on numbers out of range, if the optimizers hold no parameter of the model, if ``loss`` returns
            anything else, or if the batches run out (the message says after which step).
        NonFiniteLoss: a ValueError; at the first loss that is NaN or infinite, or if the last update left a
            parameter so. The model is then as it was when it last gave a finite loss.
    """
    check_int("steps", steps)
    check_int("evaluate_every", evaluate_every, minimum=0)
    if clip is not None:
        check_number("clip", clip, 0, low_open=True)
    check_callable("loss", loss)
    if evaluate_every:
        check_callable("evaluation", evaluation)
    optimizers = check_optimizers(optimizers, model)
    groups = [(group, group["lr"]) for optimizer in optimizers for group in optimizer.param_groups]
    schedule = constant() if schedule is None else schedule
    check_callable("schedule", schedule)
    params = list(model.parameters())
    where = params[0].device
    good = [p.detach().clone() for p in params]
    history = History()

    def remember():
        torch._foreach_copy_(good, [p.detach() for p in params])

    def stop(step, what):
        with torch.no_grad():
            torch._foreach_copy_(params, good)
        raise NonFiniteLoss(step, what, history)

    def run_evaluation(step):
        with _undisturbed(model):
            history.evaluations.append((step, evaluation(model)))

    model.train()
    try:
        if evaluate_every:
            run_evaluation(0)
        source = iter(batches)
        for step in progress(range(1, steps + 1), desc):
            start = time.perf_counter()
            try:
                batch = next(source)
            except StopIteration:
                raise ValueError(f"batches ran out after step {step - 1} of steps={steps}; "
                                 f"give more batches or fewer steps.") from None
            for group, lr in groups:
                group["lr"] = lr * check_number("schedule(progress)", schedule((step - 1) / steps), 0, high_open=True)
            value = train_step(model, loss, to_device(batch, where), optimizers, clip, remember)
            if not math.isfinite(value):
                stop(step, f"the loss is {value}")
            history.losses.append(value)
            history.seconds += time.perf_counter() - start
            if evaluate_every and (step % evaluate_every == 0 or step == steps):
                run_evaluation(step)
        if not all(p.isfinite().all() for p in params):
            stop(steps, "the update left a parameter that is not finite")
    finally:
        for group, lr in groups:
            group["lr"] = lr
    return history


class _undisturbed:
    """Evaluation mode and no gradients inside; the mode and the random state as they were outside."""

    def __init__(self, model: nn.Module):
        self.model = check_module("model", model)

    def __enter__(self):
        self.modes = [(m, m.training) for m in self.model.modules()]
        self.states = random.getstate(), np.random.get_state()
        self.fork = torch.random.fork_rng()
        self.grad = torch.no_grad()
        self.fork.__enter__()
        self.grad.__enter__()
        self.model.eval()

    def __exit__(self, *error):
        self.grad.__exit__(*error)
        self.fork.__exit__(*error)
        random.setstate(self.states[0])
        np.random.set_state(self.states[1])
        for module, mode in self.modes:
            module.training = mode


def token_losses(model: nn.Module, loss: Loss, batches: Iterable, limit: int | None = None) -> torch.Tensor:
    """Return every scored token's loss, (n,) float32 on the CPU, in the order of the batches.

    Runs in evaluation mode without gradients; the model's mode and the random state are restored.

    Raises:
        ValueError: if there are no batches, ``limit`` < 1, or ``loss`` returns anything but (n,) floats.
    """
    check_callable("loss", loss)
    limit = None if limit is None else check_int("limit", limit)
    with _undisturbed(model):
        where = next((p.device for p in model.parameters()), None)  # a model without parameters: leave batches be
        parts = [check_losses(loss(model, to_device(b, where))).float().cpu() for b in islice(batches, limit)]
    if not parts:
        raise ValueError("batches is empty; give at least one batch to evaluate on.")
    return torch.cat(parts)


def evaluate(model: nn.Module, loss: Loss, batches: Iterable, limit: int | None = None) -> float:
    """Return the mean loss in nats per scored token: every token counts once, padding never."""
    return token_losses(model, loss, batches, limit).mean().item()
