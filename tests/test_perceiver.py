"""Perceiver and Perceiver IO. Sizes are different primes, so that a transposition cannot pass."""

import math

import pytest
import torch

from d2lmini.masks import padding_mask
from d2lmini.optim import make_optimizers
from d2lmini.perceiver import Perceiver, PerceiverIO, Read, fourier_positions
from d2lmini.positions import AddedPositions
from d2lmini.text_perceiver import TextPerceiver

B, N, M, O, D_INPUT, D, H, L = 2, 17, 5, 7, 11, 12, 3, 2
SAME = dict(atol=1e-5, rtol=1e-5)


@pytest.fixture
def model():
    torch.manual_seed(0)
    return PerceiverIO(D_INPUT, M, O, d_model=D, num_heads=H, num_layers=L)


@pytest.fixture
def inputs():
    return torch.randn(B, N, D_INPUT, generator=torch.Generator().manual_seed(1))


def test_latents_do_not_grow_with_the_inputs(model, inputs):
    assert model.perceiver(inputs).shape == (B, M, D)
    assert model.perceiver(inputs[:, :3]).shape == (B, M, D)
    assert model.perceiver(torch.randn(1, 401, D_INPUT)).shape == (1, M, D)


def test_output_shape_depends_on_the_queries_alone(model, inputs):
    assert model(inputs).shape == model(inputs[:, :3]).shape == (B, O, D)
    assert model(inputs, torch.randn(1, D)).shape == (B, 1, D)
    assert model(inputs, torch.randn(B, 29, D)).shape == (B, 29, D)


def test_permuted_inputs_give_the_same_latents_without_positions(model, inputs):
    order = torch.randperm(N, generator=torch.Generator().manual_seed(2))
    torch.testing.assert_close(model(inputs[:, order]), model(inputs), **SAME)


@pytest.mark.parametrize("kind", ["fourier", "learned"])
def test_permuted_inputs_give_other_latents_with_positions(model, inputs, kind):
    torch.manual_seed(3)
    if kind == "fourier":
        table = torch.nn.functional.pad(fourier_positions((N,), 5), (0, 0))[:, :D_INPUT]
        place = lambda x: x + table
    else:
        positions = AddedPositions(N, D_INPUT, learned=True)
        torch.nn.init.normal_(positions.table)
        place = lambda x: positions(x, torch.arange(N))
    with torch.no_grad():
        moved = (model.perceiver(place(inputs.flip(1))) - model.perceiver(place(inputs))).abs().max()
    assert moved > 1e-3


def test_queries_do_not_see_each_other(model, inputs):
    queries = torch.randn(O, D, generator=torch.Generator().manual_seed(4))
    together = model(inputs, queries)
    alone = torch.cat([model(inputs, q[None]) for q in queries], dim=1)
    torch.testing.assert_close(together, alone, **SAME)


def test_written_again_from_stored_latents(model, inputs):
    latents = model.perceiver(inputs)
    torch.testing.assert_close(model.write(latents), model(inputs), **SAME)


def test_added_padding_changes_nothing(model, inputs):
    short = inputs[:, :13]
    padded = torch.cat([short, torch.full((B, 6, D_INPUT), 1e3)], dim=1)
    for trace in (None, {}):
        torch.testing.assert_close(model(padded, mask=padding_mask([13, 13], 19), trace=trace), model(short), **SAME)


def test_ragged_batch_equals_each_alone(model, inputs):
    together = model(inputs, mask=padding_mask([N, 3], N))
    torch.testing.assert_close(together[:1], model(inputs[:1]), **SAME)
    torch.testing.assert_close(together[1:], model(inputs[1:, :3]), **SAME)


@pytest.mark.parametrize("trace", [None, {}])
def test_inputs_that_are_all_masked_are_never_read_and_stay_finite(model, inputs, trace):
    inputs = inputs.clone().requires_grad_()
    out = model(inputs, mask=padding_mask([N, 0], N), trace=trace)
    out.square().sum().backward()
    assert out.isfinite().all() and all(p.grad.isfinite().all() for p in model.parameters())
    assert inputs.grad[1].abs().max() == 0 < inputs.grad[0].abs().max()
    other = model(inputs + 1, mask=padding_mask([N, 0], N))
    torch.testing.assert_close(other[1], out[1], **SAME)


