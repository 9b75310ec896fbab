"""What all exercises share: their text, their state in this kernel, and hints and solutions that stay folded."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field

SOLVED, NOT_YET, UNTOUCHED = "solved", "not yet", "not attempted"
MARKS = {SOLVED: "✔", NOT_YET: "✘", UNTOUCHED: "○"}

_all: dict[str, "Exercise"] = {}
_states: dict[str, str] = {}


@dataclass(frozen=True)
class Verdict:
    """What a check found: the state, and the sentence that says it."""

    state: str
    text: str


@dataclass(frozen=True)
class Mistake:
    """A plausible wrong answer: a short name, the sentence that tells the learner, and the answer itself.

    ``says`` is what the check must say when it is handed ``answer``; tests hand over each.
    """

    name: str
    says: str
    answer: object


class Folded:
    """Text that shows itself on a click, in the page, in Jupyter, in Colab and on GitHub.

    Its plain form, for everything else, spoils nothing.
    """

    def __init__(self, title: str, text: str = "", code: str = "", note: str = ""):
        self.title, self.text, self.code, self.note = title, text, code, note

    def _repr_html_(self) -> str:
        code = f'<pre tabindex="0"><code>{html.escape(self.code)}</code></pre>' if self.code else ""
        return (f"<details><summary>{html.escape(self.title)}</summary>"
                f"<div>{to_html(self.text)}{code}{to_html(self.note)}</div></details>")

    def __repr__(self) -> str:
        return f"{self.title}: folded; open it in a notebook or in the page."


@dataclass(kw_only=True, eq=False)
class Exercise:
    """One exercise: what is asked, why, and how an answer is judged.

    Args:
        chapter, number: its place; written "1.2" in what it prints.
        name: its attribute in ``d2lmini.exercises``; the learner's answer is called ``my_<name>``.
        title: a few words.
        difficulty: 1 (look it up), 2 (think) or 3 (build).
        minutes: that it takes, about.
        why: one line: why it matters.
        statement: Markdown, what to do.
        tip: the hint, text with `code`, shown folded.
        knowing: one sentence worth knowing, said with a right answer.
        mistakes: plausible wrong answers, each with its diagnosis.
        also_right: another right answer: another algorithm, another dtype.
        notes: text shown under the solution.
        worked: file name (without ending) of a worked solution that was run, in chapters/solutions.
    """

    chapter: int
    number: int
    name: str
    title: str
    difficulty: int
    minutes: int
    why: str
    statement: str
    tip: str
    knowing: str
    mistakes: tuple[Mistake, ...] = ()
    also_right: object = None
    notes: str = ""
    worked: str = ""
    label: str = field(init=False)

    def __post_init__(self):
        self.label = f"{self.chapter}.{self.number} {self.title}"
        assert self.name not in _all, self.name
        _all[self.name] = self

    @property
    def variable(self) -> str:
        """The name that the stub gives to the learner's answer."""
        return f"my_{self.name}"

    def check(self, answer) -> None:
        """Judge an answer and print what was found; never raises, whatever the answer is.

        Args:
            answer: what the exercise asks for; the untouched stub counts as "not attempted yet".
        """
        verdict = self.judge(answer)
        if verdict.state != UNTOUCHED or self.name not in _states:
            _states[self.name] = verdict.state
        print(f"{MARKS[verdict.state]} {self.label}: {verdict.text}")

    def hint(self) -> Folded:
        """Return the hint, folded."""
        return Folded("Hint", self.tip)

    def solution(self) -> Folded:
        """Return the solution, folded: the very code that the book's tests run."""
        return Folded("Solution", code=self.solution_code(), note=self.notes)

    def judge(self, answer) -> Verdict:
        raise NotImplementedError

    def stub(self) -> str:
        raise NotImplementedError

    def solution_code(self) -> str:
        raise NotImplementedError

    def right_answer(self):
        """The answer that the solution shows, as ``check`` takes it."""
        raise NotImplementedError

    def right(self) -> Verdict:
        return Verdict(SOLVED, f"right. {self.knowing}")

    def wrong(self, text: str) -> Verdict:
        return Verdict(NOT_YET, text if text.endswith((".", "]", "?")) else text + ".")

    def untouched(self) -> Verdict:
        return Verdict(UNTOUCHED, "not attempted yet.")


def exercises(chapter: int | None = None) -> list[Exercise]:
    """Return the exercises of a chapter, or of all, in order."""
    chosen = [e for e in _all.values() if chapter in (None, e.chapter)]
    return sorted(chosen, key=lambda e: (e.chapter, e.number))


def progress(chapter: int | None = None) -> None:
    """Print the exercises of a chapter and their states in this kernel.

    Args:
        chapter: 1 to 7; by default those of which an exercise was checked, or all if none was.
    Raises:
        ValueError: if there are no exercises of that chapter.
    """
    begun = {_all[name].chapter for name in _states}
    shown = [e for e in exercises(chapter) if chapter is not None or not begun or e.chapter in begun]
    if not shown:
        raise ValueError(f"chapter={chapter!r} has no exercises; give one of "
                         f"{sorted({e.chapter for e in _all.values()})}, or nothing for those begun.")
    for e in shown:
        state = _states.get(e.name, UNTOUCHED)
        print(f"{MARKS[state]} {e.label:52s} {'★' * e.difficulty:4s}{e.minutes:3d} min   {state}")
    print(f"{sum(_states.get(e.name) == SOLVED for e in shown)} of {len(shown)} solved")


def reset() -> None:
    """Forget all states, as a new kernel would."""
    _states.clear()


def to_html(text: str) -> str:
    """Turn plain text with `code`, **bold**, blank lines and lines that begin with "- " into HTML, all else escaped."""
    parts = []
    for block in re.split(r"\n\s*\n", text.strip()) if text.strip() else []:
        lines = [inline(line.strip()) for line in block.split("\n")]
        if all(line.startswith("- ") for line in lines):
            parts.append("<ul>" + "".join(f"<li>{line[2:]}</li>" for line in lines) + "</ul>")
        else:
            parts.append(f"<p>{' '.join(lines)}</p>")
    return "".join(parts)


def inline(text: str) -> str:
    """One line of such text as HTML."""
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))
    return re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", text)
