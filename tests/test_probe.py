"""The pieces of chapter 3's stored experiments that can be checked by hand."""

import torch

from benchmarks.probe import linear_probe, without_spaces
from benchmarks.recall import KEYS, PAIRS, UNSEEN, recall_batch
from d2lmini import Vocabulary


def test_letters_know_where_their_words_ended():
    vocab = Vocabulary()
    letters, ends = without_spaces(vocab.encode("at sea a "), vocab.ids[" "])
    assert vocab.decode(letters) == "atseaa"
    assert ends.tolist() == [False, True, False, False, True, True]
    assert without_spaces(vocab.encode("at"), vocab.ids[" "])[1].tolist() == [False, True]


def test_a_linear_probe_finds_a_linear_rule_and_nothing_in_noise():
    generator = torch.Generator().manual_seed(0)
    x, test = torch.randn(2000, 7, generator=generator), torch.randn(1000, 7, generator=generator)
    direction = torch.randn(7, generator=generator)
    rule = linear_probe(x, x @ direction > 1, test, test @ direction > 1)
    assert rule["accuracy"] > 0.97 and rule["f1"] > 0.95
    coins = torch.rand(3000, generator=generator) > 0.5
    assert abs(linear_probe(x, coins[:2000], test, coins[2000:])["accuracy"] - 0.5) < 0.08  # five deviations


def test_recall_asks_for_the_pairs_of_its_prompt_and_tests_only_unseen_ones():
    for test in (False, True):
        ids = recall_batch(50, torch.Generator().manual_seed(0), test)
        for row in ids.tolist():
            pairs = list(zip(row[::2], row[1::2]))
            assert sorted(pairs[:PAIRS]) == sorted(pairs[PAIRS:]) and len({k for k, _ in pairs}) == PAIRS
            assert all(bool(UNSEEN[k, v - KEYS]) == test for k, v in pairs)
