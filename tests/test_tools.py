"""The tools that judge notebooks: what makes an output stale, and which rules are found broken."""

import hashlib

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tools import notebook as tool
from tools import rules, table
from tools.freshness import digest_modules, digest_notebook
from tools.syntax import dump_cell

PACKAGE = {
    "__init__.py": '"""Doc."""\nfrom .first import one\nfrom .second import two\nfrom . import lonely\n__version__ = "1"\n',
    "base.py": '"""Base."""\n\nZERO = 0\n',
    "first.py": '"""First."""\n\nfrom .base import ZERO\n\n\ndef one():\n    """One."""\n    return ZERO + 1\n\n\n'
    'def other():\n    if ZERO > 9:\n        raise ValueError("too many")\n    return 7\n',
    "second.py": "def two():\n    return 2\n",
    "lonely.py": "def alone():\n    return 3\n",
}


@pytest.fixture
def house(tmp_path):
    """A small project: a package of four modules, a corpus, a notebook that uses `one`."""
    (tmp_path / "d2lmini" / "data_files").mkdir(parents=True)
    (tmp_path / "d2lmini" / "data_files" / "novella.txt").write_text("once upon a time")
    for name, text in PACKAGE.items():
        (tmp_path / "d2lmini" / name).write_text(text)
    return tmp_path


def save(house, *sources, tags=()):
    cells = [new_code_cell(source) for source in sources]
    cells[0].metadata["tags"] = list(tags)
    path = house / "chapter.ipynb"
    nbformat.write(new_notebook(cells=cells), path)
    return path


def edit(house, module, old, new):
    file = house / "d2lmini" / f"{module}.py"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


USES = [
    ["from d2lmini import one", "one()"],
    ["import d2lmini", "d2lmini.one()"],
    ["import d2lmini as d2l", "d2l.one()"],
    ["from d2lmini.first import one", "one()"],
    ["import d2lmini.first", "d2lmini.first.one()"],
    ["from d2lmini import first", "first.one()"],
]


@pytest.mark.parametrize("sources", USES, ids=lambda s: s[0])
def test_digest_follows_what_the_notebook_uses_and_nothing_else(house, sources):
    path = save(house, *sources, tags=["setup"])
    before = digest_notebook(path, house)
    edit(house, "first", '"""One."""', '"""One, in other words."""')
    edit(house, "first", "return ZERO", "# why\n    return ZERO")
    edit(house, "second", "return 2", "return 22")
    edit(house, "lonely", "return 3", "return 33")
    edit(house, "first", "return 7", "return 77")  # in the same module, not used
    edit(house, "__init__", '"1"', '"2"')
    assert digest_notebook(path, house) == before
    edit(house, "first", "+ 1", "+ 2")
    after = digest_notebook(path, house)
    assert after != before
    edit(house, "base", "ZERO = 0", "ZERO = 5")  # imported by `first`
    assert digest_notebook(path, house) not in (before, after)


def test_digest_leaves_out_the_setup_cell_and_comments_but_no_other_code(house):
    before = digest_notebook(save(house, "import math", "x = 1  # one", tags=["setup"]), house)
    assert digest_notebook(save(house, "import math, sys", "x = (1)", tags=["setup"]), house) == before
    assert digest_notebook(save(house, "import math", "x = 2", tags=["setup"]), house) != before
    assert digest_notebook(save(house, "import math", "x = 1"), house) != before


def test_digest_ignores_the_words_of_an_error_and_not_its_condition(house):
    path = save(house, "from d2lmini.first import other", "other()")
    before = digest_notebook(path, house)
    edit(house, "first", '"too many"', '"that is too many"')
    assert digest_notebook(path, house) == before
    edit(house, "first", "ZERO > 9", "ZERO > 8")
    assert digest_notebook(path, house) != before


def test_digest_follows_what_runs_when_a_module_is_imported(house):
    path = save(house, "from d2lmini import one", "one()")
    before = digest_notebook(path, house)
    file = house / "d2lmini" / "first.py"
    file.write_text(file.read_text() + "\n\nfor _ in range(2):\n    ZERO += 1\n")
    assert digest_notebook(path, house) != before


