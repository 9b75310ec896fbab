"""Attention: what its functions and its module refuse, the same on both paths."""

import pytest
import torch

from d2lmini import MultiHeadAttention, Rotary, attention, attention_weights

B, H, T, S, DK, DV = 2, 3, 5, 11, 7, 13
x21, x12 = torch.zeros(B, T, 21), torch.zeros(B, T, 12)
rotated = MultiHeadAttention(12, 2, rotary=Rotary(6, T))
q0, k0, v0 = torch.zeros(B, H, T, DK), torch.zeros(B, H, S, DK), torch.zeros(B, H, S, DV)


@pytest.mark.parametrize("call, message", [
    (lambda: MultiHeadAttention(21, 4), "d_model=21 does not divide among num_heads=4"),
    (lambda: MultiHeadAttention(21, 0), "num_heads=0 is out of range"),
    (lambda: MultiHeadAttention(0, 1), "d_model=0 is out of range"),
    (lambda: MultiHeadAttention(21.0, 3), "d_model=21.0 is not an integer"),
    (lambda: MultiHeadAttention(21, 3, rotary=Rotary(6, T)), "head width of 7, which is odd"),
    (lambda: MultiHeadAttention(12, 2, rotary=Rotary(4, T)), r"rotary=Rotary\(\) does not turn heads of width 6"),
    (lambda: MultiHeadAttention(12, 2, rotary=True), "rotary=True does not turn heads of width 6"),
    (lambda: MultiHeadAttention(21, 3, d_context=0), "d_context=0 is out of range"),
    (lambda: MultiHeadAttention(21, 3, dropout=1.0), r"dropout=1.0 is outside \[0, 1\)"),
    (lambda: MultiHeadAttention(21, 3, bias="no"), "bias='no' is neither True nor False"),
    (lambda: MultiHeadAttention(21, 3, qkv_bias=1), "qkv_bias=1 is neither True nor False"),
    (lambda: MultiHeadAttention(21, 3)(x12), r"x has shape \(2, 5, 12\); expected \(B, length, 21\)"),
    (lambda: MultiHeadAttention(21, 3)(x21[0]), r"x has shape \(5, 21\)"),
    (lambda: MultiHeadAttention(21, 3)(x21.long()), r"x is torch\.int64"),
    (lambda: MultiHeadAttention(21, 3)(x21, x12), r"context has shape \(2, 5, 12\)"),
    (lambda: MultiHeadAttention(21, 3)(x21, x21[:1]), r"q has shape \(2, 3, 5, 7\) and k \(1, 3, 5, 7\)"),
    (lambda: MultiHeadAttention(21, 3)(x21, mask=torch.zeros(T, T)), r"mask is torch\.float32"),
    (lambda: MultiHeadAttention(21, 3)(x21, trace=[]), "trace is list; give a dict"),
    (lambda: rotated(x12, x12), "rotary positions compare places in one sequence"),
    (lambda: rotated(torch.zeros(B, T + 1, 12)), r"positions reach from 0 to 5; expected values in \[0, max_len=5\)"),
    (lambda: rotated(x12, positions=torch.arange(-1, T - 1)), "positions reach from -1 to 3"),
    (lambda: rotated(x12, positions=[0, 1, 2, 3, 4]), "positions is list; expected an int64 tensor"),
    (lambda: rotated(x12, positions=torch.arange(3)), r"positions has shape \(3,\)"),
    (lambda: attention(q0, k0, v0, dropout=1.0), r"dropout=1.0 is outside \[0, 1\)"),
    (lambda: attention(q0, k0, v0, trace=True), "trace is bool; give a dict"),
    (lambda: attention(q0, k0, v0[:, :, :4]), r"k has shape \(2, 3, 11, 7\) and v \(2, 3, 4, 13\); every key needs"),
    (lambda: attention(q0, k0, None), "v is NoneType"),
    (lambda: attention(q0, k0, v0.double()), r"k torch\.float32 on cpu, v torch\.float64 on cpu: expected one dtype"),
])
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("function", [attention_weights, lambda q, k, m=None: attention(q, k, k, m),
                                      lambda q, k, m=None: attention(q, k, k, m, trace={})])
@pytest.mark.parametrize("q, k, mask, message", [
    ([1], k0, None, "q is list; give a floating-point tensor"),
    (q0, None, None, "k is NoneType"),
    (q0.long(), k0, None, r"q is torch\.int64"),
    (q0[0], k0, None, r"q has shape \(3, 5, 7\); expected 4 axes"),
    (q0, k0[0], None, r"k has shape \(3, 11, 7\); expected 4 axes"),
    (q0[:1], k0, None, r"q has shape \(1, 3, 5, 7\) and k \(2, 3, 11, 7\)"),
    (q0[:, :1], k0, None, r"q has shape \(2, 1, 5, 7\) and k"),
    (q0[..., :6], k0, None, r"q has shape \(2, 3, 5, 6\) and k"),
    (q0[..., :0], k0[..., :0], None, "d_k >= 1"),
    (q0.double(), k0, None, "q torch.float64 on cpu, k torch.float32 on cpu"),
    (q0.to("meta"), k0, None, "q torch.float32 on meta, k torch.float32 on cpu"),
    (q0, k0, torch.zeros(T, S), r"mask is torch\.float32"),
    (q0, k0, torch.ones(S, T, dtype=torch.bool), r"mask has shape \(11, 5\), which does not broadcast"),
    (q0, k0, torch.ones(B, S, dtype=torch.bool), r"mask has shape \(2, 11\)"),
    (q0, k0, torch.ones(T, S, dtype=torch.bool, device="meta"), "mask is on meta"),
])
def test_every_path_refuses_the_same(function, q, k, mask, message):
    with pytest.raises(ValueError, match=message):
        function(q, k, mask)
