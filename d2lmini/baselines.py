"""What a model must beat: the commonest answer, the source copied, and counts of n-grams."""

from __future__ import annotations

from collections import Counter, defaultdict

import torch

from .checks import check_ids, check_int
from .contests import Contest, grade, tagged_letters
from .losses import bits_per_token


def majority_accuracy(seen: torch.Tensor, answers: torch.Tensor) -> float:
    """Return the share of ``answers`` that equal the commonest token of ``seen``; both int64 of any shape."""
    return (answers == seen.flatten().mode().values).float().mean().item()


def copy_scores(source: torch.Tensor, answers: torch.Tensor) -> tuple[float, float]:
    """Return what copying the source gets right: (share of tokens, share of rows). Both are (B, T) int64."""
    right = check_ids("source", source) == check_ids("answers", answers)
    return right.float().mean().item(), right.all(dim=1).float().mean().item()


class NgramModel:
    """Predict a token from counts of what followed the last n-1 tokens, smoothed towards shorter contexts.

        p(x | c) = (N(c x) + D(c) p(x | c')) / (N(c) + D(c))

    N counts, D(c) is the number of different tokens seen behind c, and c' is c without its first token; behind the
    empty context stands the uniform distribution.

    Args:
        ids: (characters,) int64, the text to count.
        n: 1 for single tokens, 2 for pairs, and so on.
        vocab_size: V, of the uniform distribution.
    Raises:
        ValueError: if n < 1 or the text is shorter than n.
    Source: Witten and Bell 1991, method C. Built in chapter 7.
    """

    def __init__(self, ids: torch.Tensor, n: int, vocab_size: int):
        self.n, self.vocab_size = check_int("n", n), check_int("vocab_size", vocab_size)
        text = check_ids("ids", ids, vocab_size, ndim=1).tolist()
        if len(text) < n:
            raise ValueError(f"ids has {len(text)} tokens, fewer than n={n}; give a longer text.")
        self.counts = [defaultdict(Counter) for _ in range(n)]  # by length of the context
        for size, counts in enumerate(self.counts):
            for t in range(size, len(text)):
                counts[tuple(text[t - size:t])][text[t]] += 1

    def probability(self, context: list[int], token: int) -> float:
        """p(token | the last n-1 tokens of the context, or fewer if it is shorter)."""
        p = 1 / self.vocab_size
        for size, counts in enumerate(self.counts):
            if size > len(context):
                break
            followers = counts.get(tuple(context[len(context) - size:]))
            if followers:  # a context that was never seen says nothing
                p = (followers[token] + len(followers) * p) / (followers.total() + len(followers))
        return p

    def losses(self, ids: torch.Tensor, start: int = 0) -> torch.Tensor:
        """Return -log p (rows, T - start) of every token from ``start`` on in each row of ids (rows, T)."""
        rows = check_ids("ids", ids, self.vocab_size).tolist()
        p = [[self.probability(row[:t], row[t]) for t in range(start, len(row))] for row in rows]
        return -torch.tensor(p, dtype=torch.float64).log()


class NgramTagger:
    """Tag a token with the commonest tag of its neighbourhood in the training text, narrower ones if that is unknown.

    Args:
        ids, tags: (characters,) int64.
        left, right: how many neighbours on either side count; ``right=0`` for a tagger that cannot look ahead.
    Raises:
        ValueError: if a number is negative or the lengths differ.
    Built in chapter 7.
    """

    def __init__(self, ids: torch.Tensor, tags: torch.Tensor, left: int, right: int):
        self.left, self.right = check_int("left", left, minimum=0), check_int("right", right, minimum=0)
        if len(ids) != len(tags):
            raise ValueError(f"ids has {len(ids)} tokens and tags {len(tags)}; give one tag per token.")
        self.counts = [defaultdict(Counter) for _ in range(max(left, right) + 1)]
        text = ids.tolist()
        for t, tag in enumerate(tags.tolist()):
            for cut, counts in enumerate(self.counts):
                counts[self.key(text, t, cut)][tag] += 1

    def key(self, text: list[int], t: int, cut: int) -> tuple:
        """The neighbourhood of t, both sides shortened by ``cut``; what lies outside the text is left out."""
        left, right = max(0, self.left - cut), max(0, self.right - cut)
        return tuple(text[max(0, t - left):t]), text[t], tuple(text[t + 1:t + 1 + right])

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the tags (rows, T) int64 of ids (rows, T); each row is a text of its own."""
        found = []
        for row in check_ids("rows", rows).tolist():
            known = ([counts[k] for counts, k in ((c, self.key(row, t, i)) for i, c in enumerate(self.counts))
                      if k in counts] for t in range(len(row)))
            found.append([seen[0].most_common(1)[0][0] if seen else -1 for seen in known])
        return torch.tensor(found)


def contest_baselines(contest: Contest) -> dict[str, dict[str, float]]:
    """Return what needs no training run: baselines by name, each with scores as ``Contest.score`` gives them.

    Reading: the commonest tag; n-gram taggers that see four letters to the left, and four to each side. Rewriting: the
    source copied. Writing: n-gram models of 1, 3 and 5 characters.
    """
    q, corpus = contest.valid, contest.corpus
    if q.form == "tag":
        letters, tags = tagged_letters(corpus, corpus.train)
        taggers = {"n-gram to the left": NgramTagger(letters, tags, 4, 0), "n-gram both sides": NgramTagger(letters, tags, 4, 4)}
        commonest = torch.full_like(q.answer, tags.mode().values.item())
        return {"majority": grade(commonest, q, corpus)} | {k: grade(t(q.source), q, corpus) for k, t in taggers.items()}
    if q.form == "rewrite":
        accuracy, exact = copy_scores(q.source, q.answer)
        return {"copy": dict(accuracy=accuracy, exact=exact)}
    both, start = torch.cat((q.source, q.answer), dim=1), q.source.shape[1]
    models = {f"{n}-gram": NgramModel(corpus.train, n, len(corpus.vocab)) for n in (1, 3, 5)}
    return {k: dict(bits=bits_per_token(m.losses(both, start).mean().item())) for k, m in models.items()}
