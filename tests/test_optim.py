"""Optimizers: orthogonalize against the SVD, Muon by its formula, who trains what, schedules by hand."""

import copy
import math

import pytest
import torch
from torch import nn

from d2lmini import Config, Decoder, Encoder, Muon, constant, linear_decay, make_optimizers, orthogonalize
from d2lmini.optim import NEWTON_SCHULZ


def polynomial(s, steps):
    a, b, c = NEWTON_SCHULZ
    for _ in range(steps):
        s = a * s + b * s**3 + c * s**5
    return s


def test_orthogonalize_by_hand():
    a, b, c = NEWTON_SCHULZ
    got = orthogonalize(torch.diag(torch.tensor([3.0, 4.0])), steps=1)  # over its norm 5: singular values 0.6, 0.8
    want = [[a * 0.6 + b * 0.216 + c * 0.07776, 0.0], [0.0, a * 0.8 + b * 0.512 + c * 0.32768]]
    torch.testing.assert_close(got, torch.tensor(want))


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (7, 7), (1, 4), (2, 11, 5), (2, 3, 5, 7)])
def test_orthogonalize_acts_on_the_singular_values_alone(shape):
    matrices = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    got = orthogonalize(matrices)
    u, s, vh = torch.linalg.svd(matrices.double(), full_matrices=False)
    norm = s.square().sum(-1, keepdim=True).sqrt()
    want = u @ torch.diag_embed(polynomial(s / norm, 5)) @ vh
    assert got.shape == shape and got.dtype == torch.float32
    torch.testing.assert_close(got.double(), want, atol=1e-3, rtol=1e-3)


