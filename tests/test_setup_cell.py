"""The first cell of every notebook: it finds d2lmini, fetches it on Colab, or says in a sentence what to do."""

import os
import subprocess

import nbformat
import pytest
from clean import Clean, copy_of_the_book, repository
from conftest import ROOT, notebooks
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tools import setup_cell
from tools.address import read_address, release_tag
from tools.publish import disagreements

TAG = release_tag(ROOT)
HERE = ROOT / "chapters"


@pytest.fixture(scope="module")
def laptop(tmp_path_factory):
    return Clean(tmp_path_factory.mktemp("laptop") / "env")


@pytest.fixture
def colab(tmp_path):
    return Clean(tmp_path / "colab", colab=True)


def first(place, address="", tag=TAG, before="", cwd=None, **environment):
    """Run the cell alone in a fresh interpreter: (what it printed, the last line of its error)."""
    done = place.call(before + "\n" + setup_cell.source(address, tag), cwd=cwd or place.folder, **environment)
    return done.stdout, (done.stderr.strip().splitlines() or [""])[-1]


def test_a_checkout_that_was_never_installed_is_found_from_any_folder_in_it(laptop):
    for folder in (ROOT, HERE, HERE / "_static"):
        assert first(laptop, cwd=folder) == (setup_cell.LINE, "")


def test_a_folder_that_only_has_the_name_is_not_taken_for_the_package(laptop, tmp_path):
    (tmp_path / "d2lmini").mkdir()
    printed, error = first(laptop, cwd=tmp_path)
    assert printed == "" and "no d2lmini" in error
    assert first(laptop, cwd=HERE, before=f"import sys; sys.path.insert(0, {str(tmp_path)!r})") == (setup_cell.LINE, "")


def test_elsewhere_the_sentence_names_the_command_that_helps(laptop, tmp_path):
    assert "`%pip install --no-deps PATH_TO_THE_BOOKS_FOLDER`" in first(laptop, cwd=tmp_path)[1]
    _, error = first(laptop, "https://github.com/a/b", cwd=tmp_path)
    assert f'`%pip install --no-deps "git+https://github.com/a/b@{TAG}"`' in error


def test_without_torch_the_sentence_names_what_is_missing(laptop):
    hide = ("import importlib.util as u\nfind = u.find_spec\n"
            "u.find_spec = lambda n, *a: None if n in ('torch', 'tqdm') else find(n, *a)")
    error = first(laptop, cwd=HERE, before=hide)[1]
    assert "no torch, tqdm" in error and "`%pip install torch tqdm`" in error


def test_another_version_than_the_chapters_is_named(laptop):
    assert first(laptop, tag="v9.9.9", cwd=HERE)[0] == f"d2lmini {TAG[1:]} is ready; this chapter was written with v9.9.9.\n"


def test_on_colab_an_unstamped_notebook_no_git_and_no_network_each_get_their_sentence(colab, tmp_path):
    cwd = tmp_path / "content"
    cwd.mkdir()
    assert "does not know the book's address" in first(colab, cwd=cwd)[1]
    assert "needs git" in first(colab, "https://github.com/a/b", cwd=cwd, PATH=str(cwd))[1]
    error = first(colab, (tmp_path / "nowhere").as_uri(), cwd=cwd)[1]
    assert "could not be fetched" in error and "Check the network" in error and "pip's answer: ERROR" in error and "\x1b" not in error


def test_on_colab_the_package_comes_from_its_tag_and_nothing_else_changes_and_chapter_1_runs(colab, tmp_path):
    address = repository(tmp_path / "book", TAG)
    cwd = tmp_path / "content"
    cwd.mkdir()
    stamped = setup_cell.stamped(nbformat.read(HERE / "01_three_wirings.ipynb", as_version=4), address, TAG)
    nbformat.write(stamped, cwd / "chapter.ipynb")
    before = colab.versions()
    done = colab.execute(cwd / "chapter.ipynb", cwd)
    assert done["first"] == f"d2lmini {TAG} was fetched from {address}; nothing that was here is changed.\n"
    assert len(done["claims"]) >= 3 and all(done["claims"])
    assert colab.versions() == before
    assert {p.name for p in colab.site.glob("*.dist-info")} == {f"d2lmini-{TAG[1:]}.dist-info"}
    assert first(colab, address, cwd=cwd) == (setup_cell.LINE, "")  # a second time there is nothing to fetch


