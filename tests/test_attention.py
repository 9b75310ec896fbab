"""Attention: hand values, both paths, PyTorch's own module, and the properties that every variant must keep."""

import math

import pytest
import torch
from torch import nn

from d2lmini import MultiHeadAttention, Rotary, attention, attention_weights, causal_mask, padding_mask

B, H, T, S, DK, DV = 2, 3, 5, 11, 7, 13
PATHS = {"fused": None, "traced": {}}


def tensors(*shapes, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator) for shape in shapes]


def qkv(seed=0):
    return tensors((B, H, T, DK), (B, H, S, DK), (B, H, S, DV), seed=seed)


def random_mask(seed=1):
    mask = torch.rand(B, H, T, S, generator=torch.Generator().manual_seed(seed)) < 0.5
    mask[..., 0] = True  # no row without a key
    mask[1, 2, 3] = False  # but one
    return mask


def test_weights_by_hand():
    # One query, three keys, width 1: scores 1, 2, 2.5 as in chapter 1's full row.
    q, k = torch.ones(1, 1, 1, 1), torch.tensor([1.0, 2.0, 2.5]).view(1, 1, 3, 1)
    weights = attention_weights(q, k)[0, 0, 0]
    assert weights.tolist() == pytest.approx([0.1220, 0.3315, 0.5465], abs=1e-4)
    weights = attention_weights(q, torch.tensor([1.0, 2.0, 4.0]).view(1, 1, 3, 1), torch.tensor([True, True, False]))
    assert weights[0, 0, 0].tolist() == pytest.approx([0.2689, 0.7311, 0.0], abs=1e-4)
    assert weights[0, 0, 0, 2] == 0.0  # exactly


def test_scores_are_scaled_by_the_root_of_the_head_width():
    # q.k is 4 and 0; with d_k = 4 the scores are 2 and 0.
    q, k = torch.ones(1, 1, 1, 4), torch.stack((torch.ones(4), torch.zeros(4))).view(1, 1, 2, 4)
    assert attention_weights(q, k)[0, 0, 0, 0].item() == pytest.approx(1 / (1 + math.exp(-2)), rel=1e-6)


def test_values_by_hand():
    # Equal scores: the mean of the allowed values.
    q, k, v = torch.zeros(1, 1, 2, 1), torch.zeros(1, 1, 2, 1), torch.tensor([[2.0, 10.0], [4.0, 20.0]]).view(1, 1, 2, 2)
    for trace in (None, {}):
        assert attention(q, k, v, trace=trace)[0, 0].tolist() == [[3.0, 15.0], [3.0, 15.0]]
        assert attention(q, k, v, causal_mask(2), trace=trace)[0, 0].tolist() == [[2.0, 10.0], [3.0, 15.0]]


def test_rows_sum_to_one_or_to_zero():
    q, k, _ = qkv()
    for mask in (None, random_mask()):
        weights = attention_weights(q, k, mask)
        assert weights.shape == (B, H, T, S) and (weights >= 0).all()
        sums = weights.sum(-1)
        if mask is not None:
            assert (weights[~mask] == 0).all()
            assert sums[1, 2, 3] == 0
            sums[1, 2, 3] = 1
        torch.testing.assert_close(sums, torch.ones(B, H, T))


@pytest.mark.parametrize("mask", [None, random_mask(), padding_mask([11, 4]), torch.tensor(True),
                                  torch.arange(S) < 6, torch.ones(T, 1, dtype=torch.bool), padding_mask([0, 5], S)])
