"""The generation explorer of chapter 3: the next-token distribution, cut and drawn from, prefix by prefix."""

from __future__ import annotations

import heapq

import torch

from ..checks import check_int, check_text
from ..sampling import check_logits
from .page import InteractiveFigure, check_labels, table, visible

DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
DEEPER = 0.4  # nats taken off the surprise of a continuation for each of its tokens


def prefix_tree(model, vocab, prompt: str, size: int = 150, depth: int = 12) -> dict:
    """Compute the next-token logits after a prompt and after its likely continuations.

        the next prefix to open is the one of largest e^(0.4 n) p(y_1 | prompt) ... p(y_n | prompt, y_1 ... y_(n-1))

    The factor makes a tree that is deep where the model is sure; a text drawn from it stays inside for longer.

    Args:
        model: ids (B, T) int64 -> logits (B, T, V), such as a trained ``Decoder``.
        vocab: its ``Vocabulary``, or a ``Corpus`` that has one.
        prompt: at least one character.
        size: number of prefixes, 1 to 400; 150 fit into a figure with a vocabulary of 80 tokens.
        depth: longest continuation with a node of its own, in tokens, at least 0.
    Returns:
        {"prompt": str, "tokens": the V tokens, "nodes": {continuation: logits}}; a continuation is a tuple of
        token ids, () for the prompt itself; logits are V floats, the largest 0, rounded to two decimals.
    Raises:
        ValueError: if the prompt is empty, or the size out of range.
    Built in chapter 3.
    """
    vocab = getattr(vocab, "vocab", vocab)
    start = vocab.encode(check_text("prompt", prompt)).tolist()
    check_int("length of prompt", len(start))
    check_int("size", size, 1, 400)
    check_int("depth", depth, 0)
    was_training, where = model.training, next(model.parameters()).device
    nodes, waiting = {}, [(0.0, ())]  # a heap by surprise, less something for each token
    while waiting and len(nodes) < size:
        surprise, path = heapq.heappop(waiting)
        with torch.no_grad():
            logits = model.eval()(torch.tensor([[*start, *path]], device=where))[0, -1].double().cpu()
        nodes[path] = [round(z, 2) for z in (check_logits(logits) - logits.max()).tolist()]
        for token, p in enumerate([] if len(path) == depth else logits.log_softmax(dim=-1).tolist()):
            heapq.heappush(waiting, (surprise - p - DEEPER, (*path, token)))
    model.train(was_training)
    return {"prompt": prompt, "tokens": list(vocab.tokens), "nodes": nodes}


def _pack(logits: torch.Tensor) -> str:
    """Hundredths below the largest logit, two digits to the base 64 each; what lies more than 40.95 below stays there."""
    below = (100 * (logits.max() - logits)).clamp(max=4095).round().int().tolist()
    return "".join(DIGITS[n // 64] + DIGITS[n % 64] for n in below)


def generation_explorer(tree: dict) -> InteractiveFigure:
    """Show how temperature, top-k and top-p change a model's next-token distribution, and let the text grow.

        p_i as in ``next_token_distribution``, computed in the page

    Args:
        tree: as ``prefix_tree`` returns it.
    Returns:
        A figure; without scripts, a table of the most probable first tokens.
    Raises:
        ValueError: if the tree has no node for the prompt itself, or logits of the wrong length.
    Built in chapter 3.
    """
    if not isinstance(tree, dict) or not {"prompt", "tokens", "nodes"} <= tree.keys() or () not in tree["nodes"]:
        raise ValueError("tree is not what prefix_tree(model, vocab, prompt) returns; make it with that function.")
    tokens = check_labels("tree['tokens']", tree["tokens"], 2, 1000)
    nodes = {}
    for path, logits in tree["nodes"].items():
        if len(logits) != len(tokens):
            raise ValueError(f"the node {path} has {len(logits)} logits for {len(tokens)} tokens; give one per token.")
        nodes[" ".join(map(str, path))] = _pack(check_logits(torch.tensor(logits, dtype=torch.float64)))
    first = torch.tensor(tree["nodes"][()], dtype=torch.float64).softmax(dim=-1)
    best = first.argsort(descending=True, stable=True)[:8].tolist()
    prompt = check_text("tree['prompt']", tree["prompt"])
    static = table(f"The most probable tokens after “{prompt}”, at temperature 1.", ["token", "probability"],
                   [[visible(tokens[i]), f"{first[i]:.1%}"] for i in best])
    return InteractiveFigure("generation_explorer", "Generation explorer", f"{len(nodes)} prefixes that begin with “{prompt}”.",
                             {"prompt": prompt, "tokens": tokens, "nodes": nodes}, static)
