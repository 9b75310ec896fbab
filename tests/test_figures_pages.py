"""The interactive figures in the built pages: whole beside the theme's own scripts and styles, and light."""

import pytest
from conftest import ROOT
from figure_samples import words

FOUND = {
    "01_three_wirings": ["mask_explorer", "softmax_stepper"], "02_encoder": ["mask_character"],
    "03_decoder": ["generation_explorer"], "04_encoder_decoder": ["alignment_explorer"], "05_perceiver": ["cost_dial"],
    "06_norm_placement": ["gradient_highway"],
}
HERE = [name for name in FOUND if "d2l-figure" in ((ROOT / "chapters" / f"{name}.ipynb").read_text(encoding="utf-8")
                                                   if (ROOT / "chapters" / f"{name}.ipynb").is_file() else "")]

# What moves the first control of each from where it stands at the beginning.
KEYS = {"softmax_stepper": "Enter", "mask_explorer": "ArrowRight", "mask_character": "ArrowRight", "cost_dial": "ArrowRight"}


@pytest.mark.parametrize("name", HERE)
def test_each_chapter_s_figures_work_in_its_page(visit, name):
    page = visit(f"chapters/{name}.html")
    shown = page.locator(".d2l-figure")
    assert [f.get_attribute("data-figure") for f in shown.all()] == FOUND[name]
    for i in range(shown.count()):
        figure = shown.nth(i)
        figure.scroll_into_view_if_needed()
        assert figure.locator(".stage").is_visible() and not figure.locator(".d2l-static").is_visible()
        assert figure.locator("[class*=toggle], .copybtn").count() == 0, "a script of the page has changed it"
        assert len(words(page, i)) > 40
        before = words(page, i)
        control = figure.locator("button.main, input[type=range], [role=option]").first
        control.focus()
        page.keyboard.press(KEYS.get(FOUND[name][i], "ArrowLeft"))
        assert words(page, i) != before, FOUND[name][i]
    assert page.complaints == [] and page.foreign == []
    page.context.close()


@pytest.mark.parametrize("name", HERE)
def test_in_the_dark_they_stand_on_their_own_ground(visit, name):
    page = visit(f"chapters/{name}.html", scheme="dark")
    card = "getComputedStyle(document.querySelector('.text_html:has(.d2l-figure)')).backgroundColor"
    assert page.evaluate(card) in ("rgba(0, 0, 0, 0)", "transparent")
    page.context.close()


@pytest.mark.parametrize("name", HERE)
def test_without_scripts_the_page_shows_their_tables(visit, name):
    page = visit(f"chapters/{name}.html", scripts=False)
    assert all(table.is_visible() for table in page.locator(".d2l-static table").all())
    assert page.locator(".d2l-static table").count() == len(FOUND[name]) and page.locator(".stage").count() == 0
    page.context.close()
