"""The mask explorer of chapter 1: who may attend to whom in three wirings."""

from __future__ import annotations

from ..masks import causal_mask
from .page import InteractiveFigure, check_labels, table, visible


def mask_explorer(tokens, source=None) -> InteractiveFigure:
    """Show the masks of bidirectional, causal and cross-attention over your tokens, with padding to adjust.

    Args:
        tokens: the text, a list of 2 to 12 strings; rows are its queries.
        source: what cross-attention reads, a list of 1 to 12 strings; ``tokens`` when None.
    Returns:
        A figure for a notebook's last line or ``display``. Hovering, touching or the arrow keys choose a row;
        without scripts the causal mask stands there as a table.
    Raises:
        ValueError: if the tokens are no list of strings of that length.
    Built in chapter 1.
    """
    tokens = check_labels("tokens", tokens, 2, 12)
    source = tokens if source is None else check_labels("source", source, 1, 12)
    allowed = causal_mask(len(tokens)).tolist()
    static = table("Causal mask: queries down the rows, keys across; ● may be seen. Bidirectional attention fills the square; "
                   "cross-attention fills a rectangle, one column per source token.",
                   ["query \\ key", *map(visible, tokens)],
                   [[visible(t), *("●" if a else "·" for a in row)] for t, row in zip(tokens, allowed)])
    return InteractiveFigure("mask_explorer", "Mask explorer", f"{len(tokens)} queries; as keys, the same tokens or a source "
                             f"of {len(source)}.", {"tokens": tokens, "source": source}, static)
