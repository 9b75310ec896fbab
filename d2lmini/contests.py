"""Three tasks that every wiring can take: reading, rewriting and writing, with their data and scores."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from .batches import MaskedBatch, mask_tokens
from .checks import check_callable, check_choice, check_int, check_number, seeded_generator
from .losses import bits_per_token
from .text import Corpus, load_corpus
from .training import token_losses
from .wirings import WIRINGS, Contestant, Questions, answer_loss, input_tokens

SPECIALS = ("<mask>", "<go>", "<inside>", "<end>")


def contest_corpus(name="tide_clock") -> Corpus:
    """Return a corpus of letters and spaces with the special tokens that the contests need, as ``load_corpus`` does."""
    return load_corpus(name, specials=SPECIALS)


@dataclass(frozen=True)
class Contest:
    """A task: questions to learn from, questions held out, and how to score.

    name: "reading", "rewriting" or "writing", or one of your own; corpus: where the text is from; train: sources (n, S)
    and answers (n, T), int64; valid: the held-out ``Questions``; fill: share of the characters that an encoder which
    continues texts has to fill in while it trains, as in chapter 2; 0 for one mask at the end.
    """

    name: str
    corpus: Corpus
    train: tuple[torch.Tensor, torch.Tensor]
    valid: Questions
    fill: float = 0.0

    def batches(self, wiring: str, tokens: int, seed: int) -> Iterator[Questions | MaskedBatch]:
        """Yield, without end, random training questions of about ``tokens`` input tokens a batch.

        A text to be continued is split where it teaches the wiring most: the decoder predicts every character behind
        the first, the prefix-LM and the encoder-decoder every character behind the first S, and the encoder one
        character behind S to S+T-1 others, since it has no more than one mask at the end. With ``fill`` it gets
        windows of S+T characters of which that share is hidden.
        """
        check_choice("wiring", wiring, WIRINGS)
        check_int("tokens", tokens)
        return self._batches(wiring, tokens, seeded_generator(seed))

    def _batches(self, wiring: str, tokens: int, generator: torch.Generator) -> Iterator[Questions | MaskedBatch]:
        sources, answers = self.train
        size, new, form = sources.shape[1], answers.shape[1], self.valid.form
        while True:
            begin, end = size, size + new
            if form == "continue" and wiring == "decoder":
                begin = 1
            elif form == "continue" and wiring == "encoder":
                begin = size + int(torch.randint(new, (), generator=generator))
                end = begin + 1
            elif form == "continue" and wiring == "encoder-decoder":
                end -= 1  # its start token takes the place that the others give to one more character
            rows = max(1, tokens // input_tokens(wiring, form, begin, end - begin))
            chosen = torch.randint(len(sources), (rows,), generator=generator)
            both = torch.cat((sources[chosen], answers[chosen]), dim=1)
            if self.fill and form == "continue" and wiring == "encoder":
                both = both[:max(1, tokens // both.shape[1])]
                yield mask_tokens(both, self.corpus.vocab.ids["<mask>"], fraction=self.fill, replace=1.0, shuffle=0.0,
                                  generator=generator)
                continue
            yield Questions(both[:, :begin], both[:, begin:end], form)

    def held_out(self, limit: int | None = None) -> Questions:
        """Return the held-out questions, or about ``limit`` of them, evenly spread."""
        step = 1 if limit is None else max(1, len(self.valid.source) // check_int("limit", limit))
        return Questions(self.valid.source[::step], self.valid.answer[::step], self.valid.form)

    def score(self, contestant: Contestant, limit: int | None = None) -> dict[str, float]:
        """Score a contestant on the held-out questions.

        Args:
            contestant: any.
            limit: about how many questions; all if None.
        Returns:
            For "continue" ``bits``, per character; else ``accuracy`` of the tokens; for "rewrite" also ``exact``, the
            share of answers without an error; for tags also ``f1`` of the tag <end>. Tags and rewritten texts are the
            contestant's own, written without a look at the right ones.
        """
        q = self.held_out(limit)
        parts = [Questions(x, y, q.form) for x, y in zip(q.source.split(100), q.answer.split(100))]
        where = next(contestant.parameters()).device
        if q.form == "continue":
            return dict(bits=bits_per_token(token_losses(contestant, answer_loss, parts).mean().item()))
        given = [contestant.answer(Questions(p.source.to(where), p.answer.to(where), p.form)).cpu() for p in parts]
        return grade(torch.cat(given), q, self.corpus)


def grade(given: torch.Tensor, q: Questions, corpus: Corpus) -> dict[str, float]:
    """Compare answers (B, T) with the right ones, as ``Contest.score`` describes."""
    right, end = given == q.answer, corpus.vocab.ids["<end>"]
    scores = dict(accuracy=right.float().mean().item())
    if q.form == "rewrite":
        scores["exact"] = right.all(dim=1).float().mean().item()
    found, true = given == end, q.answer == end
    if true.any():
        scores["f1"] = 2 * (found & true).sum().item() / (found.sum() + true.sum()).item()
    return scores


def tagged_letters(corpus: Corpus, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Drop the spaces of a text (n,): return its letters and, for each, <end> before a space and <inside> elsewhere.

    The last letter of the text ends a word too.
    """
    space, inside, end = (corpus.vocab.ids[token] for token in (" ", "<inside>", "<end>"))
    before_space = torch.cat((ids[1:] == space, torch.tensor([True])))
    letter = ids != space
    return ids[letter], torch.where(before_space[letter], end, inside)


