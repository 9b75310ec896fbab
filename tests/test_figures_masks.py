"""The mask explorer and the softmax stepper in a browser."""

import math

import pytest
import torch
from figure_samples import SOURCE, WORDS, mask_explorer, move, softmax_stepper, words

from d2lmini import attention_weights, causal_mask, combine, figures, padding_mask


def grid(page):
    """What the figure shows as allowed, row by row."""
    return page.evaluate("""[...document.querySelectorAll('[role=grid] [role=row]')].slice(1)
        .map(r => [...r.querySelectorAll('[role=gridcell]')].map(c => c.classList.contains('seen')))""")


def test_mask_explorer_begins_with_everything_allowed(show):
    page = show(mask_explorer())
    assert grid(page) == [[True] * 6] * 6
    assert words(page).startswith("Row 1, query “the”, sees 6 of 6 keys: the, clock, stopped, when, it, turned.")
    assert "36 of 36 places" in words(page)


@pytest.mark.parametrize("padding", [0, 2, 6])
def test_mask_explorer_agrees_with_the_package(show, padding):
    page = show(mask_explorer())
    real = padding_mask(torch.tensor([6 - padding]), 6)[0, 0]
    for setting, expected in (("Bidirectional", real.expand(6, 6)), ("Causal", combine(causal_mask(6), real))):
        page.get_by_role("radio", name=setting).check()
        move(page.get_by_role("slider"), padding)
        assert grid(page) == expected.tolist(), setting


def test_cross_is_the_source_rectangle_and_holds_its_padding_within_it(show):
    page = show(mask_explorer())
    move(page.get_by_role("slider"), 6)
    page.get_by_role("radio", name="Cross").check()
    assert page.get_by_role("slider").input_value() == "4"
    assert grid(page) == [[False] * 4] * 6
    assert "sees 0 of 4 keys. With nothing allowed its weights are all zero" in words(page)
    move(page.get_by_role("slider"), 1)
    assert grid(page) == [[True, True, True, False]] * 6
    assert page.locator("[role=columnheader] bdi").all_inner_texts() == [*SOURCE[:3], "‹pad›"]
    assert page.locator("[role=rowheader] bdi").all_inner_texts() == WORDS
    assert "the whole source is there" in words(page) and "18 of 24 places" in words(page)


def test_causal_names_what_each_row_predicts(show):
    page = show(mask_explorer())
    page.get_by_role("radio", name="Causal").check()
    heads = page.locator("[role=rowheader]")
    for i, word in enumerate(WORDS):
        heads.nth(i).hover()
        assert f"sees {i + 1} of 6 keys" in words(page)
        expected = f"next token, “{WORDS[i + 1]}”" if i < 5 else "the token that comes after the text"
        assert expected in words(page)
    move(page.get_by_role("slider"), 2)
    heads.nth(3).hover()
    assert "After it comes padding, so its prediction is not scored." in words(page)
    heads.nth(5).hover()
    assert "The row is padding itself" in words(page)


def test_mask_explorer_by_keyboard_alone(show):
    page = show(mask_explorer())
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    assert page.get_by_role("radio", name="Causal").is_checked()
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    assert page.get_by_role("slider").input_value() == "1"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Tab")
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    assert "Row 3, query “stopped”, sees 3 of 6" in words(page) and "Key 1, “the”: visible." in words(page)
    page.keyboard.press("End")
    assert "Key 6, “turned”: hidden, it lies in the future." in words(page)
    page.keyboard.press("Control+End")
    page.keyboard.press("ArrowDown")  # at the edge nothing is left
    assert "Row 6" in words(page)
    focused = page.locator(":focus")
    assert focused.get_attribute("role") == "gridcell" and page.locator("[role=grid] [tabindex='0']").count() == 1
    assert focused.evaluate("e => getComputedStyle(e).outlineStyle") == "solid"


def test_a_page_that_scrolls_under_a_resting_mouse_does_not_pull_the_row_back(show):
    page = show(mask_explorer())
    rest = "new MouseEvent('mousemove', {bubbles: true, screenX: 7, screenY: 9})"
    over = f"document.querySelectorAll('[role=rowheader]')[1].dispatchEvent({rest})"
    page.evaluate(over)
    assert "Row 2" in words(page)
    page.locator("[role=grid] [tabindex='0']").focus()
    page.keyboard.press("ArrowDown")
    page.evaluate(over)
    assert "Row 3" in words(page)
    page.evaluate(over.replace("screenX: 7", "screenX: 8"))
    assert "Row 2" in words(page)


