"""Plotting: the house style comes and goes, figures carry alt text and are closed, maps have queries down the rows."""

import base64
import io

import matplotlib
import numpy as np
import pytest
import torch
from PIL import Image

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402

from d2lmini.plotting import BLUE, FAMILY, PALETTE, PAPER, attention_map, band, figure, picture, show, style  # noqa: E402

WEIGHTS = torch.tensor([[0.7, 0.3, 0.0], [0.2, 0.2, 0.6]])
ALT = "Two queries and three keys; the second query looks mostly at the third key."


@pytest.fixture
def ax():
    fig, ax = figure()
    yield ax
    plt.close(fig)


def test_the_style_is_used_inside_and_undone_outside():
    before = dict(matplotlib.rcParams)
    with style():
        assert not matplotlib.rcParams["axes.spines.top"]
    fig, axes = figure(2, 3, width=5.0, height=2.0)
    assert axes.shape == (2, 3) and fig.get_size_inches().tolist() == [5.0, 2.0]
    assert not axes[0, 0].spines["top"].get_visible()
    assert dict(matplotlib.rcParams) == before
    plt.close(fig)


def test_colours_can_be_told_apart():
    assert len(set(PALETTE)) == len(PALETTE) and set(FAMILY.values()) <= set(PALETTE)


def test_one_panel_fits_a_phone_and_several_get_more_room():
    for cols, width in ((1, 4.8), (3, 6.4)):
        fig, _ = figure(2, cols)
        assert fig.get_size_inches().tolist() == [width, 3.4]
        plt.close(fig)


def test_show_gives_the_alt_text_and_the_size_on_the_page_and_closes_the_figure(monkeypatch):
    got = []
    monkeypatch.setattr("IPython.display.display", lambda data, raw, metadata: got.append((data, raw, metadata)))
    fig, _ = figure(width=3.0, height=2.0)
    show(fig, f"  {ALT} ")
    ((data, raw, metadata),) = got
    assert raw and metadata == {"image/png": {"alt": ALT, "width": 360, "height": 240}}
    with Image.open(io.BytesIO(base64.b64decode(data["image/png"]))) as image:
        assert image.size == (720, 480) and image.mode == "P"
        assert image.info["dpi"] == (pytest.approx(240, abs=0.1),) * 2
    assert not plt.fignum_exists(fig.number)


def test_titles_and_legends_made_outside_the_style_get_its_looks(ax, monkeypatch):
    monkeypatch.setattr("IPython.display.display", lambda *args, **kwargs: None)
    ax.plot([1, 2], label="line")
    ax.legend(frameon=True, fontsize=14)
    ax.set_title("by another name")
    show(ax.figure, ALT)
    assert ax.get_title() == "" and ax.get_title(loc="left") == "by another name"
    assert not ax.get_legend().get_frame_on() and ax.get_legend().get_texts()[0].get_fontsize() == 8.5


def test_a_picture_keeps_what_reaches_beyond_its_edge_and_its_colours(ax):
    ax.figure.set_layout_engine("none")
    _, width, height = picture(ax.figure)
    ax.text(1.3, 0.5, "beyond", transform=ax.transAxes, color=BLUE)
    ax.add_patch(plt.Rectangle((0, 0), 1, 1, color=BLUE))
    data, wider, same = picture(ax.figure)
    assert (width, height) == (4.8 * 120, 3.4 * 120) and wider > width + 50 and same == height
    with Image.open(io.BytesIO(data)) as image:
        colours = {color for _, color in image.convert("RGB").getcolors()}
    assert {matplotlib.colors.to_rgb(name) for name in (BLUE, PAPER)} <= {tuple(c / 255 for c in rgb) for rgb in colours}


def test_queries_run_down_the_rows(ax):
    assert attention_map(ax, WEIGHTS, ["the", "x y"], ["a", " ", "$"], title="head 1", numbers=True) is ax
    (image,) = ax.images
    np.testing.assert_allclose(image.get_array(), WEIGHTS)
    assert [t.get_text() for t in ax.get_yticklabels()] == ["the", "x y"]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["a", "␣", r"\$"]
    assert "query" in ax.get_ylabel() and "key" in ax.get_xlabel() and ax.get_title(loc="left") + ax.get_title() == "head 1"
    assert [t.get_text() for t in ax.texts] == ["0.70", "0.30", "0.00", "0.20", "0.20", "0.60"]
    x, y = ax.texts[2].get_position()
    assert (x, y) == (2, 0)  # first row, third column
    assert image.get_clim() == (0, pytest.approx(0.7))


