"""Every exercise: its stub is untouched, its solution right, each wrong answer rejected under its own name."""

import math
import re

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from d2lmini.exercises import base, mutants
from d2lmini.exercises.__main__ import main
from d2lmini.exercises.code import Function
from d2lmini.exercises.compare import changed

EVERY = base.exercises()
IDS = [e.name for e in EVERY]
CELL = {"math": math, "torch": torch, "F": F, "nn": nn}  # what the section's first cell imports


@pytest.fixture(autouse=True)
def new_kernel():
    base.reset()
    yield
    base.reset()


@pytest.mark.parametrize("exercise", EVERY, ids=IDS)
def test_the_untouched_stub_is_not_attempted_and_fits_into_a_cell(exercise, capsys):
    stub = exercise.stub()
    cell = dict(CELL)
    exec(stub, cell)
    exercise.check(cell[exercise.variable])
    assert capsys.readouterr().out == f"○ {exercise.label}: not attempted yet.\n"
    assert len(stub.splitlines()) <= 25 and max(map(len, stub.splitlines())) <= 88


@pytest.mark.parametrize("exercise", EVERY, ids=IDS)
def test_the_solution_as_shown_passes_when_typed_into_a_cell(exercise, capsys):
    cell = dict(CELL)
    exec(exercise.solution_code(), cell)
    exercise.check(cell[exercise.variable])
    out = capsys.readouterr().out
    assert out.startswith(f"✔ {exercise.label}: right. {exercise.knowing}")
    assert max(map(len, exercise.solution_code().splitlines())) <= 110


@pytest.mark.parametrize("exercise", EVERY, ids=IDS)
def test_another_right_answer_passes(exercise):
    verdict = exercise.judge(exercise.also_right)
    assert verdict.state == base.SOLVED, verdict.text


@pytest.mark.parametrize("exercise", EVERY, ids=IDS)
def test_at_least_three_wrong_answers_of_its_own_each_rejected_by_name(exercise):
    assert len(exercise.mistakes) >= 3
    diagnoses = set()
    for mistake in (*exercise.mistakes, *mutants.general(exercise)):
        verdict = exercise.judge(mistake.answer)
        assert verdict.state == base.NOT_YET, mistake.name
        assert mistake.says in verdict.text, f"{mistake.name}: {verdict.text}"
        diagnoses.add(verdict.text)
    assert len(diagnoses) >= len(exercise.mistakes) + 1, "different mistakes must get different diagnoses"


@pytest.mark.parametrize("exercise", EVERY, ids=IDS)
def test_it_says_what_a_learner_wants_to_know(exercise):
    assert exercise.difficulty in (1, 2, 3) and 1 <= exercise.minutes <= 60
    assert len(exercise.statement.split()) >= 10
    for text in (exercise.why, exercise.tip, exercise.knowing):
        assert len(text.split()) >= 5 and text[0] != " " and text.rstrip()[-1] in ".?!)", text
    if isinstance(exercise, Function):
        assert exercise.cases() or exercise.probe


@pytest.mark.parametrize("exercise", [e for e in EVERY if isinstance(e, Function)], ids=lambda e: e.name)
def test_checks_see_the_same_inputs_every_time(exercise):
    first, second = exercise.cases(), exercise.cases()
    for a, b in zip(first, second):
        assert not any(changed(a[k], b[k]) for k in a if not callable(a[k]))
    said = {exercise.judge(exercise.mistakes[0].answer).text for _ in range(2)}
    assert len(said) == 1


def test_every_chapter_has_its_exercises_numbered_from_one():
    for chapter in sorted({e.chapter for e in EVERY}):
        assert [e.number for e in base.exercises(chapter)] == list(range(1, len(base.exercises(chapter)) + 1))


def test_hints_and_solutions_are_folded_and_spoil_nothing():
    for exercise in EVERY:
        for folded in (exercise.hint(), exercise.solution()):
            shown = folded._repr_html_()
            assert shown.startswith("<details><summary>") and "open>" not in shown
            assert repr(folded) in ("Hint: folded; open it in a notebook or in the page.",
                                    "Solution: folded; open it in a notebook or in the page.")
        assert "return" in exercise.solution()._repr_html_() or not isinstance(exercise, Function)


def test_code_in_a_solution_is_escaped_and_complete():
    shown = base.Folded("Solution", code="if a < b & c: print('<b>')")._repr_html_()
    assert "if a &lt; b &amp; c: print(&#x27;&lt;b&gt;&#x27;)" in shown and "<b>" not in shown
    assert base.to_html("one `a<b`\n\n- **x** y\n- z") == \
        "<p>one <code>a&lt;b</code></p><ul><li><strong>x</strong> y</li><li>z</li></ul>"


def test_progress_lists_a_chapter_and_what_was_solved(capsys):
    first = base.exercises(1)
    first[0].check(first[0].right_answer())
    first[1].check(7)
    capsys.readouterr()
    base.progress()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("✔ 1.1") and lines[0].endswith("solved")
    assert lines[1].endswith("not yet") and lines[2].endswith("not attempted")
    assert lines[-1] == f"1 of {len(first)} solved"
    with pytest.raises(ValueError, match="chapter=99 has no exercises"):
        base.progress(99)


def test_a_solved_exercise_stays_solved_when_its_stub_is_checked_again(capsys):
    exercise = base.exercises(1)[0]
    exercise.check(exercise.right_answer())
    exercise.check(None)
    base.progress(1)
    assert capsys.readouterr().out.splitlines()[2].endswith("solved")


def test_the_table_of_mutants_ends_in_a_count_with_none_accepted(capsys):
    assert main(["--mutants"]) == 0
    lines = capsys.readouterr().out.splitlines()
    count = re.fullmatch(r"(\d+) exercises, (\d+) wrong answers, 0 accepted", lines[-1])
    assert count and int(count[1]) == len(EVERY) and int(count[2]) == len(lines) - 1
    assert int(count[2]) >= 4 * len(EVERY)