def test_trace_names_shapes_and_the_same_result(model, inputs):
    trace = {}
    torch.testing.assert_close(model(inputs, trace=trace), model(inputs), **SAME)
    assert {k: tuple(v.shape) for k, v in trace.items()} == {
        "perceiver.read": (B, H, M, N), "perceiver.0.self": (B, H, M, M), "perceiver.1.self": (B, H, M, M),
        "perceiver.write": (B, H, O, M)}
    for weights in trace.values():
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]), **SAME)
        assert not weights.requires_grad


def test_read_by_hand():
    """One query, two inputs, all projections the identity, no feed-forward: softmax of the scores."""
    read = Read(2, 1, 3)
    for linear in (read.attention.query, read.attention.key, read.attention.value, read.attention.out):
        torch.nn.init.eye_(linear.weight)
    torch.nn.init.zeros_(read.feed_forward.down.weight)
    z, context = torch.tensor([[[3.0, 0.0]]]), torch.tensor([[[5.0, 0.0], [0.0, 7.0]]])
    root = math.sqrt(2)  # what RMSNorm makes of a vector with a single non-zero entry
    w = math.exp(root) / (math.exp(root) + 1)
    expected = torch.tensor([[[3 + w * root, (1 - w) * root]]])
    torch.testing.assert_close(read(z, context), expected, atol=1e-4, rtol=0)


def test_every_parameter_gets_a_finite_gradient(model, inputs):
    model(inputs).square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() and p.grad.abs().max() > 0 for p in model.parameters())


def test_no_layers_is_a_single_read(inputs):
    trace = {}
    assert Perceiver(D_INPUT, M, D, H, num_layers=0)(inputs, trace=trace).shape == (B, M, D)
    assert list(trace) == ["perceiver.read"]


def test_fourier_positions_by_hand():
    table = fourier_positions((5,), 2)  # frequencies 1 and 2.5
    assert table.shape == (5, 5)
    x = -0.5
    expected = [x, math.sin(math.pi * x), math.sin(2.5 * math.pi * x), math.cos(math.pi * x), math.cos(2.5 * math.pi * x)]
    torch.testing.assert_close(table[1], torch.tensor(expected), **SAME)


def test_fourier_positions_tell_all_places_apart():
    table = fourier_positions((5, 7), 3)
    assert table.shape == (35, 2 * 7)
    assert torch.cdist(table, table).add(torch.eye(35)).min() > 0.1
    torch.testing.assert_close(table[:7, :7], table[:1, :7].expand(7, -1))  # the first axis varies slowest


@pytest.mark.parametrize("num_bands", [0, 3])
def test_text_perceiver_answers_every_position_and_ignores_padding(num_bands):
    torch.manual_seed(0)
    model = TextPerceiver(23, 19, M, d_model=D, num_heads=H, num_layers=1, num_bands=num_bands)
    ids = torch.randint(23, (B, 13))
    padded = torch.cat([ids, torch.randint(23, (B, 6))], dim=1)
    assert model(ids).shape == (B, 13, 23)
    torch.testing.assert_close(model(padded, padding_mask([13, 13], 19))[:, :13], model(ids), **SAME)
    assert (model(ids.flip(1)) - model(ids)).abs().max() > 1e-5
    model(ids).square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("ids, message", [
    (torch.full((B, 5), 23), "token id 23"), (torch.zeros(B, 20, dtype=torch.long), "length 20"),
    (torch.zeros(B, 0, dtype=torch.long), "length 0"), (torch.zeros(5, dtype=torch.long), "unsqueeze"),
])
def test_text_perceiver_names_bad_ids(ids, message):
    with pytest.raises(ValueError, match=message):
        TextPerceiver(23, 19, M, d_model=D, num_heads=H)(ids)


