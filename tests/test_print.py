"""Print: nothing is clipped on paper, nothing of the page's frame is printed, and the book's PDF holds together."""

import pytest

PAPER_WIDTH = 665  # A4 less the margins of print.css, in CSS pixels
PRINTED = ("chapters/index.html", "chapters/01_three_wirings.html", "chapters/02_encoder.html")


@pytest.mark.parametrize("path", PRINTED)
def test_a_page_prints_whole(visit, path):
    page = visit(path, PAPER_WIDTH)
    page.emulate_media(media="print")
    clipped = page.evaluate(
        """() => [...document.querySelectorAll("article pre, article table, article figure, article blockquote, article .output")]
            .filter(e => e.offsetParent && (e.scrollWidth > e.clientWidth + 1 || e.getBoundingClientRect().right > innerWidth + 1))
            .map(e => [e.tagName, e.scrollWidth, e.clientWidth, e.textContent.trim().slice(0, 60)])"""
    )
    assert clipped == []
    lost = page.evaluate("[...document.querySelectorAll('article img')].filter(i => !i.offsetHeight).map(i => i.alt)")
    assert lost == []
    frame = page.evaluate(
        """() => [".bd-sidebar-primary", ".bd-sidebar-secondary", ".bd-header-article", ".prev-next-footer", ".copybtn"]
            .filter(s => [...document.querySelectorAll(s)].some(e => e.offsetParent !== null && e.offsetHeight > 0))"""
    )
    assert frame == []
    data = page.pdf(prefer_css_page_size=True, print_background=True)
    assert data.startswith(b"%PDF") and len(data) > 20_000
