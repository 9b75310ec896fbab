"""Batches: windows, the 80/10/10 rule, padding."""

import itertools

import pytest
import torch

from d2lmini import MaskedBatch, mask_tokens, masked_batches, pad_batch, padding_mask, random_windows, windows

V, MASK = 28, 28
TEXT = torch.arange(23)


def random_ids(*shape, seed=0):
    return torch.randint(V, shape, generator=torch.Generator().manual_seed(seed))


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_windows_by_hand():
    assert windows(torch.arange(7), 3).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert windows(torch.arange(7), 3, 2).tolist() == [[0, 1, 2], [2, 3, 4], [4, 5, 6]]
    assert windows(TEXT, 23).tolist() == [TEXT.tolist()]
    assert windows(TEXT, 5, 100).shape == (1, 5)
    assert windows(TEXT.int(), 3).dtype == torch.int64


def test_random_windows_are_windows_of_the_text_and_reach_all_of_it():
    batches = list(itertools.islice(random_windows(TEXT, 5, 7, seed=0), 100))
    assert all(b.shape == (7, 5) and b.dtype == torch.int64 for b in batches)
    rows = torch.cat(batches)
    assert torch.equal(rows, rows[:, :1] + torch.arange(5))
    # 700 draws of 19 starts: one is missing with a chance below 19 * (18/19)^700 = 7e-16
    assert set(rows[:, 0].tolist()) == set(range(19))


def test_random_windows_follow_their_seed_alone():
    take = lambda seed: torch.stack(list(itertools.islice(random_windows(TEXT, 5, 7, seed), 3)))  # noqa: E731
    torch.manual_seed(1)
    state = torch.get_rng_state()
    first = take(3)
    assert torch.equal(torch.get_rng_state(), state)  # the global generator is left alone
    torch.manual_seed(2)
    assert torch.equal(take(3), first) and not torch.equal(take(4), first)


def test_masking_proportions():
    # 200,000 tokens; each bound is five standard deviations of the binomial, so that a correct rule fails one of the
    # four with a chance of at most 4 * 6e-7 over all seeds (and with this seed never or always).
    ids = random_ids(400, 500)
    batch = mask_tokens(ids, MASK, generator=generator())
    n, chosen = ids.numel(), int(batch.chosen.sum())

    def close(count, trials, p):
        return abs(count - trials * p) < 5 * (trials * p * (1 - p)) ** 0.5
    assert close(chosen, n, 0.15)
    was, now = ids[batch.chosen], batch.inputs[batch.chosen]
    assert close(int((now == MASK).sum()), chosen, 0.8)
    other = int(((now != MASK) & (now != was)).sum())
    assert close(other, chosen, 0.1 * (V - 1) / V)  # one random token in 28 is the one that stood there
    assert close(int((now == was).sum()), chosen, 0.1 + 0.1 / V)


def test_random_tokens_are_uniform_and_never_the_mask():
    ids = random_ids(200, 500)
    batch = mask_tokens(ids, MASK, replace=0, shuffle=1, fraction=0.5, generator=generator())
    drawn = batch.inputs[batch.chosen]
    counts = drawn.bincount(minlength=MASK + 1)
    assert counts[MASK] == 0
    expected = len(drawn) / V
    # Chi-squared with 27 degrees of freedom exceeds 80 with a chance of 4e-7.
    assert ((counts[:V] - expected) ** 2 / expected).sum() < 80
    few = mask_tokens(ids, MASK, replace=0, shuffle=1, num_random=3, generator=generator())
    assert set(few.inputs[few.chosen].tolist()) == {0, 1, 2}


