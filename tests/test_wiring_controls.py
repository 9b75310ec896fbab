"""The controls of the tournament: each run once, positions as named, scores with the right tags given computed by hand."""

import pytest
import torch

from benchmarks import wiring_controls
from d2lmini import results
from d2lmini.contests import Contest, contest_corpus, grade, reading
from d2lmini.wirings import Questions


@pytest.fixture
def played(tmp_path, monkeypatch):
    """Runs without training: what was asked for, with the positions."""
    done = []

    def compete(contest, wiring, seed, *, steps, positions, **recipe):
        done.append((contest, wiring, seed, positions))
        return None, dict(contest="reading", wiring=wiring, seed=seed, f1=0.123456, seconds=1.26, losses=[3.14159])

    monkeypatch.setattr(results, "_folder", lambda: tmp_path)
    monkeypatch.setattr(wiring_controls, "compete", compete)
    monkeypatch.setattr(wiring_controls, "f1_given", lambda player, contest: 0.5)
    monkeypatch.setattr(wiring_controls, "contest_corpus", lambda: None)
    monkeypatch.setattr(wiring_controls, "make_contests", lambda corpus: {name: name for _, name, *_ in wiring_controls.plan()})
    return done


def test_every_run_is_done_once_with_the_positions_it_names(played):
    plan = wiring_controls.plan()
    assert len(plan) == len(set(plan)) == 3 * (2 + 9 + 3)
    assert wiring_controls.main(["--share", "0", "2"]) == 1 and len(played) == 21
    assert wiring_controls.main([]) == 0 and len(played) == len(set(played)) == 42
    assert wiring_controls.main([]) == 0 and len(played) == 42
    assert {(wiring, positions) for _, wiring, _, positions in played} == {
        ("encoder-decoder", "rotary"), *((w, "sinusoidal") for w in ("encoder", "decoder", "prefix-LM")),
        ("decoder", None), ("prefix-LM", None)}
    stored = results.load_results("wiring_controls")["runs"]
    assert [r["contest"] for r in stored if r["control"] == "tags given"] == ["reading"] * 3 + ["reading, written"] * 3
    assert all(("f1_given" in r) == (r["control"] == "tags given") for r in stored)


def test_with_the_right_tags_given_the_score_is_that_of_the_likeliest_next_tag():
    corpus = contest_corpus()
    contest = reading(corpus, length=8, form="rewrite")
    contest = Contest(contest.name, corpus, contest.train, Questions(contest.valid.source[:5], contest.valid.answer[:5], "rewrite"))
    end, inside = (corpus.vocab.ids[token] for token in ("<end>", "<inside>"))

    class Echo(torch.nn.Module):  # says that a tag is what the tag before it was; the first one is inside
        def forward(self, q):
            before = torch.cat((torch.full_like(q.answer[:, :1], inside), q.answer[:, :-1]), dim=1)
            return torch.nn.functional.one_hot(before, len(corpus.vocab)).float()

    y = contest.valid.answer
    before = torch.cat((torch.full_like(y[:, :1], inside), y[:, :-1]), dim=1)
    both = ((before == end) & (y == end)).sum().item()
    expected = 2 * both / ((before == end).sum() + (y == end).sum()).item()
    assert wiring_controls.f1_given(Echo(), contest) == pytest.approx(expected)
    assert grade(y, contest.valid, corpus)["f1"] == 1.0
