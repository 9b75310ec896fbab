"""Chapter 4's stored experiment: its measures on models and maps whose answer is known."""

import torch

from benchmarks.alignment import VARIANTS, build, line, spread
from benchmarks.alignment_maps import TASK, apart, contributions, maps, pack, score
from d2lmini import MultiHeadAttention

ANTI = torch.eye(12).flip(0)


def test_a_perfect_map_hits_everywhere_and_an_even_one_has_a_twelfth_of_its_mass_there():
    assert score(ANTI[None]) == dict(hit=1, mass=1)
    half = 0.6 * ANTI + 0.4 * torch.eye(12)
    assert score(half[None]) == dict(hit=1, mass=0.6)
    assert score(torch.eye(12)[None]) == dict(hit=0, mass=0)
    assert score(torch.full((2, 12, 12), 1 / 12))["mass"] == 0.0833


def test_a_weight_on_vectors_that_never_change_brings_nothing():
    torch.manual_seed(0)
    layer, memory = MultiHeadAttention(6, 2), torch.randn(5, 3, 6)  # B = 5, S = 3, D = 6, H = 2
    memory[:, 1] = memory[0, 1]  # the same in every string
    weights = torch.full((5, 2, 4, 3), 0.1)
    weights[..., 1] = 0.8
    with torch.no_grad():
        brings = contributions(layer, memory, weights)
        alone = layer.out((memory - memory.mean(dim=0)) @ layer.value.weight.T)
    assert brings.shape == (4, 3)
    assert brings[:, 1].abs().max() < 1e-6
    assert torch.allclose(brings[0, 2], 0.1 * alone[:, 2].norm(dim=-1).mean(), atol=1e-6)


def test_with_no_mixing_a_letter_stays_in_its_own_memory_vector():
    torch.manual_seed(0)
    source = TASK.batch(3, torch.Generator().manual_seed(0)).source
    other = source.clone()
    other[:, 5] = (other[:, 5] + 1) % TASK.letters
    moved = {}
    for name in ("no-mixing", "quiet-start", "published"):
        model = build(VARIANTS[name])
        moved[name] = (model.encode(other) != model.encode(source)).any(-1).any(0).tolist()
    assert moved["no-mixing"] == moved["quiet-start"] == [place == 5 for place in range(12)]
    assert all(moved["published"])


def test_keys_from_positions_alone_leave_the_weights_blind_to_the_letters():
    torch.manual_seed(0)
    batch = TASK.batch(2, torch.Generator().manual_seed(0))
    model, traces = build(VARIANTS["position-keys"]), ({}, {})
    for trace, source in zip(traces, (batch.source, batch.source.flip(0))):
        model(source, batch.inputs, trace=trace)
    assert torch.equal(*(trace["decoder.0.cross"] for trace in traces))


def test_maps_of_an_untrained_model_have_their_shapes_and_ranges():
    torch.manual_seed(0)
    measured = maps(build(VARIANTS["no-encoder-block"]), count=4)
    assert len(measured["attention"]) == 4 and {len(measured[k]) for k in ("brings", "effect", "agreed", "keeper")} == {12}
    assert measured["kept_at_home"] == 1  # without a block in the encoder a letter can be nowhere else
    rows = torch.tensor([[int(x) for x in row.split()] for row in measured["attention"][0]])
    assert rows.shape == (12, 12) and (rows.sum(1) - 100).abs().max() <= 6  # rounding, half a percent a cell


def test_without_positions_neighbours_are_not_apart_and_a_table_sets_their_distance():
    torch.manual_seed(0)
    model = build(VARIANTS["no-encoder-block"])  # the memory is the sum of the letter's and the position's vector
    with torch.no_grad():
        model.encoder.tokens.weight.zero_()
        model.encoder.added.table.copy_(3.0 * torch.arange(12)[:, None] * torch.eye(128)[0])
    assert apart(model) == 3
    model.encoder.added.table.data.zero_()
    assert apart(model) == 0


def test_spread_and_line_read_the_last_point_or_the_run_itself():
    runs = [dict(points={"100": dict(hit=0.1), "200": dict(hit=hit)}, brings_hit=1.0) for hit in (0.5, 0.25)]
    assert spread(runs, "hit") == "0.25 to 0.50" and spread(runs, "brings_hit") == "1.00"
    full = {key: 0.5 for key in ("apart", "hit", "mass", "exact", "kept_at_home", "looks_at_keeper", "brings_hit", "effect_hit",
                                    "effect_elsewhere", "agreed_elsewhere")}
    assert line([dict(points={"9": full})]).startswith("apart 0.50, hit 0.50, mass 0.50")
    assert pack(torch.tensor([[0.0, 0.256], [1.0, 0.5]])) == ["0 26", "100 50"]
