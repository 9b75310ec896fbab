"""Toy tasks have the answers they claim; span corruption cuts and restores exactly."""

import pytest
import torch

from d2lmini.tasks import ToyTask, corrupt_spans, random_spans, restore_spans, span_batches


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("name, answer", [
    ("reverse", "bcba"), ("copy", "abcb"), ("reverse-then-copy", "bcbaabcb"), ("sort", "abbc")])
def test_answers_by_hand(name, answer):
    task = ToyTask(name, length=4)
    assert task.decode(task.answer(task.encode("abcb"))) == answer
    assert task.target_length == len(answer)


def test_a_batch_is_shifted_by_the_start_token():
    task = ToyTask()
    batch = task.batch(5, rng())
    assert batch.source.shape == batch.targets.shape == (5, 12)
    assert torch.equal(batch.targets, batch.source.flip(1))
    assert (batch.inputs[:, 0] == 16).all() and torch.equal(batch.inputs[:, 1:], batch.targets[:, :-1])
    assert batch.source_mask is None and batch.real is None and task.end_id is None
    assert batch.source.max() < 16 < task.vocab_size


def test_ragged_strings_end_in_the_end_token():
    task = ToyTask("reverse", length=7, min_length=2)
    batch = task.batch(200, rng())
    lengths = batch.source_mask.sum((1, 2, 3))
    assert set(lengths.tolist()) == set(range(2, 8))
    assert torch.equal(batch.real.sum(1), lengths + 1)
    for source, target, n in zip(batch.source, batch.targets, lengths):
        assert target[:n + 1].tolist() == [*source[:n].tolist()[::-1], task.end_id]
    assert task.target_length == 8 == batch.targets.shape[1]


def test_same_seed_same_strings_and_fresh_ones_each_time():
    task = ToyTask()
    first, second, again = task.batches(9, 3), task.batches(9, 3), task.batches(9, 4)
    a, b, c = next(first).source, next(first).source, next(again).source
    assert torch.equal(a, next(second).source) and not torch.equal(a, b) and not torch.equal(a, c)


def test_letters_are_uniform():
    counts = torch.bincount(ToyTask().batch(4000, rng()).source.flatten(), minlength=16)
    expected = 4000 * 12 / 16
    assert ((counts - expected) ** 2 / expected).sum() < 37.7  # chi-square, 15 degrees of freedom, p = 0.001


def test_encode_and_decode():
    task = ToyTask(letters=3)
    assert task.encode("cab").tolist() == [2, 0, 1]
    assert task.decode(torch.tensor([3, 2, 0, 1, 4])) == "^cab$"


EXAMPLE = "Thank you for inviting me to your party last week.".split()


def test_the_published_example():
    inputs, target = corrupt_spans(EXAMPLE, [(2, 4), (8, 9)], ["<X>", "<Y>", "<Z>"])
    assert " ".join(inputs) == "Thank you <X> me to your party <Y> week."
    assert " ".join(target) == "<X> for inviting <Y> last <Z>"
    assert restore_spans(inputs, target, ["<X>", "<Y>", "<Z>"]) == EXAMPLE


def test_spans_at_both_ends():
    inputs, target = corrupt_spans("abcde", [(0, 2), (4, 5)], "XYZ")
    assert ("".join(inputs), "".join(target)) == ("XcdY", "XabYeZ")


def test_sentinels_in_order_each_once_and_round_trip():
    sentinels, tokens = list(range(100, 110)), torch.arange(37)
    for seed in range(200):
        spans = random_spans(37, rng(seed), fraction=0.3)
        inputs, target = corrupt_spans(tokens, spans, sentinels)
        used = sentinels[:len(spans)]
        assert [t for t in inputs if t >= 100] == used
        assert [t for t in target if t >= 100] == [*used, sentinels[len(spans)]]
        assert target[0] == used[0] and target[-1] == sentinels[len(spans)]
        assert len(inputs) + len(target) == 37 + 2 * len(spans) + 1
        assert restore_spans(torch.tensor(inputs), torch.tensor(target), sentinels) == tokens.tolist()


