"""Where the norm goes: the identity in the gradient by hand, both wirings as stacks beside PyTorch's, the count of 49,792."""

import math
from itertools import combinations

import pytest
import torch
from torch import nn

from benchmarks import norm_gradients
from benchmarks.norms import LENGTH, make_model, plan
from d2lmini import Block, causal_mask, load_corpus, load_results, make_norm, random_windows

B, T, H, D, FF, L = 2, 5, 3, 33, 13, 3


class Linear(nn.Module):
    """x -> x W^T, in the place of a branch."""

    def __init__(self, matrix):
        super().__init__()
        self.matrix = matrix

    def forward(self, x, mask=None, positions=None, cache=None, trace=None, name=None):
        return x @ self.matrix.T


def linear_block(first, second, norm_first, norms=(nn.Identity(), nn.Identity())):
    """A block whose two branches are matrices, so that its Jacobian can be written down."""
    block = Block(len(first), 1, 1, norm_first=norm_first)
    block.self_attention, block.feed_forward = Linear(first), Linear(second)
    block.self_norm, block.ff_norm = norms
    return block


def test_gradient_of_a_scalar_stack_counts_the_ways():
    """Branches f(x) = x/2, without norms: (1 + 1/2)^4 = 1 + 4/2 + 6/4 + 4/8 + 1/16 = 81/16 over two blocks."""
    x = torch.ones(1, 1, 1, requires_grad=True)
    out = x
    for _ in range(2):
        out = linear_block(torch.tensor([[0.5]]), torch.tensor([[0.5]]), True)(out)
    out.sum().backward()
    ways = [sum(math.prod(c) for c in combinations([0.5] * 4, k)) for k in range(5)]
    assert ways == [1, 2, 1.5, 0.5, 0.0625]
    assert x.grad.item() == sum(ways) == 81 / 16


@pytest.mark.parametrize("w, derivative", [(-1.0, 0.0), (0.0, 1.0), (1.0, 4.0)])
def test_the_identity_can_be_cancelled_or_swamped(w, derivative):
    x = torch.ones(1, 1, 1, requires_grad=True)
    linear_block(torch.tensor([[w]]), torch.tensor([[w]]), True)(x).sum().backward()
    assert x.grad.item() == derivative


def test_jacobian_of_a_linear_pre_norm_block_by_hand():
    """(I + B)(I + A) with A = [[0, 2], [0, 0]] and B = [[0, 0], [3, 0]] is [[1, 2], [3, 7]]."""
    a, b = torch.tensor([[0.0, 2], [0, 0]]), torch.tensor([[0.0, 0], [3, 0]])
    block = linear_block(a, b, True)
    jacobian = torch.autograd.functional.jacobian(lambda x: block(x[None, None])[0, 0], torch.tensor([5.0, 7.0]))
    assert jacobian.tolist() == [[1, 2], [3, 7]]


def test_post_norm_divides_the_identity_and_pre_norm_does_not():
    """With branches of zero, pre-norm is the identity; post-norm is the norm, whose Jacobian at (3, 4) is known.

    For y = x / r with r^2 = mean(x^2) = 12.5: dy_i/dx_j = (delta_ij - x_i x_j / (2 r^2)) / r.
    """
    zero, x = torch.zeros(2, 2), torch.tensor([3.0, 4.0])

    def jacobian(norm_first, norms):
        block = linear_block(zero, zero, norm_first, norms)
        return torch.autograd.functional.jacobian(lambda v: block(v[None, None])[0, 0], x)

    norms = make_norm("rms", 2), nn.Identity()
    assert jacobian(True, norms).tolist() == [[1, 0], [0, 1]]
    r = math.sqrt(12.5)
    want = torch.tensor([[1 - 9 / 25, -12 / 25], [-12 / 25, 1 - 16 / 25]]) / r
    torch.testing.assert_close(jacobian(False, norms), want, atol=1e-6, rtol=1e-5)


