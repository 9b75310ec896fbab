"""Blocks: norms and feed-forward by hand, parity with PyTorch's layers in both norm orders, and properties."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from d2lmini import Block, FeedForward, MultiHeadAttention, RMSNorm, Rotary, causal_mask, make_norm, padding_mask

B, T, S, H, D, FF, DC = 2, 5, 7, 3, 33, 13, 17


def shaken(module, seed=0):
    """The module with every parameter drawn at random, gains and biases too, so that none can be left out unseen."""
    torch.manual_seed(seed)
    for p in module.parameters():
        nn.init.normal_(p, mean=0.1, std=0.3)
    return module


def test_rms_norm_by_hand():
    norm = RMSNorm(2)
    x = torch.tensor([3.0, 4.0])  # mean square 12.5
    assert norm(x).tolist() == pytest.approx([3 / math.sqrt(12.5), 4 / math.sqrt(12.5)], rel=1e-6)
    with torch.no_grad():
        norm.weight.copy_(torch.tensor([2.0, 0.5]))
    assert norm(x).tolist() == pytest.approx([6 / math.sqrt(12.5), 2 / math.sqrt(12.5)], rel=1e-6)
    assert norm(torch.zeros(2)).tolist() == [0.0, 0.0]


def test_parity_with_torch_rms_norm():
    ours, x = shaken(RMSNorm(D, eps=1e-3)), torch.randn(B, T, D) * 0.05
    theirs = nn.RMSNorm(D, eps=1e-3)
    theirs.load_state_dict(ours.state_dict())
    torch.testing.assert_close(ours(x), theirs(x))
    assert RMSNorm(D).eps == 1e-6


def test_make_norm():
    assert isinstance(make_norm("rms", D), RMSNorm)
    layer = make_norm("layer", D)
    assert isinstance(layer, nn.LayerNorm) and layer.normalized_shape == (D,) and layer.eps == 1e-5


def test_feed_forward_by_its_formula():
    x = torch.randn(B, T, D)
    ff = shaken(FeedForward(D, FF, "gelu", bias=True))
    want = F.linear(F.gelu(F.linear(x, ff.up.weight, ff.up.bias)), ff.down.weight, ff.down.bias)
    torch.testing.assert_close(ff(x), want)
    ff = shaken(FeedForward(D, FF))
    gate = F.linear(x, ff.gate.weight)
    torch.testing.assert_close(ff(x), F.linear(gate * gate.sigmoid() * F.linear(x, ff.up.weight), ff.down.weight))


@pytest.mark.parametrize("activation, bias, count", [
    ("swiglu", False, 3 * D * FF), ("gelu", False, 2 * D * FF), ("swiglu", True, 3 * D * FF + 2 * FF + D),
    ("gelu", True, 2 * D * FF + FF + D)])
def test_feed_forward_parameters(activation, bias, count):
    assert sum(p.numel() for p in FeedForward(D, FF, activation, bias).parameters()) == count


def test_feed_forward_treats_every_position_alike():
    ff, x = shaken(FeedForward(D, FF)), torch.randn(B, T, D)
    torch.testing.assert_close(ff(x)[1, 3], ff(x[1, 3]))


def copy_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention):
    projections = (ours.query, ours.key, ours.value)
    theirs.in_proj_weight.copy_(torch.cat([p.weight for p in projections]))
    theirs.out_proj.weight.copy_(ours.out.weight)
    if theirs.in_proj_bias is not None:
        theirs.in_proj_bias.copy_(torch.cat([p.bias if p.bias is not None else torch.zeros(D) for p in projections]))
        theirs.out_proj.bias.copy_(ours.out.bias)


def copy_norm(ours, theirs):
    assert ours.eps == theirs.eps
    theirs.weight.copy_(ours.weight)
    if theirs.bias is not None:
        theirs.bias.copy_(ours.bias)


@torch.no_grad()
def as_torch(block: Block, layer):
    """PyTorch's layer with the weights of our block."""
    layers = {True: ("norm1", "norm2", "norm3"), False: ("norm1", None, "norm2")}[block.cross_attention is not None]
    copy_attention(block.self_attention, layer.self_attn)
    if block.cross_attention is not None:
        copy_attention(block.cross_attention, layer.multihead_attn)
        copy_norm(block.cross_norm, getattr(layer, layers[1]))
    copy_norm(block.self_norm, getattr(layer, layers[0]))
    copy_norm(block.ff_norm, getattr(layer, layers[2]))
    for ours, theirs in ((block.feed_forward.up, layer.linear1), (block.feed_forward.down, layer.linear2)):
        theirs.weight.copy_(ours.weight)
        if theirs.bias is not None:
            theirs.bias.copy_(ours.bias)
    return layer


