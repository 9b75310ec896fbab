"""Positions: hand values, the relative property of rotary, and that places index the length axis, never the batch axis."""

import math

import pytest
import torch

from d2lmini import AddedPositions, Rotary, sinusoidal_table
from d2lmini.positions import check_positions

B, H, T, D, DK = 3, 5, 7, 6, 4


def test_sinusoids_by_hand():
    table = sinusoidal_table(3, 4)
    assert table.shape == (3, 4) and table.dtype == torch.float32
    assert table[0].tolist() == [0.0, 1.0, 0.0, 1.0]
    for t in (1, 2):
        want = [math.sin(t), math.cos(t), math.sin(t / 100), math.cos(t / 100)]
        assert table[t].tolist() == pytest.approx(want, abs=1e-6)


def test_sinusoids_have_unit_pairs_and_products_that_depend_on_the_distance():
    table = sinusoidal_table(23, D)
    torch.testing.assert_close(table.unflatten(1, (-1, 2)).norm(dim=-1), torch.ones(23, D // 2))
    products = table @ table.T
    for distance in (1, 5, 11):
        diagonal = products.diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("learned", [False, True])
def test_added_positions_add_the_row_of_the_place(learned):
    layer, x = AddedPositions(11, D, learned), torch.randn(B, T, D)
    places = torch.tensor([0, 10, 2, 3, 3, 5, 1])
    want = torch.stack([x[:, i] + layer.table[p] for i, p in enumerate(places.tolist())], dim=1)
    torch.testing.assert_close(layer(x, places), want)
    per_sequence = torch.stack([places, places.flip(0), torch.arange(T)])
    for b in range(B):
        torch.testing.assert_close(layer(x, per_sequence)[b], layer(x, per_sequence[b])[b])


def test_a_learned_table_trains_and_sinusoids_do_not():
    learned, fixed = AddedPositions(11, D, learned=True), AddedPositions(11, D, learned=False)
    assert [tuple(p.shape) for p in learned.parameters()] == [(11, D)]
    assert list(fixed.parameters()) == [] and not fixed.state_dict()
    torch.testing.assert_close(fixed.table, sinusoidal_table(11, D))
    learned(torch.zeros(B, T, D), torch.arange(T)).sum().backward()
    assert learned.table.grad[:T].eq(B).all() and learned.table.grad[T:].eq(0).all()


def test_rotary_by_hand():
    # Width 2: one pair, turned by one radian per place.
    layer = Rotary(2, 5)
    x = torch.tensor([1.0, 0.0]).expand(1, 1, 5, 2)
    got = layer(x, torch.arange(5))[0, 0]
    want = torch.tensor([[math.cos(t), math.sin(t)] for t in range(5)])
    torch.testing.assert_close(got, want)


def test_rotary_pairs_feature_i_with_i_plus_half():
    # Width 4: pairs (0, 2) and (1, 3), at 1 and 1/100 radian per place.
    layer, x = Rotary(4, 4), torch.tensor([1.0, 0.0, 0.0, 2.0]).view(1, 1, 1, 4)
    got = layer(x, torch.tensor([3]))[0, 0, 0].tolist()
    assert got == pytest.approx([math.cos(3), -2 * math.sin(0.03), math.sin(3), 2 * math.cos(0.03)], abs=1e-6)


def test_rotary_keeps_lengths_and_leaves_place_zero_alone():
    layer, x = Rotary(DK, 50), torch.randn(B, H, T, DK)
    turned = layer(x, torch.tensor([0, 3, 49, 7, 7, 1, 20]))
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1))
    assert torch.equal(turned[:, :, 0], x[:, :, 0])


def test_rotary_products_depend_on_the_distance_alone():
    layer = Rotary(DK, 100)
    q, k = torch.randn(2, 1, 1, 1, DK)
    def product(t, s):
        return (layer(q, torch.tensor([t])) * layer(k, torch.tensor([s]))).sum().item()
    for t, s in [(5, 2), (9, 9), (2, 30)]:
        assert product(t, s) == pytest.approx(product(t + 61, s + 61), abs=1e-4)
    assert abs(product(5, 2) - product(5, 3)) > 1e-3


@pytest.mark.parametrize("batch", [1, T, 2])  # with B = T a table indexed by the batch axis would go unnoticed
def test_places_index_the_length_axis(batch):
    rotary, added = Rotary(DK, 11), AddedPositions(11, D, learned=True)
    for layer, x in ((rotary, torch.randn(batch, H, T, DK)), (added, torch.randn(batch, T, D))):
        together = layer(x, torch.arange(T))
        for b in range(batch):
            torch.testing.assert_close(together[b:b + 1], layer(x[b:b + 1], torch.arange(T)))
        same = layer(x[:1].expand_as(x), torch.arange(T))
        assert torch.equal(same, same[:1].expand_as(same))  # every sequence alike
        rows = torch.arange(batch)[:, None] + torch.zeros(T, dtype=torch.int64)
        for b in range(batch):  # one row of places per sequence
            torch.testing.assert_close(layer(x, rows)[b:b + 1], layer(x[b:b + 1], rows[b]))