def test_restore_takes_what_a_model_may_write():
    assert "".join(restore_spans("aXbYc", "??X1Z9", "XYZ")) == "a1bc"
    assert "".join(restore_spans("aXbYc", "", "XYZ")) == "abc"


@pytest.mark.parametrize("length, fraction, mean, cut, count", [
    (64, 0.15, 3.0, 10, 3), (64, 0.5, 4.0, 32, 8), (2, 0.15, 3.0, 1, 1), (10, 0.95, 1.0, 9, 1), (11, 0.5, 1.0, 6, 5)])
def test_random_spans_are_fixed_in_number_and_total(length, fraction, mean, cut, count):
    for seed in range(50):
        spans = random_spans(length, rng(seed), fraction=fraction, mean_length=mean)
        assert len(spans) == count and sum(b - a for a, b in spans) == cut
        assert all(a < b for a, b in spans) and all(b < c for (_, b), (c, _) in zip(spans, spans[1:]))
        assert spans[0][0] >= 0 and spans[-1][1] <= length


def test_random_spans_reach_every_place():
    hidden = torch.zeros(20)
    for seed in range(2000):
        for a, b in random_spans(20, rng(seed)):
            hidden[a:b] += 1
    assert (hidden > 60).all()


def test_span_batches():
    rows = torch.arange(4 * 30).view(4, 30) % 26
    batch = next(span_batches(iter([rows]), [27, 28, 29], 26, seed=0))
    assert batch.source.shape == (4, 27) and batch.targets.shape == (4, 6) and batch.real.all()
    assert (batch.inputs[:, 0] == 26).all()
    for row, source, target in zip(rows, batch.source, batch.targets):
        assert restore_spans(source, target, [27, 28, 29]) == row.tolist()


@pytest.mark.parametrize("call, match", [
    (lambda: corrupt_spans("abc", [(0, 3)], "XY"), "cover all 3 tokens"),
    (lambda: corrupt_spans("abcdef", [(0, 1), (2, 3)], "XY"), "2 spans and 2 sentinels; give at least 3"),
    (lambda: corrupt_spans("abcdef", [], "XY"), "spans is empty"),
    (lambda: corrupt_spans("abcdef", [(1, 1)], "XY"), "at least one token long"),
    (lambda: corrupt_spans("abcdef", [(1, 2), (2, 3)], "XYZ"), "between two"),
    (lambda: corrupt_spans("abcdef", [(3, 4), (1, 2)], "XYZ"), "in order"),
    (lambda: corrupt_spans("abcdef", [(4, 7)], "XY"), "inside the 6 tokens"),
    (lambda: corrupt_spans("abXdef", [(1, 2)], "XY"), "occur among the tokens"),
    (lambda: corrupt_spans("abcdef", [(1, 2)], "XX"), "repeat"),
    (lambda: random_spans(1, rng()), "length=1"),
    (lambda: random_spans(9, rng(), fraction=1.0), "fraction=1.0"),
    (lambda: random_spans(9, rng(), fraction=0.0), "fraction=0.0"),
    (lambda: random_spans(9, rng(), mean_length=0.5), "mean_length=0.5"),
    (lambda: ToyTask("rotate"), "name='rotate'"),
    (lambda: ToyTask(letters=27), "letters=27"),
    (lambda: ToyTask(length=0), "length=0"),
    (lambda: ToyTask(length=5, min_length=6), "min_length=6"),
    (lambda: ToyTask().batch(0, rng()), "batch_size=0"),
    (lambda: ToyTask().encode("xyz"), "text='xyz'"),
    (lambda: ToyTask().encode(""), "at least one"),
    (lambda: ToyTask(min_length=3).pairs([torch.tensor([], dtype=torch.int64)]), "length >= 1"),
])
def test_bad_input(call, match):
    with pytest.raises(ValueError, match=match):
        call()
