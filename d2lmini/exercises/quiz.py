"""Quizzes in the page: questions in jupyterquiz's format, shown by a form of our own.

Our questions are lists of dicts as ``jupyterquiz.display_quiz`` takes them, so that they can be shown with it too. We
show them otherwise because of what jupyterquiz 2.9 does in a page that is read without a kernel and compared to the
letter: it gives its elements random names at every display, so that no stored output equals the next; without MathJax in
the page it fetches that from another host; it puts texts in as HTML, unescaped; it announces nothing to a screen reader;
it forgets the marks of a question with several answers at the first wrong one; it logs every click to the console; and it
explains only what was clicked. Ours is plain HTML that works by keyboard (Tab, arrows, Space, Enter), says its verdict in
a live region, takes its colours from the page, and holds every explanation in a folded list that needs no script.
"""

from __future__ import annotations

import html
from importlib import resources

from .base import inline

KINDS = ("multiple_choice", "many_choice", "numeric")
STYLE = (
    ".d2l-quiz{max-width:46rem}.d2l-quiz form{margin:0 0 1rem}"
    ".d2l-quiz fieldset{border:1px solid color-mix(in srgb,currentColor 30%,transparent);border-radius:8px;padding:.7rem 1rem;"
    "min-width:0;margin:0}"
    ".d2l-quiz legend{float:left;width:100%;font-size:1em;font-weight:600;margin:0 0 .5rem;padding:0}"
    ".d2l-quiz .d2l-rest{clear:both}"
    ".d2l-quiz label{display:flex;gap:.6rem;align-items:baseline;padding:.3rem .4rem;border-radius:6px;cursor:pointer}"
    ".d2l-quiz label:hover{background:color-mix(in srgb,currentColor 8%,transparent)}"
    ".d2l-quiz input[type=text]{font:inherit;color:inherit;background:transparent;border:1px solid currentColor;border-radius:6px;"
    "padding:.2rem .5rem;width:9rem}"
    ".d2l-quiz button{font:inherit;font-size:.9em;color:inherit;background:transparent;border:1px solid currentColor;"
    "border-radius:6px;padding:.2rem .9rem;margin:.5rem 0;cursor:pointer}"
    ".d2l-quiz :is(input,button,summary):focus-visible{outline:3px solid #3b82c4;outline-offset:2px}"
    ".d2l-quiz [role=status]:not(:empty){border-left:4px solid #8a8f98;padding:.1rem .8rem;margin:.4rem 0}"
    ".d2l-quiz [role=status][data-state=right]{border-color:#2f9e6e}.d2l-quiz [role=status][data-state=wrong]{border-color:#d0762b}"
    ".d2l-quiz [role=status] p{margin:.2rem 0}"
)


class Quiz:
    """Questions that answer in the page, with no kernel and no network.

    Args:
        name: unique in the book, such as "1"; goes into the names of its form fields.
        questions: dicts with ``question`` (text with `code`), ``type`` (one of "multiple_choice", "many_choice", "numeric")
            and ``answers``: for a choice {answer, correct, feedback}; for a number {type: "value", value, correct, feedback}
            and one {type: "default", feedback} for all others.
    Raises:
        ValueError: if a question is of another kind, an option lacks its explanation, or the number of right ones does
            not suit the kind.
    """

    def __init__(self, name: str, questions: list[dict]):
        self.name, self.questions = name, questions
        for question in questions:
            _check(question)

    def __repr__(self) -> str:
        return f"Quiz of {len(self.questions)} questions; open it in a notebook or in the page."

    def _repr_html_(self) -> str:
        forms = "".join(_form(f"quiz-{self.name}-{i}", i, q) for i, q in enumerate(self.questions, 1))
        script = resources.files(__package__).joinpath("quiz.js").read_text(encoding="utf-8")
        return f'<div class="d2l-quiz"><style>{STYLE}</style>{forms}</div><script>{script}</script>'


def _check(question: dict) -> None:
    text, kind, answers = question["question"], question["type"], question["answers"]
    if kind not in KINDS:
        raise ValueError(f"type={kind!r} of {text!r} is unknown; choose one of {', '.join(KINDS)}.")
    if not all(a.get("feedback") for a in answers):
        raise ValueError(f"an answer to {text!r} has no feedback; say of every option why it is right or wrong.")
    right = sum(bool(a.get("correct")) for a in answers)
    if right < 1 or (kind == "multiple_choice" and right > 1):
        raise ValueError(f"{text!r} has {right} right answers; expected one, or several with type='many_choice'.")


def _form(name: str, number: int, question: dict) -> str:
    kind, answers = question["type"], question["answers"]
    right = sum(bool(a.get("correct")) for a in answers)
    reasons = "".join(_reason(a) for a in answers)
    note = " <em>(several are right)</em>" if kind == "many_choice" else ""
    return (
        f'<form><fieldset data-kind="{kind}" data-right="{right}"><legend>{number}. {inline(question["question"])}{note}</legend>'
        f'<div class="d2l-rest">{_inputs(name, kind, answers)}<button type="submit" hidden>Check</button>'
        f'<div role="status" aria-live="polite"></div>'
        f"<details><summary>All answers, explained</summary><ul>{reasons}</ul></details></div></fieldset></form>"
    )


def _inputs(name: str, kind: str, answers: list[dict]) -> str:
    if kind == "numeric":
        return f'<label>Your number <input type="text" inputmode="decimal" autocomplete="off" name="{name}"></label>'
    box = "radio" if kind == "multiple_choice" else "checkbox"
    return "".join(
        f'<label><input type="{box}" name="{name}" data-correct="{str(bool(a["correct"])).lower()}">'
        f'<span>{inline(a["answer"])}</span></label>' for a in answers)


def _reason(answer: dict) -> str:
    if "answer" in answer:
        mark = "✔" if answer["correct"] else "✘"
        return f'<li>{mark} {inline(answer["answer"])} <em>{inline(answer["feedback"])}</em></li>'
    if "value" in answer:
        mark = "✔" if answer["correct"] else "✘"
        value = html.escape(str(answer["value"]))
        return (f'<li data-value="{value}" data-correct="{str(bool(answer["correct"])).lower()}">{mark} {value}: '
                f'<em>{inline(answer["feedback"])}</em></li>')
    return f'<li>Any other number: <em>{inline(answer["feedback"])}</em></li>'
