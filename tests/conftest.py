"""What several test files share: the book, built once a session, and its pages."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def notebooks() -> list[Path]:
    return sorted((ROOT / "chapters").glob("*.ipynb"))


@pytest.fixture(scope="session")
def book_build(tmp_path_factory):
    """The book as `make book` builds it, in a folder of its own: (finished process, HTML folder)."""
    folder = tmp_path_factory.mktemp("book")
    command = [
        Path(sys.executable).with_name("jupyter-book"), "build", ".", "--path-output", folder,
        "--warningiserror", "--nitpick", "--keep-going", "--quiet",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return done, folder / "_build" / "html"


@pytest.fixture(scope="session")
def book(book_build) -> Path:
    """The folder of the built HTML."""
    done, html = book_build
    if done.returncode:
        pytest.fail("the book does not build: " + done.stderr[-2000:], pytrace=False)
    return html


@pytest.fixture(scope="session")
def pages(book) -> list[str]:
    """The addresses of all pages below the book's folder, the reader's own first."""
    return sorted(p.relative_to(book).as_posix() for p in book.rglob("*.html") if "_static" not in p.parts)