def test_unchosen_tokens_never_change_and_the_input_is_left_alone():
    ids = random_ids(50, 50)
    before = ids.clone()
    for how in (dict(), dict(replace=1.0, shuffle=0.0), dict(replace=0, shuffle=1), dict(replace=0, shuffle=0)):
        batch = mask_tokens(ids, MASK, generator=generator(), **how)
        assert torch.equal(ids, before) and torch.equal(batch.targets, before)
        assert torch.equal(batch.inputs[~batch.chosen], ids[~batch.chosen])
        assert batch.inputs.dtype == torch.int64 and batch.chosen.dtype == torch.bool and batch.mask is None
    assert torch.equal(batch.inputs, ids)  # replace = shuffle = 0: all that is chosen stays
    always = mask_tokens(ids, MASK, replace=1.0, shuffle=0.0)
    assert (always.inputs[always.chosen] == MASK).all() and always.chosen.any()


def test_padding_is_never_chosen():
    ids, mask = random_ids(3, 500), padding_mask([500, 20, 0])
    batch = mask_tokens(ids, MASK, fraction=0.9, mask=mask, generator=generator())
    assert not batch.chosen[~mask[:, 0, 0]].any() and batch.chosen[1, :20].any()
    assert batch.mask is mask
    same = mask_tokens(ids, MASK, fraction=0.9, mask=torch.arange(500) < 20, generator=generator())
    assert not same.chosen[:, 20:].any()


def test_at_least_one_token_is_chosen():
    mask = padding_mask([0, 1], 5)
    for seed in range(20):
        batch = mask_tokens(random_ids(2, 5), MASK, fraction=1e-6, mask=mask, generator=generator(seed))
        assert batch.chosen.nonzero().tolist() == [[1, 0]]
    places = {tuple(mask_tokens(random_ids(2, 3), MASK, fraction=1e-6, generator=generator(s)).chosen.nonzero()[0].tolist())
              for s in range(200)}
    assert len(places) == 6  # one of six missing: a chance of 6 * (5/6)^200 = 9e-16


def test_masking_follows_its_generator():
    ids = random_ids(7, 50)
    a, b, c = (mask_tokens(ids, MASK, generator=generator(s)) for s in (0, 0, 1))
    assert torch.equal(a.inputs, b.inputs) and torch.equal(a.chosen, b.chosen)
    assert not torch.equal(a.chosen, c.chosen)


def test_masked_batches_mask_each_batch_anew():
    ids = random_ids(7, 50)
    first = list(masked_batches([ids, ids], MASK, seed=3, fraction=0.4))
    again = list(masked_batches([ids, ids], MASK, seed=3, fraction=0.4))
    assert all(isinstance(b, MaskedBatch) for b in first)
    assert not torch.equal(first[0].chosen, first[1].chosen)
    assert all(torch.equal(a.inputs, b.inputs) for a, b in zip(first, again))
    endless = masked_batches(random_windows(TEXT, 5, 7, seed=0), MASK, seed=0)
    assert next(endless).inputs.shape == (7, 5)


def test_pad_batch_by_hand():
    ids, lengths = pad_batch([torch.tensor([1, 2, 3]), torch.tensor([4])], 9)
    assert ids.tolist() == [[1, 2, 3], [4, 9, 9]] and lengths.tolist() == [3, 1]
    assert ids.dtype == lengths.dtype == torch.int64
    assert padding_mask(lengths)[:, 0, 0].tolist() == [[True] * 3, [True, False, False]]


ids0 = random_ids(3, 17)


