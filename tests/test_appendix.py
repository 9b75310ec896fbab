"""The appendices: complete where they list, and true where they show code."""

import importlib
import importlib.util
import linecache
import re
import sys
import types

import nbformat
import pytest
from conftest import ROOT

from tools.api_docs import convert, escaped

FOLDER = ROOT / "chapters" / "appendix"


def text(name):
    return (FOLDER / f"{name}.md").read_text(encoding="utf-8")


def test_every_appendix_is_in_the_table_of_contents():
    contents = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    for path in [*FOLDER.glob("*.md"), *FOLDER.glob("*.ipynb")]:
        assert f"chapters/appendix/{path.stem}\n" in contents, path.name


def test_the_reference_lists_every_module_with_something_public():
    listed = re.findall(r"automodule:: ([\w.]+)", "".join(p.read_text(encoding="utf-8") for p in FOLDER.glob("api*.md")))
    modules = {f"d2lmini.{p.stem}" for p in (ROOT / "d2lmini").glob("*.py") if p.stem != "__init__"}
    packages = {f"d2lmini.{p.parent.name}" for p in (ROOT / "d2lmini").glob("*/__init__.py")}
    assert len(listed) == len(set(listed)) and modules <= set(listed) <= modules | packages | {
        f"d2lmini.{p.parent.name}.{p.stem}" for p in (ROOT / "d2lmini").glob("*/*.py")}
    assert {name.split(".")[1] for name in listed} == {name.split(".")[1] for name in modules | packages}


def test_a_docstring_becomes_a_list_an_equation_and_plain_text():
    lines = ["Mix the values: |A| V*.", "", "    A = softmax(Q K^T)", "      + M", "", "Args:", "    q, k: queries_ (B, H), ``x_``.",
             "        On a second line.", "    *rest: more.", "Returns:", "    (B, H): weights.", "Source: Someone 2017.", ""]
    assert convert(lines) == [
        r"Mix the values: \|A\| V\*.", "", ".. code-block:: text", "", "    A = softmax(Q K^T)", "      + M", "", "", "**Args**", "",
        r"- ``q, k``: queries\_ (B, H), ``x_``.", "  On a second line.", "- ``*rest``: more.", "", "**Returns**",
        "(B, H): weights.", "", "Source: Someone 2017.", "", ""]
    assert escaped("a_b and c_ `d`") == r"a_b and c\_ \`d\`"


CITED = re.compile(r"([A-Z][\w'’-]+) (?:et al\.?|and others|Team|and [A-Z]\w+),?\s\(?((?:19|20)\d\d)\b|"
                   r"(?:[A-Z]\w+, )+([A-Z]\w+),? \(?((?:19|20)\d\d)\b")


def test_every_work_that_the_book_cites_is_among_the_references():
    entries = [line for line in text("references").splitlines() if line.startswith("- ")]
    form = re.compile(r"- .+ (19|20)\d\d\. \*.+\*(?: \(.+?\)\.)? (\[.+\]\(https://\S+\)|[A-Z].+, not at arXiv\.)")
    assert [line for line in entries if not form.fullmatch(line)] == []
    places = {p.name: "\n".join(c.source for c in nbformat.read(p, as_version=4).cells) for p in (ROOT / "chapters").rglob("*.ipynb")}
    places |= {p.name: p.read_text(encoding="utf-8") for p in (ROOT / "d2lmini").rglob("*.py")}
    for name, content in places.items():
        for number in re.findall(r"arxiv\.org/abs/(\d{4}\.\d{4,5})", content):
            assert number in text("references"), f"{name} links to arXiv {number}, which the references lack"
        for found in CITED.finditer(content):
            who, year = found[1] or found[3], found[2] or found[4]
            assert any(re.search(rf"\b{who}\b.*\b{year}\.", entry) for entry in entries), f"{name} cites {who} {year}"
    for number in re.findall(r"abs/(\d{4}\.\d{4,5})", text("references")):
        assert f"[arXiv {number}]" in text("references")


def test_errata_name_claims_that_exist():
    ledger = text("ledger")
    stored = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "chapters").rglob("*.ipynb"))
    named = re.findall(r"`([a-z]+(?:-[a-z]+)+)`", text("errata"))
    assert len(named) >= 3 and all(f'"name": "{name}"' in stored for name in named) and "Bound:" in ledger


def block(after: str, language: str) -> str:
    """The first block of this language behind a heading of the page on changing the book."""
    return re.search(rf"^```{language}\n(.*?)^```", text("changing").partition(f"## {after}")[2], re.M | re.S)[1]


def as_module(source: str, name: str) -> types.ModuleType:
    """The source as if it stood in the package, without leaving anything there."""
    module = types.ModuleType(name)
    module.__package__ = name.rpartition(".")[0]
    linecache.cache[f"<{name}>"] = (len(source), None, source.splitlines(keepends=True), f"<{name}>")
    sys.modules[name] = module
    try:
        exec(compile(source, f"<{name}>", "exec"), module.__dict__)
    finally:
        del sys.modules[name]
    return module


def test_the_worked_exercise_works():
    base = pytest.importorskip("d2lmini.exercises.base")
    exercise = as_module(block("Add an exercise", "python"), "d2lmini.exercises.chapter_8").row_entropy
    try:
        assert exercise.judge(exercise.answer).state == exercise.judge(exercise.also_right).state == base.SOLVED
        assert exercise.judge(...).state == base.UNTOUCHED
        for mistake in exercise.mistakes:
            verdict = exercise.judge(mistake.answer)
            assert verdict.state == base.NOT_YET and mistake.says in verdict.text, mistake.name
    finally:
        base._all.pop("row_entropy")


@pytest.fixture
def row_bars(monkeypatch):
    page = pytest.importorskip("d2lmini.figures.page")
    original, script = page._file, block("Add a figure", "js")
    monkeypatch.setattr(page, "_file", lambda name: script if name == "row_bars.js" else original(name))
    return as_module(block("Add a figure", "python"), "d2lmini.figures.row_bars").row_bars


def test_the_worked_figure_is_safe_and_checks_its_arguments(row_bars):
    html = row_bars(["a", "</script><b>"], [0.25, 0.75])._repr_html_()
    assert 'start("row_bars"' in html and "</script><b>" not in html and "0.75" in html
    with pytest.raises(ValueError, match="one per key"):
        row_bars(["a", "b"], [1.0])


def test_the_worked_figure_says_what_is_chosen(row_bars, show):
    page = show(row_bars(["clock", "</b>"], [0.25, 0.75]))
    page.get_by_role("button").nth(1).click()
    assert page.inner_text("[role=status]") == "“</b>” gets 75% of this row."
    assert page.complaints == []


def test_every_command_that_the_page_names_exists():
    make = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"`?make ([a-z-]+)", text("changing"))):
        assert re.search(rf"^{target}:", make, re.M), target
    for module in set(re.findall(r"python -m (tools\.\w+)", text("changing"))):
        assert importlib.util.find_spec(module) or module == "tools.exercises", module
