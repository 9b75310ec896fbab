"""GPUs, as far as a machine without one can test them: which is chosen, and that no tensor stays behind on the CPU.

A model on a GPU fails at the first tensor that it makes for itself without saying where. So every call that makes
one is watched here while models run forward, backward, through an optimizer and through generation.
"""

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._device import _device_constructors

from d2lmini import (Config, Decoder, Encoder, EncoderDecoder, TextPerceiver, causal_mask, device, generate,
                     make_optimizers, masked_loss, next_token_loss, padding_mask)
from d2lmini.batches import mask_tokens
from d2lmini.seq2seq import greedy_decode


@pytest.mark.parametrize("cuda, mps, chosen", [(True, True, "cuda"), (True, False, "cuda"), (False, True, "mps"), (False, False, "cpu")])
def test_the_best_device_that_is_there_is_chosen(monkeypatch, cuda, mps, chosen):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    assert device() == torch.device(chosen)


class Placed(TorchFunctionMode):
    """Complain about every new tensor whose device is not named."""

    MAKERS = _device_constructors()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function in self.MAKERS and kwargs.get("device") is None:
            raise AssertionError(f"torch.{function.__name__} without a device")
        return function(*args, **kwargs)


IDS = torch.arange(34).reshape(2, 17) % 29
SMALL = dict(d_model=32, num_heads=2, num_layers=1)


def decoder(positions="rotary"):
    return Decoder(Config(29, 17, positions=positions, **SMALL))


def test_the_watch_sees_a_tensor_without_a_place():
    with Placed(), pytest.raises(AssertionError, match="torch.zeros without a device"):
        torch.zeros(3)
    with Placed():
        assert torch.zeros(3, device="cpu").sum() == 0 and torch.zeros_like(IDS).sum() == 0


@pytest.mark.parametrize("positions", ["rotary", "learned", "sinusoidal"])
def test_training_steps_make_every_tensor_where_the_model_is(positions):
    for model, loss, batch in [
        (decoder(positions), next_token_loss, IDS),
        (Encoder(Config(29, 17, positions=positions, **SMALL)), masked_loss,
         mask_tokens(IDS, 28, generator=torch.Generator().manual_seed(0), fraction=0.5)),
    ]:
        optimizers = make_optimizers(model)
        before = [p.detach().clone() for p in model.parameters()]
        with Placed():
            loss(model, batch).mean().backward()
            for optimizer in optimizers:
                optimizer.step()
        assert any((a != b).any() for a, b in zip(before, model.parameters()))


def test_masks_traces_and_the_other_wirings_make_every_tensor_where_their_input_is():
    mask = padding_mask(torch.tensor([17, 5]), 17) & causal_mask(17)
    both, perceiver = EncoderDecoder(Config(29, 17, **SMALL)), TextPerceiver(29, 17, 3, d_model=32, num_heads=2, num_layers=1)
    model, trace = Encoder(Config(29, 17, **SMALL)), {}
    with Placed():
        outputs = [model(IDS, mask=mask), model(IDS, trace=trace), both(IDS, IDS), perceiver(IDS)]
    assert all(out.shape == (2, 17, 29) and out.isfinite().all() for out in outputs) and trace


def watched(model):
    """The model with its forward pass watched; what generates from it may keep its books on the CPU."""
    forward = model.forward

    def call(*args, **kwargs):
        with Placed():
            return forward(*args, **kwargs)

    model.forward = call
    return model


@pytest.mark.parametrize("lengths", [None, [3, 2]])
@pytest.mark.parametrize("use_cache", [True, False])
def test_every_pass_of_generation_makes_its_tensors_where_its_input_is(use_cache, lengths):
    texts = generate(watched(decoder()), IDS[:, :3], 4, greedy=True, use_cache=use_cache, lengths=lengths)
    assert [len(t) for t in texts] == [4 + n for n in lengths or [3, 3]]


@pytest.mark.parametrize("method", ["cache", "buffer"])
def test_an_encoder_decoder_decodes_where_its_source_is(method):
    model = EncoderDecoder(Config(29, 17, **SMALL))
    with Placed():
        target = greedy_decode(model, IDS, 3, 4, method=method)
    assert target.shape == (2, 4)


@pytest.mark.parametrize("threads", [2, 3])
def test_another_number_of_threads_gives_the_same_within_rounding(threads):
    torch.manual_seed(0)
    model = Encoder(Config(29, 64, d_model=96, num_heads=3, num_layers=2))
    ids = torch.randint(29, (5, 64))

    def run():
        model.zero_grad()
        logits = model(ids)
        logits.square().mean().backward()
        return [logits.detach(), *(p.grad.clone() for p in model.parameters())]

    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = run()
        torch.set_num_threads(threads)
        together = run()
    finally:
        torch.set_num_threads(before)
    for a, b in zip(alone, together):
        assert torch.allclose(a, b, atol=1e-5)
