"""Models: configs, and what Encoder and Decoder must keep: causality, padding invariance, equivariance, parameter counts."""

import copy
import dataclasses

import pytest
import torch
from torch import nn

from d2lmini import (Config, Decoder, Encoder, causal_mask, mask_tokens, masked_loss, pad_batch, padding_mask,
                     prefix_mask)

V, LIMIT, D, H, LAYERS = 23, 13, 12, 3, 2
SMALL = Config(V, LIMIT, d_model=D, num_heads=H, num_layers=LAYERS)
POSITIONS = ("rotary", "learned", "sinusoidal", "none")
every_kind = pytest.mark.parametrize("kind", [
    dict(positions=p, norm_first=n, norm=m, activation=a) for p in POSITIONS
    for n, m, a in ((True, "rms", "swiglu"), (False, "layer", "gelu"))], ids=lambda k: f"{k['positions']}-{k['norm_first']}")
both_paths = pytest.mark.parametrize("traced", [False, True], ids=["fused", "traced"])


def build(kind, seed=0, config=SMALL, **changes):
    torch.manual_seed(seed)
    model = kind(dataclasses.replace(config, **changes))
    nn.init.normal_(model.tower.tokens.weight, std=0.5)  # logits that differ by more than rounding
    return model


def random_ids(*shape, seed=0):
    return torch.randint(V, shape, generator=torch.Generator().manual_seed(seed))


@every_kind
@both_paths
def test_the_future_changes_nothing_before_it_bit_for_bit(kind, traced):
    model, ids = build(Decoder, **kind), random_ids(5, 11)
    run = lambda x: model(x, trace={} if traced else None)  # noqa: E731
    logits = run(ids)
    assert logits.shape == (5, 11, V)
    for t in range(1, 11):
        changed = ids.clone()
        changed[:, t:] = (ids[:, t:] + 1 + random_ids(5, 11 - t, seed=t) % (V - 1)) % V
        again = run(changed)
        assert torch.equal(again[:, :t], logits[:, :t])
        assert (again[:, t] != logits[:, t]).any(dim=-1).all()  # while the changed token itself is seen


def test_the_encoder_does_look_ahead():
    model, ids = build(Encoder), random_ids(5, 11)
    changed = ids.clone()
    changed[:, -1] = (ids[:, -1] + 1) % V
    assert (model(changed)[:, 0] != model(ids)[:, 0]).any(dim=-1).all()


def test_an_encoder_with_the_causal_mask_is_a_decoder():
    encoder, decoder, ids = build(Encoder), build(Decoder, seed=1), random_ids(5, 11)
    decoder.load_state_dict(encoder.state_dict())
    torch.testing.assert_close(encoder(ids, causal_mask(11)), decoder(ids))
    torch.testing.assert_close(encoder(ids, prefix_mask(11, 4)), decoder(ids, prefix_mask(11, 4), causal=False))
    torch.testing.assert_close(decoder(ids, prefix_mask(11, 4)), decoder(ids))  # AND: a mask cannot lift causality


def test_the_prefix_sees_itself_whole_and_nothing_behind():
    model, ids, mask = build(Decoder), random_ids(5, 11), prefix_mask(11, 4)
    logits = model(ids, mask, causal=False)
    changed = ids.clone()
    changed[:, 4:] = (ids[:, 4:] + 1) % V
    assert torch.equal(model(changed, mask, causal=False)[:, :4], logits[:, :4])
    changed = ids.clone()
    changed[:, 3] = (ids[:, 3] + 1) % V
    assert (model(changed, mask, causal=False)[:, 0] != logits[:, 0]).any(dim=-1).all()


