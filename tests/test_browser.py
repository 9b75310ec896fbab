"""The built pages in a real browser, from a server on this machine, with every other host cut off.

Needs Chromium on the system. Without it these tests are skipped, or fail when
D2LMINI_REQUIRE_BROWSER=1. D2LMINI_CHROMIUM names another browser of its family.
"""

import functools
import http.server
import threading

import pytest

VIEWS = [(1280, "light"), (1280, "dark"), (360, "light"), (360, "dark")]


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
    """Open a page and return it settled, with what it asked for and complained about."""
    opened = []

    def open_page(path, width=1280, scheme="light", scripts=True):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=scripts
        )
        opened.append(context)
        page = context.new_page()
        page.foreign, page.complaints = [], []
        page.route("**/*", lambda route: _only_here(route, page, address))
        page.on("console", lambda m: page.complaints.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("response", lambda r: page.complaints.append(f"{r.status} {r.url}") if r.status >= 400 else None)
        page.goto(address + path, wait_until="load")
        if scripts:
            page.evaluate("window.MathJax && MathJax.startup ? MathJax.startup.promise.then(() => true) : true")
        page.wait_for_load_state("networkidle")
        return page

    yield open_page
    for context in opened:
        context.close()


def _only_here(route, page, address):
    url = route.request.url
    if url.startswith((address, "data:", "blob:")):
        route.continue_()
    else:
        page.foreign.append(url)
        route.abort()


def each_page(pages):
    return [p for p in pages if p.startswith("chapters/")]


@pytest.mark.parametrize("width, scheme", VIEWS)
def test_pages_are_quiet_private_and_fit(visit, pages, width, scheme):
    for path in [*each_page(pages), "search.html"]:
        page = visit(path, width, scheme)
        where = f"{path} at {width} px, {scheme}"
        assert page.foreign == [], where
        assert page.complaints == [], where
        assert page.evaluate("document.documentElement.dataset.theme") == scheme, where
        wider = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wider <= 0, f"{where}: {wider} px wider than the screen: {_widest(page)}"
        page.context.close()


def _widest(page):
    return page.evaluate(
        """() => [...document.querySelectorAll("article *")]
            .filter(e => e.getBoundingClientRect().right > innerWidth + 1)
            .slice(0, 3).map(e => e.outerHTML.slice(0, 120))"""
    )


def test_formulas_are_set_and_pictures_described(visit, pages):
    for path in each_page(pages):
        page = visit(path)
        raw, done, failed = page.evaluate(
            """() => {
                const math = [...document.querySelectorAll("article .math")];
                const without = math.filter(e => !e.querySelector("mjx-container"));
                return [without.length, math.length - without.length,
                        [...document.querySelectorAll("mjx-merror")].map(e => e.textContent)];
            }"""
        )
        assert raw == 0 and failed == [], f"{path}: {raw} formulas left as TeX, {done} set; errors {failed}"
        text = page.inner_text("body")
        assert "$$" not in text and "\\frac" not in text, path
        pictures = page.evaluate("[...document.images].map(i => [i.alt.trim(), i.complete && i.naturalWidth > 0])")
        assert all(alt and loaded for alt, loaded in pictures), f"{path}: {pictures}"


def test_boxes_are_marked_and_quotes_stay_quotes_without_scripts(visit):
    page = visit("chapters/index.html")
    assert page.locator("blockquote.box-words").count() == 1
    assert page.locator("blockquote.box-convention").count() == 1
    plain = visit("chapters/index.html", scripts=False)
    assert plain.locator("blockquote").count() >= 6 and plain.locator("blockquote.box").count() == 0


def test_the_address_of_the_book_leads_to_its_first_page(browser, address):
    page = browser.new_page()
    page.goto(address)
    page.wait_for_url(address + "chapters/index.html")
    page.close()


def test_search_finds_a_word_of_the_book(visit):
    page = visit("search.html?q=encoder")
    page.wait_for_selector("ul.search li a", timeout=20_000)
    assert page.foreign == [] and page.complaints == []


def test_the_reader_can_change_the_theme_and_it_lasts(visit):
    page = visit("chapters/index.html")
    seen = set()
    for _ in range(3):
        page.locator("button.theme-switch-button:visible").first.click()
        seen.add(page.evaluate("document.documentElement.dataset.theme"))
    assert seen == {"light", "dark"}
    assert page.complaints == []


def test_pages_are_accessible(visit, pages):
    from axe_playwright_python.sync_playwright import Axe

    for path in each_page(pages):
        for scheme in ("light", "dark"):
            page = visit(path, scheme=scheme)
            found = Axe().run(page, context="article")
            grave = [
                f"{v['id']}: {v['help']}: {v['nodes'][0]['html'][:150]}"
                for v in found.response["violations"] if v["impact"] in ("serious", "critical")
            ]
            assert grave == [], f"{path}, {scheme}: {grave}"
            page.context.close()