@pytest.mark.parametrize("call, message", [
    (lambda: windows(TEXT, 24), "the text has 23 characters, fewer than one window of length=24"),
    (lambda: windows(TEXT[:0], 1), "the text has 0 characters"),
    (lambda: windows(TEXT, 0), "length=0 is out of range"),
    (lambda: windows(TEXT, 5.0), "length=5.0 is not an integer"),
    (lambda: windows(TEXT, 5, 0), "stride=0 is out of range"),
    (lambda: windows(TEXT.tolist(), 5), "ids is list"),
    (lambda: windows(TEXT[None], 5), r"ids has shape \(1, 23\); expected \(length,\)"),
    (lambda: windows(TEXT.float(), 5), r"ids is torch\.float32"),
    (lambda: windows(-TEXT, 5), "ids holds the token id -22"),
    (lambda: random_windows(TEXT, 24, 7, 0), "fewer than one window"),  # at once, not with the first batch
    (lambda: random_windows(TEXT, 5, 0, 0), "batch_size=0 is out of range"),
    (lambda: random_windows(TEXT, 5, 7, -1), "seed=-1 is out of range"),
    (lambda: random_windows(TEXT, 5, 7, None), "seed=None is not an integer"),
    (lambda: random_windows(TEXT.bool(), 5, 7, 0), r"ids is torch\.bool"),
    (lambda: mask_tokens(ids0, MASK, fraction=0), r"fraction=0 is outside \(0, 1\)"),
    (lambda: mask_tokens(ids0, MASK, fraction=1), r"fraction=1 is outside \(0, 1\)"),
    (lambda: mask_tokens(ids0, MASK, fraction=float("nan")), "fraction=nan is outside"),
    (lambda: mask_tokens(ids0, MASK, fraction="15%"), "fraction='15%' is not a number"),
    (lambda: mask_tokens(ids0, MASK, replace=-0.1), r"replace=-0.1 is outside \[0, 1\]"),
    (lambda: mask_tokens(ids0, MASK, shuffle=1.1), r"shuffle=1.1 is outside \[0, 1\]"),
    (lambda: mask_tokens(ids0, MASK, replace=0.95), "replace=0.95 and shuffle=0.1 sum to more than 1"),
    (lambda: mask_tokens(ids0, 0), "mask_id=0 is out of range"),
    (lambda: mask_tokens(ids0, None), "mask_id=None is not an integer"),
    (lambda: mask_tokens(ids0, MASK, num_random=-1), "num_random=-1 is out of range"),
    (lambda: mask_tokens(ids0, MASK, generator=3), "generator=3 is not a torch.Generator"),
    (lambda: mask_tokens(ids0.tolist(), MASK), "ids is list"),
    (lambda: mask_tokens(ids0[0], MASK), r"ids has shape \(17,\)"),
    (lambda: mask_tokens(ids0 - 99, MASK), "ids holds the token id -"),
    (lambda: mask_tokens(ids0[:, :0], MASK), "ids holds no real token"),
    (lambda: mask_tokens(ids0, MASK, mask=padding_mask([0, 0, 0], 17)), "ids holds no real token"),
    (lambda: mask_tokens(ids0, MASK, mask=torch.ones(3, 1, 1, 17)), r"mask is torch\.float32"),
    (lambda: mask_tokens(ids0, MASK, mask=padding_mask([5, 2], 17)), r"mask has shape \(2, 1, 1, 17\)"),
    (lambda: mask_tokens(ids0, MASK, mask=torch.ones(3, 17, dtype=torch.bool)), r"mask has shape \(3, 17\)"),
    (lambda: masked_batches([ids0], MASK, seed=-1), "seed=-1 is out of range"),
    (lambda: next(masked_batches([ids0], MASK, seed=0, fraction=2)), r"fraction=2 is outside \(0, 1\)"),
    (lambda: pad_batch([], 0), r"sequences=\[\] is not a list of tensors"),
    (lambda: pad_batch(None, 0), "sequences=None is not a list"),
    (lambda: pad_batch([TEXT, TEXT[:0]], 0), r"sequences have lengths \[23, 0\]"),
    (lambda: pad_batch([TEXT, ids0], 0), r"sequences\[1\] has shape \(3, 17\)"),
    (lambda: pad_batch([[1, 2]], 0), r"sequences\[0\] is list"),
    (lambda: pad_batch([TEXT.float()], 0), r"sequences\[0\] is torch\.float32"),
    (lambda: pad_batch([TEXT], -1), "pad_id=-1 is out of range"),
])
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
