"""Three tasks that every wiring can take: reading, rewriting and writing, with their data, scores and training run."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from .checks import check_callable, check_choice, check_int, seeded_generator
from .losses import bits_per_token
from .optim import linear_decay, make_optimizers
from .text import Corpus, load_corpus
from .training import fit, seed_everything, token_losses
from .wirings import WIRINGS, Contestant, Questions, answer_loss, input_tokens, make_contestant

SPECIALS = ("<mask>", "<go>", "<inside>", "<end>")


def contest_corpus(name="tide_clock") -> Corpus:
    """Return a corpus of letters and spaces with the special tokens that the contests need, as ``load_corpus`` does."""
    return load_corpus(name, specials=SPECIALS)


@dataclass(frozen=True)
class Contest:
    """A task: questions to learn from, questions held out, and how to score.

    name: "reading", "rewriting" or "writing", or one of your own; corpus: where the text is from; train: sources (n, S)
    and answers (n, T), int64; valid: the held-out ``Questions``.
    """

    name: str
    corpus: Corpus
    train: tuple[torch.Tensor, torch.Tensor]
    valid: Questions

    def batches(self, wiring: str, tokens: int, seed: int) -> Iterator[Questions]:
        """Yield, without end, random training questions of about ``tokens`` input tokens a batch.

        A text to be continued is split where it teaches the wiring most: the decoder predicts every character behind
        the first, the prefix-LM and the encoder-decoder every character behind the first S, and the encoder one
        character behind S to S+T-1 others, since it has no more than one mask at the end.
        """
        check_choice("wiring", wiring, WIRINGS)
        check_int("tokens", tokens)
        return self._batches(wiring, tokens, seeded_generator(seed))

    def _batches(self, wiring: str, tokens: int, generator: torch.Generator) -> Iterator[Questions]:
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


def writing(corpus: Corpus, length: int = 32) -> Contest:
    """Continue a text: ``length`` characters behind ``length`` others, scored in bits per character.

    Every second window of the held-out text is scored: an encoder needs one pass for each character.
    """
    check_int("length", length)
    text, held = corpus.train.unfold(0, 2 * length + 1, 1), corpus.valid.unfold(0, 2 * length, 4 * length)
    return Contest("writing", corpus, (text[:, :length], text[:, length:]),
                   Questions(held[:, :length], held[:, length:], "continue"))


CONTESTS = {"reading": reading, "rewriting": rewriting, "writing": writing}


def compete(contest: Contest, wiring: str, seed: int, *, steps: int, tokens: int = 1024, blocks: int = 2,
            d_model: int = 128, lr: float = 0.02, adam_lr: float = 0.01, tile: int = 32,
            positions: str | None = None, limit: int | None = None, where=None) -> tuple[Contestant, dict]:
    """Train one wiring on one task with one seed, and score it.

    Args:
        contest, wiring: who plays what.
        seed: of the parameters and of the choice of training questions.
        steps: of training; the learning rates fall linearly to 0.
        tokens: that pass through the model in a step, both towers counted; what is left of a row is not started.
        blocks, d_model, positions: of the model, see ``make_contestant``.
        lr, adam_lr, tile: of Muon and AdamW, see ``make_optimizers``.
        limit: score about so many held-out questions; all if None.
        where: device; the CPU by default.
    Returns:
        The contestant, and what it did: the scores, ``parameters``, ``tokens``, ``questions`` and ``answers`` (tokens
        predicted) it was trained on, ``seconds`` of the process's CPU time in training, and ``losses``, the training
        loss averaged over every twentieth part.
    """
    vocab = contest.corpus.vocab
    seed_everything(seed)
    player = make_contestant(wiring, len(vocab), vocab.ids["<mask>"], vocab.ids["<go>"], blocks=blocks, d_model=d_model,
                             source=contest.valid.source.shape[1], answer=contest.valid.answer.shape[1],
                             positions=positions)
    player = player if where is None else player.to(where)
    seen = dict(questions=0, answers=0, tokens=0)

    def counted():
        for q in contest.batches(wiring, tokens, seed):
            rows, new = q.answer.shape
            seen["questions"] += rows
            seen["answers"] += rows * new
            seen["tokens"] += rows * input_tokens(wiring, q.form, q.source.shape[1], new)
            yield q

    began = time.process_time()
    history = fit(player, answer_loss, counted(), steps=steps, schedule=linear_decay(),
                  optimizers=make_optimizers(player, lr=lr, adam_lr=adam_lr, tile=tile), desc=f"{contest.name}, {wiring}")
    seconds = time.process_time() - began
    part = max(1, steps // 20)
    losses = [sum(history.losses[i:i + part]) / part for i in range(0, steps - part + 1, part)]
    return player, dict(contest=contest.name, wiring=wiring, seed=seed, **contest.score(player, limit), seconds=seconds,
                        parameters=sum(p.numel() for p in player.parameters()), **seen, losses=losses)
