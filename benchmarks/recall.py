"""In-context recall, chapter 3's miniature: one and two blocks, several seeds.

    python -m benchmarks.recall --seeds 1 2 3 4 5        # adds or replaces these seeds; about half a minute each

A sequence lists six letter-digit pairs and then asks for the same letters in another order. One in five combinations
never occurs in training; the test asks for those alone.
"""

from __future__ import annotations

import argparse

import torch
import torch.nn.functional as F

from d2lmini import (Config, Decoder, fit, linear_decay, load_results, make_optimizers, save_results,
                     seed_everything)
from tools.freshness import digest_modules

NAME = "recall"
KEYS, VALUES, PAIRS = 16, 10, 6
STEPS, BATCH = 400, 64
UNSEEN = (3 * torch.arange(KEYS)[:, None] + torch.arange(VALUES)) % 5 == 0  # (keys, values): never in training


def recall_batch(size: int, generator: torch.Generator, test: bool = False) -> torch.Tensor:
    """Return (size, 24) ids: key, value, key, value ...; six pairs, then the same pairs in another order."""
    allowed = (UNSEEN if test else ~UNSEEN).float()
    keys = torch.rand(size, KEYS, generator=generator).argsort(1)[:, :PAIRS]
    values = torch.multinomial(allowed[keys].flatten(0, 1), 1, generator=generator).view(size, PAIRS)
    asked = torch.rand(size, PAIRS, generator=generator).argsort(1)
    keys = torch.cat((keys, keys.gather(1, asked)), dim=1)
    values = torch.cat((values, values.gather(1, asked)), dim=1) + KEYS
    return torch.stack((keys, values), dim=2).flatten(1)


def answer_loss(model, ids: torch.Tensor) -> torch.Tensor:
    """Loss at the answers alone, (size * 6,)."""
    logits = model(ids[:, :-1])[:, 2 * PAIRS::2]
    return F.cross_entropy(logits.flatten(0, 1), ids[:, 2 * PAIRS + 1::2].flatten(), reduction="none")


def batches(seed: int):
    generator = torch.Generator().manual_seed(seed)
    while True:
        yield recall_batch(BATCH, generator)


def run(blocks: int, seed: int) -> dict:
    """Train one model; return its accuracy on unseen pairs against the step."""
    test = recall_batch(500, torch.Generator().manual_seed(10_000), test=True)

    def accuracy(model):
        found = model(test[:, :-1])[:, 2 * PAIRS::2].argmax(-1)
        return round((found == test[:, 2 * PAIRS + 1::2]).float().mean().item(), 4)

    seed_everything(seed)
    model = Decoder(Config(KEYS + VALUES, max_len=4 * PAIRS, d_model=64, num_heads=4, num_layers=blocks))
    history = fit(model, answer_loss, batches(seed), steps=STEPS, optimizers=make_optimizers(model),
                  schedule=linear_decay(), evaluate_every=STEPS // 10, evaluation=accuracy)
    return dict(blocks=blocks, seed=seed, curve=history.evaluations, seconds=round(history.seconds, 1))


def main() -> None:
    """Run the seeds asked for, and save after each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recall", description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    digest = digest_modules(["benchmarks.recall"])
    try:
        stored = load_results(NAME)
        runs = {(r["blocks"], r["seed"]): r for r in stored["runs"]} if stored["digest"] == digest else {}
    except ValueError:
        runs = {}
    for seed in parser.parse_args().seeds:
        for blocks in (1, 2):
            runs[blocks, seed] = result = run(blocks, seed)
            save_results(NAME, dict(steps=STEPS, batch=BATCH, seeds=sorted({s for _, s in runs}),
                                    runs=[runs[k] for k in sorted(runs)]),
                         command="python -m benchmarks.recall", digest=digest)
            print(f"{blocks} blocks, seed {seed}: {result['curve'][-1][1]:.3f}, {result['seconds']:.0f} s", flush=True)


if __name__ == "__main__":
    main()
