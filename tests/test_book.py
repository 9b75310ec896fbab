"""The built book: no warnings, nothing from another host, search, neighbours, pictures in words."""

import re
from html.parser import HTMLParser
from urllib.parse import unquote, urlparse

import pytest
from conftest import ROOT, notebooks, page_of

FETCHING = {  # what a browser fetches by itself, by tag and attribute
    "script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src", "embed": "src",
    "object": "data", "link": "href",
}
NOT_FETCHED = {"next", "prev", "index", "search", "canonical", "author", "copyright", "license"}
FETCHED_BY_CSS = re.compile(r"""url\(\s*['"]?([^'")]+)|@import\s+['"]([^'"]+)""")


class Page(HTMLParser):
    """The tags of one page, with their attributes, and the text of its inline scripts."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.scripts, self._in_script = [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self._in_script = tag == "script"

    def handle_data(self, data):
        if self._in_script:
            self.scripts.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def parsed(book, pages):
    return {page: Page((book / page).read_text(encoding="utf-8")) for page in pages}


def test_book_builds_without_a_warning(book_build):
    done, _ = book_build
    output = done.stdout + done.stderr
    assert done.returncode == 0, output[-3000:]
    assert "WARNING" not in output, output[-3000:]


def test_every_chapter_became_a_page(pages):
    assert "chapters/index.html" in pages
    for path in notebooks():
        assert f"{page_of(path)}.html" in pages


def test_no_page_outside_the_chapters_was_picked_up(pages):
    others = {page for page in pages if not page.startswith("chapters/")}
    assert others <= {"index.html", "search.html", "genindex.html"}


def test_nothing_is_fetched_from_another_host(parsed):
    for name, page in parsed.items():
        for tag, attributes in page.tags:
            if tag == "link" and attributes.get("rel") in NOT_FETCHED:
                continue
            address = attributes.get(FETCHING.get(tag, ""), "") or ""
            assert not urlparse(address).netloc, f"{name}: <{tag}> fetches {address}"
            assert "srcset" not in attributes or "//" not in attributes["srcset"], name
        for script in page.scripts:
            assert "THEBE" not in script and "unpkg.com" not in script and "cdn." not in script, name


def test_style_sheets_fetch_only_files_that_are_there(book):
    for sheet in book.rglob("*.css"):
        for found in FETCHED_BY_CSS.findall(sheet.read_text(encoding="utf-8")):
            address = found[0] or found[1]
            if address.startswith(("data:", "#")):
                continue
            assert not urlparse(address).netloc and not address.startswith("//"), f"{sheet.name} fetches {address}"


def test_scripts_and_styles_that_a_page_asks_for_are_there(book, parsed):
    for name, page in parsed.items():
        for tag in ("script", "link", "img"):
            for attributes in page.all(tag):
                address = attributes.get(FETCHING[tag])
                if not address or address.startswith("data:"):
                    continue
                path = unquote(urlparse(address).path)
                assert (book / name).parent.joinpath(path).exists(), f"{name}: no {address}"


def test_links_between_pages_lead_somewhere(book, parsed):
    for name, page in parsed.items():
        for attributes in page.all("a"):
            link = urlparse(attributes.get("href") or "")
            if link.scheme or link.netloc or not link.path:
                continue
            assert (book / name).parent.joinpath(unquote(link.path)).exists(), f"{name}: no {link.path}"


def test_pages_have_search_neighbours_and_both_themes(book, parsed):
    chapters = [name for name in parsed if name.startswith("chapters/")]
    for name in chapters:
        text = (book / name).read_text(encoding="utf-8")
        assert "search-button" in text and 'data-default-mode="auto"' in text and "theme-switch" in text, name
        if len(chapters) > 1:
            assert "right-next" in text or "left-prev" in text, name
    assert (book / "searchindex.js").stat().st_size > 0
    assert "right-next" in (book / "chapters/index.html").read_text(encoding="utf-8")


def test_every_picture_says_what_it_shows(parsed):
    for name, page in parsed.items():
        for attributes in page.all("img"):
            alt = (attributes.get("alt") or "").strip()
            assert len(alt.split()) >= 3, f"{name}: alt text {alt!r} of {attributes.get('src')}"
            assert "/" not in alt.split()[0] and not re.search(r"\.(png|svg|jpe?g)$", alt), f"{name}: {alt!r}"


def test_no_page_holds_a_path_of_this_machine(book, pages):
    for page in pages:
        assert str(ROOT) not in (book / page).read_text(encoding="utf-8"), page
