"""The gradient highway of chapter 6: gradient norms along the stack, measured at several depths."""

from __future__ import annotations

import numpy as np

from ..checks import check_text
from .page import InteractiveFigure, table


def gradient_highway(measured: dict) -> InteractiveFigure:
    """Show the gradient below every block, for each wiring, with the depth and the block to choose.

        the line is the geometric mean over the seeds, the band their range

    Args:
        measured: {wiring: {depth: norms}}, up to 3 wirings such as "Post-LN" and "Pre-LN", all at the same depths;
            norms is (seeds, depth), each above 0: the gradient of the loss with respect to the stream below block
            1, 2, ..., depth, block 1 being the one above the embeddings.
    Returns:
        A figure that begins at the largest depth; without scripts, a table of the lowest and the highest block.
    Raises:
        ValueError: if the depths differ, or the norms are not of that shape, finite and above 0.
    Built in chapter 6.
    """
    if not isinstance(measured, dict) or not 1 <= len(measured) <= 3 or not all(isinstance(v, dict) and v for v in measured.values()):
        raise ValueError("measured is not {wiring: {depth: norms}} with 1 to 3 wirings; give, for example, "
                         "{'Pre-LN': {4: norms}, 'Post-LN': {4: norms}}.")
    depths = sorted(next(iter(measured.values())))
    data, rows = {}, []
    for wiring, runs in measured.items():
        check_text("wiring", wiring)
        if sorted(runs) != depths:
            raise ValueError(f"{wiring!r} was measured at depths {sorted(runs)}, another wiring at {depths}; give the same depths.")
        data[wiring] = []
        for depth in depths:
            norms = np.asarray(runs[depth], dtype=float)
            if norms.ndim != 2 or norms.shape[1] != depth or not norms.size or not (np.isfinite(norms) & (norms > 0)).all():
                raise ValueError(f"the norms of {wiring!r} at depth {depth} have shape {norms.shape}; give (seeds, {depth}), "
                                 f"all finite and above 0.")
            mean = np.exp(np.log(norms).mean(axis=0))
            data[wiring].append([[float(f"{x:.3g}") for x in line] for line in (mean, norms.min(axis=0), norms.max(axis=0))])
            rows.append([wiring, depth, f"{mean[0]:.3g}", f"{mean[-1]:.3g}", f"{mean[0] / mean[-1]:.2f}"])
    static = table("Gradient norms at the stream, geometric means over the seeds.",
                   ["wiring", "layers", "below the lowest block", "below the highest block", "lowest / highest"], rows)
    return InteractiveFigure("gradient_highway", "Gradient highway", f"{', '.join(measured)} at {', '.join(map(str, depths))} layers.",
                             {"depths": depths, "wirings": data}, static)
