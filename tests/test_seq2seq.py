"""The encoder-decoder: what each side may see, padding, cache, decoding, and parity with PyTorch's layer."""

import pytest
import torch
from torch import nn

from d2lmini.batches import pad_batch
from d2lmini.blocks import Block
from d2lmini.generation import Cache
from d2lmini.masks import causal_mask, padding_mask
from d2lmini.models import Config
from d2lmini.seq2seq import EncoderDecoder, exact_match, greedy_decode, pair_batch, seq2seq_loss
from d2lmini.tasks import ToyTask
from d2lmini.training import fit, seed_everything

V, S, T, D, H = 13, 7, 5, 22, 11  # primes where the wiring allows, so that a transposition cannot pass


def make(positions="learned", seed=0, **changes):
    torch.manual_seed(seed)
    config = Config(**{**dict(vocab_size=V, max_len=S, d_model=D, num_heads=H, num_layers=2, positions=positions,
                              d_ff=17), **changes})
    model = EncoderDecoder(config).eval()
    with torch.no_grad():  # far from zero, so that a leak would show
        model.encoder.tokens.weight.normal_()
    return model


def ids(*shape, seed=1):
    return torch.randint(V, shape, generator=torch.Generator().manual_seed(seed))


def test_shapes_and_trace():
    model, trace = make(), {}
    assert model(ids(3, S), ids(3, T, seed=2), trace=trace).shape == (3, T, V)
    assert {name: tuple(w.shape) for name, w in trace.items()} == {
        "encoder.0.self": (3, H, S, S), "encoder.1.self": (3, H, S, S), "decoder.0.self": (3, H, T, T),
        "decoder.0.cross": (3, H, T, S), "decoder.1.self": (3, H, T, T), "decoder.1.cross": (3, H, T, S)}
    for weights in trace.values():
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
    above = ~causal_mask(T)
    assert (trace["decoder.0.self"][..., above] == 0).all() and (trace["decoder.0.cross"] > 0).all()


def test_trace_changes_nothing():
    model = make()
    torch.testing.assert_close(model(ids(3, S), ids(3, T)), model(ids(3, S), ids(3, T), trace={}), atol=1e-5, rtol=0)


@pytest.mark.parametrize("positions", ["learned", "rotary", "sinusoidal"])
@pytest.mark.parametrize("trace", [None, {}])
def test_the_targets_future_changes_nothing_before_it(positions, trace):
    model, source, target = make(positions), ids(3, S), ids(3, T, seed=2)
    other = target.clone()
    other[:, 3:] = (other[:, 3:] + 1) % V
    a, b = model(source, target, trace=trace), model(source, other, trace=trace)
    assert torch.equal(a[:, :3], b[:, :3])
    assert not torch.allclose(a[:, 3:], b[:, 3:])


def test_every_target_position_sees_the_entire_source():
    model, source, target = make(), ids(1, S), ids(1, T, seed=2)
    before = model(source, target)
    for s in range(S):
        other = source.clone()
        other[0, s] = (other[0, s] + 1) % V
        assert ((model(other, target) - before).abs().amax(-1) > 1e-6).all()


@pytest.mark.parametrize("positions", ["learned", "rotary"])
def test_a_ragged_batch_equals_each_string_alone(positions):
    model = make(positions)
    sources = [ids(n, seed=n) for n in (3, 7, 1)]
    targets = [ids(n, seed=10 + n) for n in (5, 2, 3)]
    batch = pair_batch(sources, targets, start_id=12, pad_id=4)
    together = model(batch.source, batch.inputs, batch.source_mask)
    for row, (source, target) in enumerate(zip(sources, targets)):
        alone = model(source[None], torch.cat((torch.tensor([12]), target[:-1]))[None])
        torch.testing.assert_close(together[row, :len(target)], alone[0], atol=1e-5, rtol=0)


def test_what_is_written_into_the_padding_counts_for_nothing():
    model = make()
    sources, targets = [ids(3), ids(7)], [ids(4), ids(2)]
    losses = [seq2seq_loss(model, pair_batch(sources, targets, 12, pad)) for pad in (0, 9)]
    assert losses[0].shape == (6,)
    torch.testing.assert_close(losses[0], losses[1], atol=1e-5, rtol=0)
    alone = torch.cat([seq2seq_loss(model, pair_batch([s], [t], 12)) for s, t in zip(sources, targets)])
    torch.testing.assert_close(losses[0], alone, atol=1e-5, rtol=0)


