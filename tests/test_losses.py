"""Losses: one per scored token, by hand, and deaf to everything that is not scored."""

import dataclasses
import math

import pytest
import torch
from torch import nn

from d2lmini import Config, Decoder, Encoder, MaskedBatch, mask_tokens, masked_loss, next_token_loss, pad_batch, padding_mask

V = 11
CONFIG = Config(V, 13, d_model=12, num_heads=3, num_layers=2)


class Table(nn.Module):
    """A model that looks its logits up: what it predicts at a position depends on the token there alone."""

    def __init__(self, logits):
        super().__init__()
        self.logits = nn.Parameter(torch.tensor(logits))

    def states(self, ids, mask=None):
        return self.logits[ids]

    def head(self, states):
        return states

    def forward(self, ids):
        return self.logits[ids]


def random_ids(*shape):
    return torch.randint(V - 1, shape, generator=torch.Generator().manual_seed(0))


def test_next_token_loss_by_hand():
    # Three tokens; after 0 comes 1 with odds 1:3:1, after 1 all are equally likely.
    model = Table([[0.0, math.log(3), 0.0], [0.0, 0.0, 0.0], [9.0, 9.0, 0.0]])
    losses = next_token_loss(model, torch.tensor([[0, 1, 2], [0, 0, 1]]))
    want = [-math.log(3 / 5), -math.log(1 / 3), -math.log(1 / 5), -math.log(3 / 5)]
    assert losses.tolist() == pytest.approx(want, rel=1e-6)  # row by row; T tokens hold T-1 predictions


def test_masked_loss_by_hand():
    model = Table([[0.0, math.log(3), 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, math.log(8)]])
    inputs, targets = torch.tensor([[2, 1, 0], [0, 2, 1]]), torch.tensor([[2, 1, 1], [0, 0, 1]])
    chosen = torch.tensor([[True, False, True], [False, True, False]])
    losses = masked_loss(model, MaskedBatch(inputs, targets, chosen))
    assert losses.tolist() == pytest.approx([-math.log(8 / 10), -math.log(3 / 5), -math.log(1 / 10)], rel=1e-6)


def test_masked_loss_is_the_full_cross_entropy_at_the_chosen_places():
    torch.manual_seed(0)
    model, batch = Encoder(CONFIG), mask_tokens(random_ids(5, 7), V - 1, fraction=0.4)
    every = nn.functional.cross_entropy(model(batch.inputs).transpose(1, 2), batch.targets, reduction="none")
    torch.testing.assert_close(masked_loss(model, batch), every[batch.chosen])


def test_targets_that_are_not_scored_do_not_count():
    torch.manual_seed(0)
    model, batch = Encoder(CONFIG), mask_tokens(random_ids(5, 7), V - 1, fraction=0.4)
    other = dataclasses.replace(batch, targets=torch.where(batch.chosen, batch.targets, (batch.targets + 1) % V))
    assert torch.equal(masked_loss(model, other), masked_loss(model, batch))


@pytest.mark.parametrize("pad_id", [0, V - 1])
def test_padding_does_not_move_the_loss(pad_id):
    torch.manual_seed(0)
    model, short = Encoder(CONFIG), random_ids(5)
    chosen = torch.tensor([False, True, True, False, True])
    alone = masked_loss(model, MaskedBatch(short[None], short[None], chosen[None]))
    ids, lengths = pad_batch([short, random_ids(13)], pad_id)
    padded = torch.zeros_like(ids, dtype=torch.bool)
    padded[0, :5] = chosen
    torch.testing.assert_close(masked_loss(model, MaskedBatch(ids, ids, padded, padding_mask(lengths))), alone)


@pytest.mark.parametrize("loss, cls", [(next_token_loss, Decoder), (masked_loss, Encoder)])
def test_gradients_are_finite_and_reach_every_parameter(loss, cls):
    torch.manual_seed(0)
    model, ids = cls(CONFIG), random_ids(5, 7)
    loss(model, ids if cls is Decoder else mask_tokens(ids, V - 1, fraction=0.4)).mean().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() and p.grad.any() for p in model.parameters())


def test_int32_ids_give_the_same_losses():
    torch.manual_seed(0)
    decoder, encoder, ids = Decoder(CONFIG), Encoder(CONFIG), random_ids(5, 7)
    assert torch.equal(next_token_loss(decoder, ids.int()), next_token_loss(decoder, ids))
    a, b = (mask_tokens(x, V - 1, generator=torch.Generator().manual_seed(0)) for x in (ids, ids.int()))
    assert torch.equal(masked_loss(encoder, a), masked_loss(encoder, b))


encoder, decoder, ids0 = Encoder(CONFIG), Decoder(CONFIG), random_ids(2, 7)
everywhere = torch.ones(2, 7, dtype=torch.bool)


@pytest.mark.parametrize("call, message", [
    (lambda: next_token_loss(decoder, ids0[:, :1]), r"ids has shape \(2, 1\); next-token prediction needs .* T >= 2"),
    (lambda: next_token_loss(decoder, ids0[0]), r"ids has shape \(7,\)"),
    (lambda: next_token_loss(decoder, ids0.float()), r"ids is torch\.float32"),
    (lambda: next_token_loss(decoder, None), "ids is NoneType"),
    (lambda: next_token_loss(decoder, torch.tensor([[1, 2, V]])), "targets holds the token id 11"),  # the last is no input
    (lambda: next_token_loss(decoder, torch.tensor([[1, 2, -100]])), "ids holds the token id -100"),
    (lambda: masked_loss(encoder, ids0), r"batch \(Tensor\) is not a MaskedBatch"),
    (lambda: masked_loss(encoder, (ids0, ids0)), r"batch \(tuple\) is not a MaskedBatch"),
    (lambda: masked_loss(encoder, MaskedBatch(ids0, ids0, everywhere[:, :6])), "is not a MaskedBatch of"),
    (lambda: masked_loss(encoder, MaskedBatch(ids0, ids0, everywhere.long())), "the last one boolean"),
    (lambda: masked_loss(encoder, MaskedBatch(ids0, ids0 + V, everywhere)), "targets holds the token id"),
    # PyTorch's cross-entropy would take -100 for "ignore" and call the loss 0.
    (lambda: masked_loss(encoder, MaskedBatch(ids0, torch.full_like(ids0, -100), everywhere)), "targets holds the token id -100"),
])
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
