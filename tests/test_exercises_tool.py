"""The chapters' exercise cells are what the tool writes, and writing them leaves everything else alone."""

import copy

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from d2lmini import exercises as package
from d2lmini.exercises import base
from tools import exercises as tool
from tools.freshness import digest_notebook
from tools.notebook import tidy
from tools.rules import problems


def seen(cell):
    return cell.cell_type, cell.source, cell.metadata.get("tags"), cell.id


@pytest.mark.parametrize("path", tool.chapters(), ids=lambda p: p.stem)
def test_a_chapters_exercises_are_what_the_package_defines(path):
    notebook = nbformat.read(path, as_version=4)
    _, section, _ = tool.split(notebook)
    assert section, f"no exercises yet; run `python -m tools.exercises {path.name}`"
    assert [seen(c) for c in section] == [seen(c) for c in tool.expected(notebook, path)], \
        "run `python -m tools.exercises --all`"


@pytest.mark.parametrize("path", tool.chapters(), ids=lambda p: p.stem)
def test_stored_hints_solutions_and_quizzes_are_those_of_the_package(path):
    _, section, _ = tool.split(nbformat.read(path, as_version=4))
    for cell in section:
        if "# @title" in cell.source:
            fresh = eval(cell.source.split("\n")[1], {"exercises": package})
            assert cell.outputs[0].data["text/html"] == fresh._repr_html_()
            assert cell.outputs[0].data["text/plain"] == repr(fresh)


@pytest.fixture
def chapter(tmp_path, monkeypatch):
    """A chapter of four cells, run, and what would run it replaced by something quick."""
    def run(section, folder):
        for cell in section:
            if cell.cell_type == "code":
                cell.outputs = [new_output("execute_result", {"text/plain": "1"}, execution_count=1)]
    monkeypatch.setattr(tool, "run_alone", run)
    notebook = new_notebook(cells=[
        new_markdown_cell("# 1. Title"), new_code_cell("x = 1", execution_count=1), new_markdown_cell("## 1.9 To remember"),
        new_code_cell("# @title How long this took\nprint(2)", execution_count=2, metadata={
            "tags": ["hide-input", "nbval-ignore-output"], "jupyter": {"source_hidden": True}, "cellView": "form"},
            outputs=[new_output("stream", text="2\n")])])
    tidy(notebook)
    path = tmp_path / "01_small.ipynb"
    notebook.metadata["d2lmini"] = {"digest": "", "seconds": 1.0}
    nbformat.write(notebook, path)
    notebook.metadata["d2lmini"]["digest"] = digest_notebook(path)
    nbformat.write(notebook, path)
    return path


def test_writing_keeps_the_other_cells_and_the_digest(chapter):
    before = nbformat.read(chapter, as_version=4)
    tool.refresh(chapter)
    after = nbformat.read(chapter, as_version=4)
    kept = [c for c in after.cells if "exercise" not in c.metadata.get("tags", [])]
    for a, b in zip(before.cells, kept, strict=True):
        assert seen(a) == seen(b) and a.get("outputs") == b.get("outputs")
    assert after.cells[-1].source.startswith("# @title How long") and after.cells[4 - 1].source.startswith("## 1.10 Exercises")
    assert after.metadata.d2lmini.digest == before.metadata.d2lmini.digest == digest_notebook(chapter)
    assert problems(after, chapter) == []


def test_writing_twice_changes_nothing_and_a_run_keeps_the_ids(chapter):
    tool.refresh(chapter)
    once = chapter.read_bytes()
    tool.refresh(chapter)
    assert chapter.read_bytes() == once
    notebook = nbformat.read(chapter, as_version=4)
    again = copy.deepcopy(notebook)
    tidy(again)
    assert [seen(c) for c in again.cells] == [seen(c) for c in notebook.cells]


def test_an_edited_stub_is_put_back(chapter):
    tool.refresh(chapter)
    right = chapter.read_bytes()
    notebook = nbformat.read(chapter, as_version=4)
    stub = next(c for c in notebook.cells if c.source.startswith("def my_causal_mask"))
    stub.source = stub.source.replace("...", "return 1")
    nbformat.write(notebook, chapter)
    tool.refresh(chapter)
    assert chapter.read_bytes() == right


def test_every_exercise_has_its_five_cells(chapter):
    tool.refresh(chapter)
    _, section, _ = tool.split(nbformat.read(chapter, as_version=4))
    sources = [c.source for c in section]
    for exercise in base.exercises(1):
        at = sources.index(exercise.stub())
        assert exercise.statement in sources[at - 1] and exercise.why in sources[at - 1]
        assert sources[at + 1:at + 4] == [
            f"exercises.{exercise.name}.check({exercise.variable})", f"# @title Hint\nexercises.{exercise.name}.hint()",
            f"# @title Solution\nexercises.{exercise.name}.solution()"]
    assert sources[-1] == "exercises.progress(1)" and "exercises.quiz(1)" in sources[-3]