@every_kind
@both_paths
def test_padding_moves_neither_logits_nor_loss(kind, traced):
    model = build(Encoder, **kind)
    sequences = [random_ids(n, seed=n) for n in (3, 11, 7)]
    outputs = []
    for pad_id, extra in ((0, 0), (V - 1, 2)):
        ids, lengths = pad_batch(sequences + [random_ids(11 + extra, seed=99)], pad_id)
        mask = padding_mask(lengths)
        logits = model(ids, mask, trace={} if traced else None)
        chosen = mask[:, 0, 0].clone()
        chosen[3] = False  # the long sequence only stretches the batch
        batch = mask_tokens(ids, V - 1, mask=mask)
        batch = dataclasses.replace(batch, inputs=ids, chosen=chosen)
        outputs.append([logits[i, :len(s)] for i, s in enumerate(sequences)] + [masked_loss(model, batch)])
    alone = [model(s[None])[0] for s in sequences]
    for a, b, c in zip(outputs[0], outputs[1], alone + outputs[0][3:]):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(a, c, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("positions", POSITIONS)
def test_left_padding_with_positions_of_its_own(positions):
    model, ids = build(Decoder, positions=positions), random_ids(1, 5)
    padded = torch.cat((torch.zeros(1, 4, dtype=torch.int64), ids), dim=1)
    real = (torch.arange(9) >= 4)[None, None, None]
    places = (torch.arange(9) - 4).clamp(min=0)
    for p in (places, places[None]):
        torch.testing.assert_close(model(padded, real, positions=p)[:, 4:], model(ids), atol=1e-5, rtol=1e-5)


def test_rotary_logits_depend_on_distances_alone():
    ids = random_ids(3, 7)
    shifted = dict(positions=torch.arange(7) + 6)
    model = build(Decoder, positions="rotary")
    torch.testing.assert_close(model(ids, **shifted), model(ids), atol=1e-5, rtol=1e-5)
    model = build(Decoder, positions="sinusoidal")
    assert (model(ids, **shifted) - model(ids)).abs().max() > 1e-3


@pytest.mark.parametrize("positions", POSITIONS)
def test_places_matter_unless_there_are_none(positions):
    model, ids = build(Encoder, positions=positions), random_ids(3, 11)
    order = torch.randperm(11, generator=torch.Generator().manual_seed(1))
    difference = (model(ids[:, order]) - model(ids)[:, order]).abs().max()
    assert difference < 1e-5 if positions == "none" else difference > 1e-3


@every_kind
def test_sequences_of_a_batch_do_not_mix(kind):
    for cls in (Encoder, Decoder):
        model, ids = build(cls, **kind), random_ids(11, 11)  # B = T: a table indexed by the batch axis would show
        torch.testing.assert_close(model(ids)[4:5], model(ids[4:5]), atol=1e-5, rtol=1e-5)


@every_kind
def test_both_paths_agree_and_the_trace_is_the_callers(kind):
    for cls, name in ((Encoder, "encoder"), (Decoder, "decoder")):
        model, ids, mask, trace = build(cls, dropout=0.2, **kind), random_ids(5, 11), padding_mask([11, 1, 4, 0, 7]), {}
        before = {n: set(vars(m)) for n, m in model.named_modules()}
        model(ids, mask, trace=trace)  # training: the trace is taken before dropout
        assert list(trace) == [f"{name}.{i}.self" for i in range(LAYERS)]
        for weights in trace.values():
            assert weights.shape == (5, H, 11, 11) and not weights.requires_grad
            sums = weights.sum(-1)
            torch.testing.assert_close(sums[[0, 1, 2, 4]], torch.ones(4, H, 11))
            assert (sums[3] == 0).all() and (weights[2, :, :, 4:] == 0).all()
        assert {n: set(vars(m)) for n, m in model.named_modules()} == before
        model.eval()
        torch.testing.assert_close(model(ids, mask, trace={}), model(ids, mask), atol=1e-5, rtol=1e-5)


@both_paths
def test_empty_sequences_give_finite_losses_and_gradients(traced):
    model, ids = build(Encoder), random_ids(3, 7)
    model(ids, padding_mask([7, 0, 2]), trace={} if traced else None).logsumexp(-1).sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_parity_with_torch_transformer_encoder():
    ours = build(Encoder, positions="none", norm="layer", activation="gelu", bias=True, qkv_bias=True)
    layer = nn.TransformerEncoderLayer(D, H, 4 * D, 0.0, "gelu", batch_first=True, norm_first=True)
    theirs = nn.TransformerEncoder(layer, LAYERS, nn.LayerNorm(D), enable_nested_tensor=False)
    names = {"self_norm": "norm1", "ff_norm": "norm2", "feed_forward.up": "linear1", "feed_forward.down": "linear2",
             "self_attention.out": "self_attn.out_proj"}
    state, target = ours.tower.state_dict(), {}
    for kind in ("weight", "bias"):
        target[f"norm.{kind}"] = state[f"norm.{kind}"]
        for i in range(LAYERS):
            parts = [state[f"blocks.{i}.self_attention.{p}.{kind}"] for p in ("query", "key", "value")]
            target[f"layers.{i}.self_attn.in_proj_{kind}"] = torch.cat(parts)
            for a, b in names.items():
                target[f"layers.{i}.{b}.{kind}"] = state[f"blocks.{i}.{a}.{kind}"]
    theirs.load_state_dict(target)
    ids = random_ids(5, 11)
    torch.testing.assert_close(ours.states(ids), theirs(ours.tower.tokens(ids)), atol=1e-5, rtol=1e-5)


def count(model):
    return sum(p.numel() for p in model.parameters())


def test_parameter_counts():
    published = Config(29, 64, positions="learned")  # D = 128, 4 heads, 4 blocks, F = 341: the published recipe
    assert published.inner_width == 341 and count(Encoder(published)) == 798_976
    block = 4 * D * D + 3 * D * 32 + 2 * D
    assert count(Encoder(SMALL)) == count(Decoder(SMALL)) == V * D + LAYERS * block + D
    assert count(build(Encoder, tied=False)) == count(Encoder(SMALL)) + V * D
    assert count(build(Encoder, norm_first=False)) == count(Encoder(SMALL)) - D  # no final norm behind a post-norm
    assert count(build(Encoder, positions="sinusoidal")) == count(Encoder(SMALL))
    assert count(build(Encoder, positions="learned")) == count(Encoder(SMALL)) + LIMIT * D
    assert build(Encoder, activation="gelu").config.inner_width == 4 * D
    assert Config(V, LIMIT, d_model=16).inner_width == 43  # 42.67, rounded
    assert build(Encoder, d_ff=17).config.inner_width == 17


def test_a_tied_head_is_the_token_table():
    model, states = build(Encoder), torch.randn(5, D)
    torch.testing.assert_close(model.head(states), states @ model.tower.tokens.weight.T)
    untied = build(Encoder, tied=False)
    torch.testing.assert_close(untied.head(states), states @ untied.untied.weight.T)
    assert not torch.equal(untied.untied.weight, untied.tower.tokens.weight)


def test_logits_are_the_head_of_the_states():
    for model in (build(Encoder), build(Decoder, tied=False)):
        ids = random_ids(2, 7)
        assert model.states(ids).shape == (2, 7, D)
        assert torch.equal(model(ids), model.head(model.states(ids)))


def test_state_travels_through_save_and_copy(tmp_path):
    for kind in (dict(positions="learned"), dict(positions="rotary", tied=False)):
        model, ids = build(Decoder, **kind), random_ids(2, 7)
        torch.save(model.state_dict(), tmp_path / "model.pt")
        fresh = build(Decoder, seed=1, **kind)
        fresh.load_state_dict(torch.load(tmp_path / "model.pt", weights_only=True))
        assert torch.equal(fresh(ids), model(ids)) and torch.equal(copy.deepcopy(model)(ids), model(ids))


def test_int32_and_non_contiguous_ids_mean_the_same():
    model, ids = build(Decoder), random_ids(7, 5)
    assert torch.equal(model(ids.int()), model(ids))
    assert torch.equal(model(ids.T), model(ids.T.contiguous()))


def test_no_blocks_leave_a_table_lookup():
    model, ids = build(Encoder, num_layers=0, positions="none"), random_ids(2, 7)
    torch.testing.assert_close(model.states(ids), model.tower.norm(model.tower.tokens(ids)))
