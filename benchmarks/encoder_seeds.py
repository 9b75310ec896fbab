"""Chapter 2's encoder on the shipped corpus, over several seeds: curves, loss by position, one mask at a time.

    python -m benchmarks.encoder_seeds --seeds 1 2 3      # adds or replaces these seeds; about two minutes each
"""

from __future__ import annotations

import argparse

import torch

from d2lmini import (Config, Encoder, MaskedBatch, evaluate, fit, linear_decay, load_corpus, load_results,
                     make_optimizers, masked_batches, masked_loss, random_windows, save_results, seed_everything,
                     token_losses, windows)
from tools.freshness import digest_modules

NAME, LENGTH = "encoder_seeds", 64
RECIPE = dict(blocks=2, batch=8, steps=2400, fraction=0.3, lr=0.01, adam_lr=0.015, tile=32)


def train(corpus, seed: int, recipe: dict = RECIPE):
    """Train the chapter's encoder; return the model and its history with evaluations every 50 steps."""
    mask_id = corpus.vocab.ids["<mask>"]
    quick = list(masked_batches(iter(windows(corpus.valid, LENGTH).split(64)), mask_id, 7, replace=1.0, shuffle=0.0))
    seed_everything(seed)
    model = Encoder(Config(len(corpus.vocab), max_len=LENGTH, num_layers=recipe["blocks"]))
    batches = masked_batches(random_windows(corpus.train, LENGTH, recipe["batch"], seed), mask_id, seed + 1,
                             fraction=recipe["fraction"], replace=1.0, shuffle=0.0)
    history = fit(model, masked_loss, batches, steps=recipe["steps"], schedule=linear_decay(),
                  optimizers=make_optimizers(model, lr=recipe["lr"], adam_lr=recipe["adam_lr"],
                                             tile=recipe["tile"]), evaluate_every=50,
                  evaluation=lambda m: evaluate(m, masked_loss, quick), desc=f"encoder, seed {seed}")
    return model, history


def by_position(model, corpus) -> list[float]:
    """Mean masked loss at each of the 64 positions, 15% hidden, over windows at stride 2."""
    batches = list(masked_batches(iter(windows(corpus.valid, LENGTH, stride=2).split(256)),
                                  corpus.vocab.ids["<mask>"], 8, replace=1.0, shuffle=0.0))
    losses = token_losses(model, masked_loss, batches)
    places = torch.cat([b.chosen.nonzero()[:, 1] for b in batches])
    return (torch.bincount(places, losses, minlength=LENGTH) / torch.bincount(places, minlength=LENGTH)).tolist()


def single_mask(model, corpus, stride: int = 40) -> list[float]:
    """Mean loss at each position when it is the only one hidden."""
    base = windows(corpus.valid, LENGTH, stride)
    means = []
    for place in range(LENGTH):
        chosen = torch.zeros_like(base, dtype=torch.bool)
        chosen[:, place] = True
        batch = MaskedBatch(base.masked_fill(chosen, corpus.vocab.ids["<mask>"]), base, chosen)
        means.append(token_losses(model, masked_loss, [batch]).mean().item())
    return means


def stored_runs(digest: str) -> dict[int, dict]:
    """The runs stored so far, by seed; none if other code made them. Read late, so that seeds may run side by side."""
    try:
        stored = load_results(NAME)
    except ValueError:
        return {}
    return {run["seed"]: run for run in stored["runs"]} if stored["digest"] == digest else {}


def main() -> None:
    """Train the seeds asked for, and save after each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    seeds = parser.parse_args().seeds
    digest = digest_modules(["benchmarks.encoder_seeds"])
    corpus = load_corpus("tide_clock")
    for seed in seeds:
        model, history = train(corpus, seed)
        run = dict(seed=seed, curve=history.evaluations, seconds=round(history.seconds, 1),
                   by_position=[round(x, 4) for x in by_position(model, corpus)],
                   single_mask=[round(x, 4) for x in single_mask(model, corpus)])
        runs = {**stored_runs(digest), seed: run}
        save_results(NAME, dict(recipe=RECIPE, runs=[runs[s] for s in sorted(runs)]),
                     command="python -m benchmarks.encoder_seeds", digest=digest)
        print(f"seed {seed}: {history.evaluations[-1][1]:.3f} nats, {history.seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
