"""Distributions by hand, and draws against exact ones."""

import math

import pytest
import torch
from small_decoder import V, make_model, some_ids

from d2lmini import generate, next_token_distribution
from d2lmini.sampling import make_generator, sample_token

FALSE_ALARM = 1e-6  # a correct sampler fails one of these chi-square tests about once in a million seeds

LOGITS = torch.tensor([[0.5, 0.25, 0.125, 0.0625, 0.0625], [0.0625, 0.125, 0.5, 0.0625, 0.25]]).log()


@pytest.mark.parametrize("how, expected", [
    (dict(), [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 16]),
    (dict(temperature=0.5), [64 / 86, 16 / 86, 4 / 86, 1 / 86, 1 / 86]),
    (dict(top_k=2), [2 / 3, 1 / 3, 0, 0, 0]),
    (dict(top_k=4), [8 / 15, 4 / 15, 2 / 15, 1 / 15, 0]),  # of two equals the lower id stays
    (dict(top_k=1), [1, 0, 0, 0, 0]),
    (dict(top_k=5, top_p=1.0), [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 16]),
    (dict(top_p=0.4), [1, 0, 0, 0, 0]),
    (dict(top_p=0.7), [2 / 3, 1 / 3, 0, 0, 0]),
    (dict(top_p=0.8), [4 / 7, 2 / 7, 1 / 7, 0, 0]),
    (dict(top_k=2, top_p=0.6), [1, 0, 0, 0, 0]),  # after top-k the first token holds 2/3
])
def test_adjusted_distributions_by_hand(how, expected):
    p = next_token_distribution(LOGITS, **how)
    assert p.dtype == torch.float32 and p.shape == LOGITS.shape
    torch.testing.assert_close(p[0], torch.tensor(expected, dtype=torch.float32))
    assert p[1].sort(descending=True).values.tolist() == pytest.approx(expected)


def test_temperature_has_its_limits_and_never_overflows():
    torch.testing.assert_close(next_token_distribution(LOGITS, 1e9), torch.full((2, 5), 0.2))
    assert next_token_distribution(1e4 * LOGITS, 1e-30).tolist() == [[1, 0, 0, 0, 0], [0, 0, 1, 0, 0]]


def test_forbidden_tokens_stay_forbidden_and_bad_logits_are_refused():
    p = next_token_distribution(torch.tensor([0.0, -math.inf, 0.0]), top_k=3)
    assert p.tolist() == [0.5, 0.0, 0.5]
    for bad in ([math.nan, 0.0], [math.inf, 0.0], [-math.inf, -math.inf]):
        with pytest.raises(ValueError, match="logits hold a row whose largest value is"):
            next_token_distribution(torch.tensor(bad))
    with pytest.raises(ValueError, match=r"logits is torch.int64 \(3,\)"):
        next_token_distribution(torch.zeros(3, dtype=torch.int64))


@pytest.mark.parametrize("how", [dict(), dict(temperature=0.6), dict(temperature=1.7), dict(top_k=3), dict(top_p=0.8),
                                 dict(temperature=1.3, top_k=4, top_p=0.9)])
def test_draws_follow_the_exact_distribution(how):
    logits = torch.tensor([1.2, 0.1, -0.4, 0.9, -1.5, 0.3, -0.2])
    draws = 20_000
    exact = torch.zeros(7, dtype=torch.float64)  # written out once more, token by token, in plain Python
    weights = [math.exp(z / how.get("temperature", 1.0)) for z in logits.tolist()]
    total, covered = sum(sorted(weights, reverse=True)[:how.get("top_k", 7)]), 0.0
    for i in sorted(range(7), key=lambda i: -weights[i])[:how.get("top_k", 7)]:
        if covered < how.get("top_p", 1.0):
            exact[i] = weights[i]
            covered += weights[i] / total
    exact /= exact.sum()
    drawn = sample_token(logits.expand(draws, 7), make_generator(7, None), **how)
    counts = torch.bincount(drawn, minlength=7).double()
    kept = exact > 0
    assert counts[~kept].sum() == 0
    chi_square = ((counts - draws * exact)[kept] ** 2 / (draws * exact[kept])).sum()
    freedom = int(kept.sum()) - 1
    # The tail of chi-square with n degrees of freedom is the regularised upper gamma function at (n/2, x/2).
    tail = torch.special.gammaincc(torch.tensor(freedom / 2, dtype=torch.float64), chi_square / 2)
    assert tail > FALSE_ALARM


def test_the_chi_square_test_notices_a_small_error():
    """The test above has teeth: the same draws against a temperature that is 10% off."""
    logits = torch.tensor([1.2, 0.1, -0.4, 0.9, -1.5, 0.3, -0.2])
    drawn = sample_token(logits.expand(20_000, 7), make_generator(7, None), temperature=1.1)
    counts, exact = torch.bincount(drawn, minlength=7).double(), 20_000 * logits.double().softmax(-1)
    tail = torch.special.gammaincc(torch.tensor(3.0, dtype=torch.float64), ((counts - exact) ** 2 / exact).sum() / 2)
    assert tail < FALSE_ALARM


def test_a_generated_token_follows_the_models_distribution():
    model, prompt = make_model(), some_ids(1, 3)
    with torch.no_grad():
        model.tower.tokens.weight *= 6  # make the distribution uneven
        exact = 4000 * model(prompt)[0, -1].double().softmax(-1)
    drawn = torch.stack(generate(model, prompt.expand(4000, 3), 1, seed=0))[:, -1]
    counts = torch.bincount(drawn, minlength=V).double()
    big = exact >= 5  # the usual rule for the chi-square approximation; the rest is pooled
    counts = torch.cat((counts[big], counts[~big].sum()[None]))
    exact = torch.cat((exact[big], exact[~big].sum()[None]))
    counts, exact = counts[exact > 0], exact[exact > 0]
    assert len(exact) >= 4
    chi_square = ((counts - exact) ** 2 / exact).sum()
    tail = torch.special.gammaincc(torch.tensor((len(exact) - 1) / 2, dtype=torch.float64), chi_square / 2)
    assert tail > FALSE_ALARM


@pytest.mark.parametrize("size, top_p, kept", [(10, 0.8, 8), (10, 0.9, 9), (20, 0.4, 8), (20, 0.45, 9), (20, 0.55, 11), (10, 1e-12, 1)])
def test_top_p_keeps_the_fewest_of_equal_tokens(size, top_p, kept):
    assert (next_token_distribution(torch.zeros(size), top_p=top_p) > 0).sum() == kept
