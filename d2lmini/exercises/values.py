"""Exercises that are answered with values: numbers, letters of a choice, short lists, measured results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch

from .base import Exercise, Folded, Verdict
from .compare import difference


@dataclass(frozen=True, kw_only=True)
class Field:
    """One value that is asked for.

    Args:
        want: the right value: a number, a string, or a list of whole numbers; None if ``judge`` decides alone.
        also: other accepted values, each with what to say about it.
        wrong: known wrong values, each with what is wrong.
        judge: (value) -> what is wrong with it, or None; for measured values.
        options: for a choice: letter -> (text, explanation).
        accepted: further letters that pass.
    """

    want: object = None
    also: dict = field(default_factory=dict)
    wrong: tuple[tuple[object, str], ...] = ()
    judge: Callable | None = None
    options: dict = field(default_factory=dict)
    accepted: tuple[str, ...] = ()

    def problem(self, value, what: str) -> tuple[str | None, str]:
        """(what is wrong or None, what to add if it is right)."""
        if self.options:
            return self._choice(value, what)
        if isinstance(value, (torch.Tensor, np.ndarray)):
            value = value.tolist()
        for other, says in self.wrong:
            if difference(value, other) is None:
                return says, ""
        for other, says in self.also.items():
            if difference(value, other) is None:
                return None, says
        if self.judge is not None:
            return self.judge(value), ""
        found = difference(value, self.want, what)
        if found and isinstance(self.want, (int, float)) and isinstance(value, (int, float)):
            return f"{what} is not {value}: that is too {'large' if value > self.want else 'small'}", ""
        return found, ""

    def _choice(self, value, what: str) -> tuple[str | None, str]:
        letters = ", ".join(self.options)
        letter = value.strip().lower().strip("()") if isinstance(value, str) else value
        if letter not in list(self.options):
            return f"{what} is {value!r}; answer with one letter in quotes, out of {letters}", ""
        says = self.options[letter][1]
        return (None, says) if letter in (self.want, *self.accepted) else (f"({letter}) is not it. {says}", "")


@dataclass(kw_only=True, eq=False)
class Values(Exercise):
    """An exercise whose answer is one value, or a dict of several.

    Args:
        fields: name -> Field; a single field named "" asks for one plain value.
        given: the solution's values, if a field judges for itself and has no ``want``.
    """

    fields: dict[str, Field]
    given: dict = field(default_factory=dict)

    def judge(self, answer) -> Verdict:
        if answer is None or answer is ...:
            return self.untouched()
        if callable(answer):
            return self.wrong(f"{self.variable} is a function; this exercise asks for {self._wanted()}")
        if "" in self.fields:
            problem, remark = self.fields[""].problem(answer, "the answer")
            return self.wrong(problem) if problem else self.accepted([remark])
        if not isinstance(answer, dict):
            return self.wrong(f"{self.variable} is a {type(answer).__name__}; keep the dict of the stub and fill in its values")
        if all(answer.get(k) is None or answer.get(k) is ... for k in self.fields):
            return self.untouched()
        remarks = []
        for name, one in self.fields.items():
            if answer.get(name) is None or answer.get(name) is ...:
                return self.wrong(f"{name!r} is still empty")
            problem, remark = one.problem(answer[name], f"{name!r}")
            if problem:
                return self.wrong(f"{name}: {problem}")
            remarks.append(remark and f"{name}: {remark}")
        return self.accepted(remarks)

    def accepted(self, remarks: list[str]) -> Verdict:
        right = self.right()
        added = [f"\n  {r}" for r in remarks if r]
        return Verdict(right.state, right.text + "".join(added))

    def _wanted(self) -> str:
        return "one value" if "" in self.fields else f"a dict with the keys {', '.join(self.fields)}"

    def stub(self) -> str:
        if "" in self.fields:
            kind = "a letter in quotes" if self.fields[""].options else "your answer"
            return f"{self.variable} = None  # {kind}"
        lines = [f"    {name!r}: None," for name in self.fields]
        return "\n".join([f"{self.variable} = {{", *lines, "}"]).replace("'", '"')

    def solution_code(self) -> str:
        right = self.right_answer()
        if "" in self.fields:
            return f"{self.variable} = {right!r}".replace("'", '"')
        lines = [f"    {name!r}: {value!r}," for name, value in right.items()]
        return "\n".join([f"{self.variable} = {{", *lines, "}"]).replace("'", '"')

    def right_answer(self):
        right = {name: self.given.get(name, one.want) for name, one in self.fields.items()}
        return right[""] if "" in self.fields else right

    def solution(self):
        if self.worked:  # measured values would be typed here by hand; there they are measured
            return Folded("Solution", f"The worked solution (chapters/solutions/{self.worked}.ipynb, linked above) trains, measures "
                                      f"and discusses. Your numbers differ with budget and seed.\n\n{self.notes}")
        folded = super().solution()
        reasons = dict.fromkeys(f"- **({letter}) {text}** {says}" for one in self.fields.values()
                                for letter, (text, says) in one.options.items())  # fields may share their options
        folded.note = "\n\n".join(p for p in ("\n".join(reasons), self.notes) if p)
        return folded


def choice(want: str, **options: tuple[str, str]) -> Field:
    """A choice: each option a letter with its text and why it is right or wrong."""
    return Field(want=want, options=options)


def share(low: float, high: float, too_low: str, too_high: str) -> Callable:
    """Judge a measured share: a number in [0, 1] that should lie between two bounds."""
    def judge(value) -> str | None:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return f"{value!r} is not a number; give the share as a plain number (.item() of a tensor)"
        if not 0 <= value <= 1:
            return f"{value} is not a share between 0 and 1" + ("; divide the percentage by 100" if 1 < value <= 100 else "")
        return too_low if value < low else too_high if value > high else None
    return judge


def options_as_text(one: Field) -> str:
    """The options of a choice as Markdown lines."""
    return "\n".join(f"- ({letter}) {text}" for letter, (text, _) in one.options.items())
