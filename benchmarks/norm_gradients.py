"""Chapter 6's gradients at initialisation, layer by layer, for both placements at four depths.

    python -m benchmarks.norm_gradients     about a quarter of a minute

The seeds are not those of the chapter's live run, so that the file checks what the chapter found there.
"""

from __future__ import annotations

import argparse
import sys

import torch

from benchmarks.norms import LENGTH, make_model
from d2lmini import load_corpus, next_token_loss, random_windows, save_results
from tools.freshness import digest_modules

NAME, WINDOWS = "norm_gradients", 4
DEPTHS, SEEDS = (4, 8, 16, 32), range(8, 16)
WIRINGS = {"post": dict(norm_first=False), "pre": dict(norm_first=True),
           "bare": dict(norm_first=True, final_norm=False)}


def gradients(layers: int, seed: int, corpus, **wiring) -> dict:
    """Norms of the gradient of one loss at initialisation.

    Args:
        layers: number of blocks, L.
        seed: of the weights and of the batch.
        corpus: whose training text the windows are drawn from.
        wiring: ``norm_first`` and ``final_norm`` of ``make_model``.
    Returns:
        ``stream``: L + 1 norms of the loss's gradient with respect to the stream, from below the first block (the
        embeddings) to above the last; ``table``: with respect to the token table; ``last``: to the last feed-forward
        matrix; ``size``: L + 1 root mean squares of the stream itself.
    """
    model, stream = make_model(layers, seed=seed, **wiring), []
    model.tower.blocks[0].register_forward_pre_hook(lambda module, inputs: stream.append(inputs[0]))
    for block in model.tower.blocks:
        block.register_forward_hook(lambda module, inputs, output: stream.append(output))
    ids = next(random_windows(corpus.train, LENGTH + 1, WINDOWS, seed))
    loss = next_token_loss(model, ids).mean()
    wanted = [*stream, model.tower.tokens.weight, model.tower.blocks[-1].feed_forward.down.weight]
    *along, table, last = (round(g.norm().item(), 5) for g in torch.autograd.grad(loss, wanted))
    return dict(stream=along, table=table, last=last,
                size=[round(x.detach().square().mean().sqrt().item(), 4) for x in stream])


def main(argv: list[str] | None = None) -> int:
    """Measure all and store them; return 0."""
    argparse.ArgumentParser(prog="python -m benchmarks.norm_gradients", description=__doc__.splitlines()[0]).parse_args(argv)
    torch.set_num_threads(1)
    corpus = load_corpus()
    found = {name: {str(depth): [gradients(depth, seed, corpus, **wiring) for seed in SEEDS] for depth in DEPTHS}
             for name, wiring in WIRINGS.items()}
    save_results(NAME, dict(depths=DEPTHS, seeds=list(SEEDS), windows=WINDOWS, wirings=found),
                 command="python -m benchmarks.norm_gradients", digest=digest_modules(["benchmarks.norm_gradients"]))
    for name, runs in found.items():
        print(f"{name}: gradient at the token table, mean over {len(SEEDS)} seeds: " + ", ".join(
            f"{sum(r['table'] for r in of) / len(of):.3f} at {depth} layers" for depth, of in runs.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
