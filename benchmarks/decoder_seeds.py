"""Chapter 3's decoder beside chapter 2's encoder, over several seeds: loss by context, and what a leaking mask does.

    python -m benchmarks.decoder_seeds --seeds 1 2 3      # adds or replaces these seeds; about two minutes each

Same corpus, form, blocks, batch, steps and optimizer as `benchmarks.encoder_seeds`; windows of 64 predictions.
`by_context[i]` is the mean loss of a character with the i+1 before it visible (i = 0 ... 63), on the held-out text.
"""

from __future__ import annotations

import argparse

import torch
import torch.nn.functional as F

from d2lmini import (Config, Decoder, causal_mask, evaluate, fit, linear_decay, load_corpus, load_results,
                     make_optimizers, next_token_loss, random_windows, save_results, seed_everything, token_losses,
                     windows)
from tools.freshness import digest_modules

NAME, LENGTH = "decoder_seeds", 64
RECIPE = dict(blocks=2, batch=8, steps=2400, lr=0.01, adam_lr=0.01)
LEAK = dict(blocks=2, batch=8, steps=200, lr=0.01, adam_lr=0.003)


def train(corpus, seed: int, recipe: dict = RECIPE, loss=next_token_loss, evaluate_every: int = 50):
    """Train a decoder with one seed; return it and its history, evaluated on the held-out text."""
    quick = list(windows(corpus.valid, LENGTH + 1).split(64))
    seed_everything(seed)
    model = Decoder(Config(len(corpus.vocab), max_len=LENGTH, num_layers=recipe["blocks"]))
    history = fit(model, loss, random_windows(corpus.train, LENGTH + 1, recipe["batch"], seed), steps=recipe["steps"],
                  schedule=linear_decay(), evaluate_every=evaluate_every,
                  optimizers=make_optimizers(model, lr=recipe["lr"], adam_lr=recipe["adam_lr"]),
                  evaluation=lambda m: evaluate(m, next_token_loss, quick), desc=f"decoder, seed {seed}")
    return model, history


def by_context(model, corpus, loss=next_token_loss, stride: int = 3) -> list[float]:
    """Mean loss with 1 ... 64 characters of context, over the held-out windows at a stride."""
    batches = windows(corpus.valid, LENGTH + 1, stride).split(256)
    return token_losses(model, loss, batches).view(-1, LENGTH).mean(0).tolist()


def leaking_loss(model, ids: torch.Tensor) -> torch.Tensor:
    """Next-token loss under a mask that lets each position see one token too many: the one it predicts."""
    size = ids.shape[1] - 1
    mask = causal_mask(size + 1)[1:, :size]  # row t is the honest row t + 1
    return F.cross_entropy(model(ids[:, :-1], mask, causal=False).flatten(0, 1), ids[:, 1:].flatten(), reduction="none")


def leak(corpus, seed: int) -> dict:
    """Train one model honestly and one with the leak, for the same few steps; score both ways."""
    honest, _ = train(corpus, seed, LEAK, evaluate_every=LEAK["steps"])
    leaky, _ = train(corpus, seed, LEAK, leaking_loss, evaluate_every=LEAK["steps"])
    seen = by_context(leaky, corpus, leaking_loss)
    return dict(honest=sum(by_context(honest, corpus)) / LENGTH, leaking=sum(seen[:-1]) / (LENGTH - 1),
                leaking_last=seen[-1], leaking_under_causal_mask=sum(by_context(leaky, corpus)) / LENGTH)


def main() -> None:
    """Train the seeds asked for, and save after each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decoder_seeds", description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    digest = digest_modules(["benchmarks.decoder_seeds"])
    corpus = load_corpus("tide_clock")
    try:
        stored = load_results(NAME)
        runs = {run["seed"]: run for run in stored["runs"]} if stored["digest"] == digest else {}
    except ValueError:
        runs = {}
    for seed in parser.parse_args().seeds:
        model, history = train(corpus, seed)
        runs[seed] = dict(seed=seed, curve=history.evaluations, seconds=round(history.seconds, 1),
                          train=round(history.smoothed(100)[-1], 4),
                          by_context=[round(x, 4) for x in by_context(model, corpus)],
                          leak={k: round(v, 4) for k, v in leak(corpus, seed).items()})
        save_results(NAME, dict(recipe=RECIPE, leak_recipe=LEAK, seeds=sorted(runs),
                                runs=[runs[s] for s in sorted(runs)]),
                     command="python -m benchmarks.decoder_seeds", digest=digest)
        print(f"seed {seed}: {history.evaluations[-1][1]:.3f} nats, {history.seconds:.0f} s, {runs[seed]['leak']}",
              flush=True)


if __name__ == "__main__":
    main()
