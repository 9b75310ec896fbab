"""The cost dial in a browser: the same numbers as the package's formulas."""

import pytest
from figure_samples import cost_dial, move, words

from d2lmini import figures
from d2lmini.costs import encoder_flops, perceiver_flops
from d2lmini.figures.cost_dial import RANGES, crossover


def shown(page):
    return page.evaluate("[...document.querySelectorAll('[data-flops]')].map(e => +e.dataset.flops)")


@pytest.mark.parametrize("layers", [1, 2, 24])
def test_agrees_with_the_package_at_the_ends_and_between(show, layers):
    page = show(figures.cost_dial(num_layers=layers))
    sliders = [page.get_by_role("slider", name=name) for name in ("Inputs N", "Latents M", "Width D")]
    (n0, n1), (m0, m1), (d0, d1) = RANGES.values()
    for powers in ((n0, m0, d0), (n1, m1, d1), (n0, m1, d1), (n1, m0, d0), (11, 6, 8), (13, 5, 7)):
        for slider, power in zip(sliders, powers):
            move(slider, power)
        n, m, d = (2**p for p in powers)
        assert shown(page) == [encoder_flops(n, d, layers), perceiver_flops(n, m, d_model=d, num_layers=layers)]
        assert f"N = {n:,}, M = {m:,}, D = {d:,}:" in words(page)
        cross = crossover(m, d, layers)
        assert f"from N = {cross:,} on" in words(page)
        assert f"cross at N = {cross:,}." in page.locator("svg").get_attribute("aria-label")


def test_crossover_is_where_the_formulas_cross():
    # By hand: L = 1, D = 3, M = 2, F = 8. Full: 72 N + 12 N^2 + 144 N; Perceiver: 36 N + 24 N + (72 + 288) + (144 + 48 + 288).
    for n in (4, 5):
        assert encoder_flops(n, 3, 1) == 216 * n + 12 * n * n
        assert perceiver_flops(n, 2, d_model=3, num_layers=1) == 60 * n + 840
    assert crossover(2, 3, 1) == 5  # 12 N^2 + 156 N > 840: 4 gives 816, 5 gives 1,080


def test_begins_where_it_was_told_and_says_what_it_shows(show):
    page = show(cost_dial())
    full, read = shown(page)
    assert full == encoder_flops(2048, 256, 2)
    assert f"the Perceiver costs {full / read:.1f} times less." in words(page)
    move(page.get_by_role("slider", name="Inputs N"), 4)
    assert "times more" in words(page)


@pytest.mark.parametrize("width", [800, 360])
def test_by_keyboard_alone_and_nothing_moves(show, width):
    page = show(cost_dial(), width=width)
    height = page.locator(".d2l-figure").bounding_box()["height"]
    page.keyboard.press("Tab")
    page.keyboard.press("Home")
    assert "N = 16, M = 64" in words(page)
    page.keyboard.press("End")
    assert page.locator(":focus").get_attribute("aria-valuetext") == "131,072"
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    assert "N = 131,072, M = 128, D = 256" in words(page)
    page.keyboard.press("Tab")
    page.keyboard.press("End")
    assert "D = 4,096" in words(page)
    assert page.locator(".d2l-figure").bounding_box()["height"] == height
    drawn = page.locator("svg").bounding_box()
    assert drawn["height"] == 270 and abs(drawn["width"] - page.locator(".stage").bounding_box()["width"]) < 1


def test_refuses_numbers_that_the_sliders_cannot_show():
    with pytest.raises(ValueError, match="give 2048 or 4096"):
        figures.cost_dial(num_inputs=3000)
    with pytest.raises(ValueError, match="num_latents=4"):
        figures.cost_dial(num_latents=4)
    with pytest.raises(ValueError, match="num_layers=0"):
        figures.cost_dial(num_layers=0)
