"""The alignment explorer of chapter 4: cross-attention maps of one text, head by head, as training goes on."""

from __future__ import annotations

import numpy as np

from ..checks import check_int
from .page import InteractiveFigure, check_labels, table, visible


def alignment_explorer(maps, source, target, steps) -> InteractiveFigure:
    """Show where each target token looks in the source, with the head and the training step to choose.

    Args:
        maps: cross-attention weights (steps, H, T, S) in [0, 1], an array, a tensor or a list of (H, T, S).
        source: S strings, 2 to 24; target: T strings, 2 to 24, the token that each row is about to write.
        steps: the training step of each map, increasing.
    Returns:
        A figure that begins at the last step, with the mean over the heads; without scripts, that map as a table.
    Raises:
        ValueError: if the shapes and the labels do not fit each other, or a weight is outside [0, 1].
    Built in chapter 4.
    """
    source, target = check_labels("source", source, 2, 24), check_labels("target", target, 2, 24)
    maps = np.stack([np.asarray(m.detach().float().cpu() if hasattr(m, "detach") else m, dtype=float) for m in maps])
    steps = [check_int("step", step, 0) for step in (steps.tolist() if hasattr(steps, "tolist") else steps)]
    if maps.ndim != 4 or (maps.shape[0], *maps.shape[2:]) != (len(steps), len(target), len(source)) or not 1 <= maps.shape[1] <= 8:
        raise ValueError(f"maps has shape {maps.shape}; expected (steps, heads, T, S) = ({len(steps)}, 1 to 8, {len(target)}, "
                         f"{len(source)}), as steps, target and source say.")
    if steps != sorted(set(steps)):
        raise ValueError(f"steps={steps} do not increase; give the step of each map in order.")
    if not (maps.min() >= 0 and maps.max() <= 1 + 1e-4):
        raise ValueError(f"maps reach from {maps.min():g} to {maps.max():g}; attention weights lie in [0, 1]: pass them, not the scores.")
    whole = np.rint(100 * maps.clip(0, 1)).astype(int)
    last = np.rint(100 * maps[-1].mean(axis=0)).astype(int)
    static = table(f"Cross-attention after {steps[-1]:,} steps, mean of the heads, in per cent: rows write, columns are read.",
                   ["writes \\ reads", *map(visible, source)],
                   [[visible(t), *(str(w) if w >= 5 else "·" for w in row)] for t, row in zip(target, last.tolist())])
    return InteractiveFigure("alignment_explorer", "Alignment explorer", f"{maps.shape[1]} heads at {len(steps)} training steps, "
                             f"{len(target)} target and {len(source)} source tokens.",
                             {"maps": whole.tolist(), "source": source, "target": target, "steps": steps}, static)
