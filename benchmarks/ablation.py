"""What each ingredient of the record bought: the recipe with one ingredient changed, three seeds each.

    python -m benchmarks.ablation                       # every row and seed that is not stored yet
    python -m benchmarks.ablation --row NAME            # one row, all its seeds, again
    python -m benchmarks.ablation --row NAME --seed 1   # one run
    python -m benchmarks.ablation --list

Every run is stored as soon as it is done (d2lmini/results/encoder_ablation.json), so the command can be stopped
and started again. All rows see as many characters as the record does.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace

import torch

from d2lmini import load_results, save_results
from tools.freshness import digest_modules

from . import record
from .protocol import CorpusMissing, evaluate, load

NAME, SEEDS = "encoder_ablation", (0, 1, 2)
STRIDE = 3  # every third validation window, five passes: all characters are scored, in a third of the time
R = record.RECIPE
ROWS = {
    "the record": R,
    "AdamW instead of Muon": replace(R, optimizer="adamw", adam_lr=0.003),
    "learned positions": replace(R, positions="learned"),
    "15% hidden": replace(R, hidden=0.15),
    "64 windows a step": replace(R, batch=64, steps=R.steps * R.batch // 64),
    "constant rate": replace(R, decay=False),
    "whole matrices in Muon": replace(R, tile=0),
    "four blocks": replace(R, blocks=4),
}


def run(text, row: str, seed: int) -> dict:
    """Train one row with one seed, on one thread; time is the process's own, so a busy machine does not change it."""
    torch.set_num_threads(1)
    started, ended = time.process_time(), []

    def measure(model):
        ended.append(time.process_time())
        return evaluate(model, text, stride=STRIDE)

    (_, _, quality), = record.train(text, seed, ROWS[row], evaluate=measure)[1]
    return dict(row=row, seed=seed, interior=round(quality.interior, 5), accuracy=round(quality.accuracy, 5),
                loss=round(quality.loss, 5), cpu_seconds=round(ended[0] - started, 1), steps=ROWS[row].steps)


def stored(digest: str) -> dict[tuple[str, int], dict]:
    """The runs that this code made."""
    try:
        data = load_results(NAME)
    except ValueError:
        return {}
    return {(r["row"], r["seed"]): r for r in data["runs"]} if data["digest"] == digest else {}


def keep(result: dict, digest: str) -> None:
    """Add a run to what is stored by now, which another process may have added to."""
    runs = stored(digest) | {(result["row"], result["seed"]): result}
    order = sorted(runs, key=lambda key: (list(ROWS).index(key[0]), key[1]))
    save_results(NAME, dict(recipe=record.describe(), rows={name: record.describe(r) for name, r in ROWS.items()},
                            runs=[runs[key] for key in order]), command="python -m benchmarks.ablation", digest=digest)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ablation", description=__doc__.splitlines()[0])
    parser.add_argument("--row", choices=list(ROWS), metavar="NAME", help="run this row again; see --list")
    parser.add_argument("--seed", type=int, help="only this seed")
    parser.add_argument("--list", action="store_true", help="print the rows and stop")
    options = parser.parse_args(arguments)
    if options.list:
        print("\n".join(f"{name}: {record.describe(recipe)}" for name, recipe in ROWS.items()))
        return 0
    try:
        text = load()
    except CorpusMissing as error:
        print(f"benchmarks.ablation: {error}", file=sys.stderr)
        return 2
    digest = digest_modules(["benchmarks.ablation"])
    done = stored(digest) if options.row is None else {}
    for seed in SEEDS if options.seed is None else (options.seed,):
        for row in ROWS if options.row is None else (options.row,):
            if (row, seed) in done:
                continue
            result = run(text, row, seed)
            keep(result, digest)
            print(f"{row}, seed {seed}: interior {result['interior']:.3f}, accuracy {result['accuracy']:.3f}, "
                  f"{result['cpu_seconds']:.0f} s of CPU", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
