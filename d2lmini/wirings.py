"""Four wirings, one question: a source goes in, an answer comes out, and what a wiring may see follows from its form."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from .checks import check_choice, check_ids, check_int
from .generation import generate
from .masks import prefix_mask
from .models import Config, Decoder, Encoder
from .seq2seq import EncoderDecoder, greedy_decode

WIRINGS = ("encoder", "decoder", "prefix-LM", "encoder-decoder")
FORMS = ("tag", "rewrite", "continue")


@dataclass(frozen=True)
class Questions:
    """A batch of questions with their answers, all of one length.

    source (B, S) int64; answer (B, T) int64; form: "tag", one answer per source token, S = T; "rewrite", another text
    made from the source; or "continue", the text that follows the source.
    """

    source: torch.Tensor
    answer: torch.Tensor
    form: str

    def __post_init__(self):
        check_choice("form", self.form, FORMS)
        check_ids("source", self.source)
        check_ids("answer", self.answer)
        if len(self.source) != len(self.answer) or not self.source.shape[1] or not self.answer.shape[1]:
            raise ValueError(f"source has shape {tuple(self.source.shape)} and answer {tuple(self.answer.shape)}; give "
                             f"one answer per source, and at least one token in each.")
        if self.form == "tag" and self.source.shape != self.answer.shape:
            raise ValueError(f"source has {self.source.shape[1]} tokens and answer {self.answer.shape[1]}; the form "
                             f"'tag' needs one answer per source token.")


class Contestant(nn.Module):
    """A model and the way in which its wiring takes a question.

    What stands in the input, and which output gives answer token t (x the source, y the answer):

                          tag                     rewrite                    continue
        encoder           x, read at x_t          x and T masks, at mask t   x, y_1 ... y_{t-1} and one mask, at the mask
        decoder           x, read at x_t          x <go> y, at y_{t-1}       x y, at y_{t-1}
        prefix-LM         x <go> y, at y_{t-1}    x <go> y, at y_{t-1}       x y, at y_{t-1}
        encoder-decoder   x | <go> y, at y_{t-1}  x | <go> y, at y_{t-1}     x | <go> y, at y_{t-1}

    The encoder sees all of its input and the decoder what stands to the left; the prefix-LM sees all of x and of y what
    stands to the left; in the encoder-decoder x and y go into different towers.

    Args:
        wiring: one of ``WIRINGS``.
        model: an ``Encoder``, a ``Decoder`` (for "decoder" and "prefix-LM") or an ``EncoderDecoder``.
        mask_id: token behind which an encoder answers.
        go_id: token that says "the answer begins here".
    Raises:
        ValueError: on an unknown wiring or a model of another class.
    Built in chapter 7.
    """

    def __init__(self, wiring: str, model: nn.Module, mask_id: int, go_id: int):
        super().__init__()
        check_choice("wiring", wiring, WIRINGS)
        kind = {"encoder": Encoder, "encoder-decoder": EncoderDecoder}.get(wiring, Decoder)
        if not isinstance(model, kind):
            raise ValueError(f"model is {type(model).__name__}; the wiring {wiring!r} needs {kind.__name__}.")
        self.wiring, self.model = wiring, model
        self.mask_id, self.go_id = check_int("mask_id", mask_id, minimum=0), check_int("go_id", go_id, minimum=0)

    def column(self, source: torch.Tensor, token: int, width: int = 1) -> torch.Tensor:
        """(B, width) of one token, on the source's device."""
        return torch.full((len(source), width), token, device=source.device)

    def forward(self, q: Questions) -> torch.Tensor:
        """Return the logits (B, T, V) of every answer token, given the source and the answer tokens before it."""
        x, y, size = q.source, q.answer, q.source.shape[1]
        if self.wiring == "encoder":
            if q.form == "tag":
                return self.model(x)
            if q.form == "rewrite":
                states = self.model.states(torch.cat((x, self.column(x, self.mask_id, y.shape[1])), dim=1))
                return self.model.head(states[:, size:])
            return torch.stack([self._end_mask(torch.cat((x, y[:, :t]), dim=1)) for t in range(y.shape[1])], dim=1)
        if self.wiring == "encoder-decoder":
            return self.model(x, torch.cat((self.column(x, self.go_id), y[:, :-1]), dim=1))
        if self.wiring == "decoder" and q.form == "tag":
            return self.model(x)
        if q.form != "continue":
            x = torch.cat((x, self.column(x, self.go_id)), dim=1)
        ids, first = torch.cat((x, y[:, :-1]), dim=1), x.shape[1] - 1
        how = {}
        if self.wiring == "prefix-LM":
            how = dict(mask=prefix_mask(ids.shape[1], x.shape[1], ids.device), causal=False)
        return self.model.head(self.model.states(ids, **how)[:, first:])

    def _end_mask(self, text: torch.Tensor) -> torch.Tensor:
        """Logits (B, V) at one mask behind a text (B, n)."""
        return self.model.head(self.model.states(torch.cat((text, self.column(text, self.mask_id)), dim=1))[:, -1])

    @torch.no_grad()
    def answer(self, q: Questions) -> torch.Tensor:
        """Return the likeliest answer (B, T) int64 without seeing the right one.

        An encoder, and a decoder that tags, give all tokens at once; the others write one token after the other and
        read what they wrote. Nobody continues a text here: that form is scored by ``answer_loss``.

        Raises:
            ValueError: if the form is "continue".
        """
        check_choice("form", q.form, ("tag", "rewrite"))
        if self.wiring == "encoder" or (self.wiring == "decoder" and q.form == "tag"):
            return self(q).argmax(-1)
        new = q.answer.shape[1]
        if self.wiring == "encoder-decoder":
            return greedy_decode(self.model, q.source, self.go_id, new)
        prompt = torch.cat((q.source, self.column(q.source, self.go_id)), dim=1)
        written = generate(self.model, prompt, new, greedy=True, prefix_lm=self.wiring == "prefix-LM")
        return torch.stack(written)[:, -new:].to(q.source.device)


