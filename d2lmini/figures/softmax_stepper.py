"""The masked-softmax stepper of chapter 1: from scores to weights, one row, one step at a time."""

from __future__ import annotations

import math

from ..checks import check_number
from .page import InteractiveFigure, check_labels, table, visible

REACH = 30.0  # scores from -30 to 30, so that every exponential can be written down


def softmax_stepper(labels, scores, mask=None) -> InteractiveFigure:
    """Show one row of masked softmax step by step, with scores and mask that the reader can change.

        a_j = m_j exp(s_j) / sum_k m_k exp(s_k),   and 0 for every j if no m_k is 1

    Args:
        labels: of the keys, a list of 2 to 8 strings.
        scores: one number per key, from -30 to 30: products of query and key, divided by the root of d_k.
        mask: one bool per key, True = may attend; all True when None.
    Returns:
        A figure; without scripts the finished table stands there.
    Raises:
        ValueError: if the lengths differ, a score is no number in range, or the mask is not boolean.
    Built in chapter 1.
    """
    labels = check_labels("labels", labels, 2, 8)
    scores = _list(scores)
    mask = [True] * len(labels) if mask is None else _list(mask)
    if not len(labels) == len(scores) == len(mask):
        raise ValueError(f"labels, scores and mask have {len(labels)}, {len(scores)} and {len(mask)} entries; "
                         f"give one score and one mask entry per label.")
    scores = [check_number(f"scores[{j}]", s, -REACH, REACH) for j, s in enumerate(scores)]
    for j, allowed in enumerate(mask):
        if not isinstance(allowed, bool):
            raise ValueError(f"mask[{j}]={allowed!r} is not boolean; give True where attention may go and False where not.")
    exps = [math.exp(s) if m else 0.0 for s, m in zip(scores, mask)]
    total = sum(exps)
    rows = [[visible(t), f"{s:.3g}", f"{s:.3g}" if m else "−∞", f"{e:.3g}", f"{e / total if total else 0:.3f}"]
            for t, s, m, e in zip(labels, scores, mask, exps)]
    static = table("One row of masked softmax, key by key.",
                   ["key", "score", "with the mask", "exponential", "weight"], rows + [["sum", "", "", f"{total:.3g}", f"{float(total > 0):.3f}"]])
    return InteractiveFigure("softmax_stepper", "Masked softmax, step by step", f"{len(labels)} keys, {sum(mask)} of them allowed.",
                             {"labels": labels, "scores": scores, "mask": mask, "reach": REACH}, static)


def _list(values) -> list:
    if hasattr(values, "tolist"):  # a tensor or an array
        values = values.tolist()
    return list(values) if isinstance(values, (list, tuple)) else [values]
