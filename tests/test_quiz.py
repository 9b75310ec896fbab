"""Quizzes: every option explained, the same HTML every time, and alive in a browser without a mouse."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

from d2lmini.exercises.quiz import Quiz
from d2lmini.exercises.quizzes import QUESTIONS, quiz

NASTY = [
    {"question": "Is `</script><b>` shown as itself?", "type": "multiple_choice", "answers": [
        {"answer": "</script><b>yes", "correct": True, "feedback": "As `a < b & c`."},
        {"answer": "no", "correct": False, "feedback": "Look again."}]},
    {"question": "Which are even?", "type": "many_choice", "answers": [
        {"answer": "2", "correct": True, "feedback": "2 = 2 · 1."}, {"answer": "3", "correct": False, "feedback": "3 is odd."},
        {"answer": "4", "correct": True, "feedback": "4 = 2 · 2."}]},
    {"question": "How many?", "type": "numeric", "answers": [
        {"type": "value", "value": 2047, "correct": True, "feedback": "One fewer."},
        {"type": "value", "value": 2048, "correct": False, "feedback": "One too many."},
        {"type": "default", "feedback": "Count again."}]},
]


@pytest.mark.parametrize("chapter", QUESTIONS)
def test_every_question_has_right_and_wrong_options_all_explained(chapter):
    for question in QUESTIONS[chapter]:
        given = [a for a in question["answers"] if a.get("type") != "default"]
        assert any(a["correct"] for a in given) and any(not a["correct"] for a in given)
        feedback = [a["feedback"] for a in question["answers"]]
        assert len(set(feedback)) == len(feedback) and all(len(f.split()) >= 4 for f in feedback)
        if question["type"] == "numeric":
            assert sum(a.get("type") == "default" for a in question["answers"]) == 1


@pytest.mark.parametrize("chapter", QUESTIONS)
def test_a_quiz_is_the_same_every_time_and_small(chapter):
    shown = quiz(chapter)._repr_html_()
    assert shown == quiz(chapter)._repr_html_() and len(shown) < 30_000
    assert "://" not in shown and " id=" not in shown
    names = re.findall(r'name="([^"]+)"', shown)
    assert len(set(names)) == len(QUESTIONS[chapter])


def test_a_question_that_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="has no feedback"):
        Quiz("x", [{"question": "?", "type": "many_choice", "answers": [{"answer": "a", "correct": True}]}])
    with pytest.raises(ValueError, match="has 0 right answers"):
        Quiz("x", [{"question": "?", "type": "many_choice", "answers": [{"answer": "a", "correct": False, "feedback": "no"}]}])
    with pytest.raises(ValueError, match="type='riddle'"):
        Quiz("x", [{"question": "?", "type": "riddle", "answers": []}])
    with pytest.raises(ValueError, match="chapter=0 has no quiz"):
        quiz(0)


def test_the_package_shows_a_quiz_without_a_browser_as_one_line():
    code = "from d2lmini import exercises; print(exercises.quiz(1))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "Quiz of 4 questions; open it in a notebook or in the page.\n"


@pytest.fixture
def page(browser, tmp_path):
    """The nasty quiz twice on one page, from a file."""
    shown = Quiz("nasty", NASTY)._repr_html_()
    file = Path(tmp_path) / "quiz.html"
    file.write_text(f"<!doctype html><meta charset=utf-8><title>q</title><body>{shown}{shown}", encoding="utf-8")
    opened = browser.new_page(viewport={"width": 360, "height": 800})
    opened.complaints = []
    opened.on("console", lambda m: opened.complaints.append(m.text))
    opened.on("pageerror", lambda e: opened.complaints.append(str(e)))
    opened.goto(file.as_uri())
    yield opened
    assert opened.complaints == []
    opened.close()


def test_by_keyboard_alone(page):
    keys = page.keyboard
    keys.press("Tab")          # the first question's radio buttons
    keys.press("Space")
    keys.press("ArrowDown")    # now the wrong one
    keys.press("Enter")
    reply = page.locator("[role=status]").first
    assert reply.inner_text().split("\n")[0] == "Not this one." and "Look again." in reply.inner_text()
    keys.press("ArrowUp")
    keys.press("Enter")
    assert reply.inner_text().startswith("Right.") and "As a < b & c." in reply.inner_text()
    assert "</script><b>yes" in reply.inner_text()


def test_several_answers_are_judged_together(page):
    form = page.locator("form").nth(1)
    boxes, reply = form.locator("input"), form.locator("[role=status]")
    form.locator("button").click()
    assert reply.inner_text() == "Choose an answer first."
    boxes.nth(0).check()
    form.locator("button").click()
    assert reply.inner_text().startswith("So far right; one more is.")
    boxes.nth(1).check()
    form.locator("button").click()
    assert reply.inner_text().startswith("Not all of these.") and "3 is odd." in reply.inner_text()
    boxes.nth(1).uncheck()
    boxes.nth(2).check()
    form.locator("button").click()
    assert reply.inner_text().startswith("Right.")


@pytest.mark.parametrize("typed, said", [
    ("2,047", "Right."), ("2047.0", "Right."), ("2048", "One too many."), ("7", "Count again."), ("many", "Type a number first."),
])
def test_numbers(page, typed, said):
    form = page.locator("form").nth(2)
    form.locator("input").fill(typed)
    form.locator("input").press("Enter")
    assert said in form.locator("[role=status]").inner_text()


def test_two_copies_on_a_page_do_not_disturb_each_other(page):
    first, second = (page.locator(".d2l-quiz").nth(i).locator("form").first.locator("input") for i in (0, 1))
    first.nth(0).check()
    second.nth(1).check()
    assert first.nth(0).is_checked() and second.nth(1).is_checked()
    page.locator("button").first.click()
    assert page.locator(".d2l-quiz").nth(1).locator("[role=status]").first.inner_text() == ""


def test_nothing_is_wider_than_a_phone_and_without_scripts_the_answers_unfold(page, browser):
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    plain = browser.new_context(java_script_enabled=False).new_page()
    plain.goto(page.url)
    assert plain.locator("button:visible").count() == 0
    plain.locator("summary").first.click()
    assert plain.get_by_text("Look again.").first.is_visible()
    plain.context.close()


def test_jupyterquiz_itself_takes_the_same_questions(monkeypatch):
    jupyterquiz = pytest.importorskip("jupyterquiz")
    shown = []
    monkeypatch.setattr("jupyterquiz.dynamic.display.display", lambda *parts: shown.extend(parts))
    jupyterquiz.display_quiz(quiz(3).questions)
    assert any("How many next-token predictions" in part.data or "next-token predictions does it contribute" in part.data
               for part in shown)


def test_the_right_option_has_no_favourite_place():
    places = [[a["correct"] for a in q["answers"]].index(True) for qs in QUESTIONS.values() for q in qs
              if q["type"] == "multiple_choice"]
    assert max(places.count(p) for p in set(places)) <= len(places) // 2 and len(set(places)) >= 3
