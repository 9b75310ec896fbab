"""Exercises that are answered with a function: stub and solution from one source, errors shown as the learner's."""

from __future__ import annotations

import ast
import dis
import inspect
import linecache
import re
import textwrap
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from .base import Exercise, Verdict
from .compare import changed, clone, difference

IDLE = {"RESUME", "NOP", "LOAD_CONST", "RETURN_CONST", "RETURN_VALUE"}


class Complaint(Exception):
    """Raised by an exercise's own test of an answer; its text is the diagnosis."""


@dataclass(kw_only=True, eq=False)
class Function(Exercise):
    """An exercise whose answer is a function.

    Args:
        answer: the solution; its source, renamed, is what the learner sees. The stub is its signature and docstring.
        cases: returns argument dicts, made anew from fixed seeds at each call.
        tidy: turns a result (its own or the learner's) and the arguments into what is compared; may raise Complaint.
        probe: a test of its own, called with a function that behaves as the learner's; raises Complaint. For
            properties, such as the proportions of something random. With it, ``cases`` may be empty.
    """

    answer: Callable
    cases: Callable[[], list[dict]] = list
    tidy: Callable = staticmethod(lambda result, arguments: result)
    probe: Callable | None = None
    _known: dict = field(default_factory=dict, repr=False)

    def judge(self, answer) -> Verdict:
        if answer is None or answer is ... or is_untouched(answer):
            return self.untouched()
        if not callable(answer):
            return self.wrong(f"{self.variable} is a {type(answer).__name__} and not a function; "
                              f"hand over the function itself, without calling it: check({self.variable})")
        try:
            for case in self.cases():
                self.judge_case(answer, case)
            if self.probe is not None:
                self.probe(lambda *arguments: self.call(answer, arguments))
        except NotImplementedError:
            return self.untouched()
        except Complaint as complaint:
            return self.wrong(str(complaint))
        return self.right()

    def judge_case(self, answer: Callable, case: dict) -> None:
        """Raise Complaint unless the answer is right for these arguments."""
        got = self.call(answer, case.values(), names=tuple(case))
        want = self.tidy(self.answer(*map(clone, case.values())), case)
        got = self.tidy(got, case)
        problem = difference(got, want)
        if problem:
            known = self.recognise(answer, case)
            raise Complaint(f"{known}\n  {problem}" if known else f"{problem}\n  called with {describe(case)}")

    def call(self, answer: Callable, arguments, names: tuple[str, ...] = ()) -> object:
        """Call the learner's function on copies; complain about errors in it and about arguments it changed."""
        arguments = list(arguments)
        names = names or tuple(inspect.signature(self.answer).parameters)
        handed = [clone(a) for a in arguments]
        try:
            result = answer(*handed)
        except NotImplementedError:
            raise
        except Exception as error:  # whatever the learner's code raises
            raise Complaint(own_error(error, answer, self.variable, describe(dict(zip(names, arguments))))) from None
        for name, before, after in zip(names, arguments, handed):
            if changed(before, after):
                raise Complaint(f"your function changes its argument `{name}` in place, and whoever called it has lost "
                                f"the original; work on a copy ({name}.{'clone' if isinstance(before, torch.Tensor) else 'copy'}"
                                f"()), or use operations that make new values")
        return result

    def recognise(self, answer: Callable, failed: dict) -> str:
        """The diagnosis of the known mistake that behaves as this answer does, or "".

        One that agrees on every case goes first; else one that agrees where the answer failed, for an answer may
        make two mistakes of which the other shows elsewhere.
        """
        for cases in (self.cases(), [failed]):
            for mistake in self.mistakes:
                if callable(mistake.answer) and all(self.alike(answer, mistake.answer, case) for case in cases):
                    return mistake.says
        return ""

    def alike(self, first: Callable, second: Callable, case: dict) -> bool:
        """Do two functions give the same here?"""
        try:
            a, b = (self.tidy(f(*map(clone, case.values())), case) for f in (first, second))
            return difference(a, b) is None
        except Exception:  # one of them fails where the other does not, or gives what cannot be compared
            return False

    def source(self) -> str:
        """The solution's source under the learner's name."""
        source = textwrap.dedent(inspect.getsource(self.answer))
        return re.sub(rf"(?<!\w){self.answer.__name__}\(", f"{self.variable}(", source).rstrip()

    def stub(self) -> str:
        source = self.source()
        function = ast.parse(source).body[0]
        kept = function.body[0].end_lineno if ast.get_docstring(function) else function.body[0].lineno - 1
        return "\n".join([*source.split("\n")[:kept], "    ...  # your code"])

    def solution_code(self) -> str:
        return self.source()

    def right_answer(self):
        return self.answer


def is_untouched(answer) -> bool:
    """Is this a function whose body is `...`, `pass` or nothing but a docstring?"""
    code = getattr(answer, "__code__", None)
    if code is None or code.co_names:
        return False
    steps = list(dis.get_instructions(code))
    returned = [s.argval for s in steps if s.opname in ("LOAD_CONST", "RETURN_CONST")]
    return {s.opname for s in steps} <= IDLE and all(value is None or value is ... for value in returned)


def own_error(error: Exception, answer: Callable, name: str, call: str) -> str:
    """The learner's error as theirs: the line of theirs, the error, then what the check was doing."""
    kind = f"{type(error).__name__}: {error}"
    frames = traceback.extract_tb(error.__traceback__)[1:]  # the first is the check's own call
    file = getattr(getattr(answer, "__code__", None), "co_filename", "")
    mine = [f for f in frames if f.filename == file] or frames
    if not mine:
        return (f"your function could not be called: {kind}\n  The check calls it with {call}; "
                f"keep the stub's parameters and their order")
    line = mine[-1]
    text = line.line or linecache.getline(line.filename, line.lineno).strip()
    return f"your code raised an error\n  line {line.lineno} of {line.name}: {text}\n  {kind}\n  It was called with {call}"


def describe(arguments: dict) -> str:
    """Arguments in a few words: shapes of tensors, values of what is short."""
    return ", ".join(f"{name}={_brief(value)}" for name, value in arguments.items()) or "no arguments"


def _brief(value) -> str:
    if isinstance(value, torch.Tensor):
        kind = "" if value.is_floating_point() else f" {str(value.dtype).removeprefix('torch.')}"
        return f"a tensor of shape {tuple(value.shape)}{kind}"
    if callable(value):
        return f"the function {getattr(value, '__name__', 'f')}"
    if isinstance(value, torch.Generator):
        return "a seeded generator"
    if isinstance(value, (list, tuple)) and any(callable(v) for v in value):
        return f"{len(value)} functions"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def seeded(seed: int, *shape: int) -> torch.Tensor:
    """Standard normal numbers (shape) that depend on nothing but the seed."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