def test_loss_by_hand():
    model = make()
    batch = pair_batch([ids(3)], [torch.tensor([2, 5])], start_id=12)
    logits = model(batch.source, torch.tensor([[12, 2]]))
    expected = -logits.log_softmax(-1)[0, [0, 1], [2, 5]]
    torch.testing.assert_close(seq2seq_loss(model, batch), expected)


def test_pair_batch_by_hand():
    batch = pair_batch([torch.tensor([1, 2, 3]), torch.tensor([4])], [torch.tensor([5]), torch.tensor([6, 7])], 9, 0)
    assert batch.source.tolist() == [[1, 2, 3], [4, 0, 0]]
    assert batch.inputs.tolist() == [[9, 5], [9, 6]]
    assert batch.targets.tolist() == [[5, 0], [6, 7]]
    assert batch.source_mask.tolist() == [[[[True, True, True]]], [[[True, False, False]]]]
    assert batch.real.tolist() == [[True, False], [True, True]]


@pytest.mark.parametrize("positions", ["learned", "rotary"])
def test_cached_logits_equal_uncached_at_every_step(positions):
    model, target = make(positions), ids(2, T, seed=2)
    source, lengths = pad_batch([ids(7), ids(4)], 0)
    mask = padding_mask(lengths)
    with torch.no_grad():
        memory, cache = model.encode(source, mask), Cache(T)
        whole = model.decode(target, memory, mask)
        for t in range(T):
            step = model.decode(target[:, t:t + 1], memory, mask, cache=cache)
            torch.testing.assert_close(step[:, 0], whole[:, t], atol=1e-5, rtol=0)
    assert cache.length == T


def test_cross_keys_and_values_are_computed_once_a_source():
    model, calls = make(), []
    for block in model.decoder.blocks:
        block.cross_attention.key.register_forward_hook(lambda *_: calls.append(1))
    greedy_decode(model, ids(2, S), start_id=12, max_new=T)
    assert len(calls) == 2  # one per block, not one per token
    greedy_decode(model, ids(2, S), start_id=12, max_new=T, method="buffer")
    assert len(calls) == 2 + 2 * T


@pytest.mark.parametrize("end_id", [None, 3])
def test_both_ways_to_decode_write_the_same(end_id):
    model = make()
    source, lengths = pad_batch([ids(n, seed=n) for n in (3, 7, 5)], 0)
    cached, buffered = (greedy_decode(model, source, 12, S, padding_mask(lengths), end_id=end_id, method=m)
                        for m in ("cache", "buffer"))
    assert torch.equal(cached, buffered)
    for row, n in enumerate(lengths):
        alone = greedy_decode(model, source[row:row + 1, :n], 12, S, end_id=end_id)
        assert torch.equal(alone[0], cached[row, :alone.shape[1]])


def test_decoding_stops_at_the_end_token_and_fills_up_with_it():
    model = make()
    free = greedy_decode(model, ids(1, S), 12, S)[0].tolist()
    end = free[2]
    first = free.index(end)
    assert greedy_decode(model, ids(1, S), 12, S, end_id=end)[0].tolist() == free[:first + 1]


def test_decoding_leaves_mode_and_random_state():
    model = make(dropout=0.3).train()
    state = torch.get_rng_state()
    a, b = (greedy_decode(model, ids(2, S), 12, T) for _ in range(2))
    assert model.training and torch.equal(a, b) and torch.equal(state, torch.get_rng_state())


def test_exact_match_by_hand():
    model = make()
    source = ids(4, S)
    answer = greedy_decode(model, source, 12, T)
    wrong = answer.clone()
    wrong[0, 2] = (wrong[0, 2] + 1) % V
    assert exact_match(model, pair_batch(list(source), list(answer), 12)) == 1
    assert exact_match(model, pair_batch(list(source), list(wrong), 12)) == 0.75


