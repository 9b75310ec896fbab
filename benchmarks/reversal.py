"""String reversal: the published recipe, written anew in plain PyTorch, against ours, on the same machine.

`python -m benchmarks.reversal` trains the published recipe (600 steps of batch 128, AdamW at 1e-3) and ours with
three seeds in one process; its last line is

    reversal: time ratio R, exact match E

where R is the published recipe's training time over our median one and E our worst seed's share of 1,000 fresh
strings reversed without an error. The exit code is 1 if E is below 0.99 or R below 2.
"""

import argparse
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

from d2lmini.models import Config
from d2lmini.optim import linear_decay, make_optimizers
from d2lmini.results import save_results
from d2lmini.seq2seq import EncoderDecoder, exact_match, seq2seq_loss
from d2lmini.tasks import ToyTask
from d2lmini.training import fit, seed_everything
from tools.freshness import digest_modules

TASK = ToyTask("reverse", length=12)
LETTERS, LENGTH, START = TASK.letters, TASK.length, TASK.start_id
SEEDS, STEPS, BATCH, RATES = (0, 1, 2), 300, 32, dict(lr=0.02, adam_lr=0.01)


class Attention(nn.Module):
    """The published attention: four projections without biases, softmax(Q K^T / sqrt(d_k)) V written out."""

    def __init__(self, d: int, heads: int):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(d, d, bias=False) for _ in range(4))

    def forward(self, x, context, causal: bool = False):
        q, k, v = (f(y).unflatten(-1, (self.heads, -1)).transpose(1, 2)
                   for f, y in ((self.q, x), (self.k, context), (self.v, context)))
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        if causal:
            scores = scores + torch.full_like(scores[0, 0], -torch.inf).triu(1)
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class SwiGLU(nn.Module):
    def __init__(self, d: int, inner: int):
        super().__init__()
        self.gate, self.up, self.down = (nn.Linear(*io, bias=False) for io in ((d, inner), (d, inner), (inner, d)))

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Published(nn.Module):
    """One encoder and one decoder block, D = 128, four heads, pre-norm RMSNorm, learned positions, tied head."""

    def __init__(self, d: int = 128, heads: int = 4):
        super().__init__()
        self.tokens = nn.Embedding(LETTERS + 1, d)
        self.source_places, self.target_places = (nn.Parameter(0.02 * torch.randn(LENGTH, d)) for _ in range(2))
        self.read, self.write, self.cross = (Attention(d, heads) for _ in range(3))
        self.read_ff, self.write_ff = (SwiGLU(d, round(8 * d / 3)) for _ in range(2))
        self.norms = nn.ModuleList(nn.RMSNorm(d, eps=1e-6) for _ in range(7))
        nn.init.normal_(self.tokens.weight, std=0.02)

    def forward(self, source, inputs):
        n = self.norms
        m = self.tokens(source) + self.source_places[:source.shape[1]]
        m = m + self.read(n[0](m), n[0](m))
        m = n[2](m + self.read_ff(n[1](m)))
        x = self.tokens(inputs) + self.target_places[:inputs.shape[1]]
        x = x + self.write(n[3](x), n[3](x), causal=True)
        x = x + self.cross(n[4](x), m)
        x = x + self.write_ff(n[5](x))
        return n[6](x) @ self.tokens.weight.T


def fresh(count: int, generator: torch.Generator):
    source = torch.randint(LETTERS, (count, LENGTH), generator=generator)
    target = source.flip(1)
    return source, torch.cat((torch.full((count, 1), START), target[:, :-1]), dim=1), target


def train_published(seed: int = 0, steps: int = 600, batch: int = 128):
    """Return the model, its losses, and the seconds of training."""
    torch.manual_seed(seed)
    model, generator = Published(), torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)
    losses, start = [], time.perf_counter()
    for _ in range(steps):
        source, inputs, target = fresh(batch, generator)
        loss = F.cross_entropy(model(source, inputs).flatten(0, 1), target.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return model, losses, time.perf_counter() - start


@torch.no_grad()
def exact_published(model: Published, count: int = 1000) -> float:
    """Greedy decoding over a fixed buffer: share of fresh strings reversed without an error."""
    source, inputs, target = fresh(count, torch.Generator().manual_seed(10_000))
    inputs = torch.full_like(inputs, START)
    for t in range(LENGTH):
        best = model(source, inputs)[:, t].argmax(-1)
        if t + 1 < LENGTH:
            inputs[:, t + 1] = best
    return (torch.cat((inputs[:, 1:], best[:, None]), dim=1) == target).all(1).float().mean().item()


def train_ours(seed: int):
    """Return the model and its ``History``."""
    seed_everything(seed)
    model = EncoderDecoder(Config(TASK.vocab_size, LENGTH, num_layers=1, positions="learned"))
    history = fit(model, seq2seq_loss, TASK.batches(BATCH, seed), steps=STEPS, schedule=linear_decay(),
                  optimizers=make_optimizers(model, **RATES))
    return model, history


def spike(losses: list[float]) -> float:
    """The highest loss after the first time it falls below 0.05."""
    first = next((i for i, x in enumerate(losses) if x < 0.05), len(losses) - 1)
    return max(losses[first:])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reversal", description=__doc__.splitlines()[0])
    parser.add_argument("--save", action="store_true", help="write d2lmini/results/reversal.json")
    save = parser.parse_args(arguments).save
    held_out = TASK.batch(1000, torch.Generator().manual_seed(10_000))
    seconds, exacts = [], []

    def line(name, losses, took, exact):
        marks = "  ".join(f"{losses[i - 1]:.4f} at {i}" for i in (100, 200, 300, 400, 600) if i <= len(losses))
        print(f"{name}: {took:.1f} s, exact match {exact:.3f}, loss {marks}; worst loss once below 0.05: "
              f"{spike(losses):.3f}", flush=True)

    for seed in SEEDS:
        model, history = train_ours(seed)
        seconds.append(history.seconds)
        exacts.append(exact_match(model, held_out))
        line(f"ours, seed {seed}", history.losses, seconds[-1], exacts[-1])
        if seed == SEEDS[0]:  # in the middle, so that a machine that slows down helps neither
            published, losses, took = train_published()
            theirs = exact_published(published)
            line("published, seed 0", losses, took, theirs)
    ratio = took / statistics.median(seconds)
    if save:
        save_results("reversal", dict(
            threads=torch.get_num_threads(), ratio=ratio, published=dict(seconds=round(took, 1), exact=round(theirs, 4), loss=round(losses[-1], 5)),
            ours=[dict(seed=s, seconds=round(t, 1), exact=round(e, 4)) for s, t, e in zip(SEEDS, seconds, exacts)],
        ), command="python -m benchmarks.reversal --save", digest=digest_modules(["benchmarks.reversal"]))
    print(f"\nreversal: time ratio {ratio:.1f}, exact match {min(exacts):.3f}")
    return int(min(exacts) < 0.99 or ratio < 2)


if __name__ == "__main__":
    sys.exit(main())