def reading(corpus: Corpus, length: int = 64, form: str = "tag") -> Contest:
    """Tag each of ``length`` letters, given without spaces, with <end> where a word ends and <inside> elsewhere.

        thetide     ->     . . | . . . |        from "the tide"

    With ``form="rewrite"`` the tags are a text that is written behind the letters, whatever the wiring.
    """
    check_int("length", length)
    check_choice("form", form, ("tag", "rewrite"))
    train, valid = tagged_letters(corpus, corpus.train), tagged_letters(corpus, corpus.valid)
    x, y = (part.unfold(0, length, length) for part in valid)
    return Contest("reading", corpus, tuple(part.unfold(0, length, 1) for part in train), Questions(x, y, form))


def swap_words(phrase: str) -> str:
    """Put the words into reverse order: "the tide came in" -> "in came tide the"."""
    return " ".join(reversed(phrase.split(" ")))


def turn_words(phrase: str) -> str:
    """Turn every word around in its place: "the tide came in" -> "eht edit emac ni"."""
    return " ".join(word[::-1] for word in phrase.split(" "))


def phrases(text: str, length: int) -> list[str]:
    """Return all runs of whole words in a text that are exactly ``length`` characters long, in order."""
    check_int("length", length)
    starts = [m.start() for m in re.finditer(r"(?<![a-z])[a-z]", text)]
    return [text[s:s + length] for s in starts
            if s + length <= len(text) and text[s + length - 1] != " " and text[s + length:s + length + 1] in ("", " ")]


def rewriting(corpus: Corpus, rule: Callable[[str], str] = turn_words, length: int = 24) -> Contest:
    """Rewrite phrases of the corpus, all ``length`` characters long, by a rule.

    Args:
        corpus: letters and spaces, with the contests' special tokens.
        rule: turns a phrase into its answer; all answers must be of one length.
        length: of a phrase.
    Raises:
        ValueError: if the corpus holds no such phrase in either part, or answers differ in length.
    """
    check_callable("rule", rule)
    parts = []
    for ids in (corpus.train, corpus.valid):
        found = phrases(corpus.vocab.decode(ids), length)
        if not found:
            raise ValueError(f"length={length}: a part of the corpus has no run of whole words of exactly that "
                             f"length; choose another one.")
        answers = [rule(phrase) for phrase in found]
        if len(set(map(len, answers))) > 1 or not answers[0]:
            raise ValueError(f"rule gives answers of lengths {sorted(set(map(len, answers)))}; they must all have one "
                             f"length of at least 1: pad the shorter ones with spaces.")
        parts.append(tuple(torch.stack([corpus.vocab.encode(s) for s in strings]) for strings in (found, answers)))
    return Contest("rewriting", corpus, parts[0], Questions(*parts[1], "rewrite"))


def writing(corpus: Corpus, length: int = 32, fill: float = 0.0) -> Contest:
    """Continue a text: ``length`` characters behind ``length`` others, scored in bits per character.

    Every second window of the held-out text is scored: an encoder needs one pass for each character. ``fill``, in
    [0, 1), is how an encoder trains for it; see ``Contest``.
    """
    check_int("length", length)
    check_number("fill", fill, 0, 1, high_open=True)
    text, held = corpus.train.unfold(0, 2 * length + 1, 1), corpus.valid.unfold(0, 2 * length, 4 * length)
    return Contest("writing", corpus, (text[:, :length], text[:, length:]),
                   Questions(held[:, :length], held[:, length:], "continue"), fill)


CONTESTS = {"reading": reading, "rewriting": rewriting, "writing": writing}