def make_pair(layer_class, cross, norm_first, bias, qkv_bias):
    block = shaken(Block(D, H, FF, cross=cross, norm="layer", norm_first=norm_first, activation="gelu", bias=bias,
                         qkv_bias=qkv_bias))
    if not bias:  # PyTorch's bias=False takes the biases of the norms away too
        for module in block.modules():
            if isinstance(module, nn.LayerNorm):
                nn.init.zeros_(module.bias)
    layer = layer_class(D, H, FF, dropout=0.0, activation="gelu", norm_first=norm_first, batch_first=True, bias=bias)
    return block, as_torch(block, layer)


def agree(block, layer, ours, theirs, inputs):
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
    gradients = [torch.autograd.grad(out.square().sum(), inputs) for out in (ours, theirs)]
    for a, b in zip(*gradients):
        torch.testing.assert_close(a, b, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("bias, qkv_bias", [(False, False), (True, True), (True, False)])
@pytest.mark.parametrize("trace", [None, {}], ids=["fused", "traced"])
def test_parity_with_torch_encoder_layer(norm_first, bias, qkv_bias, trace):
    block, layer = make_pair(nn.TransformerEncoderLayer, False, norm_first, bias, qkv_bias)
    x = torch.randn(B, T, D, requires_grad=True)
    agree(block, layer, block(x, trace=trace), layer(x), [x])
    mask = causal_mask(T)
    agree(block, layer, block(x, mask, trace=trace), layer(x, src_mask=~mask), [x])
    real = padding_mask([T, 3])
    ours, theirs = block(x, real, trace=trace), layer(x, src_key_padding_mask=~real[:, 0, 0])
    agree(block, layer, ours, theirs, [x])


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("bias, qkv_bias", [(False, False), (True, True), (True, False)])
@pytest.mark.parametrize("trace", [None, {}], ids=["fused", "traced"])
def test_parity_with_torch_decoder_layer(norm_first, bias, qkv_bias, trace):
    block, layer = make_pair(nn.TransformerDecoderLayer, True, norm_first, bias, qkv_bias)
    x, context = torch.randn(B, T, D, requires_grad=True), torch.randn(B, S, D, requires_grad=True)
    mask, real = causal_mask(T), padding_mask([4, S])
    ours = block(x, mask, context, real, trace=trace)
    theirs = layer(x, context, tgt_mask=~mask, memory_key_padding_mask=~real[:, 0, 0])
    agree(block, layer, ours, theirs, [x, context])


@pytest.mark.parametrize("norm_first", [True, False])
def test_norm_goes_inside_the_branch_or_behind_the_sum(norm_first):
    block, x = shaken(Block(D, H, FF, norm_first=norm_first)), torch.randn(B, T, D)
    if norm_first:
        x1 = x + block.self_attention(block.self_norm(x))
        want = x1 + block.feed_forward(block.ff_norm(x1))
    else:
        x1 = block.self_norm(x + block.self_attention(x))
        want = block.ff_norm(x1 + block.feed_forward(x1))
    torch.testing.assert_close(block(x), want)


@pytest.mark.parametrize("cross, d_context, count", [
    (False, None, 4 * D * D + 3 * D * FF + 2 * D),
    (True, None, 8 * D * D + 3 * D * FF + 3 * D),
    (True, DC, 6 * D * D + 2 * DC * D + 3 * D * FF + 3 * D)])
def test_parameters(cross, d_context, count):
    assert sum(p.numel() for p in Block(D, H, FF, cross=cross, d_context=d_context).parameters()) == count


def test_trace_names_both_attentions():
    block, trace = Block(D, H, FF, cross=True, d_context=DC), {}
    block(torch.randn(B, T, D), None, torch.randn(B, S, DC), trace=trace, name="decoder.4")
    assert {k: tuple(w.shape) for k, w in trace.items()} == \
        {"decoder.4.self": (B, H, T, T), "decoder.4.cross": (B, H, T, S)}


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("norm", ["rms", "layer"])
def test_permuting_the_tokens_permutes_the_output(norm_first, norm):
    block, x = shaken(Block(D, H, FF, norm=norm, norm_first=norm_first)), torch.randn(B, T, D)
    order = torch.tensor([3, 0, 4, 1, 2])
    torch.testing.assert_close(block(x[:, order]), block(x)[:, order], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("trace", [None, {}], ids=["fused", "traced"])
def test_blind_rows_do_no_harm(trace):
    block = shaken(Block(D, H, FF, cross=True))
    x, context = torch.randn(B, T, D, requires_grad=True), torch.randn(B, S, D)
    out = block(x, padding_mask([0, 3], T), context, padding_mask([2, 0], S), trace=trace)
    assert out.isfinite().all()
    out.sum().backward()
    assert all(p.grad.isfinite().all() for p in block.parameters()) and x.grad.isfinite().all()


def test_dropout_acts_in_training_only():
    x = torch.randn(B, T, D)
    block = shaken(Block(D, H, FF, dropout=0.3))
    assert not torch.equal(block(x), block(x))
    assert torch.equal(block.eval()(x), block(x))
    without = Block(D, H, FF)
    without.load_state_dict(block.state_dict())
    torch.testing.assert_close(block(x), without(x))


plain, crossed, x0 = Block(D, H, FF), Block(D, H, FF, cross=True, d_context=DC), torch.zeros(B, T, D)


@pytest.mark.parametrize("call, message", [
    (lambda: RMSNorm(0), "d_model=0 is out of range"),
    (lambda: RMSNorm(D, eps=0), r"eps=0 is outside \(0, inf\)"),
    (lambda: RMSNorm(D)(torch.zeros(B, D + 1)), r"x has shape \(2, 34\); expected \(\.\.\., 33\)"),
    (lambda: RMSNorm(D)(torch.zeros(B, D).long()), r"x is torch\.int64"),
    (lambda: make_norm("batch", D), "norm='batch' is unknown; choose one of 'rms', 'layer'"),
    (lambda: make_norm("layer", 0), "d_model=0 is out of range"),
    (lambda: FeedForward(0, FF), "d_model=0 is out of range"),
    (lambda: FeedForward(D, 0), "d_ff=0 is out of range"),
    (lambda: FeedForward(D, FF, "relu"), "activation='relu' is unknown; choose one of 'swiglu', 'gelu'"),
    (lambda: FeedForward(D, FF, bias="x"), "bias='x' is neither True nor False"),
    (lambda: FeedForward(D, FF, dropout=-0.1), r"dropout=-0.1 is outside \[0, 1\)"),
    (lambda: FeedForward(D, FF)(torch.zeros(B, 5)), r"x has shape \(2, 5\); expected \(\.\.\., 33\)"),
    (lambda: Block(D, 4, FF), "d_model=33 does not divide among num_heads=4"),
    (lambda: Block(D, H, FF, norm="none"), "norm='none' is unknown"),
    (lambda: Block(D, H, FF, activation="tanh"), "activation='tanh' is unknown"),
    (lambda: Block(D, H, FF, norm_first="post"), "norm_first='post' is neither True nor False"),
    (lambda: Block(D, H, FF, cross="yes"), "cross='yes' is neither True nor False"),
    (lambda: Block(D, H, FF, dropout=1), r"dropout=1 is outside \[0, 1\)"),
    (lambda: Block(D, H, FF, d_context=DC), "d_context=17 without cross=True has no use"),
    (lambda: Block(D, H, FF, rotary=Rotary(4, T)), "head width of 11, which is odd"),
    (lambda: plain(x0[0]), r"x has shape \(5, 33\); expected \(B, length, 33\)"),
    (lambda: plain(x0.long()), r"x is torch\.int64"),
    (lambda: plain(x0, context=x0), "context is given but the block was built with cross=False"),
    (lambda: plain(x0, context_mask=causal_mask(T)), "context_mask is given without a context"),
    (lambda: plain(x0, causal_mask(T).float()), r"mask is torch\.float32"),
    (lambda: crossed(x0), "context is missing but the block was built with cross=True"),
    (lambda: crossed(x0, context=x0), r"context has shape \(2, 5, 33\); expected \(B, length, 17\)"),
    (lambda: crossed(x0, context=torch.zeros(B, S, DC), context_mask=causal_mask(T)), r"mask has shape \(5, 5\)"),
])
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
