"""Is the cross-attention map of a solved reversal task readable? Many seeds, and what decides it.

    python -m benchmarks.alignment                        every variant and seed that is still missing
    python -m benchmarks.alignment --variants published --seeds 3

Each run trains one small encoder-decoder to reverse strings and measures where its cross-attention looks, where
a changed letter really acts, and in which memory vector that letter is kept.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from d2lmini.models import Config
from d2lmini.optim import linear_decay, make_optimizers
from d2lmini.results import load_results, save_results
from d2lmini.seq2seq import EncoderDecoder, exact_match, seq2seq_loss
from d2lmini.tasks import ToyTask
from d2lmini.training import fit, seed_everything
from tools.freshness import digest_modules

NAME = "alignment"
TASK = ToyTask("reverse", length=12)
CHECKPOINTS = (100, 200, 300, 600)


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
    "published": Variant("published settings, memory not normed", steps=300),
    "one-head": Variant("... and one head", num_heads=1),
    "dropout": Variant("... and dropout 0.1", dropout=0.1),
    "position-keys": Variant("... and keys from positions alone", prepare=position_keys),
    "quiet-start": Variant("... encoder self-attention silent at the start", prepare=quiet_start),
    "no-mixing": Variant("... encoder positions see themselves alone", mixing=False),
    "no-encoder-block": Variant("... no encoder block", encoder_layers=0),
    "normed-memory": Variant("published settings, memory normed", steps=300, memory_norm=True),
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
    if variant.ours:
        how = dict(optimizers=make_optimizers(model, lr=0.02, adam_lr=0.01), schedule=linear_decay())
    else:
        how = dict(optimizers=torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0.0))
    history = fit(model, seq2seq_loss, TASK.batches(32 if variant.ours else 128, seed), steps=variant.steps,
                  evaluate_every=100, evaluation=measure, **how)
    points = {str(step): values for step, values in history.evaluations if step in CHECKPOINTS}
    return dict(points=points, losses=[round(x, 4) for x in history.losses], seconds=round(history.seconds, 1),
                **maps(model))


@torch.no_grad()
def measure(model: EncoderDecoder, count: int = 500) -> dict:
    """Hit rate, mass and exact match on fresh strings that no run trains on."""
    model.eval()
    batch = TASK.batch(count, torch.Generator().manual_seed(10_000))
    trace = {}
    logits = model(batch.source, batch.inputs, trace=trace)
    heads = trace["decoder.0.cross"]
    alone = [score(heads[:, h])["hit"] for h in range(heads.shape[1])]
    return dict(**score(heads.mean(dim=1)), heads=alone, exact=exact_match(model, batch),
                forced=(logits.argmax(-1) == batch.targets).all(1).float().mean().item())


def score(weights: torch.Tensor) -> dict:
    """Weights (B, T, S) -> how often the largest lies on the true source position, and the mean weight there."""
    length = weights.shape[-1]
    true = torch.arange(length - 1, -1, -1)
    return dict(hit=(weights.argmax(-1) == true).float().mean().item(),
                mass=weights[:, torch.arange(length), true].mean().item())


@torch.no_grad()
def maps(model: EncoderDecoder, count: int = 64) -> dict:
    """Four pictures of one model, each (T, S), averaged over ``count`` strings, and what they say in numbers.

    attention: cross-attention weights, per head.
    brings: length of what a source position adds to the decoder's stream, summed over heads, once the part that does
        not depend on the letters is taken off.
    effect: change source letter s; by how much target t's distribution moves (total variation, 0 to 1).
    keeper: change the letter that target t must write, but hand the decoder only memory vector j of the changed
        source, the others from the original; by how much target t's distribution moves.
    """
    model.eval()
    generator = torch.Generator().manual_seed(20_000)
    batch = TASK.batch(count, generator)
    trace, length = {}, TASK.length
    before = model(batch.source, batch.inputs, trace=trace).softmax(-1)
    memory = model.encode(batch.source)
    attention = trace["decoder.0.cross"].mean(dim=0)
    effect, keeper = torch.zeros(length, length), torch.zeros(length, length)

    def moved(memory):
        after = model.head(model.decode(batch.inputs, memory)).softmax(-1)
        return (after - before).abs().sum(-1).mean(0) / 2  # (T,)

    for s in range(length):
        source, t = batch.source.clone(), length - 1 - s
        source[:, s] = (source[:, s] + torch.randint(1, TASK.letters, (count,), generator=generator)) % TASK.letters
        changed = model.encode(source)
        effect[:, s] = moved(changed)
        for j in range(length):
            mixed = memory.clone()
            mixed[:, j] = changed[:, j]
            keeper[t, j] = moved(mixed)[t]
    brings = contributions(model.decoder.blocks[0].cross_attention, memory, trace["decoder.0.cross"])
    looks, kept = attention.mean(0).argmax(-1), keeper.argmax(-1)
    true = torch.arange(length - 1, -1, -1)
    return dict(effect_hit=(effect.argmax(-1) == true).float().mean().item(),
                brings_hit=(brings.argmax(-1) == true).float().mean().item(),
                kept_at_home=(kept == true).float().mean().item(),
                looks_at_keeper=(looks == kept).float().mean().item(),
                attention=[pack(head) for head in attention], brings=pack(brings / brings.max()), effect=pack(effect), keeper=pack(keeper))


def contributions(layer, memory: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Norm of sum over heads of a_ts v_s W^O, the mean over strings taken off v_s W^O; averaged, (T, S).

    Source: after Kobayashi et al. 2020, "Attention is not only a weight".
    """
    values = layer.keys_values(memory)[1]  # (B, H, S, d_k)
    out = torch.einsum("bhsk,dhk->bhsd", values, layer.out.weight.unflatten(1, (layer.num_heads, -1)))
    return torch.einsum("bhts,bhsd->btsd", weights, out - out.mean(dim=0)).norm(dim=-1).mean(dim=0)


