"""A decoder with prime sizes and some ids for it, shared by the tests of generation."""

import torch

from d2lmini import Cache, Config, Decoder, padding_mask

V, LENGTH = 13, 11


def make_model(**changes):
    torch.manual_seed(0)
    shape = dict(vocab_size=V, max_len=23, d_model=28, num_heads=2, num_layers=3, d_ff=17)
    return Decoder(Config(**(shape | changes))).eval()


def some_ids(batch=5, length=LENGTH, seed=1):
    return torch.randint(V, (batch, length), generator=torch.Generator().manual_seed(seed))


def left_padded():
    """Prompts of 3, 7 and 5 tokens, padded on the left, with their mask and positions."""
    ids, lengths = some_ids(3, 7), torch.tensor([3, 7, 5])
    padding = 7 - lengths
    return ids, lengths, ~padding_mask(padding, 7), (torch.arange(7) - padding[:, None]).clamp(min=0)


def read_cached(model, ids, first, **inputs):
    """Logits (B, T, V) from a prompt of ``first`` tokens and then one token at a time."""
    cache = Cache(model.config.max_len)
    with torch.no_grad():
        parts = [model(ids[:, :first], cache=cache)]
        parts += [model(ids[:, t:t + 1], cache=cache) for t in range(first, ids.shape[1])]
    return torch.cat(parts, dim=1)
