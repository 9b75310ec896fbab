"""Is the cross-attention map of a solved reversal task readable? Many seeds, and what decides it.

    python -m benchmarks.alignment [--variants published ...] [--seeds 3 ...]    adds the runs that are missing

Each run trains one small encoder-decoder to reverse strings and measures where its cross-attention looks, where
a changed letter really acts, and in which memory vector that letter is kept.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from benchmarks.alignment_maps import TASK, apart, maps, measure
from d2lmini.models import Config
from d2lmini.optim import linear_decay, make_optimizers
from d2lmini.results import load_results, save_results
from d2lmini.seq2seq import EncoderDecoder, seq2seq_loss
from d2lmini.training import fit, seed_everything
from tools.freshness import digest_modules

NAME = "alignment"
WITH_PICTURES = ("published", "ours")  # whose maps and whole loss curves are kept; of the others the numbers


class ReversalModel(EncoderDecoder):
    """An encoder-decoder whose encoder can be kept from mixing positions.

    mixing: False lets every source position see itself alone in the encoder; same parameters, another mask.
    memory_norm: False leaves out the norm behind the last encoder block.
    """

    def __init__(self, encoder: Config, decoder: Config, mixing: bool = True, memory_norm: bool = True):
        super().__init__(encoder, decoder)
        self.mixing = mixing
        if not memory_norm:
            self.encoder.norm = None

    def encode(self, source, source_mask=None, *, trace=None):
        if not self.mixing:
            source_mask = torch.eye(source.shape[1], dtype=torch.bool)
        return super().encode(source, source_mask, trace=trace)


@dataclass(frozen=True)
class Variant:
    """One setting: the published one unless a field says otherwise."""

    says: str
    steps: int = 200
    seeds: int = 8
    encoder_layers: int = 1
    num_heads: int = 4
    mixing: bool = True
    memory_norm: bool = False
    dropout: float = 0.0
    prepare: Callable[[nn.Module], None] | None = None
    ours: bool = False


@torch.no_grad()
def quiet_start(model: EncoderDecoder) -> None:
    """Let the encoder's self-attention begin by adding nothing."""
    for block in model.encoder.blocks:
        block.self_attention.out.weight.zero_()


@torch.no_grad()
def position_keys(model: EncoderDecoder) -> None:
    """Compute the keys of cross-attention from the source's positions alone; values stay what they were."""
    attention = model.decoder.blocks[0].cross_attention

    def keys_values(context, positions=None):
        where = model.encoder.added.table[:context.shape[1]].expand_as(context)
        return attention.split(attention.key(where)), attention.split(attention.value(context))

    attention.keys_values = keys_values


VARIANTS = {
    "published": Variant("published settings, memory not normed"),
    "one-head": Variant("... and one head", seeds=3, num_heads=1),
    "dropout": Variant("... and dropout 0.1", seeds=3, dropout=0.1),
    "position-keys": Variant("... and keys from positions alone", seeds=3, prepare=position_keys),
    "quiet-start": Variant("... encoder self-attention silent at the start", seeds=3, prepare=quiet_start),
    "no-mixing": Variant("... encoder positions see themselves alone", seeds=3, mixing=False),
    "no-encoder-block": Variant("... no encoder block", seeds=3, encoder_layers=0),
    "no-block-normed": Variant("no encoder block, memory normed", seeds=3, encoder_layers=0, memory_norm=True),
    "normed-memory": Variant("published settings, memory normed", seeds=3, memory_norm=True),
    "ours": Variant("our recipe, memory normed", steps=300, memory_norm=True, ours=True),
}


def build(variant: Variant) -> ReversalModel:
    shape = dict(vocab_size=TASK.vocab_size, max_len=TASK.length, d_model=128, num_heads=variant.num_heads,
                 positions="learned", dropout=variant.dropout)
    model = ReversalModel(Config(num_layers=variant.encoder_layers, **shape), Config(num_layers=1, **shape),
                          variant.mixing, variant.memory_norm)
    if variant.prepare is not None:
        variant.prepare(model)
    return model


