"""Stored results: complete, of the code that is here now, and of the recipe that the chapter shows."""

import ast
import json
import re

import nbformat
import pytest
from conftest import ROOT

from d2lmini import load_results, save_results
from d2lmini import results as module
from tools.freshness import digest_modules

STORED = sorted((ROOT / "d2lmini" / "results").glob("*.json"))


@pytest.mark.parametrize("path", STORED, ids=lambda p: p.stem)
def test_a_stored_result_says_what_made_it_and_is_fresh(path):
    stored = load_results(path.stem)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", stored["date"])
    made_by = re.match(r"python -m (benchmarks\.\w+)", stored["command"])
    assert made_by, stored["command"]
    assert stored["digest"] == digest_modules([made_by[1]]), (
        f"{path.name} was made by other code than is here; run `{stored['command']}` again")


def constant(notebook, name):
    """The value that a notebook's cells give to a name, by literals or dict(...)."""
    for cell in notebook.cells:
        if cell.cell_type == "code" and re.search(rf"^{name} = ", cell.source, re.M):
            for node in ast.parse(cell.source).body:
                if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == name:
                    return {k.arg: ast.literal_eval(k.value) for k in node.value.keywords}
    raise AssertionError(f"no cell sets {name}")


def test_chapter_2_and_its_stored_seeds_use_one_recipe():
    notebook = nbformat.read(ROOT / "chapters" / "02_encoder.ipynb", as_version=4)
    stored = load_results("encoder_seeds")
    assert constant(notebook, "recipe") == stored["recipe"]
    assert len({run["seed"] for run in stored["runs"]}) >= 3


def test_results_are_written_whole_and_read_back(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_folder", lambda: tmp_path / "results")
    path = save_results("trial", dict(runs=[1.5]), command="python -m benchmarks.trial", digest="0")
    assert json.loads(path.read_text())["runs"] == [1.5] == load_results("trial")["runs"]
    assert [p.name for p in path.parent.iterdir()] == ["trial.json"]
    with pytest.raises(ValueError, match="name='other'.*there are: trial"):
        load_results("other")
