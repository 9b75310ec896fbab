"""Every chapter's notebook keeps the book's rules; nbval runs them apart from this."""

import re

import nbformat
import pytest
from conftest import ROOT, notebooks, page_of

from tools import table
from tools.rules import problems


@pytest.mark.parametrize("path", notebooks(), ids=lambda p: p.stem)
def test_notebook_keeps_every_rule(path):
    found = problems(nbformat.read(path, as_version=4), path)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("path", notebooks(), ids=lambda p: p.stem)
def test_notebook_is_valid_and_names_no_kernel_of_one_machine(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    assert "version" not in notebook.metadata.language_info


def test_first_page_lists_the_chapters_with_their_measured_times():
    assert table.current(), "run `python -m tools.notebook table`"


def test_every_chapter_has_a_title_and_opens_with_a_question():
    for row in table.chapters():
        assert row["title"] and row["question"], f"{row['file']}: {row}"


def test_every_chapter_is_in_the_table_of_contents():
    contents = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    for path in notebooks():
        assert re.search(rf"file: {page_of(path)}$", contents, re.M), path.name
