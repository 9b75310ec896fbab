"""Which frozen states tell a linear probe where words end? Encoder, decoder and untrained models, over seeds.

    python -m benchmarks.probe --seeds 1 2 3        # adds or replaces these seeds; about two minutes each

The task: the corpus's letters without the spaces; tag each letter with "a word ends here". For the comparison to be
fair both models are pretrained on this same text without spaces, with the same windows, blocks, optimizer and number
of steps; neither has ever seen a space. The encoder is pretrained with BERT's 80/10/10 rule, because the probe reads
it with nothing hidden, and a model that only ever answers at mask tokens owes nothing to its states elsewhere. The
probe gets the outputs of all blocks side by side, since a last block may be busy with the pretraining task.

The decoder's state at a letter has not seen the letter behind it, which often decides; so its states are also probed
with a delay, letter t tagged from the state at t+1, t+2 or t+4, which hands it that much of the second side. All are
scored on the same letters: the held-out windows' positions but the last four.
"""

from __future__ import annotations

import argparse

import torch
import torch.nn.functional as F

from d2lmini import (Config, Decoder, Encoder, fit, linear_decay, load_corpus, load_results, make_optimizers,
                     masked_batches, masked_loss, next_token_loss, random_windows, save_results, seed_everything,
                     windows)
from tools.freshness import digest_modules

NAME, LENGTH = "probe", 64
DELAYS = (0, 1, 2, 4)
RECIPE = dict(blocks=2, batch=8, steps=1200, fraction=0.3, lr=0.01, adam_lr=0.01)


def without_spaces(ids: torch.Tensor, space_id: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Drop the spaces from ids (characters,); return the letters and, for each, whether a word ends there (bool)."""
    ends = torch.cat((ids[1:] == space_id, torch.tensor([True])))
    letter = ids != space_id
    return ids[letter], ends[letter]


def linear_probe(states: torch.Tensor, tags: torch.Tensor, test_states: torch.Tensor, test_tags: torch.Tensor,
                 decay: float = 1e-4) -> dict:
    """Fit a logistic regression on frozen states, and score it on others.

    Args:
        states, test_states: (n, D) floating; each feature is standardised by the first's mean and deviation.
        tags, test_tags: (n,) bool.
        decay: weight of the squared norm in the loss, which is minimised to convergence by L-BFGS.
    Returns:
        accuracy on the test states, and F1 of the True tags there.
    """
    mean, deviation = states.mean(0), states.std(0) + 1e-6
    x, test = (states - mean) / deviation, (test_states - mean) / deviation
    weight = torch.zeros(x.shape[1], requires_grad=True)
    bias = torch.zeros((), requires_grad=True)
    solver = torch.optim.LBFGS([weight, bias], max_iter=100, line_search_fn="strong_wolfe")

    def closure():
        solver.zero_grad()
        loss = F.binary_cross_entropy_with_logits(x @ weight + bias, tags.float()) + decay * weight.square().sum()
        loss.backward()
        return loss

    solver.step(closure)
    found = (test @ weight + bias).detach() > 0
    hits = (found & test_tags).sum().item()
    return dict(accuracy=(found == test_tags).float().mean().item(),
                f1=2 * hits / max(1, (found.sum() + test_tags.sum()).item()))


def frozen_states(model, ids: torch.Tensor) -> torch.Tensor:
    """The outputs of all blocks side by side, (windows, 64, blocks * D), over non-overlapping windows of ids."""
    model.eval()
    found: list[list[torch.Tensor]] = [[] for _ in model.tower.blocks]
    hooks = [block.register_forward_hook(lambda _, inputs, output, kept=kept: kept.append(output))
             for block, kept in zip(model.tower.blocks, found)]
    with torch.no_grad():
        for batch in windows(ids, LENGTH).split(256):
            model.states(batch)
    for hook in hooks:
        hook.remove()
    return torch.cat([torch.cat(kept) for kept in found], dim=-1)


def probe_model(model, train, valid, delay: int = 0, count: int = 600) -> dict:
    """Probe a model: train and valid are (letters, ends); letter t is tagged from the state at t + delay."""
    last = LENGTH - max(DELAYS)

    def pairs(ids, ends, most):
        states = frozen_states(model, ids[:most * LENGTH])[:, delay:last + delay]
        tags = windows(ends.long(), LENGTH)[:most, :last].bool()
        return states.flatten(0, 1), tags.flatten()

    return linear_probe(*pairs(*train, count), *pairs(*valid, len(valid[0])))


def pretrain(kind: str, letters: torch.Tensor, vocab, seed: int):
    """Train an "encoder" to fill in hidden letters, or a "decoder" to predict the next."""
    seed_everything(seed)
    config = Config(len(vocab), max_len=LENGTH, num_layers=RECIPE["blocks"])
    how = dict(steps=RECIPE["steps"], schedule=linear_decay(), desc=f"{kind}, seed {seed}")
    if kind == "encoder":
        model, loss = Encoder(config), masked_loss
        batches = masked_batches(random_windows(letters, LENGTH, RECIPE["batch"], seed), vocab.ids["<mask>"], seed + 1,
                                 fraction=RECIPE["fraction"])
    else:
        model, loss = Decoder(config), next_token_loss
        batches = random_windows(letters, LENGTH + 1, RECIPE["batch"], seed)
    fit(model, loss, batches, optimizers=make_optimizers(model, lr=RECIPE["lr"], adam_lr=RECIPE["adam_lr"]), **how)
    return model


def run(seed: int, corpus) -> dict:
    """Pretrain and probe with one seed; accuracy and F1 by name of the states."""
    space = corpus.vocab.ids[" "]
    train, valid = without_spaces(corpus.train, space), without_spaces(corpus.valid, space)
    config = Config(len(corpus.vocab), max_len=LENGTH, num_layers=RECIPE["blocks"])
    seed_everything(seed + 100)
    scores = {"untrained encoder": probe_model(Encoder(config), train, valid)}
    scores["encoder"] = probe_model(pretrain("encoder", train[0], corpus.vocab, seed), train, valid)
    decoder = pretrain("decoder", train[0], corpus.vocab, seed)
    for delay in DELAYS:
        scores["decoder" if delay == 0 else f"decoder, {delay} later"] = probe_model(decoder, train, valid, delay)
    return {name: {k: round(v, 4) for k, v in score.items()} for name, score in scores.items()}


def main() -> None:
    """Run the seeds asked for, and save after each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.probe", description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    digest = digest_modules(["benchmarks.probe"])
    corpus = load_corpus("tide_clock")
    _, ends = without_spaces(corpus.valid, corpus.vocab.ids[" "])
    tags = windows(ends.long(), LENGTH)[:, :LENGTH - max(DELAYS)].float()
    try:
        stored = load_results(NAME)
        runs = {r["seed"]: r for r in stored["runs"]} if stored["digest"] == digest else {}
    except ValueError:
        runs = {}
    for seed in parser.parse_args().seeds:
        runs[seed] = dict(seed=seed, scores=run(seed, corpus))
        save_results(NAME, dict(recipe=RECIPE, majority=round(1 - tags.mean().item(), 4), scored=tags.numel(),
                                seeds=sorted(runs), runs=[runs[s] for s in sorted(runs)]),
                     command="python -m benchmarks.probe", digest=digest)
        accuracies = [f"{name} {score['accuracy']:.3f}" for name, score in runs[seed]["scores"].items()]
        print(f"seed {seed}: " + ", ".join(accuracies), flush=True)


if __name__ == "__main__":
    main()
