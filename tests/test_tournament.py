"""The tournament's command: it stores each run as it ends, goes on where it stopped, and keeps what others stored."""

import pytest

from benchmarks import tournament
from d2lmini import results
from d2lmini.contests import CONTESTS
from d2lmini.wirings import WIRINGS


@pytest.fixture
def played(tmp_path, monkeypatch):
    """Runs without training: the list of those that were asked for."""
    done = []

    def compete(contest, wiring, seed, *, steps, **recipe):
        done.append((contest, wiring, seed, steps))
        return None, dict(contest=contest, wiring=wiring, seed=seed, bits=2.123456, exact=0.5, f1=0.25, seconds=1.26,
                          losses=[3.14159])

    monkeypatch.setattr(results, "_folder", lambda: tmp_path)
    monkeypatch.setattr(tournament, "compete", compete)
    monkeypatch.setattr(tournament, "make_contests", lambda corpus: {name: name for name in [*CONTESTS, *tournament.EXTRAS]})
    monkeypatch.setattr(tournament, "contest_baselines", lambda contest: {contest: dict(bits=4.0)})
    monkeypatch.setattr(tournament, "contest_corpus", lambda: None)
    return done


def test_the_plan_holds_every_run_once():
    plan = tournament.plan()
    assert len(plan) == len(set(plan)) == (3 * 3 * 4 + 2) * len(tournament.SEEDS)
    assert {run[0] for run in plan[:42]} == {"full"} and {run[0] for run in plan[42:78]} == {"short"}
    assert {run[3] for run in plan[:12]} == {1}, "one seed of every wiring comes first"


def test_it_goes_on_where_it_stopped(played):
    assert tournament.main(["--minutes", "0"]) == 1
    assert played == [] and set(results.load_results("tournament")["baselines"]) == set(CONTESTS)
    tournament.main(["--only", "writing", "--share", "1", "2"])
    assert len(played) == 18
    tournament.main(["--only", "writing"])
    assert len(played) == 36 and {run[0] for run in played} == {"writing"}
    tournament.main([])
    assert len(played) == 114 == len(set(played))
    assert tournament.main([]) == 0
    assert len(played) == 114
    stored = results.load_results("tournament")
    assert stored["command"] == "python -m benchmarks.tournament" and stored["seeds"] == [1, 2, 3]
    assert len(stored["runs"]) == 114 and stored["runs"][0]["bits"] == 2.12346 and stored["runs"][0]["seconds"] == 1.3


def test_seeds_are_done_anew_when_asked_for(played):
    tournament.main(["--only", "reading", "--seeds", "7"])
    tournament.main(["--only", "reading", "--seeds", "7"])
    assert len(played) == 2 * 3 * len(WIRINGS) and {run[2] for run in played} == {7}
    assert results.load_results("tournament")["seeds"] == [7]


def test_runs_that_another_process_stored_meanwhile_stay(played):
    digest = tournament.digest_modules(["benchmarks.tournament"])
    first, second = (dict(budget="short", contest="writing", wiring=w, seed=1, bits=2.0) for w in WIRINGS[:2])
    tournament.keep(digest, {("short", "writing", "encoder", 1): first}, {})
    tournament.keep(digest, {("short", "writing", "decoder", 1): second}, {"writing": {}})
    assert results.load_results("tournament")["runs"] == [second, first]
    tournament.keep("other code", {("short", "writing", "decoder", 1): second}, {})
    assert results.load_results("tournament")["runs"] == [second], "runs of other code are dropped"


def test_the_last_line_names_the_winners():
    runs = {("full", "writing", w, s): dict(bits=b + s) for s in (1, 2) for w, b in (("encoder", 3.0), ("decoder", 2.0))}
    runs["full", "reading", "prefix-LM", 1] = dict(f1=0.5)
    runs["short", "reading", "encoder", 1] = dict(f1=0.9)
    assert tournament.summary(runs) == ("tournament: 6 of 114 runs; reading prefix-LM (f1 0.500), "
                                        "writing decoder (bits 3.500)")
    assert tournament.summary({}) == "tournament: 0 of 114 runs; no winner yet"
