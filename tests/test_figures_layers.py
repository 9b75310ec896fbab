"""The alignment explorer and the gradient highway in a browser."""

import numpy as np
import pytest
import torch
from figure_samples import alignment_explorer, alignment_maps, gradient_highway, move, words

from d2lmini import figures


def heat(page):
    return page.evaluate("""[...document.querySelectorAll('[role=grid] [role=row]')].slice(1)
        .map(r => [...r.querySelectorAll('i')].map(c => parseInt(c.style.getPropertyValue('--w')) / 100))""")


def test_alignment_begins_at_the_last_step_with_the_mean(show):
    page = show(alignment_explorer())
    assert np.allclose(heat(page), alignment_maps()[1].mean(axis=0))
    assert words(page).startswith("Step 50, mean of 2 heads. About to write “d” (token 1 of 3): it looks most at source token 4, “d”, with 70%.")
    assert "In 3 of 3 rows the largest weight lies on the token that is written." in words(page)


def test_alignment_head_and_step(show):
    page = show(alignment_explorer())
    page.get_by_role("radio", name="2", exact=True).check()
    assert np.allclose(heat(page), alignment_maps()[1, 1])
    assert "Step 50, head 2 of 2." in words(page) and "source token 1, “a”, with 60%" in words(page)
    assert "In 0 of 3 rows" in words(page)
    page.locator("[role=rowheader]").nth(2).hover()
    assert "About to write “b” (token 3 of 3)" in words(page)
    move(page.get_by_role("slider"), 0)
    assert np.allclose(heat(page), 0.25) and "Step 0, head 2 of 2." in words(page)
    assert "An even look would give 25% to each." in words(page)
    page.get_by_role("radio", name="1", exact=True).check()
    move(page.get_by_role("slider"), 1)
    assert np.allclose(heat(page), alignment_maps()[1, 0])


def test_alignment_by_keyboard_alone(show):
    page = show(alignment_explorer(), width=360)
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    assert "head 1 of 2" in words(page)
    page.keyboard.press("Tab")
    page.keyboard.press("Home")
    assert "Step 0," in words(page)
    page.keyboard.press("End")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("End")
    assert "About to write “c”" in words(page) and "Weight on source token 4, “d”: 0%." in words(page)
    page.keyboard.press("ArrowLeft")
    assert "Weight on source token 3, “c”: 100%." in words(page)


@pytest.mark.parametrize("width", [800, 360])
def test_alignment_of_the_book_s_size_is_light_and_does_not_move(show, width):
    maps = torch.rand(12, 4, 12, 12, generator=torch.Generator().manual_seed(0)).softmax(dim=-1)
    letters = list("abcdefghijkl")
    page = show(figures.alignment_explorer(maps, letters, letters[::-1], range_of(12)), width=width)
    heights = set()
    for step in (0, 5, 11):
        move(page.get_by_role("slider"), step)
        for row in (0, 11):
            page.locator("[role=rowheader]").nth(row).hover()
            heights.add(page.locator(".d2l-figure").bounding_box()["height"])
    assert len(heights) == 1


def range_of(count):
    return torch.arange(0, 25 * count, 25)


def test_one_head_needs_no_choice(show):
    page = show(figures.alignment_explorer(alignment_maps()[:, :1], list("abcd"), list("xyz"), [0, 50]))
    assert page.get_by_role("radio").count() == 0 and "the only head" in words(page)
    assert "is written" not in words(page), "no token of this target is in the source"


def test_alignment_names_a_wrong_call():
    maps = alignment_maps()
    with pytest.raises(ValueError, match=r"maps has shape \(2, 2, 3, 4\)"):
        figures.alignment_explorer(maps, list("abc"), list("abc"), [0, 50])
    with pytest.raises(ValueError, match="do not increase"):
        figures.alignment_explorer(maps, list("abcd"), list("abc"), [50, 0])
    with pytest.raises(ValueError, match="not the scores"):
        figures.alignment_explorer(maps * 3, list("abcd"), list("abc"), [0, 50])


def test_highway_begins_at_the_largest_depth_and_the_lowest_block(show):
    page = show(gradient_highway())
    # geometric mean of 0.01 and 0.04 is 0.02; of 1 and 4 it is 2
    assert words(page).startswith("3 layers, block 1, the lowest. Gradient below it: Post-LN 0.0200 (0.0100 to 0.0400), "
                                  "Pre-LN 0.20 (0.20 to 0.20).")
    assert "by a factor of 0.0100 under Post-LN, 1.00 under Pre-LN." in words(page)
    assert page.locator("svg .curve").count() == page.locator("svg .band").count() == 2


def test_highway_depth_and_block(show):
    page = show(gradient_highway())
    block, layers = page.get_by_role("slider", name="Block"), page.get_by_role("slider", name="Layers")
    move(block, 3)
    assert "3 layers, block 3, the highest. Gradient below it: Post-LN 2.00 (1.00 to 4.00)" in words(page)
    move(layers, 0)
    assert "1 layer, block 1" in words(page) and "Post-LN 0.50" in words(page) and block.is_disabled()
    move(layers, 1)
    assert not block.is_disabled() and block.get_attribute("aria-valuetext") == "1 of 3"
    box = page.locator(".picture").bounding_box()
    page.mouse.move(box["x"] + box["width"] - 5, box["y"] + 50)
    assert "block 3, the highest" in words(page) and block.input_value() == "3"


@pytest.mark.parametrize("width", [800, 360])
def test_highway_by_keyboard_alone_and_nothing_moves(show, width):
    norms = {name: {n: np.full((2, n), 0.1) for n in (4, 8, 16, 32)} for name in ("Post-LN", "Pre-LN", "Pre-LN, no final norm")}
    page = show(figures.gradient_highway(norms), width=width)
    heights = {page.locator(".d2l-figure").bounding_box()["height"]}
    page.keyboard.press("Tab")
    page.keyboard.press("Home")
    assert "4 layers, block 1, the lowest" in words(page)
    heights.add(page.locator(".d2l-figure").bounding_box()["height"])
    page.keyboard.press("Tab")
    page.keyboard.press("End")
    assert "block 4, the highest" in words(page)
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("ArrowRight")
    assert "8 layers, block 8, the highest" in words(page), "the same height in the stack"
    heights.add(page.locator(".d2l-figure").bounding_box()["height"])
    assert len(heights) == 1


def test_highway_names_a_wrong_call():
    with pytest.raises(ValueError, match="measured is not"):
        figures.gradient_highway({})
    with pytest.raises(ValueError, match="the same depths"):
        figures.gradient_highway({"a": {1: [[1.0]]}, "b": {2: [[1.0, 1.0]]}})
    for wrong in ([[1.0, 2.0]], [[1.0, 0.0, 1.0]], [1.0, 1.0, 1.0]):
        with pytest.raises(ValueError, match="above 0"):
            figures.gradient_highway({"a": {3: wrong}})
