"""Diagrams: what is drawn where, and what the helpers refuse."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.patches import FancyArrowPatch, Rectangle

from d2lmini import causal_mask, padding_mask
from d2lmini.diagrams import KIND, Box, arrow, box, canvas, fan, frame, mask_grid, plus, transformer_block

BRANCHES = [("attention", "attention"), ("feed-forward", "feed-forward")]


@pytest.fixture
def ax():
    fig, ax = canvas(4, 5)
    yield ax
    plt.close(fig)


def texts(ax):
    return [t.get_text() for t in ax.texts]


def test_a_unit_is_an_inch(ax):
    assert ax.figure.get_size_inches().tolist() == [4, 5]
    assert ax.get_xlim() == (0, 4) and ax.get_ylim() == (0, 5)


def test_box_has_its_text_and_its_corners(ax):
    drawn = box(ax, 2, 3, "norm", width=1, height=0.5)
    assert drawn == Box(2, 3, 1, 0.5)
    assert (drawn.top, drawn.bottom, drawn.left, drawn.right) == ((2, 3.25), (2, 2.75), (1.5, 3), (2.5, 3))
    assert texts(ax) == ["norm"]


def test_frame_encloses_its_boxes(ax):
    a, b = box(ax, 1, 1, "a", width=1), box(ax, 2, 3, "b", width=1)
    around = frame(ax, [a, b], "× 6", margin=0.2, side="right")
    assert around.left[0] == pytest.approx(0.3) and around.right[0] == pytest.approx(2.7)
    assert around.bottom[1] < a.bottom[1] and around.top[1] > b.top[1]
    assert "× 6" in texts(ax)


@pytest.mark.parametrize("norm_first, order", [(True, "norm attention norm feed-forward"),
                                               (False, "attention norm feed-forward norm")])
def test_block_draws_its_parts_in_order(ax, norm_first, order):
    drawn = transformer_block(ax, 2, 0.5, BRANCHES, norm_first=norm_first)
    heights = [t.get_position()[1] for t in ax.texts]
    assert texts(ax) == order.split() and heights == sorted(heights)
    assert set(drawn.boxes) == {"attention", "feed-forward"}
    assert drawn.entry == (2, 0.5) and drawn.exit[1] > heights[-1]
    arrows = [p for p in ax.patches if isinstance(p, FancyArrowPatch)]
    assert len(arrows) == 2 * 4  # for each branch: to the norm, to the box, to the sum, and around them


def test_every_kind_of_branch_can_be_drawn(ax):
    transformer_block(ax, 2, 0.2, [(kind, kind) for kind in KIND])
    assert set(KIND) <= set(texts(ax))


def test_mask_grid_fills_allowed_cells_and_crosses_the_others(ax):
    mask_grid(ax, causal_mask(5), list("abcde"), list("vwxyz"), color="#0072B2", title="causal")
    cells = [p for p in ax.patches if isinstance(p, Rectangle)]
    assert len(cells) == 25 and sum(c.get_facecolor()[3] > 0 for c in cells) == 15
    assert sorted(zip(*ax.lines[0].get_data())) == [(s, t) for s in range(5) for t in range(5) if s > t]
    assert [t.get_text() for t in ax.get_yticklabels()] == list("abcde")
    assert ax.get_ylim() == (4.5, -0.5)  # queries run downwards


def test_mask_grid_takes_a_colour_for_each_cell(ax):
    colors = np.full((2, 3), "#000000", dtype=object)
    colors[1, 2] = "#ffffff"
    mask_grid(ax, torch.ones(2, 3, dtype=torch.bool), color=colors)
    assert ax.patches[-1].get_facecolor() == (1, 1, 1, 1) and ax.patches[0].get_facecolor() == (0, 0, 0, 1)


def test_fan_writes_the_weights_and_crosses_what_is_blocked(ax):
    fan(ax, "close", ["bank", "close", "five"], torch.tensor([0.27, 0.73, 0.0]), mask=[True, True, False], label="causal")
    assert texts(ax) == ["close", "bank", "0.27", "close", "0.73", "five", "× 0", "causal"]
    assert len(ax.lines) == 2 and ax.lines[1].get_linewidth() > ax.lines[0].get_linewidth()


@pytest.mark.parametrize("call, match", [
    (lambda ax: canvas(0, 3), "width=0"),
    (lambda ax: box(ax, 1, 1, "a", height=-1), "height=-1"),
    (lambda ax: plus(ax, 1, 1, radius=0), "radius=0"),
    (lambda ax: arrow(ax, (1, 1)), "at least two pairs"),
    (lambda ax: frame(ax, []), "boxes is empty"),
    (lambda ax: frame(ax, [Box(1, 1, 1, 1)], side="top"), "side='top'"),
    (lambda ax: transformer_block(ax, 1, 1, []), "at least one"),
    (lambda ax: transformer_block(ax, 1, 1, BRANCHES[:1] * 2), "each label once"),
    (lambda ax: transformer_block(ax, 1, 1, [("a", "convolution")]), "kind 'convolution'"),
    (lambda ax: mask_grid(ax, padding_mask([2, 3])), r"shape \(2, 1, 1, 3\)"),
    (lambda ax: mask_grid(ax, torch.ones(2, 2)), "dtype float32"),
    (lambda ax: mask_grid(ax, causal_mask(3), rows=["a"]), "rows has 1 labels; the mask needs 3"),
    (lambda ax: mask_grid(ax, causal_mask(3), cols=["a"]), "cols has 1 labels"),
    (lambda ax: mask_grid(ax, causal_mask(3), color=["red", "blue"]), "color has shape"),
    (lambda ax: fan(ax, "q", ["a", "b"], [1.0]), "one entry for each key"),
    (lambda ax: fan(ax, "q", ["a", "b"], [1.5, -0.5]), r"in \[0, 1\]"),
])
def test_refusals_name_the_argument(ax, call, match):
    with pytest.raises(ValueError, match=match):
        call(ax)
