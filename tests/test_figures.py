"""What every interactive figure keeps: safe, light, self-contained, readable without scripts, accessible, at home at 360 px."""

import ast
import json
import re

import pytest
from conftest import ROOT
from figure_samples import HOSTILE, SAMPLES, words

from d2lmini import figures
from d2lmini.figures.page import LIMIT, InteractiveFigure
from tools.freshness import closure, file_parts, statements, through_aliases

FOLDER = ROOT / "d2lmini" / "figures"
each = pytest.mark.parametrize("name", SAMPLES)


def test_every_figure_has_a_sample_and_a_script_of_readable_size():
    public = {n for n in figures.__all__ if (FOLDER / f"{n}.js").is_file()}
    assert public == set(SAMPLES)
    for script in FOLDER.glob("*.js"):
        text = script.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 250, script.name
        assert "</" not in text and "<!--" not in text, f"{script.name} could end the script element it stands in"
        assert "innerHTML" not in text and "eval(" not in text and "http:" not in text.replace("http://www.w3.org/2000/svg", "")


def test_the_scripts_travel_with_the_package():
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert '"figures/*.js"' in settings and '"figures/*.css"' in settings


def test_a_changed_script_or_style_makes_stored_outputs_stale():
    cell = ast.parse("from d2lmini import figures\nfigures.cost_dial()")
    used = closure(through_aliases(cell, cell, "", ROOT), ROOT)
    assert [part.split()[0] for part in file_parts(statements(used, ROOT), ROOT)] == ["cost_dial.js", "figure.css", "figure.js"]


@each
def test_html_is_light_stands_alone_and_repeats_but_for_its_number(name):
    figure = SAMPLES[name]()
    first, second = figure._repr_html_(), figure._repr_html_()
    assert len(first.encode()) <= LIMIT == 60_000
    assert not re.search(r"(?:src|href)\s*=|@import|url\(|fetch\(", first), "it asks for something from outside"
    ids = [re.search(r'id="([\w-]+)-(\d+)"', text).groups() for text in (first, second)]
    assert ids[0][0] == ids[1][0] == name.replace("_", "-") and int(ids[1][1]) == int(ids[0][1]) + 1
    number = re.compile(r'id="[\w-]+"')
    assert number.sub("", first) == number.sub("", second)
    assert repr(figure).startswith(figure.title) and "object at" not in repr(figure)


@each
def test_data_cannot_end_the_script_and_come_back_unchanged(name):
    text = SAMPLES[name](hostile=True)._repr_html_()
    inside = re.search(r'<script type="application/json">(.*?)</script>', text, re.S).group(1)
    assert not set("<>&") & set(inside)
    json.loads(inside)
    assert text.count("</script>") == 2, "one for the data, one for the code"


@each
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_complaint_and_accessible(show, name, scheme):
    from axe_playwright_python.sync_playwright import Axe

    page = show(SAMPLES[name](), scheme=scheme)
    assert page.complaints == [] and page.locator(".stage").is_visible()
    found = [f"{v['id']}: {v['help']}: {v['nodes'][0]['html'][:200]} {v['nodes'][0]['failureSummary'][:300]}"
             for v in Axe().run(page).response["violations"]]
    assert found == []


@each
def test_two_on_a_page_share_no_id_and_no_state(show, name):
    page = show(SAMPLES[name](), SAMPLES[name]())
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids)) >= 2
    groups = page.evaluate("[...document.querySelectorAll('.d2l-figure')].map(f => [...f.querySelectorAll('[type=radio]')].map(r => r.name))")
    assert not set(groups[0]) & set(groups[1]), "radio buttons of two figures would switch each other off"
    before, other = words(page, 0), words(page, 1)
    control = page.locator(".d2l-figure").first.locator("button.main, input[type=range], [role=option]").first
    control.focus()
    page.keyboard.press("Enter" if name == "softmax_stepper" else "ArrowLeft")
    page.keyboard.press("ArrowRight" if name == "mask_explorer" else "Shift")
    assert words(page, 0) != before and words(page, 1) == other


@each
def test_hostile_labels_show_as_themselves(show, name):
    page = show(SAMPLES[name](hostile=True))
    assert page.complaints == []
    assert page.locator(".d2l-figure b").filter(has_text="b>").count() == 0 or name != "cost_dial"
    if name != "cost_dial":
        assert HOSTILE[0] in page.locator(".stage").inner_text()
    assert page.locator("main > *").count() == 4, "heading, style, figure and script; nothing that a label has opened"


@each
@pytest.mark.parametrize("hostile", [False, True])
def test_fits_a_phone(show, name, hostile):
    page = show(SAMPLES[name](hostile), width=360)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    outside = page.evaluate("""[...document.querySelectorAll('.stage *')].filter(e => {
        const r = e.getBoundingClientRect(); return r.width && (r.right > 360 || r.left < 0); }).map(e => e.outerHTML.slice(0, 120))""")
    assert outside == []


@each
def test_without_scripts_a_table_stands_there(show, name):
    page = show(SAMPLES[name](hostile=True), scripts=False, width=360)
    table = page.locator(".d2l-static table")
    assert table.is_visible() and page.locator(".stage").count() == 0
    assert table.locator("caption").inner_text() and table.locator("tbody tr").count() >= 2
    if name != "cost_dial":
        assert HOSTILE[0] in table.inner_text()
    assert page.locator("body").evaluate("e => e.scrollWidth") <= 360


def test_the_theme_of_the_system_counts_where_the_page_names_none(show):
    page = show(SAMPLES["mask_explorer"](), scheme="dark")
    paper = "getComputedStyle(document.querySelector('.d2l-figure')).backgroundColor"
    dark = page.evaluate(paper)
    page.evaluate("document.documentElement.removeAttribute('data-theme')")
    assert page.evaluate(paper) == dark
    page.evaluate("document.body.dataset.jpThemeLight = 'true'")  # JupyterLab's own switch wins
    assert page.evaluate(paper) != dark


def test_a_figure_refuses_what_the_page_could_not_hold():
    with pytest.raises(ValueError, match="finite"):
        InteractiveFigure("cost_dial", "Cost dial", "", {"x": float("nan")}, "")
    with pytest.raises(ValueError, match="60,000"):
        InteractiveFigure("cost_dial", "Cost dial", "", {"x": "y" * LIMIT}, "")
    with pytest.raises(ValueError, match=r"tokens\.split\(\)"):
        figures.mask_explorer("one two")
    with pytest.raises(ValueError, match="2 to 12"):
        figures.mask_explorer(["x"] * 13)
    with pytest.raises(ValueError, match="each of tokens"):
        figures.mask_explorer(["x", 3])
