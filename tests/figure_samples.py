"""One small example of each interactive figure, for the tests; also with labels that try to break the page."""

import numpy as np

from d2lmini import figures

HOSTILE = ["</script><b>", '"\'&lt;', "😀👩‍👩‍👧", "שלום", "$x$ \\(y\\)", "<!--"]
WORDS = ["the", "clock", "stopped", "when", "it", "turned"]
SOURCE = ["die", "Uhr", "blieb", "stehen"]


def mask_explorer(hostile=False):
    return figures.mask_explorer(HOSTILE if hostile else WORDS, HOSTILE[::-1] if hostile else SOURCE)


def softmax_stepper(hostile=False):
    labels = HOSTILE[:4] if hostile else ["one", "two", "three", "later"]
    return figures.softmax_stepper(labels, [0.0, 2.0, -1.0, 3.0], [True, True, True, False])


def cost_dial(hostile=False):
    return figures.cost_dial()  # takes no labels


def mask_character(hostile=False):
    """Right at the first two places; at the third the right one is second; at the last not among the guesses."""
    text = HOSTILE[:4] if hostile else ["t", "i", "d", " "]
    guesses = [[(text[0], 0.9), ("x", 0.1)], [(text[1], 0.6), ("e", 0.3)], [(text[0], 0.5), (text[2], 0.25)], [("y", 0.004), ("z", 0)]]
    return figures.mask_character(text, guesses)


LOGITS = {(): [0.0, -0.69, -1.39, -1.39, -9.0], (0,): [-1.0, 0.0, -2.0, -3.0, -4.0], (0, 1): [-0.5, -0.5, 0.0, -0.25, -5.0],
          (1,): [0.0, 0.0, 0.0, 0.0, 0.0]}


def generation_explorer(hostile=False):
    tokens = HOSTILE[:5] if hostile else ["a", "b", "c", " ", "\n"]
    return figures.generation_explorer({"prompt": HOSTILE[0] if hostile else "The ", "tokens": tokens, "nodes": LOGITS})


def alignment_maps():
    """(2, 2, 3, 4): even at step 0; at step 50 head 1 reads backwards from the end, head 2 reads the first token."""
    maps = np.full((2, 2, 3, 4), 0.25)
    maps[1] = 0.0
    maps[1, 0, [0, 1, 2], [3, 2, 1]] = 1.0
    maps[1, 1, :, 0] = 0.6
    maps[1, 1, :, 3] = 0.4
    return maps


def alignment_explorer(hostile=False):
    source = HOSTILE[:4] if hostile else list("abcd")
    return figures.alignment_explorer(alignment_maps(), source, source[:0:-1], [0, 50])


def gradient_highway(hostile=False):
    names = HOSTILE[:2] if hostile else ["Post-LN", "Pre-LN"]
    return figures.gradient_highway({names[0]: {1: [[0.5]], 3: [[0.01, 0.1, 1.0], [0.04, 0.1, 4.0]]},
                                     names[1]: {1: [[0.25]], 3: [[0.2, 0.2, 0.2], [0.2, 0.2, 0.2]]}})


SAMPLES = {make.__name__: make for make in (
    mask_explorer, softmax_stepper, mask_character, generation_explorer, alignment_explorer, cost_dial, gradient_highway)}


def words(page, nth=0) -> str:
    """What the figure's live region says, in one line."""
    return " ".join(page.locator(".d2l-figure").nth(nth).get_by_role("status").inner_text().split())


def move(slider, value) -> None:
    """Drag a slider to a value, as its events would."""
    slider.evaluate("(e, v) => { e.value = v; e.dispatchEvent(new Event('input', {bubbles: true})); }", value)