def answer_loss(contestant: Contestant, q: Questions) -> torch.Tensor:
    """Return -log p(y_t | source, y_1 ... y_{t-1}) for every answer token: (B * T,) in nats, row by row.

    An encoder that tags or rewrites does not see y_1 ... y_{t-1}, so for it this is -log p(y_t | source).
    Built in chapter 7.
    """
    return F.cross_entropy(contestant(q).flatten(0, 1), q.answer.flatten(), reduction="none")


def input_tokens(wiring: str, form: str, source: int, answer: int) -> int:
    """Count the tokens that pass through a model for one question, both towers counted.

    Args:
        wiring, form: as in ``Contestant``.
        source, answer: S and T.
    Returns:
        For an encoder that continues, the sum over the T passes that the T answers take.
    Built in chapter 7.
    """
    check_choice("wiring", wiring, WIRINGS)
    check_choice("form", form, FORMS)
    check_int("source", source)
    check_int("answer", answer)
    if wiring == "encoder" and form == "continue":
        return sum(source + t + 1 for t in range(answer))
    if form == "tag" and wiring in ("encoder", "decoder"):
        return source
    return source + answer - (form == "continue" and wiring in ("decoder", "prefix-LM"))


def make_contestant(wiring: str, vocab_size: int, mask_id: int, go_id: int, *, source: int, answer: int,
                    d_model: int = 128, num_heads: int = 4, blocks: int = 2, positions: str | None = None) -> Contestant:
    """Build a contestant; all four wirings have the same number of parameters, within one percent.

    One tower of L blocks has L (4 D^2 + 3 D F) weights. Two towers of L/2 blocks each have four projections more in
    every second block, so their feed-forward is narrower:

        L/2 (12 D^2 + 6 D F') = L (4 D^2 + 3 D F)   =>   F' = F - 2 D / 3,   that is 2 D when F = 8 D / 3

    One tower counts positions by rotary angles. Two towers get sinusoidal codes: an angle says how far apart two tokens
    of one sequence are, and cross-attention relates two sequences. Neither has parameters.

    Args:
        wiring: one of ``WIRINGS``.
        vocab_size, mask_id, go_id: V and two of its tokens.
        source, answer: S and T, the longest of each.
        d_model, num_heads: D and H.
        blocks: L, even.
        positions: as in ``Config``, in place of the above.
    Raises:
        ValueError: on an unknown wiring, an odd number of blocks, or what ``Config`` refuses.
    Built in chapter 7.
    """
    check_choice("wiring", wiring, WIRINGS)
    check_int("source", source)
    check_int("answer", answer)
    if check_int("blocks", blocks, minimum=2) % 2:
        raise ValueError(f"blocks={blocks} is odd; two towers share them, so give an even number.")
    shape = dict(vocab_size=vocab_size, d_model=d_model, num_heads=num_heads)
    if wiring == "encoder-decoder":
        model = EncoderDecoder(Config(**shape, max_len=max(source, answer), num_layers=blocks // 2, d_ff=2 * d_model,
                                      positions=positions or "sinusoidal"))
    else:
        kind = Encoder if wiring == "encoder" else Decoder
        model = kind(Config(**shape, max_len=source + answer + 1, num_layers=blocks, positions=positions or "rotary"))
    return Contestant(wiring, model, mask_id, go_id)
