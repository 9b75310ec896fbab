"""The three tasks have the answers they claim, batches hold equal tokens, and baselines come out as by hand."""

import math

import pytest
import torch

from d2lmini import Corpus, Vocabulary
from d2lmini.baselines import NgramModel, NgramTagger, copy_scores, majority_accuracy
from d2lmini.contests import (CONTESTS, SPECIALS, contest_corpus, grade, phrases, reading, rewriting, swap_words,
                              tagged_letters, turn_words, writing)
from d2lmini.text import ALPHABET
from d2lmini.tournament import batch_size, compete
from d2lmini.wirings import WIRINGS, Questions


@pytest.fixture(scope="module")
def corpus():
    return contest_corpus()


def tiny(train="the tide came in and the clock ran on ", valid="a tide ran in at one and on "):
    vocab = Vocabulary(ALPHABET, SPECIALS)
    return Corpus("tiny", vocab, vocab.encode(train), vocab.encode(valid))


def test_letters_are_tagged_where_a_word_ends():
    small = tiny()
    ids, tags = tagged_letters(small, small.vocab.encode("the tide at"))
    assert small.vocab.decode(ids) == "thetideat"
    ends = [t == small.vocab.ids["<end>"] for t in tags.tolist()]
    assert ends == [c in "eEt" and i in (2, 6, 8) for i, c in enumerate("thetideat")]
    assert set(tags.tolist()) == {small.vocab.ids["<end>"], small.vocab.ids["<inside>"]}


def test_rules_and_phrases():
    assert swap_words("the tide came in") == "in came tide the"
    assert turn_words("the tide came in") == "eht edit emac ni"
    assert phrases("the tide came in", 8) == ["the tide"]
    assert phrases("the tide came in", 7) == ["came in"]
    assert phrases("the tide", 9) == []


def test_questions_have_the_answers_they_claim(corpus):
    decode, space = corpus.vocab.decode, " "
    read, rewrite, write = (make(corpus) for make in CONTESTS.values())
    text = decode(corpus.valid)
    for row in (0, 5, 17):
        letters, tags = decode(read.valid.source[row]), read.valid.answer[row].tolist()
        spaced = "".join(c + (space if t == corpus.vocab.ids["<end>"] else "") for c, t in zip(letters, tags))
        assert spaced.strip() in text and space not in letters
        source, answer = decode(rewrite.valid.source[row]), decode(rewrite.valid.answer[row])
        assert source in text and answer == turn_words(source) and turn_words(answer) == source
        assert decode(write.valid.source[row]) + decode(write.valid.answer[row]) in text
    assert read.valid.source.shape[1] == 64 and rewrite.valid.answer.shape[1] == 24 and write.valid.answer.shape[1] == 32
    for contest, form in ((read, "tag"), (rewrite, "rewrite"), (write, "continue")):
        assert contest.valid.form == form and contest.train[0].shape[1] == contest.valid.source.shape[1]


def test_nothing_held_out_is_trained_on(corpus):
    train = corpus.vocab.decode(corpus.train)
    for contest in (rewriting(corpus), writing(corpus)):
        held = [corpus.vocab.decode(row) for row in contest.valid.source]
        assert sum(row in train for row in held) <= 0.02 * len(held)  # stock phrases may recur; the text may not


@pytest.mark.parametrize("wiring", WIRINGS)
@pytest.mark.parametrize("name", CONTESTS)
def test_a_step_holds_the_tokens_that_were_asked_for(corpus, name, wiring):
    batches = CONTESTS[name](corpus).batches(wiring, 1024, seed=1)
    tokens = []
    for _ in range(20):
        tokens.append(batch_size(wiring, next(batches))["tokens"])
    assert 0.97 * 1024 <= sum(tokens) / 20 <= 1024


def test_texts_are_split_as_each_wiring_learns_most(corpus):
    shapes = {w: next(writing(corpus).batches(w, 1024, seed=2)) for w in WIRINGS}
    assert [shapes[w].answer.shape[1] for w in ("decoder", "prefix-LM", "encoder-decoder")] == [64, 33, 32]
    assert shapes["encoder"].answer.shape[1] == 1 and 32 <= shapes["encoder"].source.shape[1] <= 64
    again = next(writing(corpus).batches("decoder", 1024, seed=2))
    assert torch.equal(again.answer, shapes["decoder"].answer)
    assert not torch.equal(again.answer, next(writing(corpus).batches("decoder", 1024, seed=3)).answer)


def test_an_encoder_may_learn_to_write_by_filling_in(corpus):
    contest = writing(corpus, fill=0.3)
    batch = next(contest.batches("encoder", 1024, seed=2))
    assert batch.inputs.shape[1] == 65 and torch.equal(batch.inputs != batch.targets, batch.chosen)
    size = batch_size("encoder", batch)
    assert size["tokens"] == 15 * 65 and 0.2 < size["answers"] / size["tokens"] < 0.4
    assert next(contest.batches("decoder", 1024, seed=2)).form == "continue"  # the others train as before
    _, result = compete(contest, "encoder", 1, steps=2, tokens=256, d_model=16, limit=3)
    assert result["tokens"] == 2 * 3 * 65 and 3 < result["bits"] < 7


