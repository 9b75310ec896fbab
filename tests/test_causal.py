"""The causal promise in every path, bit for bit; the cache against a full forward pass; parity with torch.nn."""

import pytest
import torch
from small_decoder import LENGTH, V, left_padded, make_model, read_cached, some_ids
from torch import nn

from d2lmini import Cache, padding_mask, prefix_mask

# --- the causal promise: change the future, and the past does not move, bit for bit

PATHS = {
    "fused": lambda model, ids: model(ids),
    "traced": lambda model, ids: model(ids, trace={}),
    "cached": lambda model, ids: read_cached(model, ids, first=1),
    "cached after a prompt": lambda model, ids: read_cached(model, ids, first=4),
    "right padding": lambda model, ids: model(ids, padding_mask([11, 8, 9, 11, 10], LENGTH)),
    "right padding, traced": lambda model, ids: model(ids, padding_mask([11, 8, 9, 11, 10], LENGTH), trace={}),
    "left padding": lambda model, ids: model(ids, ~padding_mask([0, 3, 2, 0, 1], LENGTH), positions=(
        torch.arange(LENGTH) - torch.tensor([0, 3, 2, 0, 1])[:, None]).clamp(min=0)),
}


@pytest.mark.parametrize("positions", ["rotary", "learned", "sinusoidal", "none"])
@pytest.mark.parametrize("path", PATHS)
def test_changing_the_future_leaves_the_past_bit_for_bit(path, positions):
    model, ids = make_model(positions=positions), some_ids()
    for t in (4, 8, LENGTH - 1):
        other = ids.clone()
        other[:, t:] = (ids[:, t:] + 1) % V
        before, after = PATHS[path](model, ids), PATHS[path](model, other)
        assert torch.equal(before[:, :t], after[:, :t])
        real = slice(0, 1) if "padding" in path else slice(None)  # a padded row may not see the changed token
        assert not torch.equal(before[real, t:], after[real, t:])


def test_the_future_does_reach_the_past_without_the_causal_mask():
    model, ids = make_model(), some_ids()
    other = ids.clone()
    other[:, -1] = (ids[:, -1] + 1) % V
    full = prefix_mask(LENGTH, LENGTH)
    assert (model(ids, full, causal=False) - model(other, full, causal=False))[:, 0].abs().max() > 1e-4


# --- the cache

@pytest.mark.parametrize("positions", ["rotary", "learned", "sinusoidal", "none"])
@pytest.mark.parametrize("first", [1, 4, LENGTH])
def test_cached_and_uncached_logits_are_equal_at_every_step(positions, first):
    model, ids = make_model(positions=positions), some_ids()
    torch.testing.assert_close(read_cached(model, ids, first), model(ids), atol=1e-5, rtol=0)


def test_each_padded_prompt_reads_as_it_does_alone():
    model = make_model()
    ids, lengths, mask, positions = left_padded()
    together = model(ids, mask, positions=positions)
    for b, n in enumerate(lengths.tolist()):
        torch.testing.assert_close(together[b, -n:], model(ids[b:b + 1, -n:])[0], atol=1e-5, rtol=0)


def test_a_cache_refuses_a_second_prompt_another_batch_another_model_and_gradients():
    model, ids = make_model(), some_ids()
    cache = Cache(12)
    with pytest.raises(ValueError, match="gradients are on"):
        model(ids, cache=cache)
    with torch.no_grad():
        model(ids, cache=cache)
        with pytest.raises(ValueError, match=r"already holds 11 tokens .* make a new Cache\(12\)"):
            model(ids, cache=cache)
        with pytest.raises(ValueError, match="filled with 5 sequences, 2 heads of width 14, and got 3, 2 and 14"):
            model(ids[:3, :1], cache=cache)
        with pytest.raises(ValueError, match="filled with 5 sequences, 2 heads of width 14, and got 5, 1 and 28"):
            make_model(num_heads=1)(ids[:, :1], cache=cache)
        with pytest.raises(ValueError, match="no layer 'decoder.3.self'"):
            make_model(num_layers=4)(ids[:, :1], cache=cache)
        model(ids[:, :1], cache=cache)
        with pytest.raises(ValueError, match="capacity=12 and holds 12 tokens; 1 more"):
            model(ids[:, :1], cache=cache)
    with pytest.raises(ValueError, match="capacity=0"):
        Cache(0)


def test_a_refused_step_leaves_the_cache_usable():
    model, ids = make_model(), some_ids()
    cache = Cache(LENGTH)
    with torch.no_grad():
        model(ids[:, :-1], cache=cache)
        with pytest.raises(ValueError):
            model(ids, cache=cache)
        last = model(ids[:, -1:], cache=cache)
    torch.testing.assert_close(last, model(ids)[:, -1:], atol=1e-5, rtol=0)


def test_once_makes_keys_and_values_a_single_time():
    cache, calls = Cache(3), []
    pair = torch.zeros(1), torch.ones(1)
    for _ in range(2):
        assert cache.once("decoder.0.cross", lambda: calls.append(1) or pair) is pair
    assert len(calls) == 1


# --- parity with torch.nn under a causal mask

@pytest.mark.parametrize("norm_first", [True, False])
def test_the_decoders_blocks_agree_with_torchs_layers_under_a_causal_mask(norm_first):
    model = make_model(norm="layer", norm_first=norm_first, activation="gelu", bias=True, qkv_bias=True,
                       positions="learned")
    c = model.config
    ids = some_ids()
    x = model.tower.added(model.tower.tokens(ids), torch.arange(LENGTH))
    future = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)  # torch.nn's polarity: True = may NOT attend
    for block in model.tower.blocks:
        layer = nn.TransformerEncoderLayer(c.d_model, c.num_heads, c.d_ff, 0.0, "gelu", batch_first=True,
                                           norm_first=norm_first).eval()
        a = block.self_attention
        with torch.no_grad():
            layer.self_attn.in_proj_weight.copy_(torch.cat((a.query.weight, a.key.weight, a.value.weight)))
            layer.self_attn.in_proj_bias.copy_(torch.cat((a.query.bias, a.key.bias, a.value.bias)))
        for theirs, ours in ((layer.self_attn.out_proj, a.out), (layer.linear1, block.feed_forward.up),
                             (layer.linear2, block.feed_forward.down), (layer.norm1, block.self_norm),
                             (layer.norm2, block.ff_norm)):
            theirs.load_state_dict(ours.state_dict())
        x = layer(x, src_mask=future)
    x = x if model.tower.norm is None else model.tower.norm(x)
    torch.testing.assert_close(model.states(ids), x, atol=1e-5, rtol=0)
