"""Chapter 6's training runs: the norm inside the branch or behind the sum, at two layers and at twelve.

    python -m benchmarks.norms                       every run that is still missing, about 20 minutes for all
    python -m benchmarks.norms --minutes 4           start no further run after four minutes; call again to go on
    python -m benchmarks.norms --only shallow --seeds 20 21    these runs, anew

Runs of one seed begin with the same weights and see the same batches, whatever the arm, so that they can be compared
in pairs. Everything runs on one thread.
"""

from __future__ import annotations

import argparse
import sys
import time

import torch
from torch import nn

from d2lmini import (Config, Decoder, evaluate, fit, linear_decay, load_corpus, load_results, next_token_loss,
                     random_windows, save_results, seed_everything, windows)
from tools.freshness import digest_modules

NAME, LENGTH = "norms", 32
SHALLOW = dict(layers=2, batch=16, steps=600)
DEEP = dict(layers=12, batch=8, steps=150, warmup=1 / 3)
RATES = (1e-3, 5e-3, 1e-2)
PLACES = {"post": dict(norm_first=False), "pre": dict(norm_first=True)}


def make_model(layers: int, norm_first: bool, seed: int, init: str = "default", final_norm: bool = True) -> Decoder:
    """A decoder of blocks with 49,792 parameters each, tokens and positions from N(0, 1), and a head of its own.

    Both placements draw the same weights from one seed. ``init`` is PyTorch's default for linear layers, or "xavier"
    with zero biases; ``final_norm=False`` takes away the norm behind a pre-norm stack.
    """
    seed_everything(seed)
    model = Decoder(Config(29, LENGTH, d_model=64, num_heads=4, num_layers=layers, d_ff=256, norm="layer",
                           norm_first=norm_first, activation="gelu", positions="learned", bias=True, tied=False))
    nn.init.normal_(model.tower.tokens.weight)
    nn.init.normal_(model.tower.added.table)
    if init == "xavier":
        for layer in model.modules():
            if isinstance(layer, nn.Linear):
                nn.init.xavier_uniform_(layer.weight)
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)
    if not final_norm:
        model.tower.norm = None
    return model


def train(model: Decoder, corpus, seed: int, *, batch: int, steps: int, lr: float, schedule=None) -> dict:
    """Train with Adam; return the loss on the held-out text and the training loss, averaged over every ten steps."""
    adam = torch.optim.Adam(model.parameters(), lr, fused=True)
    history = fit(model, next_token_loss, random_windows(corpus.train, LENGTH + 1, batch, seed), steps=steps,
                  optimizers=adam, schedule=schedule)
    held_out = evaluate(model, next_token_loss, windows(corpus.valid, LENGTH + 1, LENGTH).split(128))
    curve = [round(sum(history.losses[i:i + 10]) / 10, 4) for i in range(0, steps - steps % 10, 10)]
    return dict(held_out=round(held_out, 5), curve=curve, seconds=round(history.seconds, 1))


def shallow(corpus, arm: str, seed: int) -> dict:
    """Two layers at a constant rate; arm: "place/rate", place being "post", "pre" or "bare", pre-norm without the final norm."""
    place, rate = arm.split("/")
    model = make_model(SHALLOW["layers"], place != "post", seed, final_norm=place != "bare")
    return train(model, corpus, seed, batch=SHALLOW["batch"], steps=SHALLOW["steps"], lr=float(rate))


def deep(corpus, arm: str, seed: int) -> dict:
    """Twelve layers, the rate falling linearly to 0; arm: "place/rise/rate/init", rise being "warm" or "cold"."""
    place, rise, rate, init = arm.split("/")
    model = make_model(DEEP["layers"], **PLACES[place], seed=seed, init=init)
    return train(model, corpus, seed, batch=DEEP["batch"], steps=DEEP["steps"], lr=float(rate),
                 schedule=linear_decay(DEEP["warmup"] if rise == "warm" else 0.0))


def plan() -> list[tuple[str, str, int]]:
    """All runs (experiment, arm, seed), the ones that matter most first."""
    arms = [f"{place}/{rise}" for place in PLACES for rise in ("cold", "warm")]
    runs = [("deep", f"{arm}/0.005/default", seed) for seed in range(1, 6) for arm in arms]
    runs += [("shallow", f"{place}/0.001", seed) for seed in range(1, 11) for place in PLACES]
    for seed in range(1, 4):
        runs += [("deep", f"{arm}/{rate:g}/default", seed) for rate in RATES if rate != 0.005 for arm in arms]
        runs += [("deep", f"{arm}/0.001/xavier", seed) for arm in arms if arm != "pre/warm"]
    for seed in range(1, 5):
        runs += [("shallow", arm, seed) for arm in ("post/0.003", "pre/0.003", "bare/0.001")]
    return runs


def stored(digest: str) -> dict:
    """The runs in the results file by (experiment, arm, seed); none if other code made them."""
    try:
        record = load_results(NAME)
    except ValueError:
        return {}
    return {(r["experiment"], r["arm"], r["seed"]): r for r in record["runs"]} if record["digest"] == digest else {}


def main(argv: list[str] | None = None) -> int:
    """Do the runs asked for or still missing, and save after each; return 0."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.norms", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start no further run after this time")
    parser.add_argument("--only", choices=("shallow", "deep"))
    parser.add_argument("--seeds", type=int, nargs="+", help="do these seeds anew")
    options = parser.parse_args(argv)
    torch.set_num_threads(1)
    digest, corpus, began = digest_modules(["benchmarks.norms"]), load_corpus(), time.perf_counter()
    todo = [run for run in plan() if options.only in (None, run[0])]
    if options.seeds:
        arms = list(dict.fromkeys(run[:2] for run in todo))
        todo = [(*arm, seed) for seed in options.seeds for arm in arms]
    for experiment, arm, seed in todo:
        if time.perf_counter() - began > 60 * options.minutes:
            break
        if (experiment, arm, seed) in stored(digest) and not options.seeds:
            continue
        result = {"shallow": shallow, "deep": deep}[experiment](corpus, arm, seed)
        runs = stored(digest)  # read again: another process may have added runs meanwhile
        runs[experiment, arm, seed] = dict(experiment=experiment, arm=arm, seed=seed, **result)
        save_results(NAME, dict(shallow=SHALLOW, deep=DEEP, seeds=sorted({key[2] for key in runs}),
                                runs=[runs[key] for key in sorted(runs)]),
                     command="python -m benchmarks.norms", digest=digest)
        print(f"{experiment} {arm}, seed {seed}: {result['held_out']:.4f}, {result['seconds']:.0f} s", flush=True)
    print(f"norms: {sum(run in stored(digest) for run in plan())} of {len(plan())} runs are stored")
    return 0


if __name__ == "__main__":
    sys.exit(main())
