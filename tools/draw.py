"""Draw the pictures that the README and the pages share: `python -m tools.draw`.

The cover shows what may look at what in the four families of the book: queries down the rows, keys along the columns,
a filled cell where a query may look. The first page has it as HTML and SVG (`cover_html`), in the page's own colours
and with a link to each family's chapter; the README has cover.png, a social preview social.png, and a browser's tab
favicon.png, the causal triangle.
"""

from html import escape
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "chapters" / "_static"
BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#E69F00", "#009E73", "#CC79A7"  # d2lmini.plotting's, one a family
EMPTY, PAPER, INK, QUIET = "#E8EBEF", "#FDFDFB", "#1F2937", "#56606E"


def full(rows, cols):
    return np.ones((rows, cols), dtype=bool)


def causal(size):
    return np.tril(full(size, size))


# Title, one line, where the chapter lies, and grids on a square of 40: (allowed, left, top, cell, colour, its CSS name).
FAMILIES = [
    ("Encoder-only", "every token sees every token", "02_*", [(full(8, 8), 0, 0, 5, BLUE, "blue")]),
    ("Decoder-only", "each token sees those before it", "03_*", [(causal(8), 0, 0, 5, ORANGE, "orange")]),
    ("Encoder–decoder", "the target also reads the source", "04_*", [
        (full(5, 5), 0, 0, 4, BLUE, "blue"), (full(5, 5), 0, 20, 4, GREEN, "green"), (causal(5), 20, 20, 4, ORANGE, "orange")]),
    ("Perceiver", "a few latents read everything", "05_*", [
        (full(4, 16), 0, 8, 2.5, PURPLE, "purple"), (full(4, 4), 15, 22, 2.5, BLUE, "blue")]),
]
ALT = ("Four attention patterns, queries down and keys across. Encoder-only, a full square. Decoder-only, the lower triangle. "
       "Encoder–decoder, a source square, a target triangle and a rectangle from target to source. Perceiver, a flat rectangle "
       "from a few latents to all inputs.")


def cover_html(root: Path = ROOT) -> str:
    """The cover as four panels of SVG; each leads to its chapter as soon as there is one."""
    panels = []
    for title, line, pattern, grids in FAMILIES:
        cells = "".join(
            f'<rect x="{left + (column + 0.09) * size:g}" y="{top + (row + 0.09) * size:g}" width="{0.82 * size:g}" '
            f'height="{0.82 * size:g}" rx="{0.16 * size:g}" class="{name if allowed[row, column] else "empty"}"/>'
            for allowed, left, top, size, _, name in grids for row, column in np.ndindex(allowed.shape))
        chapter = next((root / "chapters").glob(f"{pattern}.ipynb"), None)
        tag, link = ("a", f' href="{chapter.stem}.html"') if chapter else ("div", "")
        panels.append(f'<{tag} class="family"{link}><svg viewBox="0 0 40 40" aria-hidden="true">{cells}</svg>'
                      f"<b>{escape(title)}</b><span>{escape(line)}</span></{tag}>")
    return f'<div class="book-cover" role="group" aria-label="{escape(ALT)}">{"".join(panels)}</div>'


def cells(ax, grids, x=0.0, y=0.0, scale=1.0):
    """The grids of one family on matplotlib's Axes, whose y runs down from (x, y)."""
    from matplotlib.patches import FancyBboxPatch

    for allowed, left, top, size, colour, _ in grids:
        for row, column in np.ndindex(allowed.shape):
            ax.add_patch(FancyBboxPatch(
                (x + scale * (left + (column + 0.09) * size), y + scale * (top + (row + 0.09) * size)),
                scale * 0.82 * size, scale * 0.82 * size, linewidth=0,
                boxstyle=f"round,pad=0,rounding_size={scale * 0.16 * size}", facecolor=colour if allowed[row, column] else EMPTY))


def picture(name, width, height, draw, dpi=100, **kwargs):
    """Draw on a canvas of width by height units, y downwards, and save it."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(width / 100, height / 100))
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, width), ylim=(height, 0))
    ax.axis("off")
    draw(ax)
    figure.savefig(FOLDER / name, dpi=dpi, metadata={"Software": None}, **({"facecolor": PAPER} | kwargs))
    plt.close(figure)


def four(ax, left, top, gap, scale, title, line):
    for i, (name, text, _, grids) in enumerate(FAMILIES):
        x = left + i * (40 * scale + gap)
        cells(ax, grids, x, top, scale)
        ax.text(x + 20 * scale, top + 40 * scale + 1.6 * title, name, ha="center", fontsize=title, fontweight="bold", color=INK)
        ax.text(x + 20 * scale, top + 40 * scale + 1.8 * title + 2 * line, text, ha="center", fontsize=line, color=QUIET)


def social(ax):
    """A card of 1200 by 630: the book's title over the four patterns."""
    ax.text(70, 118, "The transformer families,", fontsize=40, fontweight="bold", color=INK)
    ax.text(70, 184, "built and measured", fontsize=40, fontweight="bold", color=INK)
    four(ax, 70, 258, 56, 5.575, 17, 10.5)


def favicon(ax):
    cells(ax, [(causal(4), 0, 0, 16, BLUE, "")])


if __name__ == "__main__":
    picture("cover.png", 1600, 490, lambda ax: four(ax, 60, 40, 80, 7.75, 22, 15), dpi=110)
    picture("social.png", 1200, 630, social)
    picture("favicon.png", 64, 64, favicon, facecolor="none")