def test_digest_covers_the_corpus_that_is_named(house):
    corpus = house / "d2lmini" / "data_files" / "novella.txt"
    changes = []
    for name in ("novella", "another"):
        path = save(house, f'text = load("{name}")')
        before = digest_notebook(path, house)
        corpus.write_text(corpus.read_text() + " there was a clock")
        changes.append(digest_notebook(path, house) != before)
    assert changes == [True, False]


def test_digest_of_modules_follows_imports_or_not(house):
    wide, narrow = digest_modules(["d2lmini.first"], house), digest_modules(["d2lmini.first"], house, follow=False)
    edit(house, "base", "ZERO = 0", "ZERO = 5")
    assert digest_modules(["d2lmini.first"], house) != wide
    assert digest_modules(["d2lmini.first"], house, follow=False) == narrow
    with pytest.raises(ValueError, match="no such module.*d2lmini.third"):
        digest_modules(["d2lmini.third"], house)


def test_a_cell_is_known_by_its_code_not_by_its_layout():
    assert dump_cell("f(1,\n  2)  # call") == dump_cell("f(1, 2)")
    assert dump_cell("f(1)") != dump_cell("f(2)")
    assert dump_cell("x = 1") != dump_cell("x = 1.0")
    assert dump_cell("x") != dump_cell("x;")
    assert dump_cell("'shown'") != dump_cell("")
    assert dump_cell("f'{a} b' 'c'") == dump_cell("f'{a}' ' bc'")
    assert dump_cell("def f():\n  'doc'\n  return 1") == dump_cell("def f():\n    return 1")


def test_a_cell_with_ipython_lines_still_has_a_digest():
    assert dump_cell("%matplotlib inline\nx = 1") != dump_cell("x = 1")
    assert dump_cell("if True:\n    !ls\nx = 1") == dump_cell("if True:\n    !ls\nx = 1  # one")
    assert dump_cell("%%bash\nls") != dump_cell("%%bash\nls -l")


# The text form must not depend on the Python that made it: this one was made on 3.11, 3.12 and 3.13.
EVERY_KIND = '''
from __future__ import annotations
class A(B, metaclass=M):
    x: int = 1
    async def f(self, a, /, b=2, *c, d, e=(), **g) -> str:
        async with a as b, c: return f"{a!r:>{b}} {d=}" "tail" rf"\\n{e:.2f}"
        try: yield [i async for i in x if i]
        except* (E, F) as g: raise X from None
        else: del a[1:2, ..., ::3]
        match a:
            case {"k": [1, *_], **r} if r: pass
            case A(x=None) | -1j: return lambda *a: (yield)
'''


def test_the_text_form_is_the_same_on_every_python():
    assert hashlib.sha256(dump_cell(EVERY_KIND).encode()).hexdigest()[:16] == "8db8a56000fd5b6b"


def test_plain_markdown_passes_and_myst_is_found():
    plain = (
        "# Title\n\nText with `{code}` and ``{role}`x` `` in code, $x_{t}$, [a link](02_x.ipynb).\n\n"
        "$$\n\\{a\\} = \\begin{pmatrix}1\\\\2\\end{pmatrix}\n$$\n\n> **In words.** So.\n\n| a | b |\n|--|--|\n| 1 | 2 |\n\n"
        "```python\nx = {'a': 1}\n```\n\n5% of it (and more)"
    )
    assert rules.plain_markdown(new_notebook(cells=[new_markdown_cell(plain)])) == []
    for text in [
        "```{note}\nx\n```", ":::{tip}\nx\n:::", "see {ref}`here`", "(target)=\n# A", "+++", "% comment", "{{ name }}",
        "a[^1]", "$$x$$ (eq-1)", "[](page.md)", "> [!NOTE]\n> x", "\\(x\\)", "\\begin{align}x\\end{align}",
        "---\ntitle: x\n---", "# A {#id}", "$x_{{t}}$",
    ]:
        assert rules.plain_markdown(new_notebook(cells=[new_markdown_cell(text)])), text


def cell(*outputs, source="x", **metadata):
    return new_notebook(cells=[new_code_cell(source, outputs=list(outputs), metadata=metadata, execution_count=1)])


def image(alt=None):
    return new_output("display_data", {"image/png": "aGk="}, metadata={"image/png": {"alt": alt}} if alt else {})


