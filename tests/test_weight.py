"""What the pages weigh: of their own, with theme and math, and all together."""

import gzip
import re
from urllib.parse import unquote, urlparse

from conftest import each_page

MB = 1_000_000
PACKED = {".png", ".woff2", ".woff", ".jpg", ".gif"}  # compressed already; a server sends them as they are


def own_weight(book, path):
    """Bytes of a page and of what only pages like it bring: its pictures and its notebook's data."""
    text = (book / path).read_text(encoding="utf-8")
    pictures = {(book / path).parent / unquote(p) for p in re.findall(r'(?:src|href)="([^"]*_images/[^"]+)"', text)}
    return (book / path).stat().st_size + sum(p.resolve().stat().st_size for p in pictures)


def sent(book, url):
    """Bytes that a compressing server sends for an address of the book."""
    file = book / unquote(urlparse(url).path).lstrip("/")
    data = file.read_bytes() if file.is_file() else b""
    return len(data) if file.suffix in PACKED else len(gzip.compress(data, 6))


def test_a_page_adds_at_most_a_megabyte(book, pages):
    heavy = {p: own_weight(book, p) for p in pages if own_weight(book, p) > MB}
    assert heavy == {}


def test_a_page_with_theme_and_math_is_at_most_two_megabytes_as_sent(book, visit, pages):
    heavy = {}
    for path in each_page(pages):
        page = visit(path)
        asked = {url.partition("#")[0] for url in page.asked if url.startswith("http")}
        assert len(asked) > 5
        total = sum(sent(book, url) for url in asked)
        if total > 2 * MB:
            heavy[path] = total
        page.context.close()
    assert heavy == {}


def test_the_whole_book_is_at_most_forty_megabytes(book):
    total = sum(f.stat().st_size for f in book.rglob("*") if f.is_file())
    assert total <= 40 * MB, f"{total / MB:.1f} MB"