def test_fused_equals_traced_in_values_and_gradients(mask):
    results = []
    for trace in (None, {}):
        inputs = [x.requires_grad_() for x in qkv()]
        out = attention(*inputs, mask, trace=trace)
        assert out.shape == (B, H, T, DV)
        out.square().sum().backward()
        results.append([out.detach()] + [x.grad for x in inputs])
    for fused, traced in zip(*results):
        torch.testing.assert_close(fused, traced, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("path", PATHS)
def test_a_row_with_every_key_masked_gives_zeros_and_finite_gradients(path):
    inputs = [x.requires_grad_() for x in qkv()]
    mask = torch.ones(T, S, dtype=torch.bool)
    mask[2] = False
    out = attention(*inputs, mask, trace=None if path == "fused" else {})
    assert (out[:, :, 2] == 0).all() and (out[:, :, [0, 1, 3, 4]] != 0).all()
    out.sum().backward()
    assert all(x.grad.isfinite().all() for x in inputs)
    assert (inputs[0].grad[:, :, 2] == 0).all()  # a blind query learns nothing


@pytest.mark.parametrize("path", PATHS)
def test_no_keys_at_all_give_zeros(path):
    q, k, v = qkv()
    out = attention(q, k[:, :, :0], v[:, :, :0], trace=None if path == "fused" else {})
    assert out.shape == (B, H, T, DV) and (out == 0).all()


@pytest.mark.parametrize("path", PATHS)
def test_the_future_changes_nothing_before_it_bit_for_bit(path):
    q, k, v = tensors((B, H, S, DK), (B, H, S, DK), (B, H, S, DV))
    out = attention(q, k, v, causal_mask(S), trace=None if path == "fused" else {})
    for t in range(1, S):
        changed = [x.clone() for x in (q, k, v)]
        for x in changed:
            x[:, :, t:] = 100 * torch.randn_like(x[:, :, t:])
        again = attention(*changed, causal_mask(S), trace=None if path == "fused" else {})
        assert torch.equal(again[:, :, :t], out[:, :, :t])
        assert not torch.equal(again[:, :, t:], out[:, :, t:])


def test_trace_holds_the_weights_detached_and_before_dropout():
    q, k, v = qkv()
    q.requires_grad_()
    trace = {"mine": 1}
    torch.manual_seed(0)
    attention(q, k, v, dropout=0.5, trace=trace, name="layer.3")
    assert list(trace) == ["mine", "layer.3"]
    assert not trace["layer.3"].requires_grad
    torch.testing.assert_close(trace["layer.3"], attention_weights(q, k).detach())


def test_non_contiguous_and_low_precision_inputs():
    q, k, v = qkv()
    loose = [x.transpose(2, 3).contiguous().transpose(2, 3) for x in (q, k, v)]
    torch.testing.assert_close(attention(*loose), attention(q, k, v))
    half = attention(q.bfloat16(), k.bfloat16(), v.bfloat16(), causal_mask(T + 6)[:T])
    assert half.dtype == torch.bfloat16 and half.isfinite().all()


def as_torch(ours, **kwargs):
    """nn.MultiheadAttention with the weights of ours."""
    bias = ours.query.bias is not None or ours.out.bias is not None
    theirs = nn.MultiheadAttention(ours.d_model, ours.num_heads, bias=bias, batch_first=True, **kwargs)
    projections = (ours.query, ours.key, ours.value)
    with torch.no_grad():
        if theirs.in_proj_weight is not None:
            theirs.in_proj_weight.copy_(torch.cat([p.weight for p in projections]))
        else:
            for theirs_weight, p in zip((theirs.q_proj_weight, theirs.k_proj_weight, theirs.v_proj_weight), projections):
                theirs_weight.copy_(p.weight)
        theirs.out_proj.weight.copy_(ours.out.weight)
        if bias:
            theirs.in_proj_bias.copy_(torch.cat([p.bias if p.bias is not None else torch.zeros(ours.d_model)
                                                 for p in projections]))
            theirs.out_proj.bias.copy_(ours.out.bias if ours.out.bias is not None else torch.zeros(ours.d_model))
    return theirs


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("qkv_bias", [False, True])
@pytest.mark.parametrize("cross", [False, True])
def test_parity_with_torch_multihead_attention(bias, qkv_bias, cross):
    torch.manual_seed(0)
    d_model, d_context = 21, 17
    ours = MultiHeadAttention(d_model, H, d_context=d_context if cross else None, bias=bias, qkv_bias=qkv_bias)
    for p in ours.parameters():
        nn.init.normal_(p, std=0.3)
    theirs = as_torch(ours, **(dict(kdim=d_context, vdim=d_context) if cross else {}))
    x = torch.randn(B, T, d_model)
    context = torch.randn(B, S, d_context) if cross else x
    mask = torch.rand(T, context.shape[1]) < 0.6
    mask[:, 0] = True
    trace = {}
    got = ours(x, context if cross else None, mask, trace=trace)
    want, weights = theirs(x, context, context, attn_mask=~mask, average_attn_weights=False)
    torch.testing.assert_close(got, want, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(trace["attention"], weights.detach(), atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(ours(x, context if cross else None, mask), want, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("path", PATHS)
def test_permuting_the_tokens_permutes_the_output(path):
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(21, H), torch.randn(B, S, 21)
    order = torch.randperm(S)
    trace = PATHS[path]
    torch.testing.assert_close(layer(x[:, order], trace=trace), layer(x, trace=trace)[:, order], atol=1e-6, rtol=1e-5)
    with_places = MultiHeadAttention(42, H, rotary=Rotary(14, S))
    y = torch.randn(B, S, 42)
    assert (with_places(y[:, order]) - with_places(y)[:, order]).abs().max() > 1e-3


def test_dropout_acts_in_training_only():
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(21, H, dropout=0.5), torch.randn(B, T, 21)
    assert not torch.equal(layer(x), layer(x))
    trace = {}
    layer(x, trace=trace)
    torch.testing.assert_close(trace["attention"].sum(-1), torch.ones(B, H, T))
    layer.eval()
    assert torch.equal(layer(x), layer(x))


def test_a_call_leaves_nothing_behind_on_the_module():
    layer, x = MultiHeadAttention(21, H), torch.randn(B, T, 21)
    before = set(vars(layer))
    layer(x, trace={})
    assert set(vars(layer)) == before


def test_rotary_positions_count_on_from_a_cache():
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(12, 2, rotary=Rotary(6, 9)), torch.randn(B, 9, 12)
    earlier = layer.keys_values(x[:, :4], torch.arange(4))

    class Fake:  # holds four earlier tokens
        length = 4

        def extend(self, name, k, v):
            return torch.cat((earlier[0], k), dim=2), torch.cat((earlier[1], v), dim=2)
    torch.testing.assert_close(layer(x[:, 4:], mask=causal_mask(9)[4:], cache=Fake()), layer(x, mask=causal_mask(9))[:, 4:])