def test_orthogonalize_brings_singular_values_near_one():
    matrices = torch.randn(13, 31, 17, generator=torch.Generator().manual_seed(0))
    values = torch.linalg.svdvals(orthogonalize(matrices))
    assert values.min() > 0.6 and values.max() < 1.25
    torch.testing.assert_close(orthogonalize(1000 * matrices), orthogonalize(matrices), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(orthogonalize(matrices[3]), orthogonalize(matrices)[3], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(orthogonalize(matrices.mT), orthogonalize(matrices).mT, atol=1e-5, rtol=1e-5)


def test_orthogonalize_leaves_zeros_and_its_argument():
    assert (orthogonalize(torch.zeros(3, 5)) == 0).all()
    matrix = torch.randn(3, 5)
    before = matrix.clone()
    orthogonalize(matrix)
    assert torch.equal(matrix, before)


def params(*shapes, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [nn.Parameter(torch.randn(shape, generator=generator)) for shape in shapes]


@pytest.mark.parametrize("weight_decay", [0.0, 0.3])
def test_muon_by_its_formula(weight_decay):
    shapes = [(7, 3), (3, 7), (7, 3), (5, 5)]  # tall, wide, and two of one shape, which go through as a batch
    weights = params(*shapes)
    muon = Muon(weights, lr=0.1, momentum=0.9, weight_decay=weight_decay)
    want, momenta = [w.detach().clone() for w in weights], [torch.zeros(s) for s in shapes]
    for step in range(3):
        for i, w in enumerate(weights):
            w.grad = torch.randn(shapes[i], generator=torch.Generator().manual_seed(10 * step + i))
            momenta[i] = 0.9 * momenta[i] + w.grad
            update = orthogonalize(w.grad + 0.9 * momenta[i])
            rows, columns = shapes[i]
            want[i] = want[i] * (1 - 0.1 * weight_decay) - 0.1 * max(1, rows / columns) ** 0.5 * update
        muon.step()
    for w, expected in zip(weights, want):
        torch.testing.assert_close(w.detach(), expected, atol=1e-5, rtol=1e-5)


def test_muon_leaves_alone_what_has_no_gradient():
    a, b = params((5, 3), (5, 3))
    before = b.detach().clone()
    a.grad = torch.ones(5, 3)
    muon = Muon([a, b], lr=0.1)
    muon.step()
    assert torch.equal(b, before) and b not in muon.state


def test_muon_continues_from_its_state():
    def train(weights, muon, steps):
        for step in steps:
            weights[0].grad = torch.randn(5, 3, generator=torch.Generator().manual_seed(step))
            muon.step()
    weights = params((5, 3))
    muon = Muon(weights, lr=0.1)
    train(weights, muon, range(3))
    copied = [nn.Parameter(weights[0].detach().clone())]
    other = Muon(copied, lr=0.5)
    other.load_state_dict(copy.deepcopy(muon.state_dict()))
    train(weights, muon, range(3, 6))
    train(copied, other, range(3, 6))
    assert torch.equal(weights[0], copied[0])


def test_muon_runs_a_closure_with_gradients():
    (weight,) = params((5, 3))
    muon = Muon([weight], lr=0.1)

    def closure():
        muon.zero_grad()
        loss = weight.square().sum()
        loss.backward()
        return loss
    losses = [muon.step(closure).item() for _ in range(5)]
    assert losses == sorted(losses, reverse=True) and len(set(losses)) == 5


def test_muon_mixes_dtypes_of_one_shape():
    a, b = params((5, 3), (5, 3))
    b = nn.Parameter(b.detach().double())
    for p in (a, b):
        p.grad = torch.ones_like(p)
    Muon([a, b], lr=0.1).step()
    assert a.isfinite().all() and b.isfinite().all() and b.dtype == torch.float64


@pytest.mark.parametrize("kind", [dict(), dict(tied=False, positions="learned", bias=True, norm="layer")])
def test_matrices_inside_blocks_go_to_muon_and_all_else_to_adam(kind):
    model = Encoder(Config(11, 7, d_model=12, num_heads=3, num_layers=2, **kind))
    muon, adam = make_optimizers(model, lr=0.02, adam_lr=0.003, weight_decay=0.1, momentum=0.8)
    held = [[p for g in o.param_groups for p in g["params"]] for o in (muon, adam)]
    names = {p: n for n, p in model.named_parameters()}
    assert len(held[0]) + len(held[1]) == len(names) == len(set(held[0] + held[1]))
    assert all("blocks." in names[p] and p.ndim == 2 for p in held[0]) and len(held[0]) == 2 * 7
    assert not any("blocks." in names[p] and p.ndim == 2 for p in held[1])
    assert muon.param_groups[0]["lr"] == 0.02 and muon.param_groups[0]["momentum"] == 0.8
    assert adam.param_groups[0]["lr"] == 0.003
    assert muon.param_groups[0]["weight_decay"] == adam.param_groups[0]["weight_decay"] == 0.1


def test_frozen_parameters_are_left_out():
    model = Decoder(Config(11, 7, d_model=12, num_heads=3, num_layers=2))
    model.tower.blocks.requires_grad_(False)
    (adam,) = make_optimizers(model)
    assert len(adam.param_groups[0]["params"]) == 2  # the token table and the last norm's gain
    model.requires_grad_(False)
    with pytest.raises(ValueError, match=r"model \(Decoder\) has no parameter that needs a gradient"):
        make_optimizers(model)
    blocks = nn.ModuleDict({"blocks": nn.ModuleList([nn.Linear(3, 2, bias=False)])})
    assert [type(o) for o in make_optimizers(blocks)] == [Muon]


def test_schedules_by_hand():
    assert [constant()(p) for p in (0, 0.5, 0.99)] == [1.0] * 3
    assert [linear_decay()(p) for p in (0, 0.25, 0.5, 1)] == [1.0, 0.75, 0.5, 0.0]
    rise = linear_decay(warmup=0.2)
    assert [rise(p) for p in (0, 0.1, 0.2, 0.6)] == pytest.approx([0.0, 0.5, 1.0, 0.5])
    hold = linear_decay(warmup=0.2, hold=0.6)
    assert [hold(p) for p in (0.1, 0.2, 0.5, 0.6, 0.8, 1.0)] == pytest.approx([0.5, 1, 1, 1, 0.5, 0])
    assert linear_decay()(1.5) == 0.0  # past the end it stays off


P = params((5, 3))


@pytest.mark.parametrize("call, message", [
    (lambda: orthogonalize(torch.zeros(3)), r"matrices has shape \(3,\); expected \(\.\.\., rows, columns\)"),
    (lambda: orthogonalize(torch.ones(3, 2).long()), r"matrices is torch\.int64"),
    (lambda: orthogonalize([[1.0]]), "matrices is list"),
    (lambda: orthogonalize(torch.ones(3, 2), steps=0), "steps=0 is out of range"),
    (lambda: Muon(P, lr=0), r"lr=0 is outside \(0, inf\)"),
    (lambda: Muon(P, lr=math.inf), r"lr=inf is outside \(0, inf\)"),
    (lambda: Muon(P, lr="fast"), "lr='fast' is not a number"),
    (lambda: Muon(P, momentum=1), r"momentum=1 is outside \[0, 1\)"),
    (lambda: Muon(P, weight_decay=-0.1), r"weight_decay=-0.1 is outside \[0, inf\)"),
    (lambda: Muon(P, steps=0), "steps=0 is out of range"),
    (lambda: Muon(params((3,))), r"params hold a tensor of shape \(3,\)"),
    (lambda: Muon(params((2, 3, 5))), r"params hold a tensor of shape \(2, 3, 5\)"),
    (lambda: Muon([dict(params=params((5, 3)), lr=-1)]), "lr=-1 is outside"),
    (lambda: Muon(P).add_param_group(dict(params=params((7,)))), r"params hold a tensor of shape \(7,\)"),
    (lambda: Muon([]), "empty parameter list"),
    (lambda: make_optimizers(None), "model is NoneType; give an nn.Module"),
    (lambda: make_optimizers(nn.ReLU()), "has no parameter that needs a gradient"),
    (lambda: make_optimizers(nn.Linear(3, 2), lr=0), r"lr=0 is outside \(0, inf\)"),
    (lambda: make_optimizers(nn.Linear(3, 2), adam_lr=0), r"adam_lr=0 is outside \(0, inf\)"),
    (lambda: make_optimizers(nn.Linear(3, 2), weight_decay=-1), r"weight_decay=-1 is outside"),
    (lambda: make_optimizers(nn.Linear(3, 2), momentum=1), r"momentum=1 is outside \[0, 1\)"),
    (lambda: linear_decay(warmup=1), r"warmup=1 is outside \[0, 1\)"),
    (lambda: linear_decay(warmup=-0.1), r"warmup=-0.1 is outside"),
    (lambda: linear_decay(hold=-0.5), r"hold=-0.5 is outside \[0, 1\)"),
    (lambda: linear_decay(hold=1), r"hold=1 is outside \[0, 1\)"),
    (lambda: linear_decay(hold=None), "hold=None is not a number"),
])
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
