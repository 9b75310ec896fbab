"""Diagrams drawn by code: mask patterns, boxes and arrows, one query's weights. They take Axes and return what they drew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Rectangle
from matplotlib.path import Path

from .checks import check_number
from .plotting import BLUE, GREEN, GREY, INK, ORANGE, PAPER, RULE, style

# One colour, one kind of layer, in every diagram of the book; the words in the boxes say the same.
KIND = {"attention": BLUE, "cross-attention": GREEN, "feed-forward": ORANGE, "norm": GREY}


def canvas(width: float, height: float):
    """Return (figure, Axes) for a diagram; one unit is one inch, the origin is at the bottom left."""
    check_number("width", width, 0, low_open=True)
    check_number("height", height, 0, low_open=True)
    with style():
        fig = plt.figure(figsize=(width, height), layout="none")
        ax = fig.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, width), ylim=(0, height), aspect="equal")
    ax.axis("off")
    return fig, ax


@dataclass(frozen=True)
class Box:
    """Something drawn, with the points where arrows meet it: centre (x, y), width and height."""

    x: float
    y: float
    width: float
    height: float

    @property
    def top(self):
        return self.x, self.y + self.height / 2

    @property
    def bottom(self):
        return self.x, self.y - self.height / 2

    @property
    def left(self):
        return self.x - self.width / 2, self.y

    @property
    def right(self):
        return self.x + self.width / 2, self.y


def box(ax: Axes, x: float, y: float, text: str, *, width: float = 1.5, height: float = 0.34, color: str = GREY,
        size: float = 9) -> Box:
    """Draw a rounded box with a light fill of ``color`` and dark text, centred at (x, y); return it."""
    check_number("width", width, 0, low_open=True)
    check_number("height", height, 0, low_open=True)
    pale = tuple(0.18 * c + 0.82 * p for c, p in zip(to_rgb(color), to_rgb(PAPER)))
    ax.add_patch(FancyBboxPatch((x - width / 2, y - height / 2), width, height, lw=1.3, ec=color, fc=pale,
                                boxstyle="round,pad=0,rounding_size=0.07", zorder=3))
    ax.text(x, y - 0.01, text, ha="center", va="center", fontsize=size, color=INK, zorder=4, linespacing=1.15)
    return Box(x, y, width, height)


def plus(ax: Axes, x: float, y: float, radius: float = 0.1) -> Box:
    """Draw the sum of a residual connection: a circle with a plus sign; return it as a box."""
    check_number("radius", radius, 0, low_open=True)
    ax.add_patch(Circle((x, y), radius, lw=1.2, ec=INK, fc=PAPER, zorder=3))
    half = 0.55 * radius
    ax.plot([x - half, x + half], [y, y], color=INK, lw=1.2, zorder=4)
    ax.plot([x, x], [y - half, y + half], color=INK, lw=1.2, zorder=4)
    return Box(x, y, 2 * radius, 2 * radius)


def arrow(ax: Axes, *points: tuple[float, float], color: str = INK, head: bool = True, dashed: bool = False,
          width: float = 1.2):
    """Draw a line through the points, with an arrowhead at the last.

    Raises:
        ValueError: if fewer than two points are given.
    """
    if len(points) < 2 or any(len(p) != 2 for p in points):
        raise ValueError(f"points={points} do not make a line; give at least two pairs (x, y).")
    ax.add_patch(FancyArrowPatch(path=Path(points), arrowstyle="-|>,head_width=2.4,head_length=4.2" if head else "-",
                                 lw=width, color=color, ls=(0, (3, 2)) if dashed else "-", zorder=2,
                                 shrinkA=0, shrinkB=0, joinstyle="round", capstyle="butt", mutation_scale=1))


def frame(ax: Axes, boxes: Sequence[Box], label: str = "", *, margin: float = 0.16, side: str = "left") -> Box:
    """Draw a rounded frame around boxes, with a label such as "× 6" beside it; return the frame.

    Args:
        boxes: what to enclose, at least one.
        label: written next to the frame; side: "left" or "right" of it.
        margin: between the boxes and the frame, in inches.
    Raises:
        ValueError: if there is nothing to enclose, or on another side.
    """
    if not boxes:
        raise ValueError("boxes is empty; give at least one Box to draw a frame around.")
    if side not in ("left", "right"):
        raise ValueError(f"side={side!r} is unknown; choose 'left' or 'right'.")
    left, right = min(b.left[0] for b in boxes) - margin, max(b.right[0] for b in boxes) + margin
    low, high = min(b.bottom[1] for b in boxes) - margin, max(b.top[1] for b in boxes) + margin
    ax.add_patch(FancyBboxPatch((left, low), right - left, high - low, lw=1.1, ec=GREY, fc="none",
                                boxstyle="round,pad=0,rounding_size=0.14", zorder=1))
    ax.text(left - 0.07 if side == "left" else right + 0.07, (low + high) / 2, label, fontsize=10, color=INK,
            weight="bold", va="center", ha="right" if side == "left" else "left")
    return Box((left + right) / 2, (low + high) / 2, right - left, high - low)


@dataclass(frozen=True)
class DrawnBlock:
    """A block drawn by ``transformer_block``: where it is entered and left, and its boxes by label."""

    entry: tuple[float, float]
    exit: tuple[float, float]
    boxes: dict[str, Box]
    everything: list[Box]


def transformer_block(ax: Axes, x: float, y: float, branches: Sequence[tuple[str, str]], *, norm_first: bool = True,
                      norm: str = "norm", width: float = 1.5, gap: float = 0.17) -> DrawnBlock:
    """Draw a block upwards from (x, y): for each branch a box, a norm, and a residual connection around them.

    Args:
        ax: from ``canvas``.
        x, y: centre line and lower end, in inches.
        branches: pairs (label, kind), the lowest first; kind is a key of ``KIND``.
        norm_first: the norm inside the branch (pre-norm), or above the sum (post-norm).
        norm: label of the norms.
        width: of the boxes; gap: between things, in inches.
    Returns:
        A ``DrawnBlock``; arrows to and from it are the caller's.
    Raises:
        ValueError: if there are no branches, labels repeat, or a kind is unknown.
    """
    labels = [label for label, _ in branches]
    if not labels or len(set(labels)) < len(labels):
        raise ValueError(f"branches have the labels {labels}; give at least one, each label once.")
    if unknown := [kind for _, kind in branches if kind not in KIND]:
        raise ValueError(f"branches hold the kind {unknown[0]!r}; choose among {', '.join(map(repr, KIND))}.")
    entry, point, boxes, everything = (x, y), (x, y), {}, []

    def put(thing: Box):
        nonlocal point
        arrow(ax, point, thing.bottom)
        point = thing.top
        everything.append(thing)
        return thing

    def norm_box():
        return put(box(ax, x, point[1] + gap + 0.13, norm, width=width, height=0.26, color=KIND["norm"], size=8.5))

    for label, kind in branches:
        fork = point[1] + 0.45 * gap
        if norm_first:
            norm_box()
        height = 0.36 + 0.14 * label.count("\n")
        boxes[label] = put(box(ax, x, point[1] + gap + height / 2, label, width=width, height=height, color=KIND[kind]))
        total = put(plus(ax, x, point[1] + gap + 0.1))
        side = x - width / 2 - 0.13
        arrow(ax, (x, fork), (side, fork), (side, total.y), total.left)
        if not norm_first:
            norm_box()
    everything.append(Box(x - 0.065, (y + point[1]) / 2, width + 0.13, point[1] - y))
    return DrawnBlock(entry, point, boxes, everything)


def mask_grid(ax: Axes, mask, rows: Sequence[str] = (), cols: Sequence[str] = (), *, title: str = "",
              color=BLUE) -> Axes:
    """Draw a mask: a full cell may be attended to, a pale cell with a cross may not.

    Args:
        ax: where to draw.
        mask: (T, S) bool array or tensor, True = may attend; queries down the rows, keys along the columns.
        rows, cols: T query tokens, S key tokens; none to leave the labels out.
        title: of the Axes.
        color: of the full cells: one colour, or a (T, S) array of colours.
    Returns:
        ``ax``.
    Raises:
        ValueError: if the mask is not (T, S) and boolean, or labels or colours do not match its shape.
    """
    mask = np.asarray(mask.cpu() if hasattr(mask, "cpu") else mask)
    if mask.ndim != 2 or mask.dtype != bool:
        raise ValueError(f"mask has shape {mask.shape} and dtype {mask.dtype}; give a boolean (T, S): "
                         f"pick one sequence and one head of a (B, H, T, S) mask.")
    for name, labels, size in (("rows", rows, mask.shape[0]), ("cols", cols, mask.shape[1])):
        if len(labels) not in (0, size):
            raise ValueError(f"{name} has {len(labels)} labels; the mask needs {size}.")
    if np.shape(color) not in ((), mask.shape):
        raise ValueError(f"color has shape {np.shape(color)}; give one colour's name or an array of shape {mask.shape}.")
    colors = np.broadcast_to(np.asarray(color, dtype=object), mask.shape)
    for (t, s), allowed in np.ndenumerate(mask):
        ax.add_patch(Rectangle((s - 0.44, t - 0.44), 0.88, 0.88, lw=0.8, ec=colors[t, s] if allowed else RULE,
                               fc=colors[t, s] if allowed else "none", in_layout=False))
    crossed = np.argwhere(~mask)
    ax.plot(crossed[:, 1], crossed[:, 0], "x", color=GREY, ms=5, mew=0.8, in_layout=False)
    ax.set(xlim=(-0.5, mask.shape[1] - 0.5), ylim=(mask.shape[0] - 0.5, -0.5), aspect="equal")
    ax.set_xticks(range(len(cols)), cols, rotation=90 if max(map(len, cols), default=0) > 2 else 0)
    ax.set_yticks(range(len(rows)), rows)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.grid(False)
    ax.spines[:].set_visible(False)
    ax.set_title(title, pad=7)
    return ax


def fan(ax: Axes, query: str, keys: Sequence[str], weights, *, mask=None, at: float | None = None,
        color: str = BLUE, label: str = "") -> Axes:
    """Draw how one query's weight spreads over the keys: a line to each, as thick as the weight, and the number.

    Args:
        ax: where to draw; it becomes an empty plane.
        query: the token that looks.
        keys: S tokens looked at.
        weights: (S,) weights in [0, 1].
        mask: (S,) bool, True = may attend; a key that may not gets a cross instead of a line. None allows all.
        at: place of the query above the keys, 0 for the first key to S-1 for the last; the middle by default.
        color: of the lines.
        label: a sentence above the drawing.
    Returns:
        ``ax``.
    Raises:
        ValueError: if weights or mask do not have one entry for each key, or a weight is outside [0, 1].
    """
    weights = np.asarray(weights.detach().cpu() if hasattr(weights, "detach") else weights, dtype=float)
    mask = np.ones(len(keys), dtype=bool) if mask is None else np.asarray(mask, dtype=bool)
    if weights.shape != (len(keys),) or mask.shape != (len(keys),):
        raise ValueError(f"weights has shape {weights.shape} and mask {mask.shape}; expected {(len(keys),)}: "
                         f"one entry for each key.")
    if not ((weights >= 0) & (weights <= 1)).all():
        raise ValueError(f"weights={weights.tolist()} do not all lie in [0, 1]; give the weights after the softmax.")
    at = (len(keys) - 1) / 2 if at is None else at
    ax.set(xlim=(-0.6, len(keys) - 0.4), ylim=(-0.62, 2.05))
    ax.axis("off")
    box(ax, at, 1.3, query, width=0.92, height=0.42, color=color)
    for s, (key, weight, allowed) in enumerate(zip(keys, weights, mask)):
        box(ax, s, 0, key, width=0.88, height=0.42, color=color if allowed else GREY)
        if allowed:
            ax.plot([at, s], [1.09, 0.21], color=color, lw=0.5 + 11 * weight, alpha=0.6, solid_capstyle="round", zorder=1)
        ax.text(s, -0.45, f"{weight:.2f}" if allowed else "× 0", ha="center", va="center", fontsize=9, color=INK,
                weight="bold" if allowed else "normal")
    ax.text(-0.55, 1.85, label, fontsize=9.5, weight="bold", va="center", ha="left", color=INK)
    return ax
