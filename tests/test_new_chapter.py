"""`make new-chapter`: a small chapter that keeps every rule from its first minute."""

import shutil

import nbformat
import pytest
from conftest import ROOT

from tools import ledger, new_chapter, rules, table


@pytest.fixture
def house(tmp_path):
    (tmp_path / "chapters" / "appendix").mkdir(parents=True)
    for name in ("_toc.yml", "_config.yml", "chapters/index.md"):
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "d2lmini", tmp_path / "d2lmini", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_the_new_chapter_runs_keeps_the_rules_and_is_listed(house):
    path = new_chapter.create("88_two_words", house)
    made = nbformat.read(path, as_version=4)
    assert rules.problems(made, path) == []
    assert made.cells[0].source.startswith("# 88. Two words\n") and "88.1" in made.cells[3].source
    assert "- file: chapters/88_two_words\n" in (house / "_toc.yml").read_text()
    before, _, after = (house / "_toc.yml").read_text().partition("      - file: chapters/88_two_words\n")
    assert before + after == (ROOT / "_toc.yml").read_text()
    assert "[88. Two words](88_two_words.ipynb)" in (house / "chapters" / "index.md").read_text() and table.current(house)
    assert ledger.current(house) and "Every row of weights sums to 1" in (house / ledger.PAGE).read_text()


@pytest.mark.parametrize("name", ["", "mixtures", "8_mixtures", "08-mixtures", "08_Mixtures", "../08_x", "08_"])
def test_a_name_that_will_not_do_is_refused(house, name):
    with pytest.raises(ValueError, match="08_mixtures"):
        new_chapter.create(name, house)
    assert list((house / "chapters").glob("*.ipynb")) == []


def test_a_number_that_is_taken_is_refused(house):
    (house / "chapters" / "88_there.ipynb").write_text("{}")
    with pytest.raises(ValueError, match="88_there.ipynb has that number"):
        new_chapter.create("88_other", house)
