"""What a bottleneck costs: Perceiver IO on 256 characters of text against its number of latents, over seeds.

    python -m benchmarks.perceiver_quality                       every run that is still missing
    python -m benchmarks.perceiver_quality --kind 64 --seed 0    this one, anew

Kinds: a number of latents; "full" (an encoder of as many parameters, no bottleneck); "unplaced" (128 latents
that start without a place); "table" (128 latents, learned positions).
"""

from __future__ import annotations

import argparse

import torch
import torch.nn.functional as F

from d2lmini.batches import masked_batches, random_windows, windows
from d2lmini.models import Config, Encoder
from d2lmini.optim import linear_decay, make_optimizers
from d2lmini.results import load_results, save_results
from d2lmini.text import load_corpus
from d2lmini.text_perceiver import TextPerceiver
from d2lmini.training import fit, seed_everything
from tools.freshness import digest_modules

NAME, LENGTH = "perceiver_quality", 256
KINDS = ["32", "64", "128", "256", "full", "unplaced", "table"]
RECIPE = dict(steps=150, batch=4, fraction=0.15, lr=0.02, adam_lr=0.003, latent_layers=1, encoder_layers=3)


def build(kind: str, vocab_size: int):
    """Return the model of a kind."""
    if kind == "full":
        return Encoder(Config(vocab_size, max_len=LENGTH, num_layers=RECIPE["encoder_layers"]))
    return TextPerceiver(vocab_size, LENGTH, int(kind) if kind.isdigit() else 128, num_layers=RECIPE["latent_layers"],
                         num_bands=0 if kind == "table" else 64, placed=kind != "unplaced")


def recall_loss(model, batch) -> torch.Tensor:
    """Return -log p(x_t | inputs) at every position, hidden or seen."""
    return F.cross_entropy(model(batch.inputs, batch.mask).flatten(0, 1), batch.targets.flatten(), reduction="none")


@torch.no_grad()
def score(model, batches) -> dict:
    """Mean loss and accuracy at hidden and at seen positions."""
    model.eval()
    losses, hits, hidden = [], [], []
    for batch in batches:
        logits = model(batch.inputs)
        losses.append(F.cross_entropy(logits.flatten(0, 1), batch.targets.flatten(), reduction="none"))
        hits.append((logits.argmax(-1) == batch.targets).flatten().float())
        hidden.append(batch.chosen.flatten())
    losses, hits, hidden = (torch.cat(x) for x in (losses, hits, hidden))
    model.train()
    return {f"{name}_{part}": round(values[where].mean().item(), 4) for name, values in (("loss", losses), ("hits", hits))
            for part, where in (("hidden", hidden), ("seen", ~hidden))}


def train(kind: str, seed: int, corpus, steps: int = RECIPE["steps"]):
    """Train one model; return it, its history with quick evaluations on a sixth of the text, and its final score."""
    mask_id = corpus.vocab.ids["<mask>"]
    held_out = list(masked_batches(iter(windows(corpus.valid, LENGTH).split(16)), mask_id, 7, replace=1.0, shuffle=0.0))
    quick = held_out[:1]
    seed_everything(seed)
    model = build(kind, len(corpus.vocab))
    batches = masked_batches(random_windows(corpus.train, LENGTH, RECIPE["batch"], seed), mask_id, seed + 1,
                             fraction=RECIPE["fraction"], replace=1.0, shuffle=0.0)
    history = fit(model, recall_loss, batches, steps=steps, schedule=linear_decay(),
                  optimizers=make_optimizers(model, lr=RECIPE["lr"], adam_lr=RECIPE["adam_lr"]),
                  evaluate_every=steps // 15, evaluation=lambda m: score(m, quick), desc=f"{kind}, seed {seed}")
    return model, history, score(model, held_out)


def stored_runs(digest: str) -> dict:
    """Return what the results file holds from this code, by (kind, seed)."""
    try:
        record = load_results(NAME)
    except ValueError:
        return {}
    return {(r["kind"], r["seed"]): r for r in record["runs"]} if record["digest"] == digest else {}


def record(kind: str, seed: int, corpus, digest: str):
    """Train one model, save its figures beside the others, and return it."""
    model, history, final = train(kind, seed, corpus)
    run = dict(kind=kind, seed=seed, parameters=sum(p.numel() for p in model.parameters()),
               seconds=round(history.seconds, 1), curve=history.evaluations, **final)
    runs = {**stored_runs(digest), (kind, seed): run}  # read again: another process may have finished one meanwhile
    save_results(NAME, dict(recipe=RECIPE, length=LENGTH, runs=[runs[key] for key in sorted(runs)]),
                 command="python -m benchmarks.perceiver_quality", digest=digest)
    print(f"{kind:>8s}, seed {seed}: hidden {run['loss_hidden']:.3f} nats {run['hits_hidden']:.1%}, seen "
          f"{run['loss_seen']:.3f} nats {run['hits_seen']:.1%}, {run['seconds']:.0f} s", flush=True)
    return model


def main() -> None:
    """Train what is asked for, and save after each run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--seed", type=int, choices=(0, 1, 2))
    options = parser.parse_args()
    corpus, code = load_corpus("tide_clock"), digest_modules([f"benchmarks.{NAME}"])
    for seed in (0, 1, 2) if options.seed is None else (options.seed,):
        for kind in [options.kind] if options.kind else KINDS:
            if options.kind or (kind, seed) not in stored_runs(code):
                record(kind, seed, corpus, code)


if __name__ == "__main__":
    main()
