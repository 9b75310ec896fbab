"""Accessibility: axe on every page in both themes, alt texts that say what a figure shows, frames that keys can scroll."""

import re

import nbformat
import pytest
from conftest import each_page, notebooks

# The same token of code, or symbol of a formula, a thousand times over is one case to check: keep the first of each.
THIN = """() => {
    const seen = new Set();
    for (const span of document.querySelectorAll("article .highlight pre span[class]")) {
        const ground = span.closest("div.cell_input") ? "input" : span.closest("div.cell_output") ? "output" : "text";
        const kind = ground + span.className;
        if (seen.has(kind)) span.replaceWith(span.textContent); else seen.add(kind);
    }
    [...document.querySelectorAll("article mjx-container")].slice(5).forEach(math => math.remove());
    for (const row of document.querySelectorAll("article table tr:nth-child(n+6)")) row.remove();
}"""
ONLY = {"dark": {"runOnly": ["color-contrast"]}}  # all else is the same in both themes
EMPTY_WORDS = re.compile(r"^(a |an |the )?(figure|plot|chart|graph)( (of|showing|shows))?\b", re.I)


def stored_alts():
    return [
        (path.stem, index, alt)
        for path in notebooks()
        for index, cell in enumerate(nbformat.read(path, as_version=4).cells)
        for output in cell.get("outputs", [])
        if (alt := output.get("metadata", {}).get("image/png", {}).get("alt"))
    ]


def test_no_page_has_a_serious_or_critical_violation(visit, pages):
    from axe_playwright_python.sync_playwright import Axe

    grave = []
    for path in [*each_page(pages), "search.html"]:
        page = visit(path)
        page.evaluate(THIN)
        for scheme in ("light", "dark"):
            page.evaluate("scheme => { document.documentElement.dataset.theme = scheme }", scheme)
            page.wait_for_timeout(300)  # colours fade from one theme to the other
            options = {"resultTypes": ["violations"]} | ONLY.get(scheme, {})
            found = Axe().run(page, options=options)
            grave += [
                f"{path}, {scheme}: {v['id']}: {v['help']}: {len(v['nodes'])} times, first {v['nodes'][0]['html'][:150]}"
                for v in found.response["violations"] if v["impact"] in ("serious", "critical")
            ]
        page.context.close()
    assert grave == [], "\n".join(grave)


@pytest.mark.parametrize("name, index, alt", stored_alts())
def test_alt_texts_state_what_a_reader_would_see(name, index, alt):
    words = alt.split()
    assert len(words) >= 12, f"{name}, cell {index}: {alt!r} is too short to state a finding"
    assert not EMPTY_WORDS.match(alt), f"{name}, cell {index}: {alt!r} says that there is a figure, not what it shows"
    assert alt.endswith((".", "!", "?")) and "nan" not in alt.lower().split(), f"{name}, cell {index}: {alt!r}"


def test_no_two_figures_say_the_same():
    alts = [alt for _, _, alt in stored_alts()]
    assert len(alts) >= 7 and len(set(alts)) == len(alts)


def test_what_scrolls_sideways_can_be_reached_with_keys(visit):
    page = visit("chapters/01_three_wirings.html", 360)
    unreachable = page.evaluate(
        """() => [...document.querySelectorAll("article pre, article .pst-scrollable-table-container, article mjx-container[display]")]
            .filter(e => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX !== "visible" && e.tabIndex !== 0)
            .map(e => e.outerHTML.slice(0, 100))"""
    )
    assert unreachable == []
    assert page.locator("article pre[tabindex='0']").count() > 0
    page.keyboard.press("Tab")
    assert "skip" in page.evaluate("document.activeElement.outerHTML").lower()


def test_a_figure_has_a_number_and_a_caption(visit):
    page = visit("chapters/01_three_wirings.html")
    captions = page.locator("figure.book-figure figcaption").all_inner_texts()
    assert captions[0].startswith("Figure 1.1. The four patterns.")
    assert [c.split()[1] for c in captions] == [f"1.{n}." for n in range(1, len(captions) + 1)]