@pytest.mark.parametrize("norm_first", [True, False])
def test_the_block_equals_pytorchs_decoder_layer(norm_first):
    torch.manual_seed(0)
    ours = Block(D, H, 17, cross=True, norm="layer", norm_first=norm_first, activation="gelu", bias=True, qkv_bias=True)
    theirs = nn.TransformerDecoderLayer(D, H, 17, dropout=0.0, activation="gelu", batch_first=True,
                                        norm_first=norm_first)
    for a, b in ((ours.self_attention, theirs.self_attn), (ours.cross_attention, theirs.multihead_attn)):
        b.in_proj_weight.data = torch.cat((a.query.weight, a.key.weight, a.value.weight)).data
        b.in_proj_bias.data = torch.randn(3 * D)
        for part, bias in zip((a.query, a.key, a.value), b.in_proj_bias.data.split(D)):
            part.bias.data = bias
        b.out_proj.load_state_dict(a.out.state_dict())
    theirs.linear1.load_state_dict(ours.feed_forward.up.state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward.down.state_dict())
    for a, b in zip((ours.self_norm, ours.cross_norm, ours.ff_norm), (theirs.norm1, theirs.norm2, theirs.norm3)):
        a.weight.data, a.bias.data = torch.randn(D), torch.randn(D)
        b.load_state_dict(a.state_dict())
        a.eps = b.eps
    x, memory, lengths = torch.randn(3, T, D), torch.randn(3, S, D), torch.tensor([7, 2, 5])
    expected = theirs(x, memory, tgt_mask=~causal_mask(T), memory_key_padding_mask=~padding_mask(lengths, S)[:, 0, 0])
    torch.testing.assert_close(ours(x, causal_mask(T), memory, padding_mask(lengths, S)), expected, atol=1e-5, rtol=0)


def test_gradients_are_finite_and_reach_everything():
    model = make().train()
    seq2seq_loss(model, pair_batch([ids(3), ids(7)], [ids(4), ids(2)], 12)).mean().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    assert all(p.grad.abs().sum() > 0 for p in model.parameters())


def test_shared_and_separate_tables():
    config = Config(V, S, d_model=D, num_heads=H, num_layers=1)
    shared = EncoderDecoder(config)
    assert shared.encoder.tokens is shared.decoder.tokens
    apart = EncoderDecoder(config, Config(5, S, d_model=D, num_heads=H, num_layers=1), shared=False)
    assert apart(ids(2, S), torch.zeros(2, T, dtype=torch.int64)).shape == (2, T, 5)


def test_an_encoder_without_blocks_works():
    torch.manual_seed(0)
    shape = dict(vocab_size=V, max_len=S, d_model=D, num_heads=H, positions="learned")
    model = EncoderDecoder(Config(num_layers=0, **shape), Config(num_layers=1, **shape))
    assert model(ids(2, S), ids(2, T)).shape == (2, T, V)


def test_it_learns_to_copy_in_a_minute_of_small_steps():
    task = ToyTask("copy", length=4, letters=5)
    seed_everything(0)
    model = EncoderDecoder(Config(task.vocab_size, 4, d_model=32, num_heads=2, num_layers=1, positions="learned"))
    history = fit(model, seq2seq_loss, task.batches(32, 0), steps=150, optimizers=torch.optim.AdamW(model.parameters(), 0.01))
    assert history.losses[-1] < 0.3 * history.losses[0]


@pytest.mark.parametrize("call, match", [
    (lambda m: m(ids(2, 0), ids(2, T)), "source has length 0"),
    (lambda m: m(ids(2, S + 1), ids(2, T)), "source has length 8, longer than max_len=7"),
    (lambda m: m(ids(2, S), ids(2, 0)), "target has length 0"),
    (lambda m: m(ids(2, S), ids(3, T)), "target holds 3 sequences and the source 2"),
    (lambda m: m(ids(2, S) + V, ids(2, T)), "source holds the token id"),
    (lambda m: m(ids(2, S), ids(2, T) + V), "target holds the token id"),
    (lambda m: m(ids(2, S), ids(2, T), torch.ones(2, 1, 1, S)), "boolean"),
    (lambda m: m(ids(2, S), ids(2, T), torch.ones(2, 1, 1, S + 1, dtype=torch.bool)), "broadcast"),
    (lambda m: greedy_decode(m, ids(2, S), 12, S + 1), "max_new=8"),
    (lambda m: greedy_decode(m, ids(2, S), V, T), "start_id=13"),
    (lambda m: greedy_decode(m, ids(2, S), 12, T, method="beam"), "method='beam'"),
    (lambda m: pair_batch([ids(3)], [ids(2), ids(2)], 12), "1 sources and 2 targets"),
    (lambda m: pair_batch([ids(0)], [ids(2)], 12), "length >= 1"),
    (lambda m: EncoderDecoder(Config(V, S, d_model=8), Config(V, S, d_model=16)), "equal widths"),
    (lambda m: EncoderDecoder(Config(V, S), Config(V + 1, S)), "shared=False"),
])
def test_bad_input(call, match):
    with pytest.raises(ValueError, match=match):
        call(make())


def test_a_cache_serves_one_source():
    model, cache = make(), Cache(T)
    with torch.no_grad():
        model.decode(ids(2, 1), model.encode(ids(2, S)), cache=cache)
        with pytest.raises(ValueError, match="another memory"):
            model.decode(ids(2, 1), model.encode(ids(2, S)), cache=cache)