def test_rotary_keeps_the_dtype():
    x = torch.randn(B, H, T, DK).bfloat16()
    assert Rotary(DK, T)(x, torch.arange(T)).dtype == torch.bfloat16


def test_positions_by_default_count_on():
    assert check_positions(None, B, T, 11, "cpu").tolist() == list(range(T))
    assert check_positions(None, B, T, 11, "cpu", start=4).tolist() == list(range(4, 11))
    given = torch.zeros(B, T, dtype=torch.int64)
    assert check_positions(given, B, T, 11, "cpu") is given


rotary, added = Rotary(DK, 11), AddedPositions(11, D, learned=True)
bad_places = [
    ([0] * T, "positions is list; expected an int64 tensor"),
    (None, "positions is NoneType"),
    (torch.arange(T).float(), r"positions has shape \(7,\) and dtype torch\.float32"),
    (torch.arange(T).int(), r"dtype torch\.int32; expected an int64 tensor of shape \(7,\) or \(3, 7\)"),
    (torch.ones(T, dtype=torch.bool), r"dtype torch\.bool"),
    (torch.arange(T - 1), r"positions has shape \(6,\)"),
    (torch.tensor(3), r"positions has shape \(\)"),
    (torch.zeros(1, T, dtype=torch.int64), r"positions has shape \(1, 7\)"),
    (torch.arange(T) - 1, r"positions reach from -1 to 5; expected values in \[0, max_len=11\)"),
    (torch.arange(T) + 5, r"positions reach from 5 to 11; expected values in \[0, max_len=11\)"),
]


@pytest.mark.parametrize("places, message", bad_places)
def test_bad_places(places, message):
    with pytest.raises(ValueError, match=message):
        rotary(torch.zeros(B, H, T, DK), places)
    with pytest.raises(ValueError, match=message):
        added(torch.zeros(B, T, D), places)
    if places is not None:
        with pytest.raises(ValueError, match=message):
            check_positions(places, B, T, 11, "cpu")


@pytest.mark.parametrize("call, message", [
    (lambda: sinusoidal_table(0, 4), "max_len=0 is out of range"),
    (lambda: sinusoidal_table(3, 0), "d_model=0 is out of range"),
    (lambda: sinusoidal_table(3, 5), "d_model=5 is odd"),
    (lambda: sinusoidal_table(3, 4.0), "d_model=4.0 is not an integer"),
    (lambda: sinusoidal_table(3, 4, base=0), r"base=0 is outside \(0, inf\)"),
    (lambda: sinusoidal_table(3, 4, base=math.inf), r"base=inf is outside \(0, inf\)"),
    (lambda: AddedPositions(0, 4, True), "max_len=0 is out of range"),
    (lambda: AddedPositions(3, 0, True), "d_model=0 is out of range"),
    (lambda: AddedPositions(3, 4.0, True), "d_model=4.0 is not an integer"),
    (lambda: AddedPositions(3, 5, False), "d_model=5 is odd"),
    (lambda: AddedPositions(3, 4, "yes"), "learned='yes' is neither True nor False"),
    (lambda: added(torch.zeros(B, T, 5), torch.arange(T)), r"x has shape \(3, 7, 5\); expected \(B, length, 6\)"),
    (lambda: Rotary(5, 3), "d_k=5 is odd"),
    (lambda: Rotary(0, 3), "d_k=0 is out of range"),
    (lambda: Rotary(4, 0), "max_len=0 is out of range"),
    (lambda: Rotary(4, 3, base=-1), r"base=-1 is outside \(0, inf\)"),
    (lambda: rotary(torch.zeros(B, H, T, 6), torch.arange(T)), r"x has shape \(3, 5, 7, 6\); expected \(B, H, T, 4\)"),
    (lambda: rotary(torch.zeros(B, T, DK), torch.arange(T)), r"x has shape \(3, 7, 4\); expected 4 axes"),
    (lambda: rotary(torch.zeros(B, H, T, DK).long(), torch.arange(T)), r"x is torch\.int64"),
    (lambda: check_positions(None, B, 12, 11, "cpu"), "the sequence has length 12, longer than max_len=11"),
    (lambda: check_positions(None, B, T, 11, "cpu", start=5), "the sequence has length 12, longer than max_len=11"),
    (lambda: check_positions(None, B, 0, 11, "cpu"), "the sequence has length 0"),
])
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