def test_debris_in_outputs_is_found():
    stream = lambda text, name="stdout": new_output("stream", name=name, text=text)  # noqa: E731
    assert rules.clean_outputs(cell(stream("loss 1.2\n"))) == []
    for output in [
        stream("x", "stderr"), stream(" 50%|#####     | 1/2"), stream("a\rb"), stream("UserWarning: no"),
        new_output("error", ename="E", evalue="v", traceback=[]),
        new_output("display_data", {"application/vnd.jupyter.widget-view+json": {"model_id": "1"}}),
    ]:
        assert rules.clean_outputs(cell(output)), output
    assert rules.no_machine_paths(cell(stream("/home/me/book"))) and not rules.no_machine_paths(cell(stream("a/b")))


def test_images_need_alt_text_in_both_places_and_a_cell_of_their_own():
    good = cell(image("rises"), mystnb={"image": {"alt": "rises"}})
    assert rules.described_images(good) == []
    assert "without alt" in rules.described_images(cell(image()))[0]
    assert "did not reach" in rules.described_images(cell(image("rises")))[0]
    assert "one image per cell" in rules.described_images(cell(image("a"), image("b")))[0]


def test_hidden_cells_need_all_three_marks_and_open_ones_must_be_short():
    hidden = dict(tags=["hide-input"], jupyter={"source_hidden": True})
    assert rules.hidden_marks(cell(source="# @title Figure\nx", **hidden)) == []
    assert "@title" in rules.hidden_marks(cell(**hidden))[0]
    assert "source_hidden" in rules.hidden_marks(cell(source="# @title F", tags=["hide-cell"]))[0]
    long = "x = 1\n" * (rules.MAX_LINES + 1)
    assert rules.short_cells(cell(source=long)) and not rules.short_cells(cell(source=long, **hidden))


def test_run_writes_a_clean_notebook_and_leaves_a_failing_one_untouched(tmp_path):
    path = tmp_path / "01_x.ipynb"
    source = "from IPython.display import display\nprint(1)\nprint(2)\n" + (
        'display({"image/png": "aGk="}, raw=True, metadata={"image/png": {"alt": "rises"}})'
    )
    nbformat.write(new_notebook(cells=[new_code_cell(source, metadata={"execution": {"iopub.execute_input": "2020"}, "scrolled": True})]), path)
    seconds = tool.run(path)
    done = nbformat.read(path, as_version=4)
    assert done.cells[0].outputs[0].text == "1\n2\n"
    assert done.cells[0].metadata == {"mystnb": {"image": {"alt": "rises"}}}
    assert done.metadata.d2lmini.seconds == seconds and done.metadata.d2lmini.digest == digest_notebook(path)
    assert rules.problems(done, path) == []
    assert done == nbformat.read(path, as_version=4)

    for bad in ["1 / 0", "import sys; print('x', file=sys.stderr)", "import warnings; warnings.warn('x')"]:
        nbformat.write(new_notebook(cells=[new_code_cell(bad)]), path)
        before = path.read_bytes()
        with pytest.raises(tool.NotebookError, match="unchanged"):
            tool.run(path)
        assert path.read_bytes() == before
        assert list(tmp_path.iterdir()) == [path]


def test_table_is_made_from_the_notebooks_and_nothing_around_it_changes(tmp_path):
    chapters = tmp_path / "chapters"
    chapters.mkdir()
    text = "# 1. A title\n\n**The question.** It is there. *What is it*\nfor? More."
    notebook = new_notebook(cells=[new_markdown_cell(text)], metadata={"d2lmini": {"seconds": 8.4}})
    nbformat.write(notebook, chapters / "01_x.ipynb")
    page = chapters / "index.md"
    page.write_text(f"before\n{table.BEGIN}\nold\n{table.END}\nafter\n")
    assert table.update(tmp_path) and table.current(tmp_path) and not table.update(tmp_path)
    assert "| [1. A title](01_x.ipynb) | It is there. What is it for? | 8 s |" in page.read_text()
    assert page.read_text().startswith("before\n") and page.read_text().endswith("\nafter\n")
    page.write_text("no markers")
    with pytest.raises(ValueError, match="expected the lines"):
        table.update(tmp_path)
    assert [table.duration(s) for s in (None, 0.2, 95, 300, 655)] == ["not measured", "1 s", "95 s", "5.0 min", "11 min"]
