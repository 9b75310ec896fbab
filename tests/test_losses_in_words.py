"""Perplexity and bits per character on values that can be worked out by hand."""

import math

import pytest
import torch

from d2lmini import bits_per_token, next_token_loss, perplexity


def test_hand_values():
    assert perplexity(0.0) == 1.0 and bits_per_token(0.0) == 0.0
    assert perplexity(math.log(27)) == pytest.approx(27)
    assert bits_per_token(math.log(8)) == pytest.approx(3)
    assert perplexity((math.log(2) + math.log(8)) / 2) == pytest.approx(4)  # probabilities 1/2 and 1/8
    assert perplexity(1e6) == perplexity(math.inf) == math.inf


@pytest.mark.parametrize("function", [perplexity, bits_per_token])
@pytest.mark.parametrize("bad", [-0.1, math.nan, "1.0"])
def test_bad_losses_are_refused(function, bad):
    with pytest.raises(ValueError, match="mean_nats="):
        function(bad)


def test_a_uniform_model_is_in_doubt_among_the_whole_vocabulary():
    losses = next_token_loss(lambda ids: torch.zeros(*ids.shape, 11), torch.randint(11, (2, 6)))
    assert len(losses) == 2 * 5  # six tokens hold five targets
    assert perplexity(losses.mean().item()) == pytest.approx(11, rel=1e-5)
