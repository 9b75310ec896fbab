"""Models: what configs, Encoder and Decoder refuse, and how they say it."""

import dataclasses

import numpy as np
import pytest
import torch

from d2lmini import Config, Decoder, Encoder, causal_mask

V, LIMIT, D = 23, 13, 12
SMALL = Config(V, LIMIT, d_model=D, num_heads=3, num_layers=2)
ids0 = torch.randint(V, (2, 7), generator=torch.Generator().manual_seed(0))


def test_config_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        SMALL.d_model = 24
    assert Config(np.int64(V), LIMIT) == Config(V, LIMIT)


@pytest.mark.parametrize("changes, message", [
    (dict(vocab_size=0), "vocab_size=0 is out of range"), (dict(vocab_size=2.0), "vocab_size=2.0 is not an integer"),
    (dict(max_len=0), "max_len=0 is out of range"), (dict(max_len=None), "max_len=None is not an integer"),
    (dict(d_model=0), "d_model=0 is out of range"), (dict(d_model=13), "d_model=13 does not divide among num_heads=3"),
    (dict(num_heads=0), "num_heads=0 is out of range"), (dict(num_heads=-1), "num_heads=-1 is out of range"),
    (dict(num_heads=12), "head width of 1, which is odd"), (dict(num_layers=-1), "num_layers=-1 is out of range"),
    (dict(num_layers=1.5), "num_layers=1.5 is not an integer"), (dict(d_ff=-1), "d_ff=-1 is out of range"),
    (dict(norm="batch"), "norm='batch' is unknown"), (dict(activation="relu"), "activation='relu' is unknown"),
    (dict(positions="alibi"), "positions='alibi' is unknown"), (dict(positions=None), "positions=None is unknown"),
    (dict(positions="sinusoidal", d_model=15), "d_model=15 is odd; sinusoidal"),
    (dict(dropout=1.0), r"dropout=1.0 is outside \[0, 1\)"), (dict(dropout=float("nan")), "dropout=nan is outside"),
    (dict(norm_first="post"), "norm_first='post' is neither"), (dict(bias="x"), "bias='x' is neither"),
    (dict(qkv_bias=1), "qkv_bias=1 is neither"), (dict(tied=None), "tied=None is neither"),
])
def test_config_refuses_nonsense(changes, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(SMALL, **changes)


@pytest.mark.parametrize("cls", [Encoder, Decoder])
@pytest.mark.parametrize("call, message", [
    (lambda m: type(m)(None), r"config is NoneType; give a Config\("), (lambda m: type(m)({}), "config is dict"),
    (lambda m: m(ids0.tolist()), "ids is list"), (lambda m: m(None), "ids is NoneType"),
    (lambda m: m(ids0.float()), r"ids is torch\.float32"), (lambda m: m(ids0.bool()), r"ids is torch\.bool"),
    (lambda m: m(ids0[0]), r"ids has shape \(7,\).*unsqueeze"), (lambda m: m(torch.tensor(3)), r"ids has shape \(\)"),
    (lambda m: m(ids0 - V), r"ids holds the token id -\d+, outside the vocabulary \[0, 23\)"),
    (lambda m: m(ids0 + V), r"ids holds the token id \d+, outside the vocabulary \[0, 23\)"),
    (lambda m: m(ids0[:, :0]), "length"),
    (lambda m: m(torch.zeros(2, LIMIT + 1, dtype=torch.int64)), "the sequence has length 14, longer than max_len=13"),
    (lambda m: m(ids0, torch.ones(7, 7)), r"mask is torch\.float32"), (lambda m: m(ids0, [[True]]), "mask is list"),
    (lambda m: m(ids0, torch.ones(5, 7, dtype=torch.bool)), r"mask.* \(5, 7\)"),
    (lambda m: m(ids0, causal_mask(7, "meta")), "on meta"), (lambda m: m(ids0, trace=[]), "trace is list"),
    (lambda m: m.head(torch.zeros(2, D + 1)), r"states has shape \(2, 13\); expected \(\.\.\., 12\)"),
])
def test_bad_input(cls, call, message):
    with pytest.raises(ValueError, match=message):
        call(cls(SMALL))


@pytest.mark.parametrize("keywords, message", [
    (dict(causal=False), "causal=False without a mask would let every position see the token it predicts"),
    (dict(causal="no"), "causal='no' is neither True nor False"),
    (dict(positions=[0]), "positions is list"), (dict(positions=torch.arange(6)), r"positions has shape \(6,\)"),
    (dict(positions=torch.arange(7) - 1), "positions reach from -1 to 5"),
    (dict(positions=torch.arange(7) + 7), r"positions reach from 7 to 13; expected values in \[0, max_len=13\)"),
])
def test_bad_input_of_a_decoder(keywords, message):
    with pytest.raises(ValueError, match=message):
        Decoder(dataclasses.replace(SMALL, positions="none"))(ids0, **keywords)
