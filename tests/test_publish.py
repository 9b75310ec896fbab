"""One address, written by one command into every place that shows it; refused when it is wrong."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from conftest import ROOT
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools import publish
from tools.address import check_address, read_address, release_tag
from tools.notebook import KERNEL, LANGUAGE
from tools.setup_cell import stamp_of

URL = "https://github.com/a-reader/the-book"
TAG = release_tag(ROOT)
SITE = "https://a-reader.github.io/the-book"


@pytest.fixture
def small(tmp_path):
    """The real settings and pages over one small chapter."""
    for name in ("_config.yml", "README.md", "chapters/index.md", "d2lmini/__init__.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for name in ("tools", "chapters/_static"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    cells = [new_markdown_cell("# 1. A title\n\nIs it?"), new_code_cell("x = 1")]
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": KERNEL, "language_info": LANGUAGE}),
                   tmp_path / "chapters" / "01_small.ipynb")
    publish.publish(publish.Place("", TAG), tmp_path)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_addresses_of_repositories_are_taken_as_people_paste_them():
    for text in (URL, URL + "/", URL + ".git", f"  {URL}\n"):
        assert check_address(text) == URL
    assert check_address("https://github.com/a/b.c_d") == "https://github.com/a/b.c_d"


@pytest.mark.parametrize("text", [
    "", "the-book", "http://github.com/a/b", "https://github.com/a", "https://github.com/a/b/tree/main", "https://github.com//b",
    "https://example.org/a/b", "git@github.com:a/b.git", "https://github.com/a/b?x=1", "https://github.com/-a/b",
    "https://github.com/a/..", 'https://github.com/a/b"', "https://github.com/a/b c", "https://github.com/OWNER/REPO",
    "https://github.com.example.org/a/b",
])
def test_a_wrong_address_is_refused_and_changes_nothing(small, capsys, text):
    before = contents(small)
    assert publish.main([text], small) == 2
    said = capsys.readouterr().err
    assert f"URL={text!r}" in said and "Nothing was changed." in said
    assert contents(small) == before


def test_a_page_without_its_marks_stops_it_before_anything_is_written(small, capsys):
    (small / "chapters" / "index.md").write_text("# No marks\n")
    before = contents(small)
    assert publish.main([URL], small) == 2 and "chapters/index.md: expected" in capsys.readouterr().err
    assert publish.main([URL, "--branch", "a b"], small) == 2 and "BRANCH='a b'" in capsys.readouterr().err
    assert publish.main([URL, "--site", "ftp://x"], small) == 2 and "SITE='ftp://x'" in capsys.readouterr().err
    assert contents(small) == before


def test_every_place_says_the_same_and_unset_brings_back_what_was(small, capsys):
    before = contents(small)
    assert publish.disagreements(small) == []
    assert publish.main([URL + ".git"], small) == 0
    assert f"git tag {TAG}" in capsys.readouterr().out
    assert read_address(small) == URL and publish.disagreements(small) == []
    assert stamp_of(nbformat.read(small / "chapters" / "01_small.ipynb", as_version=4)) == (URL, TAG)
    for name in publish.PAGES:
        text = (small / name).read_text(encoding="utf-8")
        assert "a-reader/the-book" in text and TAG in text, name
    assert publish.main([URL, "--branch", "trunk", "--site", SITE + "/"], small) == 0 and publish.disagreements(small) == []
    assert publish.written(small) == (URL, TAG, "trunk", SITE)
    assert publish.main([URL], small) == 0 and publish.written(small) == (URL, TAG, "main", "")
    capsys.readouterr()
    assert publish.main([URL], small) == 0 and "says so already" in capsys.readouterr().out
    assert publish.main(["--unset"], small) == 0
    assert contents(small) == before


def test_a_place_that_disagrees_is_named(small, capsys):
    publish.publish(publish.Place(URL, TAG), small)
    readme = small / "README.md"
    readme.write_text(readme.read_text(encoding="utf-8").replace("a-reader", "another"), encoding="utf-8")
    init = small / "d2lmini" / "__init__.py"
    assert publish.main(["--check"], small) == 1
    assert capsys.readouterr().out.strip() == f"README.md names another address or tag than {URL} at {TAG}"
    init.write_text(init.read_text(encoding="utf-8").replace(f'"{TAG[1:]}"', '"9.0.0"'), encoding="utf-8")
    assert len(publish.disagreements(small)) == 4  # a new version is one that must be published
    notebook = nbformat.read(small / "chapters" / "01_small.ipynb", as_version=4)
    del notebook.cells[1]
    nbformat.write(notebook, small / "chapters" / "01_small.ipynb")
    assert "tools.setup_cell --all" in publish.disagreements(small)[-1]


def test_the_book_ships_without_an_address_and_shows_no_link_that_needs_one():
    assert read_address(ROOT) == ""
    for name in publish.PAGES:
        text = (ROOT / name).read_text(encoding="utf-8").replace("https://github.com/OWNER/REPO", "")
        assert not re.search(r"https://(?:github\.com|colab\.research|mybinder)", text), name


def built(folder: Path) -> str:
    """The HTML of the small chapter."""
    (folder / "_toc.yml").write_text("format: jb-book\nroot: chapters/index\nchapters:\n- file: chapters/01_small\n")
    (folder / "chapters" / "index.md").write_text("# A book\n\nWith one chapter.\n")
    tool = Path(sys.executable).with_name("jupyter-book")
    done = subprocess.run([tool, "build", folder, "--all", "--warningiserror", "--nitpick", "--quiet"],
                          cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return (folder / "_build" / "html" / "chapters" / "01_small.html").read_text(encoding="utf-8")


def test_published_pages_launch_at_the_tag_download_and_lead_to_the_source(small):
    publish.publish(publish.Place(URL, TAG, "trunk", SITE), small)
    page = built(small)
    links = set(re.findall(r'href="([^"]+)"', page))
    assert f'content="{SITE}/chapters/01_small.html"' in page
    assert f"https://colab.research.google.com/github/a-reader/the-book/blob/{TAG}/chapters/01_small.ipynb" in links
    assert f"https://mybinder.org/v2/gh/a-reader/the-book/{TAG}?urlpath=lab/tree/chapters/01_small.ipynb" in links
    assert f"{URL}/edit/trunk/chapters/01_small.ipynb" in links and URL in links
    assert any(link.endswith("_sources/chapters/01_small.ipynb") for link in links)


def test_unpublished_pages_have_the_download_and_no_button_that_leads_nowhere(small):
    page = built(small)
    assert "_sources/chapters/01_small.ipynb" in page
    for word in ("colab.research", "mybinder", "/edit/", "launch-buttons", "source-edit-button", "source-repository-button"):
        assert word not in page, word
