"""The recall copies: questions stay, answers go."""

import re

import nbformat
import pytest
from conftest import ROOT
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools.recall import left_sides, main, outline, recall

CHAPTERS = sorted((ROOT / "chapters").glob("0[1-7]_*.ipynb"))


@pytest.mark.parametrize("formula, sides", [
    (r"A = \operatorname{softmax}(QK^\top + M), \qquad \text{output} = A V .", ["A", r"\text{output}"]),
    (r"\sum_{t=1}^{N} (N - t) = \frac{N(N-1)}{2}.", [r"\sum_{t=1}^{N} (N - t)"]),
    (r"4D^2 + 2D \;\approx\; 12D^2", ["4D^2 + 2D"]),
    (r"\begin{aligned} x &= a \\ y &\leq b \end{aligned}", ["x", "y"]),
    (r"H(x_t \mid x_{s=1}) = -\log p", [r"H(x_t \mid x_{s=1})"]),
    (r"x_0 \leftarrow x_0 + 1", ["x_0"]),
    (r"\text{no relation}", []),
])
def test_a_formula_keeps_what_stands_before_its_first_relation(formula, sides):
    assert left_sides(formula) == sides


def test_an_outline_keeps_headings_and_left_sides_and_nothing_else():
    source = "## 1.1 Title\n\nThe answer is 42.\n\n$$a = b$$\n\n> **In words.** Secret.\n\n```\n# no heading\n```\n\n### Next"
    assert outline(source) == ["## 1.1 Title", r"$$a = \; ?$$", "### Next"]


def test_cells_are_emptied_but_say_what_to_define():
    tagged = {"tags": ["exercise"]}
    hidden = {"tags": ["hide-input"], "jupyter": {"source_hidden": True}}
    copy = recall(new_notebook(cells=[
        new_markdown_cell("# 1. T"), new_code_cell("# @title Set-up\nimport torch", metadata={"tags": ["setup", "hide-cell"]}),
        new_code_cell("def f(x):\n    return 42\n\n\nclass G:\n    pass"), new_code_cell("x = 42"),
        new_code_cell("# @title Figure\n42", metadata=hidden), new_markdown_cell("### Exercise 1.1: E\n\nDo it.", metadata=tagged),
        new_code_cell("def my_f(x):\n    ...", metadata=tagged), new_code_cell("# @title Solution\ne.solution()", metadata=tagged),
    ]))
    sources = [c.source for c in copy.cells]
    assert sources[0] == "# 1. T" and "recall copy" in sources[1]
    assert sources[2:] == ["# @title Set-up\nimport torch", "# function f, class G", "", "### Exercise 1.1: E\n\nDo it.",
                           "def my_f(x):\n    ..."]
    assert all(not c.get("outputs") for c in copy.cells)
    nbformat.validate(copy)


def test_every_chapter_has_a_copy_with_its_headings_and_no_answers(tmp_path, capsys):
    assert main(["--to", str(tmp_path)]) == 0
    for path in CHAPTERS:
        chapter, copy = (nbformat.read(p, as_version=4) for p in (path, tmp_path / path.name))
        headings = [re.findall(r"^#+ .+", c.source, re.M) for c in chapter.cells
                    if c.cell_type == "markdown" and "```" not in c.source and "exercise" not in c.metadata.get("tags", [])]
        kept = "\n".join(c.source for c in copy.cells)
        assert all(h in kept for found in headings for h in found)
        assert "**Reading it.**" not in kept and "**In words.**" not in kept and ".solution()" not in kept
        assert all(not c.get("outputs") for c in copy.cells)
