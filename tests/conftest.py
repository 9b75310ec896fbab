"""What several test files share: the book, built once a session, its pages, and one browser."""

import functools
import http.server
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
    "--disable-component-update", "--no-first-run",
]


def notebooks() -> list[Path]:
    """The book's notebooks: chapters, appendices and worked solutions."""
    return sorted(p for p in (ROOT / "chapters").rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)


def page_of(path: Path) -> str:
    """A notebook's address in the book, without its ending, such as "chapters/02_encoder"."""
    return path.relative_to(ROOT).with_suffix("").as_posix()


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


def chromium() -> str | None:
    named = os.environ.get("D2LMINI_CHROMIUM")
    return named or next(filter(None, map(shutil.which, NAMES)), None)


@pytest.fixture(scope="session")
def browser():
    path = chromium()
    if path is None:
        if os.environ.get("D2LMINI_REQUIRE_BROWSER") == "1":
            pytest.fail("no Chromium on this machine, and D2LMINI_REQUIRE_BROWSER=1 asks for one")
        pytest.skip("no Chromium on this machine; install the package `chromium` to run the browser tests")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        with playwright.chromium.launch(executable_path=path, args=FLAGS) as launched:
            yield launched


@pytest.fixture
def show(browser):
    """Put figures on a bare page and open it: show(figure, ..., width=, scheme=, scripts=) -> page with .complaints."""
    opened = []

    def open_figures(*figures, width=800, scheme="light", scripts=True):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=scripts
        )
        opened.append(context)
        page = context.new_page()
        page.complaints = []
        page.on("console", lambda m: page.complaints.append(m.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("request", lambda r: page.complaints.append(r.url) if not r.url.startswith("about:") else None)
        body = "<p>between</p>".join(f._repr_html_() for f in figures)
        page.set_content(f'<!doctype html><html lang="en" data-theme="{scheme}"><head><title>Figures</title></head>'
                         f'<body><main><h1>Figures</h1>{body}</main></body></html>')
        return page

    yield open_figures
    for context in opened:
        context.close()


class QuietServer(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="session")
def address(book):
    """The book's address while the tests run."""
    handler = functools.partial(QuietServer, directory=str(book))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="session")
def visit(browser, address):
    """Open a page and return it settled, with what it asked for (elsewhere: .foreign) and complained about."""
    opened = []

    def open_page(path, width=1280, scheme="light", scripts=True):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=scripts
        )
        opened.append(context)
        page = context.new_page()
        page.foreign, page.complaints, page.asked = [], [], []
        page.route("**/*", lambda route: _only_here(route, page, address))
        page.on("console", lambda m: page.complaints.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("response", lambda r: page.complaints.append(f"{r.status} {r.url}") if r.status >= 400 else None)
        page.goto(address + path, wait_until="load", timeout=120_000)  # long: other work may hold the machine
        if scripts:
            page.evaluate("window.MathJax && MathJax.startup ? MathJax.startup.promise.then(() => true) : true")
        page.wait_for_load_state("networkidle")
        return page

    yield open_page
    for context in opened:
        context.close()


def _only_here(route, page, address):
    url = route.request.url
    page.asked.append(url)
    if url.startswith((address, "data:", "blob:")):
        route.continue_()
    else:
        page.foreign.append(url)
        route.abort()


def each_page(pages):
    return [p for p in pages if p.startswith("chapters/")]
