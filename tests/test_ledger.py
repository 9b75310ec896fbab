"""The claims ledger is made from the notebooks, whole, and says where each claim stands."""

import nbformat
import pytest
from conftest import ROOT
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from d2lmini.claims import KEY, read_claims
from tools import ledger


def claim_cell(name, **data):
    record = dict(name=name, statement="x stays below `a_b` * y_z", bound="at most 1", measured=0.5, published=None, why=None, holds=True)
    output = new_output("display_data", {"text/plain": "line"}, metadata={KEY: record | data})
    return new_code_cell("claim()", outputs=[output], execution_count=1)


@pytest.fixture
def house(tmp_path):
    cells = [
        new_markdown_cell("# 1. A title\n\nIs it?\n\n```\n## no heading\n```"), new_markdown_cell("## 1.1 Why $x$ and `code`?"),
        claim_cell("one"), new_markdown_cell("### Again"), claim_cell("two", published="0.9 on a GPU.", why="another machine"),
        new_markdown_cell("### Again"), claim_cell("three", holds=False, measured=None, statement="N stays"),
        claim_cell("four", measured=798976.0),
    ]
    (tmp_path / "chapters" / "appendix").mkdir(parents=True)
    nbformat.write(new_notebook(cells=cells), tmp_path / "chapters" / "01_a.ipynb")
    nbformat.write(new_notebook(cells=cells[:3]), tmp_path / "chapters" / "appendix" / "more.ipynb")
    nbformat.write(new_notebook(cells=cells[:1]), tmp_path / "chapters" / "02_none.ipynb")
    return tmp_path


def test_each_claim_has_its_bound_its_measurement_its_source_and_its_place(house):
    text = ledger.page(house)
    assert r"- **X stays below `a_b` \* y\_z.** Bound: at most 1. Measured: 0.5. [1.1 Why $x$ and `code`?](../01_a.ipynb#11-why--and-code)" in text
    assert "  Published: 0.9 on a GPU. Why they differ: another machine." in text
    assert "Measured: not finite. **This claim does not hold in the stored run.** [Again](../01_a.ipynb#again-1)" in text
    assert "- **N stays.**" in text and "Measured: 798,976." in text
    assert "(more.ipynb#11-why--and-code)" in text and "02_none" not in text and "no heading" not in text
    assert "5 claims in 2 notebooks; 4 hold in the stored runs, and 1 do not" in text


def test_the_command_writes_the_page_and_says_when_it_is_stale(house, capsys):
    assert ledger.main([], house) == 0 and ledger.main(["--check"], house) == 0
    nbformat.write(new_notebook(cells=[new_markdown_cell("# 3. B"), claim_cell("new")]), house / "chapters" / "03_b.ipynb")
    assert ledger.main(["--check"], house) == 1
    assert "stale" in capsys.readouterr().out


def test_the_books_ledger_is_current_and_lists_every_claim():
    assert ledger.current(), "run `python -m tools.ledger`"
    claims = [c for path in ledger.notebooks(ROOT) for c in read_claims(path)]
    text = (ROOT / ledger.PAGE).read_text(encoding="utf-8")
    assert len(claims) >= 47 and text.count("Bound:") == len(claims)
