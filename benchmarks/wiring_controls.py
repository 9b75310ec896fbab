"""Controls of chapter 7's tournament, at its middle budget: what the positions did, and what reading one's own tags costs.

    python -m benchmarks.wiring_controls               every run that is not stored yet, about twelve minutes of one core
    python -m benchmarks.wiring_controls --share 0 2   every second run, so that two processes can share the work

In the tournament the encoder-decoder counts positions by sinusoidal codes and the single towers by rotary angles.
"sinusoidal" gives the single towers the encoder-decoder's codes, "rotary" gives it their angles. "tags given" is reading
by the wirings that write their tags, scored twice: on tags of their own, as in the tournament, and with the right tags
before each one given.
"""

from __future__ import annotations

import argparse
import sys

import torch

from d2lmini import load_results, progress, save_results
from d2lmini.contests import CONTESTS, contest_corpus, grade
from d2lmini.tournament import compete
from d2lmini.wirings import WIRINGS
from tools.freshness import digest_modules

from .tournament import RECIPE, SEEDS, STEPS, make_contests, rounded

NAME, BUDGET = "wiring_controls", "middle"
SINUSOIDAL = [("sinusoidal", contest, wiring) for contest in CONTESTS for wiring in WIRINGS if wiring != "encoder-decoder"]
ROTARY = [("rotary", contest, "encoder-decoder") for contest in CONTESTS]
GIVEN = [("tags given", "reading, written", "decoder"), ("tags given", "reading", "prefix-LM")]


def plan() -> list[tuple[str, str, str, int]]:
    """All runs: (control, contest, wiring, seed)."""
    return [(*entry, seed) for seed in SEEDS for entry in GIVEN + SINUSOIDAL + ROTARY]


@torch.no_grad()
def f1_given(player, contest) -> float:
    """F1 of word ends when the right tags before each one are given."""
    q = contest.held_out()
    return grade(player(q).argmax(-1), q, contest.corpus)["f1"]


def run(contests: dict, control: str, name: str, wiring: str, seed: int) -> dict:
    """Train and score one entry."""
    positions = None if control == "tags given" else control
    player, result = compete(contests[name], wiring, seed, steps=STEPS[BUDGET], positions=positions, **RECIPE)
    if control == "tags given":
        result["f1_given"] = f1_given(player, contests[name])
    return dict(control=control, **rounded(result | dict(contest=name)))


def stored(digest: str) -> dict:
    """The runs so far, by (control, contest, wiring, seed); none if other code made them."""
    try:
        record = load_results(NAME)
    except ValueError:
        return {}
    runs = {(r["control"], r["contest"], r["wiring"], r["seed"]): r for r in record["runs"]}
    return runs if record["digest"] == digest else {}


def keep(digest: str, key: tuple, result: dict) -> None:
    """Add a run to what is stored by now, which another process may have added to."""
    runs = stored(digest) | {key: result}
    save_results(NAME, dict(recipe=RECIPE, steps=STEPS[BUDGET], runs=[runs[k] for k in sorted(runs)]),
                 command="python -m benchmarks.wiring_controls", digest=digest)


def main(arguments: list[str] | None = None) -> int:
    """Do the runs still missing, and save after each; 0 if none is missing at the end."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.wiring_controls", description=__doc__.splitlines()[0])
    parser.add_argument("--share", type=int, nargs=2, metavar=("I", "N"), default=(0, 1),
                        help="only every Nth run from the Ith on, so that N processes can share the work")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    digest = digest_modules(["benchmarks.wiring_controls"])
    todo = [key for key in plan() if key not in stored(digest)][options.share[0]::options.share[1]]
    contests = make_contests(contest_corpus())
    for key in progress(todo, "controls"):
        result = run(contests, *key)
        keep(digest, key, result)
        scores = ", ".join(f"{k} {result[k]:.3f}" for k in ("f1", "f1_given", "exact", "bits") if k in result)
        print(f"{', '.join(map(str, key))}: {scores}, {result['seconds']:.0f} s", flush=True)
    missing = len(set(plan()) - stored(digest).keys())
    print(f"wiring_controls: {len(plan()) - missing} of {len(plan())} runs")
    return int(missing > 0)


if __name__ == "__main__":
    sys.exit(main())