@pytest.mark.parametrize("width", [800, 360])
def test_nothing_moves_when_the_setting_or_the_row_changes(show, width):
    page = show(mask_explorer(), width=width)
    heights = set()
    for setting in ("Causal", "Cross", "Bidirectional"):
        page.get_by_role("radio", name=setting).check()
        for row in range(6):
            page.locator("[role=rowheader]").nth(row).hover()
            heights.add(page.locator(".d2l-figure").bounding_box()["height"])
    assert len(heights) == 1


def weights(page):
    return page.evaluate("[...document.querySelectorAll('.at-4 [data-value]')].map(e => +e.dataset.value)")


def expected(scores, mask):
    """The package's own weights for keys whose products with the query are the scores."""
    keys = torch.tensor(scores, dtype=torch.float64)[None, None, :, None]
    return attention_weights(torch.ones(1, 1, 1, 1, dtype=torch.float64), keys, torch.tensor(mask))[0, 0, 0].tolist()


def test_stepper_walks_from_scores_to_weights(show):
    page = show(softmax_stepper())
    assert "Step 1 of 4, scores." in words(page) and "The best match is “later”, 3.00." in words(page)
    assert page.locator(".at-4 .numeral").all_inner_texts() == [""] * 4
    step = page.get_by_role("button", name="Next step")
    step.click()
    assert "3 of 4 keys are allowed" in words(page)
    step.click()
    total = 1 + math.exp(2) + math.exp(-1)
    assert f"They sum to {total:.2f}." in words(page)
    assert page.locator(".at-3 .numeral").all_inner_texts() == ["1.00", "7.39", "0.37", "0"]
    step.click()
    assert step.get_attribute("aria-disabled") == "true"
    assert weights(page) == pytest.approx(expected([0, 2, -1, 3], [True, True, True, False]))
    assert "“two” gets 84%." in words(page)
    page.get_by_role("button", name="Back").click()
    assert "Step 3 of 4" in words(page)


def test_stepper_takes_scores_and_masks(show):
    page = show(softmax_stepper())
    for _ in range(3):
        page.get_by_role("button", name="Next step").click()
    page.get_by_label("Score of one").fill("5")
    page.get_by_label("May attend to later").click()
    page.get_by_label("May attend to two").click()
    assert weights(page) == pytest.approx(expected([5, 2, -1, 3], [True, False, True, True]))
    for extreme in ("-30", "30"):
        page.get_by_label("Score of one").fill(extreme)
        assert weights(page) == pytest.approx(expected([float(extreme), 2, -1, 3], [True, False, True, True]))
    page.get_by_role("button", name="Reset").click()
    assert page.get_by_label("Score of one").input_value() == "0" and "Step 1" in words(page)
    assert weights(page) == pytest.approx(expected([0, 2, -1, 3], [True, True, True, False]))


@pytest.mark.parametrize("typed", ["31", "-1e9", ""])
def test_stepper_refuses_a_score_in_words_and_keeps_the_last(show, typed):
    page = show(softmax_stepper())
    page.get_by_label("Score of two").fill(typed)
    assert "That score is not used. Give a number from −30 to 30; until then 2.00 counts." in words(page)
    assert page.get_by_label("Score of two").get_attribute("aria-invalid") == "true"
    assert weights(page) == pytest.approx(expected([0, 2, -1, 3], [True, True, True, False]))


def test_stepper_with_every_key_masked_by_keyboard_alone(show):
    page = show(figures.softmax_stepper(["a", "b"], [1, 1]))
    for _ in range(2):
        page.keyboard.press("Tab")
    page.keyboard.press("Space")
    for _ in range(2):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert "0 of 2 keys are allowed" in words(page)
    for _ in range(2):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert weights(page) == [0, 0]
    assert "0/0 is not a number. The package gives such a row weights of zero." in words(page)


def test_stepper_names_a_wrong_call():
    with pytest.raises(ValueError, match="2, 3 and 2"):
        figures.softmax_stepper(["a", "b"], [1, 2, 3])
    with pytest.raises(ValueError, match=r"scores\[1\]=31"):
        figures.softmax_stepper(["a", "b"], [1, 31])
    with pytest.raises(ValueError, match=r"mask\[0\]=1 is not boolean"):
        figures.softmax_stepper(["a", "b"], [1, 2], [1, 0])
    assert "∅" in figures.softmax_stepper(["", "b"], torch.tensor([1.0, 2.0]), torch.tensor([True, False]))._repr_html_()
