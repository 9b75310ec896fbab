"""Exercises of chapter 1: masks, and attention under them."""

from __future__ import annotations

import math

import torch

from ..masks import causal_mask as triangle
from ..masks import padding_mask
from .base import Mistake
from .code import Complaint, Function, seeded
from .values import Field, Values


def _blocked(n):
    """How many of the n * n entries of a causal mask are -inf."""
    return n * (n - 1) // 2


blocked = Function(
    chapter=1, number=1, name="blocked", title="Count what is blocked", difficulty=1, minutes=3,
    why="The halves of the square are what training in parallel costs and what causality buys.",
    statement="Four tokens, a causal mask: how many entries of $M$ are $-\\infty$? Count them in a drawing, "
              "then write the count for $n$ tokens as a formula.",
    tip="Row t (from 0) may see t + 1 keys. How many of its n entries are left? Add these up over all rows.",
    knowing="Four tokens have 6 blocked entries; as n grows the blocked share approaches one half and never reaches it.",
    answer=_blocked, cases=lambda: [dict(n=4), dict(n=1), dict(n=13)],
    mistakes=(
        Mistake("counts the allowed", "you counted the allowed entries: the diagonal is allowed, so fewer than half are blocked",
                lambda n: n * (n + 1) // 2),
        Mistake("both triangles", "you counted everything off the diagonal; only the part above it is blocked",
                lambda n: n * (n - 1)),
        Mistake("half the square", "half of n² would cut through the diagonal, which is allowed as a whole",
                lambda n: n * n / 2),
    ),
    also_right=lambda n: sum(n - 1 - t for t in range(n)),
)


def _causal_mask(n):
    """The causal mask of n tokens, (n, n) bool, True = may attend."""
    place = torch.arange(n)
    return place[None, :] <= place[:, None]


causal_mask = Function(
    chapter=1, number=2, name="causal_mask", title="Write the causal mask", difficulty=1, minutes=5,
    why="Every decoder in this book stands on these few characters; one wrong sign and it reads the future.",
    statement="Write the causal mask of $n$ tokens without looking at the package: boolean, True = may attend, "
              "queries down the rows, keys along the columns.",
    tip="`torch.arange(n)` as a column holds the queries' places, as a row the keys'. Compare the two.",
    knowing="Row t has t + 1 entries that are True: the diagonal is among them, since a position may always see itself.",
    answer=_causal_mask, cases=lambda: [dict(n=5), dict(n=1), dict(n=7)],
    mistakes=(
        Mistake("inverted", "the mask is inverted: True means \"may attend\" here, and yours is True where looking is forbidden",
                lambda n: torch.ones(n, n, dtype=torch.bool).triu(1)),
        Mistake("off by one", "off by one: the diagonal is blocked, so a position cannot see itself and the first sees nothing",
                lambda n: torch.ones(n, n, dtype=torch.bool).tril(-1)),
        Mistake("leaks one", "off by one: each position also sees the next one, which is the token it has to predict",
                lambda n: torch.ones(n, n, dtype=torch.bool).tril(1)),
        Mistake("transposed", "queries and keys are exchanged: this mask lets a position see the future and hides the past",
                lambda n: torch.ones(n, n, dtype=torch.bool).triu()),
        Mistake("of floats", "masks here must be boolean", lambda n: torch.ones(n, n).tril()),
        Mistake("0 and -inf", "the mask of the formula", lambda n: torch.full((n, n), -math.inf).triu(1)),
    ),
    also_right=lambda n: torch.ones(n, n).tril() > 0,
)


def _three_masks(source_lengths, target_lengths):
    """The masks (encoder self, decoder self, cross).

    Each is bool and broadcasts to (B, H, T, S).
    """
    source = torch.arange(max(source_lengths)) < torch.tensor(source_lengths)[:, None]
    target = torch.arange(max(target_lengths)) < torch.tensor(target_lengths)[:, None]
    steps = torch.arange(max(target_lengths))
    causal = steps[None, :] <= steps[:, None]
    hide_source, hide_target = source[:, None, None, :], target[:, None, None, :]
    return hide_source, causal & hide_target, hide_source


def _full_size(masks, arguments):
    """The three masks at the shapes (B, 1, T, S) that they stand for."""
    if not isinstance(masks, (tuple, list)) or len(masks) != 3:
        return masks
    b, s, t = len(arguments["source_lengths"]), max(arguments["source_lengths"]), max(arguments["target_lengths"])
    full = []
    for name, mask, shape in zip(("encoder", "decoder", "cross"), masks, ((s, s), (t, t), (t, s))):
        if isinstance(mask, torch.Tensor) and mask.dtype == torch.bool:
            if mask.ndim == 3:
                raise Complaint(f"the {name} mask has three axes, {tuple(mask.shape)}: B would line up with the heads; "
                                f"give the heads an axis of their own, mask[:, None]")
            try:
                mask = mask.expand(b, 1, *shape)
            except RuntimeError:
                raise Complaint(f"the {name} mask has shape {tuple(mask.shape)}, which does not broadcast to (B, H, T, S) with "
                                f"B={b}, T={shape[0]}, S={shape[1]}") from None
        full.append(mask)
    return tuple(full)


def _masks_but(encoder=None, decoder=None, cross=None):
    """The right three masks, with some of them replaced by functions of the two padding masks and the triangle."""
    def wrong(source_lengths, target_lengths):
        s, t, c = padding_mask(source_lengths), padding_mask(target_lengths), triangle(max(target_lengths))
        return (encoder or (lambda s, t, c: s))(s, t, c), (decoder or (lambda s, t, c: c & t))(s, t, c), \
            (cross or (lambda s, t, c: s))(s, t, c)
    return wrong


three_masks = Function(
    chapter=1, number=3, name="three_masks", title="Three masks of a ragged batch", difficulty=2, minutes=12,
    why="An encoder–decoder attends in three places, and a mask in the wrong place trains without complaint.",
    statement="Given the real lengths of a batch's sources and targets, both padded on the right to the longest, return the "
              "masks of encoder self-attention, decoder self-attention and cross-attention. Hide padding on the key side only.",
    tip="A comparison of `torch.arange(longest)` with the lengths as a column says which tokens are real. Keys lie on the "
        "last axis: put the result there, with axes of length 1 for heads and queries. Which sequence are the keys of "
        "cross-attention?",
    knowing="Cross-attention needs only the source's padding: a padded query computes something that nobody reads.",
    answer=_three_masks, tidy=_full_size,
    cases=lambda: [dict(source_lengths=[3, 5], target_lengths=[2, 7]), dict(source_lengths=[5, 2, 3], target_lengths=[7, 1, 4])],
    mistakes=(
        Mistake("forgets the triangle", "the decoder's mask hides padding but not the future: AND it with the causal mask",
                _masks_but(decoder=lambda s, t, c: t)),
        Mistake("no target padding", "the decoder's mask hides the future but not the target's padding",
                _masks_but(decoder=lambda s, t, c: c)),
        Mistake("OR for AND", "the decoder's two restrictions are joined by OR; a key may be used if every reason allows it: AND",
                _masks_but(decoder=lambda s, t, c: c | t)),
        Mistake("query side", "the encoder's mask hides padded queries instead of padded keys: padding belongs on the last axis",
                _masks_but(encoder=lambda s, t, c: s.mT)),
        Mistake("cross sees padding", "the cross mask hides nothing; the keys there are the source, padding and all",
                _masks_but(cross=lambda s, t, c: torch.ones_like(s))),
        Mistake("inverted", "the masks are inverted: True means \"may attend\", also for padding",
                _masks_but(*[lambda s, t, c: ~s, lambda s, t, c: ~(c & t), lambda s, t, c: ~s])),
    ),
    also_right=lambda source_lengths, target_lengths: [
        padding_mask(source_lengths), triangle(max(target_lengths))[None, None] & padding_mask(target_lengths),
        padding_mask(source_lengths).expand(-1, 1, max(target_lengths), -1)],
)


def _safe_attention(q, k, v, mask):
    """softmax(q k^T / sqrt(d_k) + M) v, with a bool mask that fits (B, H, T, S).

    q (B, H, T, d_k), k (B, H, S, d_k), v (B, H, S, d_v) -> (B, H, T, d_v).
    A query whose every key is masked gets zeros.
    """
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    blind = ~mask.any(dim=-1, keepdim=True)
    weights = scores.masked_fill(~(mask | blind), -math.inf).softmax(dim=-1)
    return weights.masked_fill(blind, 0.0) @ v


def _attention_case(seed, blind):
    q, k, v = seeded(seed, 2, 3, 5, 11), seeded(seed + 1, 2, 3, 7, 11), seeded(seed + 2, 2, 3, 7, 13)
    mask = torch.rand(2, 1, 5, 7, generator=torch.Generator().manual_seed(seed)) < 0.6
    mask[0, 0, 3] = not blind
    return dict(q=q, k=k, v=v, mask=mask)


def _attend(q, k, v, mask, scale=None, dim=-1, penalty=-math.inf, blind=0.0):
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    weights = scores.masked_fill(~mask, penalty).softmax(dim).nan_to_num(blind)
    return weights @ v


safe_attention = Function(
    chapter=1, number=4, name="safe_attention", title="Attention from memory", difficulty=2, minutes=15,
    why="Four lines hold the whole book; the fully masked row is where most versions of them break.",
    statement="Write scaled dot-product attention with a boolean mask, by matrix products, without "
              "`F.scaled_dot_product_attention`. A query that may see nothing must get zeros, never NaN.",
    tip="Scores, divided by the root of the head's width; -inf where the mask is False; softmax over the keys, which is the "
        "last axis. A row of nothing but -inf gives 0/0: find such rows with `mask.any(-1, keepdim=True)` before the softmax.",
    knowing="PyTorch's fused kernel never writes the weights down, yet it has to settle the same question for a blind row.",
    answer=_safe_attention, cases=lambda: [_attention_case(0, blind=False), _attention_case(5, blind=True)],
    mistakes=(
        Mistake("no scale", "the scale is missing: divide the scores by the square root of d_k", lambda q, k, v, mask:
                _attend(q, k, v, mask, scale=1.0)),
        Mistake("divides by d_k", "the scores are divided by d_k; divide by its square root", lambda q, k, v, mask:
                _attend(q, k, v, mask, scale=1 / q.shape[-1])),
        Mistake("softmax over queries", "the softmax runs over the wrong axis, the queries; each query's weights over the keys "
                "(dim=-1) must sum to 1", lambda q, k, v, mask: _attend(q, k, v, mask, dim=-2)),
        Mistake("mask inverted", "the mask is inverted: you blocked what is True, and True means \"may attend\"",
                lambda q, k, v, mask: _attend(q, k, v, ~mask)),
        Mistake("NaN in blind rows", "a row in which everything is masked gives NaN: its softmax is 0/0; it must give zeros",
                lambda q, k, v, mask: _attend(q, k, v, mask, blind=math.nan)),
        Mistake("-1e9 for -inf", "a row in which everything is masked gives the average over the forbidden keys: a large negative "
                "number cancels when all have it", lambda q, k, v, mask: _attend(q, k, v, mask, penalty=-1e9)),
        Mistake("masks after softmax", "the weights are masked after the softmax, so what is left no longer sums to 1; mask the "
                "scores before it", lambda q, k, v, mask: (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) * mask @ v),
        Mistake("mask added", "a boolean mask was added to the scores: that adds 1 where it is True and hides nothing; write -inf where "
                "it is False", lambda q, k, v, mask: ((q @ k.mT / q.shape[-1] ** 0.5) + mask).softmax(-1) @ v),
        Mistake("returns the weights", "this is the weights; multiply them with the values", lambda q, k, v, mask:
                _attend(q, k, torch.eye(k.shape[-2]), mask)),
    ),
    also_right=lambda q, k, v, mask: _attend(*(x.double() for x in (q, k, v)), mask),
)
restart_rows = Values(
    chapter=1, number=5, name="restart_rows", title="One row in three wirings", difficulty=1, minutes=6,
    why="A family is recognised by a single row of its mask.",
    statement="The target is \"The server will restart at midnight\" (six tokens), its source \"Le serveur redémarre à "
              "minuit\" (five tokens). For the token `restart` as the query, write the row of the mask, as a list of 1 (may "
              "see) and 0, in an encoder that reads the English sentence, in a decoder that writes it, and in "
              "cross-attention to the source. Then say in your own words, in one minute and aloud: why is \"bank\" easier "
              "to *understand* with both sides in view, and a text easier to *write* with one? The solution has a list to "
              "check yourself by.",
    tip="How many keys are there in each wiring? The row has one entry per key. `restart` is the fourth token.",
    knowing="The rows differ in length too: cross-attention has one entry per source token, whatever the target's length.",
    fields={
        "encoder": Field(want=[1] * 6, wrong=(
            ([1, 1, 1, 1, 0, 0], "that is the decoder's row; an encoder has no mask but padding's"),)),
        "decoder": Field(want=[1, 1, 1, 1, 0, 0], wrong=(
            ([1, 1, 1, 0, 0, 0], "off by one: a position sees itself too, and `restart` is the fourth token"),
            ([0, 0, 0, 1, 1, 1], "that looks forward; a decoder looks back"),
            ([1] * 6, "that is the encoder's row; here what follows is not written yet"))),
        "cross": Field(want=[1] * 5, wrong=(
            ([1] * 6, "the keys are the source's tokens, and there are five of them"),
            ([1, 1, 1, 1, 0], "no triangle here: the whole source is there before the first target token is written"))),
    },
    mistakes=(
        Mistake("encoder as decoder", "that is the decoder's row", dict(encoder=[1, 1, 1, 1, 0, 0], decoder=[1] * 6, cross=[1] * 5)),
        Mistake("blind to itself", "off by one", dict(encoder=[1] * 6, decoder=[1, 1, 1, 0, 0, 0], cross=[1] * 5)),
        Mistake("causal cross", "no triangle here", dict(encoder=[1] * 6, decoder=[1, 1, 1, 1, 0, 0], cross=[1, 1, 1, 1, 0])),
        Mistake("cross by target", "the keys are the source's tokens", dict(encoder=[1] * 6, decoder=[1, 1, 1, 1, 0, 0], cross=[1] * 6)),
        Mistake("one left empty", "is still empty", dict(encoder=[1] * 6, decoder=None, cross=[1] * 5)),
    ),
    also_right=dict(encoder=torch.ones(6), decoder=[True] * 4 + [False] * 2, cross=(1, 1, 1, 1, 1)),
    notes="Check yourself: did you say these?\n\n"
          "- The words that settle the meaning of \"bank\" may stand behind it; only a two-sided row reaches them.\n"
          "- Understanding happens when the whole text is there, so nothing is lost by looking both ways.\n"
          "- Writing happens when the rest does not exist yet; a model trained with it in view would have learned to copy.\n"
          "- With one side, every position of a text is an honest question, so all of them train at once.",
)
