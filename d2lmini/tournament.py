"""One run of the tournament: train one wiring on one task, and score it."""

from __future__ import annotations

import time

import torch

from .batches import MaskedBatch
from .contests import Contest
from .losses import masked_loss
from .optim import linear_decay, make_optimizers
from .training import fit, seed_everything
from .wirings import Contestant, Questions, answer_loss, input_tokens, make_contestant


def batch_size(wiring: str, batch: Questions | MaskedBatch) -> dict[str, int]:
    """Count what a training batch holds: ``questions``, ``answers`` (tokens to predict) and ``tokens`` that are read."""
    if isinstance(batch, MaskedBatch):
        return dict(questions=len(batch.inputs), answers=int(batch.chosen.sum()), tokens=batch.inputs.numel())
    rows, new = batch.answer.shape
    return dict(questions=rows, answers=rows * new,
                tokens=rows * input_tokens(wiring, batch.form, batch.source.shape[1], new))


def contest_loss(contestant: Contestant, batch: Questions | MaskedBatch) -> torch.Tensor:
    """Return the loss of every answer token, (n,) in nats, of questions or of masked text."""
    return masked_loss(contestant.model, batch) if isinstance(batch, MaskedBatch) else answer_loss(contestant, batch)


def compete(contest: Contest, wiring: str, seed: int, *, steps: int, tokens: int = 512, blocks: int = 2,
            d_model: int = 128, lr: float = 0.02, adam_lr: float = 0.01, tile: int = 32,
            positions: str | None = None, limit: int | None = None, where=None) -> tuple[Contestant, dict]:
    """Train one wiring on one task with one seed, and score it.

    Args:
        contest, wiring: who plays what.
        seed: of the parameters and of the choice of training questions.
        steps: of training; the learning rates fall linearly to 0.
        tokens: that pass through the model in a step, both towers counted; what is left of a row is not started.
        blocks, d_model, positions: of the model, see ``make_contestant``.
        lr, adam_lr, tile: of Muon and AdamW, see ``make_optimizers``.
        limit: score about so many held-out questions; all if None.
        where: device; the CPU by default.
    Returns:
        The contestant, and what it did: the scores, ``parameters``, ``tokens``, ``questions`` and ``answers`` (tokens
        predicted) it was trained on, ``seconds`` of the process's CPU time in training, and ``losses``, the training
        loss averaged over every twentieth part.
    """
    vocab = contest.corpus.vocab
    seed_everything(seed)
    player = make_contestant(wiring, len(vocab), vocab.ids["<mask>"], vocab.ids["<go>"], blocks=blocks, d_model=d_model,
                             source=contest.valid.source.shape[1], answer=contest.valid.answer.shape[1],
                             positions=positions)
    player = player if where is None else player.to(where)
    seen = dict(questions=0, answers=0, tokens=0)  # batches are made one by one, so this counts what was trained on

    def counted():
        for batch in contest.batches(wiring, tokens, seed):
            for name, number in batch_size(wiring, batch).items():
                seen[name] += number
            yield batch

    began = time.process_time()
    history = fit(player, contest_loss, counted(), steps=steps, schedule=linear_decay(),
                  optimizers=make_optimizers(player, lr=lr, adam_lr=adam_lr, tile=tile), desc=f"{contest.name}, {wiring}")
    seconds = time.process_time() - began
    part = max(1, steps // 20)
    losses = [sum(history.losses[i:i + part]) / part for i in range(0, steps - part + 1, part)]
    return player, dict(contest=contest.name, wiring=wiring, seed=seed, **contest.score(player, limit), seconds=seconds,
                        parameters=sum(p.numel() for p in player.parameters()), **seen, losses=losses)
