"""The house style of the book's figures: take arrays, return Axes, show with alt text."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from contextlib import contextmanager

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox
from PIL import Image

from .checks import check_number

# Okabe and Ito's palette, told apart by readers with any common form of colour blindness. One colour, one family.
BLUE, ORANGE, GREEN, RED, PURPLE, SKY, GREY = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#6B7280")
PALETTE = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY, GREY)
FAMILY = {"encoder": BLUE, "decoder": ORANGE, "encoder-decoder": GREEN, "perceiver": PURPLE, "prefix-LM": SKY}
INK, PAPER, RULE = "#1F2937", "#FDFDFB", "#D1D5DB"

# A page shows an inch of figure as 120 of its pixels and stores two dots for each. At 4.8 inches a figure fits a
# phone with letters of about 9 pixels; wider ones are for panels side by side.
ONE, SEVERAL = 4.8, 6.4
PIXELS_PER_INCH, DENSITY = 120, 2
DOTS_PER_INCH = DENSITY * PIXELS_PER_INCH

STYLE = {
    "figure.facecolor": PAPER, "axes.facecolor": PAPER, "savefig.facecolor": PAPER, "figure.dpi": PIXELS_PER_INCH,
    "savefig.dpi": DOTS_PER_INCH, "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"], "font.size": 9,
    "axes.titlesize": 9.5, "axes.titleweight": "bold", "axes.titlelocation": "left", "axes.labelsize": 9,
    "axes.edgecolor": GREY, "axes.linewidth": 0.8, "axes.labelcolor": INK, "text.color": INK, "xtick.color": INK,
    "ytick.color": INK, "xtick.labelsize": 8.5, "ytick.labelsize": 8.5, "axes.spines.top": False,
    "axes.spines.right": False, "axes.grid": True, "grid.color": "#E5E7EB", "grid.linewidth": 0.6,
    "axes.axisbelow": True, "lines.linewidth": 1.8, "lines.solid_capstyle": "round", "legend.frameon": False,
    "legend.fontsize": 8.5, "legend.handlelength": 1.6, "axes.prop_cycle": plt.cycler(color=PALETTE),
    "figure.constrained_layout.use": True,
}


@contextmanager
def style():
    """Use the house style inside a ``with`` block; your own settings come back behind it."""
    with plt.rc_context(STYLE):
        yield


def figure(rows: int = 1, cols: int = 1, *, width: float | None = None, height: float = 3.4, **kwargs):
    """Return (figure, Axes or array of Axes) in the house style.

    Args:
        rows, cols: grid of Axes.
        width, height: of the whole figure, in inches; by default 4.8 wide, or 6.4 with Axes side by side.
        kwargs: passed to ``plt.subplots``.
    """
    if width is None:
        width = ONE if cols == 1 else SEVERAL
    with style():
        return plt.subplots(rows, cols, figsize=(width, height), **kwargs)


def show(fig: Figure, alt: str) -> None:
    """Display a figure with alt text that states its finding, and close it.

    Args:
        fig: a matplotlib figure.
        alt: what the figure shows, in a sentence or two of at least 20 characters.
    Raises:
        ValueError: if the alt text is missing or too short to state anything, or ``fig`` is no figure.
    """
    if not isinstance(fig, Figure):
        raise ValueError(f"fig is {type(fig).__name__}; give the matplotlib figure (ax.figure, if you hold the Axes).")
    if not isinstance(alt, str) or len(alt.strip()) < 20:
        raise ValueError(f"alt={alt!r} is too short; say in a sentence what a reader would see in the figure.")
    from IPython.display import display  # imported here: the package works without IPython until something is shown

    _house_words(fig)
    data, width, height = picture(fig)
    display({"image/png": base64.b64encode(data).decode("ascii"), "text/plain": "a figure"}, raw=True,
            metadata={"image/png": {"alt": alt.strip(), "width": width, "height": height}})
    plt.close(fig)


def _house_words(fig: Figure) -> None:
    """Legends and titles that were made outside ``style()`` have matplotlib's own looks; give them the house's."""
    for legend in [*fig.legends, *(ax.get_legend() for ax in fig.axes)]:
        if legend is not None:
            legend.set_frame_on(False)
            for text in legend.get_texts():
                text.set(fontsize=STYLE["legend.fontsize"], color=INK)
    for ax in fig.axes:
        if title := ax.get_title():
            ax.set_title("")
            ax.set_title(title, loc="left", fontsize=STYLE["axes.titlesize"], weight="bold", color=INK)


def picture(fig: Figure) -> tuple[bytes, int, int]:
    """Return a figure as PNG of at most 256 colours, two dots for each of the page's pixels; and its size on the page.

    Nothing is cut off: what reaches beyond the figure's edge makes the picture larger.

    Args:
        fig: a matplotlib figure.
    Returns:
        (the file's bytes, width, height), the last two in the page's pixels.
    """
    raw, small = io.BytesIO(), io.BytesIO()
    with style():
        fig.canvas.draw()
        whole = Bbox.union([Bbox.from_bounds(0, 0, *fig.get_size_inches()), fig.get_tightbbox(fig.canvas.get_renderer())])
        fig.savefig(raw, format="png", dpi=DOTS_PER_INCH, facecolor=fig.get_facecolor(), bbox_inches=whole)
    with Image.open(raw) as image:
        width, height = image.size
        few = image.convert("RGB").quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    few.save(small, format="png", optimize=True, dpi=(DOTS_PER_INCH, DOTS_PER_INCH))
    return small.getvalue(), round(width / DENSITY), round(height / DENSITY)


def attention_map(ax: Axes, weights, rows: Sequence[str], cols: Sequence[str], *, title: str = "",
                  numbers: bool = False, vmax: float | None = None) -> Axes:
    """Draw attention weights: queries down the rows, keys along the columns.

    Args:
        ax: where to draw.
        weights: (T, S) array or tensor, in [0, 1]; T and S at least 1.
        rows: T query tokens; cols: S key tokens.
        title: of the Axes.
        numbers: write each weight into its cell.
        vmax: weight drawn darkest, > 0; the largest by default.
    Returns:
        ``ax``.
    Raises:
        ValueError: if the labels do not match the shape, or a weight is outside [0, 1].
    """
    weights = _array("weights", weights)
    rows, cols = [str(r) for r in rows], [str(c) for c in cols]
    if weights.shape != (len(rows), len(cols)) or weights.size == 0:
        raise ValueError(f"weights has shape {weights.shape}; expected {(len(rows), len(cols))}: "
                         f"one row per query token, one column per key token.")
    if not (weights.min() >= 0 and weights.max() <= 1 + 1e-4):
        raise ValueError(f"weights reach from {weights.min():g} to {weights.max():g}; attention weights lie in [0, 1]: "
                         f"pass them, not the scores.")
    top = max(weights.max(), 1e-9) if vmax is None else check_number("vmax", vmax, 0, low_open=True, high_open=True)
    ax.imshow(weights, cmap="Blues", vmin=0, vmax=top, aspect="auto" if len(cols) > 2 * len(rows) else "equal")
    ax.set_xticks(range(len(cols)), [_visible(c) for c in cols])
    ax.set_yticks(range(len(rows)), [_visible(r) for r in rows])
    if max(map(len, cols), default=0) > 3:
        ax.tick_params(axis="x", rotation=45)
    ax.set_xlabel("key (looked at)")
    ax.set_ylabel("query (looking)")
    ax.set_title(title)
    ax.grid(False)
    if numbers:
        for (i, j), w in np.ndenumerate(weights):
            ax.text(j, i, f"{w:.2f}", ha="center", va="center", fontsize=8, color=PAPER if w > 0.6 * top else INK)
    return ax


def _array(name: str, values) -> np.ndarray:
    if hasattr(values, "detach"):  # a tensor, perhaps on another device or in bfloat16
        values = values.detach().float().cpu()
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is not an array of numbers of one shape; give an array, a tensor or nested lists.") from None


def _visible(token: str) -> str:
    return {" ": "␣", "\n": "⏎"}.get(token, token.replace("$", r"\$"))


def band(ax: Axes, x, runs, *, color: str, label: str, low: float = 0.0, high: float = 1.0) -> Axes:
    """Draw the mean of several runs as a line and their spread as a band.

    Args:
        x: (points,); runs: (number of runs, points).
        color, label: of the line.
        low, high: quantiles of the band, 0 <= low <= high <= 1; the full range by default.
    Raises:
        ValueError: if the shapes do not match, there is no run, or the quantiles are out of range.
    """
    x, runs = _array("x", x), _array("runs", runs)
    if x.ndim != 1 or runs.ndim != 2 or runs.shape[1] != len(x) or runs.size == 0:
        raise ValueError(f"runs has shape {runs.shape} and x {x.shape}; expected (number of runs, points) and "
                         f"(points,), neither empty.")
    check_number("high", high, check_number("low", low, 0, 1), 1)
    ax.fill_between(x, np.quantile(runs, low, axis=0), np.quantile(runs, high, axis=0), color=color, alpha=0.22, lw=0)
    ax.plot(x, runs.mean(axis=0), color=color, label=label)
    return ax