def test_text_perceiver_trains_by_both_optimizers():
    """Every matrix inside belongs to Muon, as in the encoders it is compared with."""
    muon, adamw = make_optimizers(TextPerceiver(23, 19, M, d_model=D, num_heads=H, num_layers=1))
    assert len(muon.param_groups[0]["params"]) == 3 * 7
    assert {p.shape for p in adamw.param_groups[0]["params"] if p.ndim == 2} == {(23, D), (M, D), (D, 2 * 64 + 1)}


@pytest.mark.parametrize("num_bands", [0, 64])
def test_placed_latents_first_look_at_their_places(num_bands):
    torch.manual_seed(0)
    model, trace = TextPerceiver(23, 60, M, d_model=128, num_heads=4, num_bands=num_bands), {}
    model.latents(torch.randint(23, (8, 60)), trace=trace)
    looks = trace["perceiver.read"].mean((0, 1)).argmax(-1)
    assert (looks - torch.tensor([6, 18, 30, 42, 54])).abs().max() <= 1


@pytest.mark.parametrize("d_input, codes, sharpness, message", [
    (D, torch.zeros(M, D + 1), 1.0, r"codes has shape \(5, 13\)"), (D_INPUT, torch.zeros(M, D), 1.0, "d_input=11"),
    (D, torch.zeros(M, D), 0.0, "sharpness=0.0"),
])
def test_bad_places_are_named(d_input, codes, sharpness, message):
    with pytest.raises(ValueError, match=message):
        PerceiverIO(d_input, M, O, d_model=D, num_heads=H).place_latents(codes, sharpness)


BAD_BUILD = [
    (dict(num_latents=0), "num_latents=0"), (dict(num_outputs=0), "num_outputs=0"), (dict(d_input=0), "d_input=0"),
    (dict(num_latents=2.5), "num_latents=2.5"), (dict(num_heads=5), "num_heads=5"), (dict(num_layers=-1), "num_layers=-1"),
    (dict(d_ff=-1), "d_ff=-1"), (dict(dropout=1.0), "dropout=1.0"), (dict(d_model=0), "d_model=0"),
]


@pytest.mark.parametrize("change, message", BAD_BUILD)
def test_bad_numbers_are_named(change, message):
    good = dict(d_input=D_INPUT, num_latents=M, num_outputs=O, d_model=D, num_heads=H)
    with pytest.raises(ValueError, match=message):
        PerceiverIO(**(good | change))


@pytest.mark.parametrize("inputs, queries, mask, message", [
    (torch.zeros(B, N, D_INPUT + 1), None, None, r"inputs has shape \(2, 17, 12\)"),
    (torch.zeros(N, D_INPUT), None, None, r"inputs has shape \(17, 11\)"),
    (torch.zeros(B, 0, D_INPUT), None, None, "at least one input"),
    (torch.zeros(B, N, D_INPUT, dtype=torch.long), None, None, "inputs is torch.int64"),
    (torch.zeros(B, N, D_INPUT), torch.zeros(O, D + 1), None, r"queries has shape \(2, 7, 13\)"),
    (torch.zeros(B, N, D_INPUT), torch.zeros(0, D), None, "at least one query"),
    (torch.zeros(B, N, D_INPUT), torch.zeros(B + 1, O, D), None, r"queries has shape \(3, 7, 12\)"),
    (torch.zeros(B, N, D_INPUT), None, torch.ones(B, 1, 1, N), "mask is torch.float32"),
    (torch.zeros(B, N, D_INPUT), None, torch.ones(B, 1, 1, N + 1, dtype=torch.bool), r"mask has shape \(2, 1, 1, 18\)"),
])
def test_bad_calls_are_named(model, inputs, queries, mask, message):
    with pytest.raises(ValueError, match=message):
        model(inputs, queries, mask)


def test_queries_are_needed():
    with pytest.raises(ValueError, match="queries is None"):
        PerceiverIO(D_INPUT, M, d_model=D, num_heads=H)(torch.zeros(B, N, D_INPUT))


@pytest.mark.parametrize("sizes, bands, message", [((), 3, "sizes is empty"), ((5, 0), 3, "sizes=0"), ((5,), 0, "num_bands=0"), (2.5, 3, "sizes=2.5")])
def test_bad_grids_are_named(sizes, bands, message):
    with pytest.raises(ValueError, match=message):
        fourier_positions(sizes, bands)
