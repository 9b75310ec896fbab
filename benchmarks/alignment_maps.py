"""What one reversal model's cross-attention shows, measured: used by `benchmarks.alignment`."""

import torch

from d2lmini.seq2seq import EncoderDecoder, exact_match
from d2lmini.tasks import ToyTask

TASK = ToyTask("reverse", length=12)


@torch.no_grad()
def measure(model: EncoderDecoder, count: int = 500) -> dict:
    """Hit rate, mass and exact match on fresh strings that no run trains on."""
    model.eval()
    batch = TASK.batch(count, torch.Generator().manual_seed(10_000))
    trace = {}
    model(batch.source, batch.inputs, trace=trace)
    heads = trace["decoder.0.cross"]
    alone = [score(heads[:, h])["hit"] for h in range(heads.shape[1])]
    return dict(**score(heads.mean(dim=1)), heads=alone, exact=round(exact_match(model, batch), 4))


def score(weights: torch.Tensor) -> dict:
    """Weights (B, T, S) -> how often the largest lies on the true source position, and the mean weight there."""
    length = weights.shape[-1]
    true = torch.arange(length - 1, -1, -1)
    return dict(hit=round((weights.argmax(-1) == true).float().mean().item(), 4),
                mass=round(weights[:, torch.arange(length), true].mean().item(), 4))


@torch.no_grad()
def apart(model: EncoderDecoder, count: int = 64) -> float:
    """Mean distance of the memory vectors of neighbouring source positions, the letters averaged out over strings."""
    model.eval()  # with dropout on, this would use up random numbers of the training
    batch = TASK.batch(count, torch.Generator().manual_seed(30_000))
    places = model.encode(batch.source).mean(dim=0)  # (S, D)
    return round((places[1:] - places[:-1]).norm(dim=-1).mean().item(), 3)


@torch.no_grad()
def maps(model: EncoderDecoder, count: int = 32) -> dict:
    """Five pictures of one model, each (T, S), averaged over ``count`` strings, and what they say in numbers.

    attention: cross-attention weights, per head.
    brings: length of what a source position adds to the decoder's stream, summed over heads, once the part that does
        not depend on the letters is taken off.
    effect: change source letter s; by how much target t's distribution moves (total variation, 0 to 1).
    agreed: the same, but where the changed letter stands in what the decoder has written, it is changed there too.
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
    effect, agreed, keeper = torch.zeros(3, length, length)

    def moved(memory, inputs=batch.inputs):
        after = model.head(model.decode(inputs, memory)).softmax(-1)
        return (after - before).abs().sum(-1).mean(0) / 2  # (T,)

    for s in range(length):
        source, t = batch.source.clone(), length - 1 - s
        source[:, s] = (source[:, s] + torch.randint(1, TASK.letters, (count,), generator=generator)) % TASK.letters
        changed = model.encode(source)
        effect[:, s] = moved(changed)
        agreed[:, s] = moved(changed, torch.cat((batch.inputs[:, :1], TASK.answer(source)[:, :-1]), dim=1))
        for j in range(length):
            mixed = memory.clone()
            mixed[:, j] = changed[:, j]
            keeper[t, j] = moved(mixed)[t]
    brings = contributions(model.decoder.blocks[0].cross_attention, memory, trace["decoder.0.cross"])
    looks, kept = attention.mean(0).argmax(-1), keeper.argmax(-1)
    true = torch.arange(length - 1, -1, -1)
    shares = dict(effect_hit=effect.argmax(-1) == true, agreed_hit=agreed.argmax(-1) == true,
                  brings_hit=brings.argmax(-1) == true, kept_at_home=kept == true, looks_at_keeper=looks == kept)
    elsewhere = ~torch.eye(length, dtype=torch.bool).flip(0)
    shares |= {f"{name}_elsewhere": rows.masked_fill(~elsewhere, 0).amax(-1) for name, rows in (
        ("effect", effect), ("agreed", agreed))}  # the largest effect of a letter that is not the one to be written
    return dict({name: round(same.float().mean().item(), 4) for name, same in shares.items()},
                attention=[pack(head) for head in attention], brings=pack(brings / brings.max()), effect=pack(effect),
                agreed=pack(agreed), keeper=pack(keeper))


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
