"""The record's recipe: Muon in tiles, the protocol, the published model, the runs that the benchmarks make of them."""

import time
from dataclasses import replace

import pytest
import torch
from torch import nn

from benchmarks import ablation, encoder, protocol, published, record
from benchmarks.protocol import LENGTH, ROWS, TRAINING, VALIDATION, Quality, Text, evaluate
from d2lmini import Config, Encoder, Muon, make_optimizers, orthogonalize


def update(gradient, **settings):
    """The step that Muon takes on a matrix of zeros, over its learning rate."""
    weight = nn.Parameter(torch.zeros_like(gradient))
    weight.grad = gradient.clone()
    Muon([weight], lr=0.5, momentum=0.0, **settings).step()
    return weight.detach() / -0.5


@pytest.mark.parametrize("shape", [(35, 14), (14, 35), (21, 21)])
def test_every_tile_is_made_orthogonal_by_itself(shape):
    gradient = torch.randn(*shape, generator=torch.Generator().manual_seed(3))
    rows, columns = shape
    cut = 0 if rows >= columns else 1
    tiles = [orthogonalize(tile) for tile in gradient.split(7, dim=cut)]
    scale = min(1, rows / columns) ** 0.5
    torch.testing.assert_close(update(gradient, tile=7), torch.cat(tiles, dim=cut) * scale)


def test_a_last_tile_that_is_narrower_is_made_orthogonal_too():
    gradient = torch.randn(17, 11, generator=torch.Generator().manual_seed(4))
    last = orthogonalize(gradient[15:])
    torch.testing.assert_close(update(gradient, tile=5)[15:], last)


@pytest.mark.parametrize("shape", [(40, 13), (13, 40)])
def test_tiles_leave_the_size_of_the_update_as_it_was(shape):
    gradient = torch.randn(*shape, generator=torch.Generator().manual_seed(5))
    ratio = update(gradient, tile=5, steps=9).norm() / update(gradient, steps=9).norm()
    assert 0.8 < ratio < 1.25


@pytest.mark.parametrize("tile", [11, 17, 40])
def test_a_tile_as_wide_as_the_matrix_is_the_whole_matrix(tile):
    gradient = torch.randn(17, 11, generator=torch.Generator().manual_seed(6))
    assert torch.equal(update(gradient, tile=tile), update(gradient))


def test_tiles_cannot_be_negative():
    with pytest.raises(ValueError, match="tile=-1"):
        Muon([nn.Parameter(torch.ones(3, 2))], tile=-1)


def test_make_optimizers_hands_the_tile_to_muon():
    model = nn.ModuleDict({"blocks": nn.ModuleList([nn.Linear(5, 7)])})
    assert make_optimizers(model, tile=2)[0].param_groups[0]["tile"] == 2


class Fixed(nn.Module):
    """Says the same letter everywhere."""

    def __init__(self, letter):
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(ROWS).index_fill(0, torch.tensor([letter]), 5.0))

    def forward(self, ids):
        return self.logits.expand(*ids.shape, ROWS)


@pytest.fixture(scope="module")
def text():
    chance = torch.Generator().manual_seed(1)
    return Text(torch.randint(27, (TRAINING + VALIDATION + LENGTH - 1,), generator=chance))


def test_the_split_is_the_published_one(text):
    assert text.train.shape == (100_000, 64)
    assert text.valid.shape == (3_000, 64)
    assert torch.equal(text.train[-1], text.ids[99_999:100_063])
    assert torch.equal(text.valid[0], text.ids[100_000:100_064])
    assert torch.equal(text.valid[-1], text.ids[102_999:103_063])


def test_an_evaluation_scores_what_can_be_worked_out_by_hand(text):
    model = Fixed(letter=4).train()
    quality = evaluate(model, text, passes=1, stride=10)
    share = (text.valid[::10] == 4).float().mean().item()
    expected = torch.logsumexp(model.logits, 0).item() - 5 * share
    assert quality.accuracy == pytest.approx(share, abs=0.02)
    assert quality.loss == pytest.approx(expected, abs=0.1)
    assert len(quality.positions) == 64
    assert quality.interior == pytest.approx(sum(quality.positions[16:48]) / 32)
    assert model.training


def test_the_bar_needs_both_numbers():
    assert Quality(1.2, 1.118, 0.639, []).reaches_the_bar
    assert not Quality(1.2, 1.119, 0.7, []).reaches_the_bar
    assert not Quality(1.2, 1.0, 0.638, []).reaches_the_bar


def test_the_published_model_equals_the_package_s_with_the_same_weights():
    theirs = published.PublishedEncoder()
    ours = Encoder(Config(ROWS, LENGTH, positions="learned"))
    names = {"token_table.weight": "tower.tokens.weight", "position_table.weight": "tower.added.table",
             "norm.weight": "tower.norm.weight"}
    inside = {"norm1": "self_norm", "norm2": "ff_norm", "wq": "self_attention.query", "wk": "self_attention.key",
              "wv": "self_attention.value", "wo": "self_attention.out", "w1": "feed_forward.gate",
              "w3": "feed_forward.up", "w2": "feed_forward.down"}
    for i in range(4):
        names |= {f"blocks.{i}.{a}.weight": f"tower.blocks.{i}.{b}.weight" for a, b in inside.items()}
    ours.load_state_dict({names[name]: weight for name, weight in theirs.state_dict().items()})
    ids = torch.randint(29, (3, LENGTH), generator=torch.Generator().manual_seed(2))
    torch.testing.assert_close(theirs(ids), ours(ids), rtol=1e-4, atol=1e-4)
    assert sum(p.numel() for p in theirs.parameters()) == published.PARAMETERS


def test_published_training_calls_the_evaluation_off_the_clock(text, monkeypatch):
    monkeypatch.setattr(published, "BATCH", 3)
    model, seconds, curve = published.train(text, 0, steps=2, evaluate_at=(1, 2), evaluate=lambda m: time.sleep(0.3))
    assert [step for step, _, _ in curve] == [1, 2]
    assert curve[1][1] == pytest.approx(seconds)


def test_the_record_s_model_is_within_the_budget_and_a_larger_one_is_refused():
    assert sum(p.numel() for p in record.make_model(record.RECIPE).parameters()) <= 798_976
    with pytest.raises(ValueError, match="798,976"):
        record.make_model(replace(record.RECIPE, blocks=5))


def test_a_run_of_the_record_reports_its_checkpoints(text):
    short = replace(record.RECIPE, steps=4, batch=2)
    model, curve = record.train(text, 0, short, checkpoints=2, evaluate=lambda m: "seen")
    assert [(step, value) for step, _, value in curve] == [(2, "seen"), (4, "seen")]
    assert 0 < curve[0][1] < curve[1][1]
    again, _ = record.train(text, 0, short)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters()))


def test_every_row_of_the_ablation_changes_something_and_fits_the_budget():
    recipes = list(ablation.ROWS.values())
    assert recipes[0] == record.RECIPE and len(set(recipes)) == len(recipes)
    for recipe in recipes:
        record.make_model(recipe)
        assert recipe.steps * recipe.batch == pytest.approx(record.RECIPE.steps * record.RECIPE.batch, rel=0.02)


def test_without_the_corpus_the_benchmarks_say_what_to_do(monkeypatch, capsys):
    def missing(name):
        raise ConnectionError("not on this machine; put it there")

    monkeypatch.setattr(protocol, "load_text", missing)
    assert encoder.main([]) == 2
    assert ablation.main([]) == 2
    assert "put it there" in capsys.readouterr().err
