"""The chapter's benchmarks: what they print, what they count, and that the chapter trains by the stored recipe."""

import nbformat
import pytest
import torch
from conftest import ROOT
from test_results import constant

from benchmarks import perceiver_cost, perceiver_quality
from d2lmini import load_results
from d2lmini.batches import MaskedBatch
from d2lmini.timing import Point


@pytest.mark.parametrize("slow, code, line", [
    (1.0, 0, "perceiver_cost: gap 82 at 8,192 inputs, exponents 2.00 and 1.00, faster from 100 inputs"),
    (0.1, 1, "perceiver_cost: gap 8 at 8,192 inputs, exponents 2.00 and 1.00, faster from 1000 inputs"),
])
def test_the_gap_is_printed_last_and_one_below_tenfold_is_a_failure(monkeypatch, capsys, slow, code, line):
    law = {"full-fused": lambda n: slow * n**2 / 1e8, "perceiver-64": lambda n: n / 1e6}
    monkeypatch.setattr(perceiver_cost, "measure", lambda name, sizes, memory: [
        Point(n, law[name](n), law[name](n), law[name](n), 3) for n in sizes])
    threads = torch.get_num_threads()
    assert perceiver_cost.main([]) == code
    torch.set_num_threads(threads)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == line
    assert lines[0] == f"full-fused     32: {1e3 * law['full-fused'](32):.2f} ms [{1e3 * law['full-fused'](32):.2f}, " \
                       f"{1e3 * law['full-fused'](32):.2f}], 3 times"


def test_a_curve_is_measured_anew_only_to_be_stored(capsys):
    with pytest.raises(SystemExit):
        perceiver_cost.main(["--curve", "perceiver-64"])
    assert "give --save as well" in capsys.readouterr().err


def test_hidden_and_seen_characters_are_scored_apart():
    class Fives(torch.nn.Module):
        def forward(self, ids):
            return torch.nn.functional.one_hot(torch.full_like(ids, 5), 7).float() * 100

    batch = MaskedBatch(inputs=torch.tensor([[5, 6, 6, 5, 1]]), targets=torch.tensor([[5, 5, 2, 3, 1]]),
                        chosen=torch.tensor([[False, True, True, False, False]]))
    scored = perceiver_quality.score(Fives(), [batch])
    assert (scored["hits_hidden"], scored["hits_seen"]) == (0.5, round(1 / 3, 4))
    assert scored["loss_hidden"] == pytest.approx(50) and scored["loss_seen"] == pytest.approx(200 / 3, abs=1e-3)


def test_the_chapter_trains_by_the_recipe_of_the_stored_runs():
    notebook = nbformat.read(ROOT / "chapters" / "05_perceiver.ipynb", as_version=4)
    stored = load_results("perceiver_quality")
    assert constant(notebook, "recipe").items() <= stored["recipe"].items()
    assert {(r["kind"], r["seed"]) for r in stored["runs"]} == {(k, s) for k in perceiver_quality.KINDS for s in (0, 1, 2)}


def test_stored_curves_are_complete_or_say_why():
    stored = load_results("perceiver_cost")
    assert set(stored["curves"]) == set(perceiver_cost.CURVES)
    for curve in stored["curves"].values():
        assert [p["size"] for p in curve["points"]] == stored["sizes"]
        assert all(p["skipped"] or 0 < p["low"] <= p["seconds"] <= p["high"] for p in curve["points"])