def test_pre_norm_stack_is_the_sum_of_its_branches():
    torch.manual_seed(0)
    blocks = [Block(D, H, FF) for _ in range(L)]
    said = []
    for block in blocks:
        for branch in (block.self_attention, block.feed_forward):
            branch.register_forward_hook(lambda module, inputs, output: said.append(output))
    x0 = x = torch.randn(B, T, D)
    for block in blocks:
        x = block(x, causal_mask(T))
    assert len(said) == 2 * L
    torch.testing.assert_close(x, x0 + sum(said), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("norm_first", [True, False])
def test_stack_equals_pytorchs_encoder(norm_first):
    """A whole stack with PyTorch's final norm, where test_blocks compares one layer."""
    torch.manual_seed(1)
    layer = nn.TransformerEncoderLayer(D, H, FF, dropout=0.0, activation="gelu", batch_first=True, norm_first=norm_first)
    final = nn.LayerNorm(D) if norm_first else None
    theirs = nn.TransformerEncoder(layer, L, norm=final, enable_nested_tensor=False)
    for p in theirs.parameters():
        nn.init.normal_(p, mean=0.05, std=0.2)
    ours = [as_block(layer, norm_first) for layer in theirs.layers]
    x = torch.randn(B, T, D, requires_grad=True)
    y = x
    for block in ours:
        y = block(y, causal_mask(T))
    y = y if final is None else final(y)
    want = theirs(x, mask=~causal_mask(T))
    torch.testing.assert_close(y, want, atol=1e-4, rtol=1e-4)
    mine, other = (torch.autograd.grad(out.square().mean(), x)[0] for out in (y, want))
    torch.testing.assert_close(mine, other, atol=1e-4, rtol=1e-4)


@torch.no_grad()
def as_block(layer, norm_first):
    block = Block(D, H, FF, norm="layer", norm_first=norm_first, activation="gelu", bias=True, qkv_bias=True)
    attention = block.self_attention
    for part, weight, bias in zip((attention.query, attention.key, attention.value),
                                  layer.self_attn.in_proj_weight.chunk(3), layer.self_attn.in_proj_bias.chunk(3)):
        part.weight.copy_(weight)
        part.bias.copy_(bias)
    for mine, theirs in ((attention.out, layer.self_attn.out_proj), (block.feed_forward.up, layer.linear1),
                         (block.feed_forward.down, layer.linear2), (block.self_norm, layer.norm1),
                         (block.ff_norm, layer.norm2)):
        mine.load_state_dict(theirs.state_dict())
    return block


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("d, h, f", [(64, 4, 256), (D, H, FF)])
def test_parameters_by_formula(norm_first, d, h, f):
    block = Block(d, h, f, norm="layer", norm_first=norm_first, activation="gelu", bias=True)
    count = sum(p.numel() for p in block.parameters())
    assert count == (4 * d * d + d) + (2 * d * f + f + d) + 4 * d
    assert (d, f) != (64, 256) or count == 49_792


def test_both_wirings_of_one_seed_start_from_the_same_weights():
    post, pre, bare = (make_model(2, first, seed=3, final_norm=final).state_dict()
                       for first, final in ((False, True), (True, True), (True, False)))
    assert set(pre) - set(post) == {"tower.norm.weight", "tower.norm.bias"} and set(bare) == set(post)
    assert all(torch.equal(post[name], pre[name]) and torch.equal(post[name], bare[name]) for name in post)
    xavier = make_model(2, False, seed=3, init="xavier")
    assert not any(bias.any() for name, bias in xavier.named_parameters() if name.endswith(("out.bias", "up.bias", "down.bias")))


def test_the_plan_names_each_run_once():
    runs = plan()
    assert len(runs) == len(set(runs))
    assert {experiment for experiment, _, _ in runs} == {"deep", "shallow"}


def test_every_planned_run_is_stored_and_no_other():
    assert {(r["experiment"], r["arm"], r["seed"]) for r in load_results("norms")["runs"]} == set(plan())


def test_the_gradient_at_the_top_is_that_of_the_output_layer():
    """Without a final norm dL/dx = (softmax(x W^T) - one-hot) W / n at the top of the stream."""
    corpus, seed = load_corpus(), 8
    model = make_model(3, True, seed, final_norm=False)
    ids = next(random_windows(corpus.train, LENGTH + 1, norm_gradients.WINDOWS, seed))
    wrong = torch.softmax(model(ids[:, :-1]), -1) - nn.functional.one_hot(ids[:, 1:], 29)
    want = (wrong @ model.untied.weight / ids[:, 1:].numel()).norm().item()
    found = norm_gradients.gradients(3, seed, corpus, norm_first=True, final_norm=False)
    assert found["stream"][-1] == pytest.approx(want, abs=2e-5)
    assert len(found["stream"]) == len(found["size"]) == 4


def test_stored_gradients_are_per_layer_for_both_placements():
    stored = load_results("norm_gradients")
    assert stored["depths"] == [4, 8, 16, 32] and len(stored["seeds"]) >= 3
    for name in ("post", "pre"):
        for depth in stored["depths"]:
            runs = stored["wirings"][name][str(depth)]
            assert len(runs) == len(stored["seeds"]) and all(len(run["stream"]) == depth + 1 for run in runs)
