"""The built pages in a real browser, from a server on this machine, with every other host cut off.

Needs Chromium on the system. Without it these tests are skipped, or fail when
D2LMINI_REQUIRE_BROWSER=1. D2LMINI_CHROMIUM names another browser of its family.
"""

import re

import pytest
from conftest import each_page

VIEWS = [(1280, "light"), (1280, "dark"), (360, "light"), (360, "dark")]


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


def test_exercises_are_folded_and_quizzes_answer_by_keyboard(visit, pages):
    for path in (p for p in pages if re.match(r"chapters/\d\d_", p)):
        page = visit(path, width=360, scheme="dark")
        for summary in ("Hint", "Solution"):
            folds = page.locator("details:not(.hide)", has=page.locator("summary", has_text=summary))
            assert folds.count() >= 3, path
            assert not any(folds.evaluate_all("all => all.map(d => d.open)")), f"{path}: a {summary} is open"
        quiz = page.locator(".d2l-quiz").first
        quiz.locator("input").first.focus()
        page.keyboard.press("Space")
        page.keyboard.type("45")  # where a number is asked for; elsewhere it does nothing
        page.keyboard.press("Enter")
        reply = quiz.locator("[role=status]").first.inner_text()
        assert reply and "first." not in reply.split("\n")[0], f"{path}: {reply!r}"
        assert page.complaints == [] and page.foreign == [], path
        page.context.close()
