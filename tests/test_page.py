"""What the build adds to pages, by hand: captions, numbers, sizes, descriptions; and the order of the PDF's pages."""

import pytest
from conftest import ROOT
from docutils import nodes
from PIL import Image

from tools.draw import FAMILIES, cover_html
from tools.page import caption_of, description_of, head, icons_used, label_of, width_of


@pytest.mark.parametrize("source, caption", [
    ("# @title Figure: the leak\nx = 1", "The leak"),
    ("# @title Draw the four patterns", "The four patterns"),
    ("#@title  Where it looks  \n", "Where it looks"),
    ("fig, ax = figure()", ""),
    ("", ""),
])
def test_the_caption_is_the_title_of_the_cell(source, caption):
    assert caption_of(source) == caption


def test_figures_are_numbered_within_their_chapter():
    assert label_of("chapters/02_encoder", 3) == "2.3"
    assert label_of("chapters/11_more", 1) == "11.1"
    assert label_of("chapters/appendix_record", 2) == "2"


def test_a_picture_is_as_wide_on_the_page_as_its_inches_say(tmp_path):
    Image.new("RGB", (1152, 10)).save(tmp_path / "two.png", dpi=(240, 240))
    Image.new("RGB", (1152, 10)).save(tmp_path / "none.png")
    assert width_of(tmp_path / "two.png") == 576 and width_of(tmp_path / "none.png") is None


class App:
    class config:
        html_baseurl, html_title = "", "A book"


def page(words):
    document = nodes.document(None, None)
    section = nodes.section("", nodes.title("", "A chapter"), nodes.paragraph("", f"The question. {words}"))
    document += section
    return document


def tags_of(address, words="Why <so> much?"):
    app, context = App(), {"title": "A <em>chapter</em>", "metatags": ""}
    app.config = type("config", (), {"html_baseurl": address, "html_title": "A book"})
    head(app, "chapters/01_a", "page.html", context, page(words))
    return context["metatags"]


def test_a_page_describes_itself_and_shows_its_picture_only_under_a_public_address():
    without, with_one = tags_of(""), tags_of("https://example.org/book/")
    assert 'name="description" content="Why &lt;so&gt; much?"' in without and 'og:title" content="A chapter"' in without
    assert "og:image" not in without and "og:url" not in without and "http" not in without
    assert 'og:image" content="https://example.org/book/_static/social.png"' in with_one
    assert 'og:url" content="https://example.org/book/chapters/01_a.html"' in with_one
    with Image.open(ROOT / "chapters" / "_static" / "social.png") as card:
        assert card.size == (1200, 630)


def test_descriptions_end_at_a_word():
    text = description_of(page("word " * 80))
    assert len(text) <= 202 and text.endswith("word …") and description_of(None) == ""


def test_the_cover_leads_to_the_chapters_that_are_there(tmp_path):
    (tmp_path / "chapters").mkdir()
    (tmp_path / "chapters" / "03_decoder.ipynb").write_text("{}")
    cover = cover_html(tmp_path)
    assert cover.count("<a ") == 1 and 'href="03_decoder.html"' in cover
    assert cover.count('class="family"') == len(FAMILIES) == 4
    assert cover.count('class="orange"') == 8 * 9 // 2 + 5 * 6 // 2  # two causal triangles
    assert cover.count('class="empty"') == 8 * 7 // 2 + 5 * 4 // 2


def test_only_the_icons_that_pages_show_are_kept():
    script = 'var a={bars:[4,5,["navicon"],"f0c9","M0 9z"],"x-ray":[1,2,[],"f4","M1"],two:[3,3,[8,"deux"],"e1",["M2","M3"]]};go(a)'
    assert icons_used(script, {"navicon"}) == 'var a={bars:[4,5,["navicon"],"f0c9","M0 9z"],};go(a)'
    assert icons_used(script, {"x-ray", "deux"}) == 'var a={"x-ray":[1,2,[],"f4","M1"],two:[3,3,[8,"deux"],"e1",["M2","M3"]]};go(a)'
    assert icons_used(script, set()) == "var a={};go(a)"


def test_the_pdf_has_the_pages_in_reading_order():
    from tools.pdf import order

    names = order()
    assert names[0] == "chapters/index" and len(set(names)) == len(names)
    numbered = [n for n in names if n.startswith("chapters/0")]
    assert numbered == sorted(numbered) and len(numbered) >= 3