@pytest.mark.parametrize("weights", [WEIGHTS.tolist(), WEIGHTS.numpy(), WEIGHTS.bfloat16(), WEIGHTS.clone().requires_grad_()])
def test_maps_take_any_kind_of_array(ax, weights):
    attention_map(ax, weights, [0, 1], "abc", vmax=1.0)
    np.testing.assert_allclose(ax.images[0].get_array(), WEIGHTS, atol=2e-3)
    assert ax.images[0].get_clim() == (0, 1)


def test_band_by_hand(ax):
    band(ax, [1, 2, 3], [[1.0, 2.0, 3.0], [3.0, 2.0, 7.0]], color=BLUE, label="ours")
    (line,) = ax.lines
    assert line.get_ydata().tolist() == [2.0, 2.0, 5.0] and line.get_label() == "ours"
    vertices = ax.collections[0].get_paths()[0].vertices
    assert vertices[:, 1].min() == 1.0 and vertices[:, 1].max() == 7.0
    band(ax, torch.arange(3), torch.rand(5, 3, requires_grad=True), color=BLUE, label="x", low=0.05, high=0.95)
    assert len(ax.lines) == 2


@pytest.mark.parametrize("call, message", [
    (lambda ax: show(ax.figure, "too short"), "alt='too short' is too short"),
    (lambda ax: show(ax.figure, " " * 40), "is too short"),
    (lambda ax: show(ax.figure, None), "alt=None is too short"),
    (lambda ax: show(ax, ALT), "fig is Axes; give the matplotlib figure"),
    (lambda ax: show(None, ALT), "fig is NoneType"),
    (lambda ax: attention_map(ax, WEIGHTS, "abc", "ab"), r"weights has shape \(2, 3\); expected \(3, 2\)"),
    (lambda ax: attention_map(ax, WEIGHTS[None], "ab", "abc"), r"weights has shape \(1, 2, 3\)"),
    (lambda ax: attention_map(ax, torch.zeros(0, 0), "", ""), r"weights has shape \(0, 0\)"),
    (lambda ax: attention_map(ax, "weights", "ab", "abc"), "weights is not an array of numbers"),
    (lambda ax: attention_map(ax, WEIGHTS - 1, "ab", "abc"), r"weights reach from -1 to -0.3; .*lie in \[0, 1\]"),
    (lambda ax: attention_map(ax, WEIGHTS * 2, "ab", "abc"), "weights reach from 0 to 1.4"),
    (lambda ax: attention_map(ax, WEIGHTS * np.nan, "ab", "abc"), "weights reach from nan to nan"),
    (lambda ax: attention_map(ax, WEIGHTS, "ab", "abc", vmax=0), r"vmax=0 is outside \(0, inf\)"),
    (lambda ax: band(ax, [1, 2], [1, 2], color=BLUE, label="x"), r"runs has shape \(2,\) and x \(2,\)"),
    (lambda ax: band(ax, [1, 2], [[1, 2, 3]], color=BLUE, label="x"), r"runs has shape \(1, 3\) and x \(2,\)"),
    (lambda ax: band(ax, [1, 2], np.zeros((0, 2)), color=BLUE, label="x"), r"runs has shape \(0, 2\)"),
    (lambda ax: band(ax, [1, 2], [[1, 2], [3]], color=BLUE, label="x"), "runs is not an array of numbers of one shape"),
    (lambda ax: band(ax, [1], [[1]], color=BLUE, label="x", low=-1), r"low=-1 is outside \[0, 1\]"),
    (lambda ax: band(ax, [1], [[1]], color=BLUE, label="x", low=0.9, high=0.1), r"high=0.1 is outside \[0.9, 1\]"),
])
def test_bad_input(ax, call, message):
    with pytest.raises(ValueError, match=message):
        call(ax)
