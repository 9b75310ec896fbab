"""Wrong answers for every exercise, its own and those that any exercise must survive, and what the checks say to them."""

from __future__ import annotations

import torch

from .base import NOT_YET, SOLVED, Exercise, Mistake, exercises
from .code import Function


def _numpy(value):
    """The same with every tensor as NumPy, to try what a learner from there would return."""
    if isinstance(value, (tuple, list)):
        return type(value)(_numpy(v) for v in value)
    return value.detach().numpy() if isinstance(value, torch.Tensor) else value


def _lists(value):
    if isinstance(value, tuple):
        return tuple(map(_lists, value))
    return value.tolist() if isinstance(value, torch.Tensor) else value


def _spoils(answer):
    """The right answer, which first overwrites its tensor arguments."""
    def mutating(*arguments):
        result = answer(*[a.clone() if isinstance(a, torch.Tensor) else a for a in arguments])
        for a in arguments:
            if isinstance(a, torch.Tensor):
                a.zero_()
        return result
    return mutating


def _raises(*arguments):
    return torch.ones(2) @ torch.ones(3)


def general(exercise: Exercise) -> list[Mistake]:
    """Mistakes that do not depend on what is asked: no return, an error inside, NumPy, lists, arguments overwritten."""
    if not isinstance(exercise, Function):
        return [Mistake("a function", "is a function", lambda: 1)]
    found = [
        Mistake("no return", "is a `return` missing?" if exercise.cases() else "", lambda *arguments: print(end="")),
        Mistake("an error inside", "your code raised an error", _raises),
        Mistake("another signature", "could not be called", lambda: 1 + 1),
        Mistake("called already", "without calling it", 7),
    ]
    cases = exercise.cases()
    if cases:
        result = exercise.answer(*cases[0].values())
        parts = result if isinstance(result, tuple) else (result,)
        if all(isinstance(p, torch.Tensor) and p.ndim for p in parts):
            found.append(Mistake("NumPy", "is a NumPy array", lambda *a: _numpy(exercise.answer(*a))))
            found.append(Mistake("lists", "is a list", lambda *a: _lists(exercise.answer(*a))))
        if any(isinstance(v, torch.Tensor) and v.any() for v in cases[0].values()):
            found.append(Mistake("overwrites", "in place", _spoils(exercise.answer)))
    return found


def table() -> list[tuple[Exercise, Mistake, str, bool]]:
    """Hand every wrong answer to its check: (exercise, mistake, what was said, rejected with its own diagnosis)."""
    rows = []
    for exercise in exercises():
        for mistake in (*exercise.mistakes, *general(exercise)):
            verdict = exercise.judge(mistake.answer)
            rows.append((exercise, mistake, verdict.text, verdict.state == NOT_YET and mistake.says in verdict.text))
    return rows


def refused() -> list[str]:
    """Right answers that a check refuses, the solution and another one for each exercise, as sentences."""
    found = []
    for exercise in exercises():
        for name, answer in (("the solution", exercise.right_answer()), ("another right answer", exercise.also_right)):
            verdict = exercise.judge(answer)
            if verdict.state != SOLVED:
                found.append(f"{exercise.label} refuses {name}: {verdict.text}")
    return found