def test_scores_by_hand():
    small = tiny()
    end, inside = small.vocab.ids["<end>"], small.vocab.ids["<inside>"]
    answer = torch.tensor([[inside, end, inside, end, end]])
    given = torch.tensor([[inside, end, end, inside, end]])
    q = Questions(torch.zeros_like(answer), answer, "tag")
    assert grade(given, q, small) == pytest.approx(dict(accuracy=3 / 5, f1=2 / 3))
    q = Questions(torch.zeros(2, 3, dtype=torch.int64), torch.tensor([[1, 2, 3], [4, 5, 6]]), "rewrite")
    assert grade(torch.tensor([[1, 2, 3], [4, 5, 0]]), q, small) == pytest.approx(dict(accuracy=5 / 6, exact=1 / 2))
    q = Questions(torch.zeros_like(answer), answer, "rewrite")
    assert grade(given, q, small) == pytest.approx(dict(accuracy=3 / 5, exact=0, f1=2 / 3))


def test_a_short_run_reports_what_it_did(corpus):
    _, result = compete(reading(corpus), "encoder", 1, steps=3, tokens=256, d_model=16, limit=7)
    assert (result["questions"], result["answers"], result["tokens"]) == (12, 768, 768)
    assert 0 <= result["f1"] <= 1 and 0 <= result["accuracy"] <= 1 and len(result["losses"]) == 3
    _, again = compete(reading(corpus), "encoder", 1, steps=3, tokens=256, d_model=16, limit=7)
    assert again["losses"] == result["losses"]
    _, result = compete(writing(corpus), "encoder-decoder", 1, steps=2, tokens=256, d_model=16, limit=7)
    assert (result["questions"], result["answers"], result["tokens"]) == (8, 256, 512)
    assert 3 < result["bits"] < 7


def test_majority_and_copy_by_hand():
    assert majority_accuracy(torch.tensor([3, 3, 5]), torch.tensor([[3, 5], [5, 5]])) == pytest.approx(1 / 4)
    source, answers = torch.tensor([[1, 2, 3], [4, 4, 4]]), torch.tensor([[1, 2, 0], [4, 4, 4]])
    assert copy_scores(source, answers) == pytest.approx((5 / 6, 1 / 2))


def test_ngrams_by_hand():
    ids = torch.tensor([0, 1, 0, 1, 0, 2])  # a b a b a c, V = 4
    single = NgramModel(ids, 1, 4)
    # three tokens of three kinds: (3 + 3/4) / (6 + 3) for a, (0 + 3/4) / 9 for the one never seen
    assert single.probability([], 0) == pytest.approx((3 + 3 / 4) / 9)
    assert single.probability([0, 1], 3) == pytest.approx((3 / 4) / 9)
    pairs = NgramModel(ids, 2, 4)
    # behind a came b twice and c once: two kinds
    assert pairs.probability([2, 0], 1) == pytest.approx((2 + 2 * single.probability([], 1)) / (3 + 2))
    assert pairs.probability([2], 1) == pytest.approx(single.probability([], 1))  # nothing was seen behind c
    for context in ([], [0], [1], [2], [3]):
        assert sum(pairs.probability(context, token) for token in range(4)) == pytest.approx(1)
    losses = pairs.losses(torch.tensor([[1, 0, 1], [0, 2, 2]]), start=1)
    assert losses.shape == (2, 2)
    assert losses[0, 1].item() == pytest.approx(-math.log(pairs.probability([0], 1)))


def test_the_tagger_by_hand():
    text, tags = torch.tensor([0, 1, 2, 0, 1, 3]), torch.tensor([7, 8, 7, 7, 9, 7])
    ahead, blind = NgramTagger(text, tags, 0, 1), NgramTagger(text, tags, 1, 0)
    assert ahead(torch.tensor([[0, 1, 2], [0, 1, 3]])).tolist() == [[7, 8, 7], [7, 9, 7]]
    assert blind(torch.tensor([[0, 1, 2]]))[0, 1].item() in (8, 9)  # the two look alike from the left
    assert ahead(torch.tensor([[1, 0]])).tolist() == [[8, 7]]  # 1 0 was never seen: the commonest tag of 1, the first met
    assert ahead(torch.tensor([[5]])).tolist() == [[-1]]


def test_nonsense_is_refused(corpus):
    with pytest.raises(ValueError, match="lengths"):
        rewriting(corpus, lambda phrase: phrase.replace(" ", ""))
    with pytest.raises(ValueError, match="length=30"):
        rewriting(tiny(), length=30)
    with pytest.raises(ValueError, match="wiring='rnn'"):
        reading(corpus).batches("rnn", 1024, 0)
    with pytest.raises(ValueError, match="n=0"):
        NgramModel(torch.tensor([0, 1]), 0, 2)
    with pytest.raises(ValueError, match="fewer than n=3"):
        NgramModel(torch.tensor([0, 1]), 3, 2)
    with pytest.raises(ValueError, match="2 tokens and tags 1"):
        NgramTagger(torch.tensor([0, 1]), torch.tensor([0]), 1, 1)
