"""Draw the pictures that the README and the pages share: `python -m tools.draw`.

cover.png shows what may look at what in the four families of the book: queries down the rows,
keys along the columns, a filled cell where a query may look. favicon.png is the causal triangle.
"""

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
from matplotlib.patches import FancyBboxPatch  # noqa: E402

from tools.freshness import ROOT  # noqa: E402

FOLDER = ROOT / "chapters" / "_static"
SELF, CROSS, EMPTY, INK, QUIET = "#2f6db3", "#e0812b", "#e9edf3", "#1d2129", "#5b6472"


def cells(ax, allowed, left, top, size, colour):
    """One pattern as a grid of rounded squares; `left`, `top` and `size` in panel units."""
    for row, column in np.ndindex(allowed.shape):
        ax.add_patch(FancyBboxPatch(
            (left + (column + 0.1) * size, top - (row + 0.9) * size), 0.8 * size, 0.8 * size,
            boxstyle=f"round,pad=0,rounding_size={0.16 * size}", linewidth=0,
            facecolor=colour if allowed[row, column] else EMPTY,
        ))


def panel(ax, title, line, parts):
    ax.set(xlim=(-0.2, 10.2), ylim=(-0.2, 10.2), aspect="equal")
    ax.axis("off")
    for part in parts:
        cells(ax, *part)
    ax.text(5, -0.75, title, ha="center", va="top", fontsize=22, fontweight="bold", color=INK)
    ax.text(5, -2.05, line, ha="center", va="top", fontsize=15, color=QUIET)


def cover():
    full, causal = np.ones, lambda n: np.tril(np.ones((n, n)))
    figure, axes = plt.subplots(1, 4, figsize=(16, 5.2))
    panel(axes[0], "Encoder-only", "every token sees every token", [(full((8, 8)), 0, 10, 1.25, SELF)])
    panel(axes[1], "Decoder-only", "each token sees those before it", [(causal(8), 0, 10, 1.25, SELF)])
    panel(axes[2], "Encoder–decoder", "the target also sees the source", [
        (full((5, 5)), 0, 10, 0.95, SELF),
        (full((5, 5)), 0, 4.75, 0.95, CROSS),
        (causal(5), 5.25, 4.75, 0.95, SELF),
    ])
    panel(axes[3], "Perceiver", "a few latents read everything", [
        (full((4, 16)), 0, 8.1, 0.625, CROSS),
        (full((4, 4)), 3.75, 4.6, 0.625, SELF),
    ])
    figure.subplots_adjust(left=0.02, right=0.98, top=0.97, bottom=0.22, wspace=0.12)
    figure.savefig(FOLDER / "cover.png", dpi=110, facecolor="white", metadata={"Software": None})
    plt.close(figure)


def favicon():
    figure, ax = plt.subplots(figsize=(1, 1))
    ax.set(xlim=(0, 4), ylim=(0, 4))
    ax.axis("off")
    cells(ax, np.tril(np.ones((4, 4))), 0, 4, 1, SELF)
    figure.subplots_adjust(0, 0, 1, 1)
    figure.savefig(FOLDER / "favicon.png", dpi=64, transparent=True, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    cover()
    favicon()