def run(variant: Variant, seed: int) -> dict:
    """Train one model and measure it at the checkpoints; at the end with its maps."""
    seed_everything(seed)
    model = build(variant)
    distance = apart(model)
    if variant.ours:
        how = dict(optimizers=make_optimizers(model, lr=0.02, adam_lr=0.01), schedule=linear_decay())
    else:
        how = dict(optimizers=torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0.0))
    history = fit(model, seq2seq_loss, TASK.batches(32 if variant.ours else 128, seed), steps=variant.steps,
                  evaluate_every=100, evaluation=measure, **how)
    points = {str(step): values for step, values in history.evaluations if step}
    return dict(points=points, apart=distance, losses=[float(f"{x:.3g}") for x in history.losses],
                seconds=round(history.seconds, 1), **maps(model))


def stored() -> dict:
    """The runs in the results file, by variant and seed."""
    try:
        return load_results(NAME)["variants"]
    except ValueError:
        return {}


def save(name: str, seed: int, result: dict) -> None:
    """Add one run to what is in the file at this moment, so that two processes can work side by side."""
    if name not in WITH_PICTURES:
        result = {key: value for key, value in result.items() if not isinstance(value, list)} | dict(
            losses=result["losses"][:50])
    variants = stored()
    runs = variants.setdefault(name, dict(runs={}))["runs"]
    runs[str(seed)] = result
    ordered = {v: dict(says=VARIANTS[v].says, steps=VARIANTS[v].steps,
                       runs=dict(sorted(variants[v]["runs"].items(), key=lambda item: int(item[0]))))
               for v in VARIANTS if v in variants}
    save_results(NAME, dict(seeds=sorted({int(s) for v in ordered.values() for s in v["runs"]}), variants=ordered),
                 command="python -m benchmarks.alignment", digest=digest_modules(["benchmarks.alignment"]))


def check() -> int:
    """Train one stored run again; stop if it comes out otherwise, else mark the file as current."""
    name, seed = "no-encoder-block", "0"
    old, new = stored()[name]["runs"][seed], run(VARIANTS[name], int(seed))
    apart = max(abs(a - b) for a, b in zip(old["losses"][:50], new["losses"][:50]))
    print(f"{name}, seed {seed}: losses of the first 50 steps at most {apart:.4f} nats from the stored ones")
    if apart > 0.01:
        raise SystemExit("the stored runs were made by code that trains differently; run with --fresh")
    save(name, int(seed), new)
    return 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.alignment", description=__doc__.splitlines()[0])
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--seeds", type=int, nargs="+", help="by default the first 8, or 3 of the smaller questions")
    parser.add_argument("--fresh", action="store_true", help="run again what is stored")
    parser.add_argument("--check", action="store_true", help="the code has changed: does a stored run still hold?")
    options = parser.parse_args(arguments)
    if options.check:
        return check()
    for name in options.variants:
        for seed in options.seeds or range(VARIANTS[name].seeds):
            if options.fresh or str(seed) not in stored().get(name, dict(runs={}))["runs"]:
                save(name, seed, run(VARIANTS[name], seed))
                print(f"{name} seed {seed}: {line([stored()[name]['runs'][str(seed)]])}", flush=True)
    for name in options.variants:
        print(f"{name}, {len(stored()[name]['runs'])} seeds: {line(stored()[name]['runs'].values())}")
    print("\nalignment: hit rate " + "; ".join(
        f"{VARIANTS[name].says} {spread(stored()[name]['runs'].values(), 'hit')}"
        for name in WITH_PICTURES if name in stored()))
    return 0


def spread(runs, key: str) -> str:
    """Lowest and highest value of a number at the end of each run."""
    values = [run[key] if key in run else list(run["points"].values())[-1][key] for run in runs]
    return " to ".join(f"{v:.2f}" for v in sorted({min(values), max(values)}))


def line(runs) -> str:
    """What a variant's runs measured, in words."""
    return ", ".join(f"{key} {spread(runs, key)}" for key in (
        "apart", "hit", "mass", "exact", "kept_at_home", "looks_at_keeper", "brings_hit", "effect_hit", "effect_elsewhere",
        "agreed_elsewhere"))


if __name__ == "__main__":
    raise SystemExit(main())
