"""Mask a character, from chapter 2: hide one, and see what the model says stands there."""

from __future__ import annotations

import torch

from ..checks import check_int, check_number, check_text
from .page import InteractiveFigure, check_labels, table, visible


def predict_each(model, vocab, text: str, top: int = 5, mask: str = "<mask>") -> list[list[tuple[str, float]]]:
    """Hide each character of a text in turn, and ask the model what stands there.

        p_t = softmax(model(x with x_t replaced by the mask token))_t

    Args:
        model: ids (B, T) int64 -> logits (B, T, V), such as an ``Encoder`` trained to fill in.
        vocab: its ``Vocabulary``, or a ``Corpus`` that has one; the mask token must be in it.
        text: 1 to 120 characters, no more than the model can read at once.
        top: how many of the most likely tokens to return, 1 to V.
        mask: the mask token.
    Returns:
        One list per character: ``top`` pairs (token, probability), most likely first.
    Raises:
        ValueError: if the vocabulary has no such mask token, or the text is empty or too long.
    Built in chapter 2.
    """
    vocab = getattr(vocab, "vocab", vocab)
    if mask not in vocab.ids:
        raise ValueError(f"mask={mask!r} is not in the vocabulary; load the corpus with specials=({mask!r},), as for training.")
    ids = vocab.encode(check_text("text", text))
    check_int("length of text", len(ids), 1, 120)
    check_int("top", top, 1, len(vocab))
    inputs = ids.repeat(len(ids), 1).fill_diagonal_(vocab.ids[mask])  # (T, T): row t hides place t
    was_training, where = model.training, next(model.parameters()).device
    with torch.no_grad():
        logits = model.eval()(inputs.to(where)).diagonal().T  # (T, V)
    model.train(was_training)
    best = logits.float().softmax(dim=-1).cpu().topk(top)
    return [[(vocab.tokens[i], p) for i, p in zip(ids, shares)]
            for ids, shares in zip(best.indices.tolist(), best.values.tolist())]


def mask_character(text, predictions) -> InteractiveFigure:
    """Show a text in which any character can be hidden, with the model's most likely guesses for its place.

    Args:
        text: a str, or a list of tokens; 2 to 120.
        predictions: for each of them up to 8 pairs (token, probability), most likely first: ``predict_each(...)``.
    Returns:
        A figure; without scripts, a table of the first guess for each place.
    Raises:
        ValueError: if there is not one list of pairs per token, or a probability is outside [0, 1].
    Built in chapter 2.
    """
    tokens = check_labels("text", list(text) if isinstance(text, str) else text, 2, 120)
    if not isinstance(predictions, (list, tuple)) or len(predictions) != len(tokens):
        count = len(predictions) if hasattr(predictions, "__len__") else type(predictions).__name__
        raise ValueError(f"predictions has {count} entries for {len(tokens)} tokens; give predict_each(model, vocab, text).")
    rows = []
    for place, guesses in enumerate(predictions):
        check_int(f"number of guesses at place {place}", len(guesses), 1, 8)
        rows.append([[check_text("guess", t), round(check_number("probability", p, 0, 1 + 1e-6), 4)] for t, p in guesses])
    right = sum(guesses[0][0] == token for token, guesses in zip(tokens, rows))
    static = table(f"Each character hidden in turn: the first guess is right at {right} of {len(tokens)} places.",
                   ["hidden", "first guess", "its probability"],
                   [[visible(t), visible(g[0][0]), f"{g[0][1]:.0%}"] for t, g in zip(tokens, rows)])
    return InteractiveFigure("mask_character", "Mask a character", f"The first guess is right at {right} of {len(tokens)} places.",
                             {"tokens": tokens, "predictions": rows}, static)
