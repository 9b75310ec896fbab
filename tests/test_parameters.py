"""Parameter formulas against real modules of every kind, and against the published totals."""

import itertools

import pytest
from torch import nn

from d2lmini import Block, Config, Decoder, Encoder, EncoderDecoder
from d2lmini.parameters import (PUBLISHED, block_parameters, model_parameters, tower_parameters)

SHAPE = dict(d_model=14, num_heads=7, num_layers=3, d_ff=11)


def count(module):
    return sum(p.numel() for p in module.parameters())


def test_a_block_by_hand():
    config = Config(5, 8, d_model=2, num_heads=1, num_layers=1, d_ff=3)
    assert block_parameters(config) == 4 * 4 + 3 * 2 * 3 + 2 * 2 == 38
    assert block_parameters(config, cross=True) == 38 + 16 + 2
    biased = Config(5, 8, d_model=2, num_heads=1, num_layers=1, d_ff=3, norm="layer", activation="gelu", bias=True,
                    qkv_bias=True)
    assert block_parameters(biased) == (16 + 6 + 2) + (12 + 3 + 2) + 8


@pytest.mark.parametrize("bias, qkv_bias, norm, activation", list(itertools.product(
    (False, True), (False, True), ("rms", "layer"), ("swiglu", "gelu"))))
def test_formulas_count_real_modules(bias, qkv_bias, norm, activation):
    for norm_first, positions, tied in ((True, "rotary", True), (False, "learned", False), (True, "sinusoidal", True)):
        config = Config(17, 23, **SHAPE, bias=bias, qkv_bias=qkv_bias, norm=norm, activation=activation,
                        norm_first=norm_first, positions=positions, tied=tied)
        for cross in (False, True):
            block = Block(14, 7, 11, cross=cross, norm=norm, norm_first=norm_first, activation=activation, bias=bias,
                          qkv_bias=qkv_bias)
            assert count(block) == block_parameters(config, cross)
        assert count(Encoder(config)) == count(Decoder(config)) == model_parameters(config)
        assert count(EncoderDecoder(config)) == model_parameters(config, config)


def test_two_towers_with_one_table_or_two():
    encoder, decoder = Config(17, 23, **SHAPE), Config(17, 19, **SHAPE | dict(num_layers=2, d_ff=13), tied=False)
    for shared in (True, False):
        assert count(EncoderDecoder(encoder, decoder, shared=shared)) == model_parameters(encoder, decoder, shared=shared)
    assert model_parameters(encoder, decoder, shared=False) - model_parameters(encoder, decoder) == 17 * 14
    other = Config(29, 19, **SHAPE)
    assert count(EncoderDecoder(encoder, other, shared=False)) == model_parameters(encoder, other, shared=False)


def test_one_block_for_every_layer():
    config = Config(17, 23, **SHAPE)
    model = Encoder(config)
    model.tower.blocks = nn.ModuleList([model.tower.blocks[0]] * 3)
    assert count(model) == tower_parameters(config, distinct=1) == model_parameters(config, distinct=1)
    with pytest.raises(ValueError, match="distinct=4"):
        tower_parameters(config, distinct=4)


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_models_are_counted_to_the_last_parameter(name):
    model = PUBLISHED[name]
    if model.known is not None:
        assert model.total == model.known
    assert abs(model.total / 1e6 / model.says - 1) < 0.07  # the papers round, and one was corrected later
