"""Exercises of chapter 3: counting predictions, reading a loss, choosing a token, and a cache that changes nothing."""

from __future__ import annotations

import math

import torch

from .base import Mistake
from .code import Function, seeded
from .values import Field, Values

predictions = Values(
    chapter=3, number=1, name="predictions", title="How many predictions?", difficulty=1, minutes=3,
    why="Off-by-one errors between inputs and targets are the commonest bug of a decoder's data loader.",
    statement="One sequence of 2,048 tokens: how many next-token predictions does it contribute to the loss?",
    tip="Write down a sequence of three tokens and draw an arrow from each token to the one that it predicts.",
    knowing="A text of N tokens holds N - 1 pairs of neighbours, and each pair is one question.",
    fields={"": Field(
        want=2047,
        also={2048: "2,048 is how implementations count: they cut windows of 2,049 tokens and get 2,048 inputs with 2,048 "
                    "targets. The 2,048 tokens alone hold 2,047."},
        wrong=((2049, "2,049 tokens are needed for 2,048 predictions; you counted the wrong way round"),
               (1, "only the last position would be one prediction; under a causal mask every position asks its own"),
               (2048 * 2047 // 2, "that counts the pairs that the mask allows; each position makes one prediction from all it sees")))},
    mistakes=(
        Mistake("one too many", "you counted the wrong way round", 2049),
        Mistake("the last only", "every position asks its own", 1),
        Mistake("pairs of the mask", "each position makes one prediction", 2096128),
        Mistake("another number", "that is too small", 2046),
        Mistake("in words", "where a number is wanted", "2047"),
    ),
    also_right=2048,
)


def _loss_in_words(losses):
    """From losses (n,) in nats, one per character: (perplexity, bits per character)."""
    mean = losses.mean().item()
    return math.exp(mean), mean / math.log(2)


loss_in_words = Function(
    chapter=3, number=2, name="loss_in_words", title="Perplexity and bits", difficulty=1, minutes=5,
    why="Papers report one or the other; both are the same number in other clothes.",
    statement="From the losses of single characters, in nats, compute the perplexity and the bits per character.",
    tip="Both start from the mean loss. Perplexity is e to that; a bit is ln 2 nats.",
    knowing="Perplexity is 2 to the bits per character: whoever gives you one has given you the other.",
    answer=_loss_in_words, cases=lambda: [dict(losses=seeded(0, 13).exp()), dict(losses=torch.tensor([0.5, 2.0, 1.1]))],
    mistakes=(
        Mistake("mean of the exponentials", "you average the exponentials; average the losses first, then take one exponential",
                lambda losses: (losses.exp().mean(), losses.mean() / math.log(2))),
        Mistake("two to the nats", "perplexity is e to the mean loss in nats; 2 belongs to a loss in bits",
                lambda losses: (2 ** losses.mean(), losses.mean() / math.log(2))),
        Mistake("times ln 2", "a nat is more than a bit: divide the nats by ln 2 = 0.693, do not multiply",
                lambda losses: (losses.mean().exp(), losses.mean() * math.log(2))),
        Mistake("sum for mean", "you sum the losses; both are per character, so take the mean",
                lambda losses: (losses.sum().exp(), losses.sum() / math.log(2))),
        Mistake("exchanged", "the two results are exchanged: perplexity first",
                lambda losses: (losses.mean() / math.log(2), losses.mean().exp())),
        Mistake("one of two", "one Tensor where 2 things are wanted", lambda losses: losses.mean().exp()),
    ),
    also_right=lambda losses: [losses.double().mean().exp(), losses.double().exp().log2().mean()],
)


def _nucleus(probabilities, top_p):
    """Keep the fewest likeliest tokens that hold at least top_p together, renormalised.

    probabilities (B, V), rows sum to 1; top_p in (0, 1] -> (B, V).
    """
    ranked, order = probabilities.sort(dim=-1, descending=True)
    before = ranked.cumsum(dim=-1) - ranked  # what the likelier tokens hold already
    kept = ranked.masked_fill(before >= top_p, 0.0)
    kept = kept / kept.sum(dim=-1, keepdim=True)
    return torch.zeros_like(probabilities).scatter(-1, order, kept)


def _cut(probabilities, top_p, *, strict=False, scale=True, back=True, dim=-1, above=False):
    ranked, order = probabilities.sort(dim=dim, descending=True)
    total = ranked.cumsum(dim)
    drop = total > top_p if strict else total - ranked >= top_p
    kept = probabilities.masked_fill(probabilities < 1 - top_p, 0.0) if above else ranked.masked_fill(drop, 0.0)
    if not above and back:
        kept = torch.zeros_like(probabilities).scatter(dim, order, kept)
    return kept / kept.sum(-1, keepdim=True) if scale else kept


nucleus = Function(
    chapter=3, number=3, name="nucleus", title="Nucleus sampling", difficulty=2, minutes=12,
    why="The tail of a distribution is long: cut it by rank and you cut too much or too little; by mass, you cut the tail.",
    statement="Write top-p: of every row keep the fewest most likely tokens whose probabilities sum to at least $p$, set the others "
              "to 0, and make the row sum to 1 again, in the original order of the tokens.",
    tip="Sort, and take the running sum. A token stays if those *before* it hold less than p. `scatter` puts things back in place.",
    knowing="The token that crosses p is kept, so at least one token always is, however small p may be.",
    answer=_nucleus,
    cases=lambda: [dict(probabilities=(2 * seeded(s, 3, 11)).softmax(-1), top_p=p) for s, p in ((0, 0.7), (1, 0.9), (2, 0.85))],
    mistakes=(
        Mistake("drops the crosser", "the token that crosses p is missing: keep it, or the kept ones hold less than p",
                lambda probabilities, top_p: _cut(probabilities, top_p, strict=True)),
        Mistake("not renormalised", "the kept probabilities no longer sum to 1: divide by their sum",
                lambda probabilities, top_p: _cut(probabilities, top_p, scale=False)),
        Mistake("left sorted", "the result is still sorted by probability; put each token back in its place",
                lambda probabilities, top_p: _cut(probabilities, top_p, back=False)),
        Mistake("sorts the batch", "you sort over the batch; each row is a distribution of its own, dim=-1",
                lambda probabilities, top_p: _cut(probabilities, top_p, dim=0).nan_to_num()),
        Mistake("a threshold", "you keep tokens above a fixed probability; what counts is the sum of the likelier ones",
                lambda probabilities, top_p: _cut(probabilities, top_p, above=True).nan_to_num()),
    ),
    also_right=lambda probabilities, top_p: torch.stack([
        (row * (kept := torch.stack([row[row > x].sum() < top_p for x in row]))) / (row * kept).sum()
        for row in probabilities.double()]),
)


def _cached_attention(x, keys, values, w_q, w_k, w_v):
    """One token attends to those before it and to itself: (output, keys, values).

    x (B, D) is the new token; keys (B, t, d_k) and values (B, t, d_v) of the t before
    it; w_q, w_k (D, d_k), w_v (D, d_v). Returns (B, d_v), and the caches one longer.
    """
    keys = torch.cat((keys, (x @ w_k)[:, None]), dim=1)
    values = torch.cat((values, (x @ w_v)[:, None]), dim=1)
    scores = (x @ w_q)[:, None] @ keys.transpose(-2, -1) / math.sqrt(w_q.shape[-1])
    return (scores.softmax(-1) @ values)[:, 0], keys, values


def _cache_case(t):
    shapes = dict(x=(2, 11), keys=(2, t, 3), values=(2, t, 5), w_q=(11, 3), w_k=(11, 3), w_v=(11, 5))
    return {name: seeded(10 * t + i, *shape) for i, (name, shape) in enumerate(shapes.items())}


def _step(x, keys, values, w_q, w_k, w_v, *, itself=True, scale=True, front=False, keep=True, query=False):
    k, v = ((x @ w_q if query else x @ w_k)[:, None], (x @ w_v)[:, None])
    pair = (lambda old, new: torch.cat((new, old) if front else (old, new), 1))
    all_k, all_v = pair(keys, k), pair(values, v)
    seen_k, seen_v = (all_k, all_v) if itself else (keys, values)
    scores = (x @ w_q)[:, None] @ seen_k.mT / (math.sqrt(w_q.shape[-1]) if scale else 1)
    out = (scores.softmax(-1) @ seen_v)[:, 0]
    return (out, all_k, all_v) if keep else (out, keys, values)


cached_attention = Function(
    chapter=3, number=4, name="cached_attention", title="A cache that changes nothing", difficulty=3, minutes=15,
    why="Every chat window runs on this function; wrong by one entry, and it is wrong only from the second token on.",
    statement="One head, one new token. Extend the caches of keys and values by the new token's, and let its query attend to all of "
              "them. Called token by token this must give the rows of causal attention over the whole sequence.",
    tip="Which positions may the newest token see? All that came before, and itself. So append first, then attend; no mask is left "
        "to apply.",
    knowing="No mask appears: what has not been generated is not in the cache, so the future cannot be seen.",
    answer=_cached_attention, cases=lambda: [_cache_case(4), _cache_case(7), _cache_case(1)],
    mistakes=(
        Mistake("blind to itself", "the new token does not see itself: append its key and value before you attend",
                lambda *a: _step(*a, itself=False)),
        Mistake("no scale", "the scale is missing: divide the scores by the square root of d_k", lambda *a: _step(*a, scale=False)),
        Mistake("in front", "the new key and value were put in front of the old; the output does not mind, but positions would",
                lambda *a: _step(*a, front=True)),
        Mistake("cache not kept", "the output is right, but you return the caches as they were: the next token will miss this one",
                lambda *a: _step(*a, keep=False)),
        Mistake("query for key", "the new entry of the keys was made with w_q; a key is x @ w_k", lambda *a: _step(*a, query=True)),
    ),
    also_right=lambda *a: _step(*(t.double() for t in a)),
)


def _look_up(prompt):
    """Answer from the prompt (B, 2n + 1) int64: n pairs of key and value, then a key.

    Returns the value that stands behind that key, (B,) int64. No key occurs twice.
    """
    keys, values, asked = prompt[:, :-1:2], prompt[:, 1::2], prompt[:, -1:]
    return values.gather(1, (keys == asked).int().argmax(1, keepdim=True))[:, 0]


def _prompts(seed, pairs, batch):
    generator = torch.Generator().manual_seed(seed)
    keys = torch.stack([torch.randperm(19, generator=generator)[:pairs] for _ in range(batch)])
    values = 20 + torch.stack([torch.randperm(11, generator=generator)[:pairs] for _ in range(batch)])
    asked = keys.gather(1, torch.randint(pairs, (batch, 1), generator=generator))
    return dict(prompt=torch.cat((torch.stack((keys, values), 2).flatten(1), asked), 1))


look_up = Function(
    chapter=3, number=5, name="look_up", title="What an induction head computes", difficulty=2, minutes=8,
    why="Section 3.9 trains a network until it does this; written as code it is two lines, and you see what it had to find.",
    statement="The model of 3.9 learned to answer from its prompt. Write the function that it learned: find the asked key among "
              "the keys of the prompt, return the value that stands behind it. Without a loop over the batch.",
    tip="The keys stand at even places, the values at odd ones. Comparing gives a table of True and False; its argmax is a place.",
    knowing="\"Find the same key\" is the second block's head, \"one place on\" the first block's: two steps, hence two blocks.",
    answer=_look_up, cases=lambda: [_prompts(0, 5, 7), _prompts(1, 3, 11)],
    mistakes=(
        Mistake("returns the key", "this is the key that was asked for; the value stands one place behind it",
                lambda prompt: prompt[:, -1]),
        Mistake("value before", "this is the value *before* the key: one place back instead of one place on",
                lambda prompt: prompt.roll(1, 1).gather(1, (prompt[:, :-1] == prompt[:, -1:]).int().argmax(1, keepdim=True))[:, 0]),
        Mistake("returns places", "this is the place where the key stands, not the value behind it",
                lambda prompt: (prompt[:, :-1:2] == prompt[:, -1:]).int().argmax(1)),
        Mistake("last value", "this is always the last value of the prompt; look for the key", lambda prompt: prompt[:, -2]),
        Mistake("argmax over the batch", "the argmax runs over the wrong axis, the batch; each row has its own place, dim=1",
                lambda prompt: prompt[:, 1::2].gather(1, (prompt[:, :-1:2] == prompt[:, -1:]).int().argmax(0, keepdim=True)
                                                      .expand(len(prompt), -1)[:, :1] % (prompt.shape[1] // 2))[:, 0]),
    ),
    also_right=lambda prompt: torch.stack([row[1:-1:1][(row[:-2] == row[-1])][0] for row in prompt]),
)
