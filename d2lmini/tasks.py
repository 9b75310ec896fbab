"""Tasks with known answers: strings to reverse, copy or sort, and T5's span corruption."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from .checks import check_choice, check_int, check_number
from .seq2seq import PairBatch, pair_batch

ANSWERS = {
    "copy": lambda letters: letters,
    "reverse": lambda letters: letters.flip(-1),
    "reverse-then-copy": lambda letters: torch.cat((letters.flip(-1), letters), dim=-1),
    "sort": lambda letters: letters.sort(dim=-1).values,
}


@dataclass(frozen=True)
class ToyTask:
    """Random strings of letters, and what to make of them.

    The letters have the ids 0 ... letters-1; then come the start token and the end token. Strings of one
    length need no end token, since the length says when to stop; ragged ones end in it.

    Args:
        name: "reverse", "copy", "reverse-then-copy" or "sort".
        length: of the source, in letters.
        min_length: of a ragged source, whose length is uniform in [min_length, length]; None for all alike.
        letters: size of the alphabet, at most 26.
    Raises:
        ValueError: on an unknown name or a number out of range.
    """

    name: str = "reverse"
    length: int = 12
    min_length: int | None = None
    letters: int = 16

    def __post_init__(self):
        check_choice("name", self.name, ANSWERS)
        check_int("letters", self.letters, maximum=26)
        check_int("length", self.length)
        if self.min_length is not None:
            check_int("min_length", self.min_length, maximum=self.length)

    @property
    def start_id(self) -> int:
        return self.letters

    @property
    def end_id(self) -> int | None:
        """The id of the end token, or None for strings of one length, which go without."""
        return None if self.min_length is None else self.letters + 1

    @property
    def vocab_size(self) -> int:
        """Letters, start and end token."""
        return self.letters + 2

    @property
    def target_length(self) -> int:
        """Longest target, the end token included."""
        return self.length * (2 if self.name == "reverse-then-copy" else 1) + (self.min_length is not None)

    def answer(self, source: torch.Tensor) -> torch.Tensor:
        """Return the right target of letters (..., length) int64, without start and end token."""
        return ANSWERS[self.name](source)

    def batch(self, batch_size: int, generator: torch.Generator) -> PairBatch:
        """Draw ``batch_size`` fresh strings with their answers."""
        check_int("batch_size", batch_size)
        sources = torch.randint(self.letters, (batch_size, self.length), generator=generator)
        if self.min_length is None:
            targets = self.answer(sources)
            start = torch.full((batch_size, 1), self.start_id)
            return PairBatch(sources, torch.cat((start, targets[:, :-1]), dim=1), targets)
        lengths = torch.randint(self.min_length, self.length + 1, (batch_size,), generator=generator).tolist()
        return self.pairs([row[:n] for row, n in zip(sources, lengths)])

    def pairs(self, sources: Sequence[torch.Tensor]) -> PairBatch:
        """Put strings of your own, (length,) int64 each, into a batch with their answers."""
        end = torch.tensor([] if self.end_id is None else [self.end_id], dtype=torch.int64)
        return pair_batch(sources, [torch.cat((self.answer(s), end)) for s in sources], self.start_id)

    def batches(self, batch_size: int, seed: int) -> Iterator[PairBatch]:
        """Yield fresh batches without end; the same seed gives the same strings."""
        generator = torch.Generator().manual_seed(check_int("seed", seed, minimum=0))
        while True:
            yield self.batch(batch_size, generator)

    def encode(self, text: str) -> torch.Tensor:
        """Return the ids (length,) int64 of a string of this task's letters."""
        ids = [ord(c) - ord("a") for c in text]
        if not text or not all(0 <= i < self.letters for i in ids):
            raise ValueError(f"text={text!r} is not made of the letters a to {chr(ord('a') + self.letters - 1)}; "
                             f"give at least one of them and nothing else.")
        return torch.tensor(ids)

    def decode(self, ids: torch.Tensor) -> str:
        """Return ids (length,) as text; the start token is written ``^`` and the end token ``$``."""
        alphabet = [chr(ord("a") + i) for i in range(self.letters)] + ["^", "$"]
        return "".join(alphabet[i] for i in ids.tolist())