def test_chapter_1_runs_in_a_checkout_that_cannot_be_written_to_and_leaves_nothing_there(laptop, tmp_path):
    book = copy_of_the_book(tmp_path / "book")
    path = book / "chapters" / "01_three_wirings.ipynb"
    nbformat.write(setup_cell.stamped(nbformat.read(path, as_version=4), "", TAG), path)
    everything = sorted(book.rglob("*"))
    for place in [book, *everything]:
        place.chmod(place.stat().st_mode & ~0o222)
    try:
        done = laptop.execute(path, path.parent)
        left = [p for p in sorted(book.rglob("*")) if p not in everything and "__pycache__" not in p.parts]
    finally:
        for place in [book, *everything]:
            place.chmod(place.stat().st_mode | 0o200)
    assert done["first"] == setup_cell.LINE and all(done["claims"]) and left == []  # root may write there; it must not try


def test_stamping_keeps_a_chapters_own_cells_their_outputs_and_their_order():
    own = new_code_cell("# @title Set-up\nimport math", execution_count=1, metadata={"tags": ["setup"]})
    shown = new_code_cell("math.pi", execution_count=2,
                          outputs=[new_output("execute_result", {"text/plain": "3.14"}, execution_count=2)])
    notebook = new_notebook(cells=[new_markdown_cell("# Title"), own, shown])
    setup_cell.stamped(notebook, "", "v1.2.3")
    assert [c.source.splitlines()[0] for c in notebook.cells] == ["# Title", setup_cell.MARK, "# @title Set-up", "math.pi"]
    assert [c.execution_count for c in notebook.cells[1:]] == [1, 2, 3] and shown.outputs[0].execution_count == 3
    assert notebook.cells[1].outputs[0].text == setup_cell.LINE and setup_cell.stamp_of(notebook) == ("", "v1.2.3")
    again = nbformat.from_dict(notebook)
    setup_cell.stamped(again, "https://github.com/a/b", "v2.0.0")
    assert setup_cell.stamp_of(again) == ("https://github.com/a/b", "v2.0.0")
    assert [c.source for c in again.cells[2:]] == [c.source for c in notebook.cells[2:]] and len(again.cells) == 4
    assert setup_cell.stamp_of(new_notebook(cells=[own])) is None


def test_a_notebook_that_was_not_run_gets_no_output():
    notebook = setup_cell.stamped(new_notebook(cells=[new_code_cell("1")]), "", "v1.0.0")
    assert [(c.execution_count, c.outputs) for c in notebook.cells] == [(None, []), (None, [])]


def test_every_notebook_begins_with_this_cell_and_all_places_name_one_address():
    assert disagreements(ROOT) == []
    for path in notebooks():
        cell = next(c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code")
        assert cell.source == setup_cell.source(read_address(ROOT), TAG), path.name
        assert [o.text for o in cell.outputs] == [setup_cell.LINE], path.name
        assert {k: cell.metadata.get(k) for k in setup_cell.METADATA} == setup_cell.METADATA, path.name


def test_the_command_names_what_it_changed(tmp_path, capsys):
    path = tmp_path / "chapter.ipynb"
    nbformat.write(new_notebook(cells=[new_markdown_cell("# T"), new_code_cell("1")]), path)
    assert setup_cell.main([str(path)]) == 0 and "new first cell" in capsys.readouterr().out
    assert setup_cell.main([str(path)]) == 0 and "as it was" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        setup_cell.main([])


def test_binder_builds_from_its_own_folder_without_cuda():
    environment = (ROOT / ".binder" / "environment.yml").read_text(encoding="utf-8")
    assert "pytorch-cpu" in environment and "nvidia" not in environment and "requirements" not in environment.split("dependencies")[1]
    post = ROOT / ".binder" / "postBuild"
    assert os.access(post, os.X_OK) and "--no-deps" in post.read_text(encoding="utf-8")
    assert subprocess.run(["bash", "-n", post]).returncode == 0
