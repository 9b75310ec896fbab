"""Chapter 7's tournament: four wirings of equal size take three tasks with equal training tokens.

    python -m benchmarks.tournament                      every run that is not stored yet, about an hour of one core
    python -m benchmarks.tournament --minutes 4          start no further run after four minutes; call again to go on
    python -m benchmarks.tournament --only writing --seeds 7    these runs, anew

Each run is stored as soon as it is done. Everything runs on one thread; seconds are the process's own CPU time.
"""

from __future__ import annotations

import argparse
import sys
import time

import torch

from d2lmini import load_results, progress, save_results
from d2lmini.baselines import contest_baselines
from d2lmini.contests import CONTESTS, contest_corpus, reading, writing
from d2lmini.tournament import compete
from d2lmini.wirings import WIRINGS
from tools.freshness import digest_modules

NAME, SEEDS = "tournament", (1, 2, 3)
RECIPE = dict(tokens=512, blocks=2, d_model=128, lr=0.02, adam_lr=0.01)
STEPS = dict(full=2000, short=250, middle=500)  # what matters most first
# Two entries beside the tournament, each for one wiring: the tags written behind the letters, so that the decoder has
# read them all before it tags; and an encoder that learned to write as BERT learns, with three tenths of a text hidden.
EXTRAS = {"reading, written": "decoder", "writing, by filling in": "encoder"}


def make_contests(corpus) -> dict:
    """All tasks by name."""
    extras = reading(corpus, form="rewrite"), writing(corpus, fill=0.3)
    return {name: make(corpus) for name, make in CONTESTS.items()} | dict(zip(EXTRAS, extras))


def plan() -> list[tuple[str, str, str, int]]:
    """All runs (budget, contest, wiring, seed): the full budget and its extras, then the short and the middle one."""
    entries = [(contest, wiring) for contest in CONTESTS for wiring in WIRINGS]
    groups = [(budget, entries + (list(EXTRAS.items()) if budget == "full" else [])) for budget in STEPS]
    return [(budget, *entry, seed) for budget, chosen in groups for seed in SEEDS for entry in chosen]


def rounded(result: dict) -> dict:
    """The result with losses to 4 and all other fractions to 5 decimals."""
    result = {k: round(v, 5) if isinstance(v, float) else v for k, v in result.items()}
    return result | dict(losses=[round(x, 4) for x in result["losses"]], seconds=round(result["seconds"], 1))


def stored(digest: str) -> dict:
    """The record so far: runs by (budget, contest, wiring, seed), and the baselines; empty if other code made it."""
    try:
        record = load_results(NAME)
    except ValueError:
        return dict(runs={}, baselines={})
    if record["digest"] != digest:
        return dict(runs={}, baselines={})
    return dict(runs={(r["budget"], r["contest"], r["wiring"], r["seed"]): r for r in record["runs"]},
                baselines=record["baselines"])


def keep(digest: str, runs: dict, baselines: dict) -> None:
    """Add to what is stored by now, which another process may have added to."""
    now = stored(digest)
    runs, baselines = now["runs"] | runs, now["baselines"] | baselines
    save_results(NAME, dict(recipe=RECIPE, steps=STEPS, seeds=sorted({key[3] for key in runs}), baselines=baselines,
                            runs=[runs[key] for key in sorted(runs)]),
                 command="python -m benchmarks.tournament", digest=digest)


def summary(runs: dict) -> str:
    """The winner of each task with the full budget, by the mean over seeds, and how many runs there are."""
    winners = []
    for contest, (key, sign) in dict(reading=("f1", 1), rewriting=("exact", 1), writing=("bits", -1)).items():
        scores = {w: [r[key] for (budget, c, wiring, _), r in runs.items() if (budget, c, wiring) == ("full", contest, w)]
                  for w in WIRINGS}
        means = {w: sum(values) / len(values) for w, values in scores.items() if values}
        if means:
            best = max(means, key=lambda w: sign * means[w])
            winners.append(f"{contest} {best} ({key} {means[best]:.3f})")
    return f"tournament: {len(set(plan()) & runs.keys())} of {len(plan())} runs; " + (", ".join(winners) or "no winner yet")


def main(arguments: list[str] | None = None) -> int:
    """Do the runs asked for or still missing, and save after each; 0 if none is missing at the end."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tournament", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start no further run after this time")
    parser.add_argument("--share", type=int, nargs=2, metavar=("I", "N"), default=(0, 1),
                        help="only every Nth run from the Ith on, so that N processes can share the work")
    parser.add_argument("--only", choices=[*CONTESTS, *EXTRAS], help="runs of this task alone")
    parser.add_argument("--seeds", type=int, nargs="+", help="do these seeds anew")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    digest, began = digest_modules(["benchmarks.tournament"]), time.perf_counter()
    todo = [run for run in plan() if options.only in (None, run[1])]
    if options.seeds:
        todo = [(*key, seed) for seed in options.seeds for key in dict.fromkeys(run[:3] for run in todo)]
    else:
        todo = [run for run in todo if run not in stored(digest)["runs"]]
    todo = todo[options.share[0]::options.share[1]]
    corpus = contest_corpus()
    contests = make_contests(corpus)
    missing = [name for name in CONTESTS if name not in stored(digest)["baselines"]]
    if missing:
        keep(digest, {}, {name: contest_baselines(contests[name]) for name in missing})
    for budget, name, wiring, seed in progress(todo, "tournament"):
        if time.perf_counter() - began > 60 * options.minutes:
            break
        if (budget, name, wiring, seed) in stored(digest)["runs"] and not options.seeds:
            continue  # another process has done it meanwhile
        result = compete(contests[name], wiring, seed, steps=STEPS[budget], **RECIPE)[1] | dict(contest=name)
        keep(digest, {(budget, name, wiring, seed): dict(budget=budget, **rounded(result))}, {})
        scores = ", ".join(f"{k} {result[k]:.3f}" for k in ("accuracy", "f1", "exact", "bits") if k in result)
        print(f"{budget} {name} {wiring}, seed {seed}: {scores}, {result['seconds']:.0f} s", flush=True)
    runs = stored(digest)["runs"]
    print(summary(runs))
    return int(bool(set(plan()) - runs.keys()))


if __name__ == "__main__":
    sys.exit(main())