def corrupt_spans(tokens: Sequence, spans: Sequence[tuple[int, int]], sentinels: Sequence) -> tuple[list, list]:
    """Cut spans out of a sequence: the input keeps the rest, the target holds what was cut.

        Thank you <X> me to your party <Y> week.     ->     <X> for inviting <Y> last <Z>

    In the input each span is replaced by a sentinel of its own, in order; the target names each sentinel and
    writes its span behind it; one more sentinel ends the target.

    Args:
        tokens: any sequence: words, characters, ids (a tensor (length,) works).
        spans: (start, end) pairs, end exclusive, in order, not touching each other.
        sentinels: tokens that occur nowhere else; one more than there are spans.
    Returns:
        (input, target), two lists.
    Raises:
        ValueError: if there are no spans, or they are empty, touch, leave the sequence or cover all of it; if there
            are too few sentinels, one stands twice, or one occurs among the tokens.
    Source: Raffel et al. 2020 (T5), section 3.1.4 and figure 2. Built in chapter 4.
    """
    tokens = tokens.tolist() if isinstance(tokens, torch.Tensor) else list(tokens)
    sentinels = list(sentinels)
    if not spans:
        raise ValueError("spans is empty; cut out at least one span.")
    if len(sentinels) < len(spans) + 1:
        raise ValueError(f"there are {len(spans)} spans and {len(sentinels)} sentinels; give at least "
                         f"{len(spans) + 1} sentinels: one per span and one that ends the target.")
    if len(set(sentinels)) < len(sentinels) or set(sentinels) & set(tokens):
        raise ValueError(f"sentinels={sentinels} repeat one another or occur among the tokens; "
                         f"give tokens that the text cannot hold.")
    last = -1
    for start, end in spans:
        if not last < start < end <= len(tokens):
            raise ValueError(f"spans={list(spans)} must be (start, end) pairs in order, each at least one token long, "
                             f"with at least one token between two, inside the {len(tokens)} tokens.")
        last = end
    if sum(end - start for start, end in spans) == len(tokens):
        raise ValueError(f"spans={list(spans)} cover all {len(tokens)} tokens, so nothing is left to read; cut out less.")
    inputs, target, position = [], [], 0
    for sentinel, (start, end) in zip(sentinels, spans):
        inputs += [*tokens[position:start], sentinel]
        target += [sentinel, *tokens[start:end]]
        position = end
    return inputs + tokens[position:], target + [sentinels[len(spans)]]


def restore_spans(inputs: Sequence, target: Sequence, sentinels: Sequence) -> list:
    """Put the spans of a target back into its input: the inverse of ``corrupt_spans``.

    A target that a model wrote may lack a sentinel; its span then stays empty. What it writes before the first
    sentinel or after the closing one is dropped.

    Args:
        inputs, target: as ``corrupt_spans`` returns them; tensors (length,) work.
        sentinels: those used there.
    Returns:
        The tokens, a list.
    """
    inputs, target = (s.tolist() if isinstance(s, torch.Tensor) else list(s) for s in (inputs, target))
    spans, current = {s: [] for s in sentinels}, None
    for token in target:
        if token in spans:
            current = token
        elif current is not None:
            spans[current].append(token)
    return [t for token in inputs for t in spans.get(token, [token])]


def random_spans(length: int, generator: torch.Generator, *, fraction: float = 0.15,
                 mean_length: float = 3.0) -> list[tuple[int, int]]:
    """Draw spans to cut out of ``length`` tokens: fixed in number and in total, random in place and length.

    Args:
        length: number of tokens, at least 2.
        generator: source of chance.
        fraction: share of the tokens cut out, in (0, 1); T5 uses 0.15.
        mean_length: of a span, at least 1; T5 uses 3.
    Returns:
        (start, end) pairs for ``corrupt_spans``, at least one token apart; one token at least stays.
    Raises:
        ValueError: on a number out of range.
    Source: Raffel et al. 2020, section 3.3.4; the spans are uniform over all ways to cut so many tokens into so many.
    """
    check_int("length", length, minimum=2)
    check_number("fraction", fraction, 0, 1, low_open=True, high_open=True)
    check_number("mean_length", mean_length, 1)
    cut = min(max(1, round(length * fraction)), length - 1)
    count = min(max(1, round(cut / mean_length)), length - cut)
    # Gaps before, between and after the spans; the outer two may be empty, so they get one token too many first.
    gaps, sizes = _compose(length - cut + 2, count + 1, generator), _compose(cut, count, generator)
    gaps[0] -= 1
    spans, position = [], 0
    for gap, size in zip(gaps, sizes):
        spans.append((position + gap, position + gap + size))
        position += gap + size
    return spans


def _compose(total: int, parts: int, generator: torch.Generator) -> list[int]:
    """Cut ``total`` into ``parts`` whole numbers of at least 1, all ways alike likely."""
    cuts = (torch.randperm(total - 1, generator=generator)[:parts - 1] + 1).sort().values.tolist()
    return [b - a for a, b in zip([0, *cuts], [*cuts, total])]


def span_batches(text_windows: Iterator[torch.Tensor], sentinels: Sequence[int], start_id: int, seed: int,
                 **how) -> Iterator[PairBatch]:
    """Yield a ``PairBatch`` of corrupted windows for each batch (B, length); ``how`` goes to ``random_spans``."""
    generator = torch.Generator().manual_seed(check_int("seed", seed, minimum=0))
    for ids in text_windows:
        pairs = [corrupt_spans(row, random_spans(len(row), generator, **how), sentinels) for row in ids]
        sources, targets = ([torch.tensor(p[i]) for p in pairs] for i in (0, 1))
        yield pair_batch(sources, targets, start_id)