def pack(matrix: torch.Tensor) -> list[str]:
    """A matrix in [0, 1] as rows of whole percent, short enough to store."""
    return [" ".join(str(round(100 * x)) for x in row) for row in matrix.tolist()]


def stored() -> dict:
    """The runs in the results file, by variant and seed."""
    try:
        return load_results(NAME)["variants"]
    except ValueError:
        return {}


def save(name: str, seed: int, result: dict) -> None:
    """Add one run to what is in the file at this moment, so that two processes can work side by side."""
    variants = stored()
    runs = variants.setdefault(name, dict(runs={}))["runs"]
    runs[str(seed)] = result
    ordered = {v: dict(says=VARIANTS[v].says, steps=VARIANTS[v].steps,
                       runs=dict(sorted(variants[v]["runs"].items(), key=lambda item: int(item[0]))))
               for v in VARIANTS if v in variants}
    save_results(NAME, dict(seeds=sorted({int(s) for v in ordered.values() for s in v["runs"]}), variants=ordered),
                 command="python -m benchmarks.alignment", digest=digest_modules(["benchmarks.alignment"]))


def check() -> None:
    """Train one stored run again; stop if it comes out otherwise, else mark the file as current."""
    name, seed = "no-encoder-block", "0"
    old, new = stored()[name]["runs"][seed], run(VARIANTS[name], int(seed))
    apart = max(abs(a - b) for a, b in zip(old["losses"][:50], new["losses"][:50]))
    print(f"{name}, seed {seed}: losses of the first 50 steps at most {apart:.4f} nats from the stored ones")
    if apart > 0.01:
        raise SystemExit("the stored runs were made by code that trains differently; run with --fresh")
    save(name, int(seed), new)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.alignment", description=__doc__.splitlines()[0])
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(8)))
    parser.add_argument("--fresh", action="store_true", help="run again what is stored")
    parser.add_argument("--check", action="store_true", help="the code has changed: does a stored run still hold?")
    options = parser.parse_args()
    if options.check:
        return check()
    for name in options.variants:
        for seed in options.seeds:
            if not options.fresh and str(seed) in stored().get(name, dict(runs={}))["runs"]:
                continue
            result = run(VARIANTS[name], seed)
            save(name, seed, result)
            last = list(result["points"].values())[-1]
            print(f"{name} seed {seed}: hit {last['hit']:.2f}, mass {last['mass']:.2f}, exact {last['exact']:.3f}, "
                  f"kept at home {result['kept_at_home']:.2f}, looks at keeper {result['looks_at_keeper']:.2f}, "
                  f"effect {result['effect_hit']:.2f}, brings {result['brings_hit']:.2f}, {result['seconds']:.0f} s", flush=True)


if __name__ == "__main__":
    main()
