"""Training: seeds, devices, evaluation that disturbs nothing, fit and its history, and stopping on a loss that is not finite."""

import dataclasses
import math
import random
from collections import namedtuple
from itertools import islice

import numpy as np
import pytest
import torch
from torch import nn

from d2lmini import (Config, Decoder, Encoder, History, NonFiniteLoss, device, evaluate, fit, linear_decay,
                     make_optimizers, masked_batches, masked_loss, next_token_loss, pad_batch, padding_mask, progress,
                     random_windows, seed_everything, token_losses)
from d2lmini.batches import MaskedBatch
from d2lmini.training import to_device

V = 11
CONFIG = Config(V, 13, d_model=12, num_heads=3, num_layers=2)
TEXT = torch.arange(200) * 7 % 10


def draws():
    return random.random(), np.random.rand(), torch.rand(1).item()


def masked(seed=0):
    return masked_batches(random_windows(TEXT, 7, 5, seed), V - 1, seed, fraction=0.4)


def train(model, steps=20, loss=masked_loss, batches=None, **how):
    how = dict(optimizers=make_optimizers(model), **how) if "optimizers" not in how else how
    return fit(model, loss, masked() if batches is None else batches, steps=steps, **how)


def test_seeds_repeat_all_three_generators():
    seed_everything(3)
    first = [draws() for _ in range(3)]
    seed_everything(np.int64(3))
    assert [draws() for _ in range(3)] == first and len(set(first)) == 3
    seed_everything(4)
    assert all(a != b for a, b in zip(draws(), first[0]))


def test_a_seeded_run_is_repeated_to_the_last_bit():
    runs = []
    for _ in range(2):
        seed_everything(5)
        model = Encoder(dataclasses.replace(CONFIG, dropout=0.2))
        history = train(model, schedule=linear_decay(warmup=0.1), clip=1.0)
        runs.append((history.losses, [p.detach() for p in model.parameters()]))
    assert runs[0][0] == runs[1][0]
    assert all(torch.equal(a, b) for a, b in zip(runs[0][1], runs[1][1]))


def test_device_is_one_that_works():
    assert torch.ones(3, device=device()).sum().item() == 3


def test_to_device_reaches_into_batches():
    pair = namedtuple("pair", "ids name")
    batch = {"a": (TEXT, [TEXT, "text", None]), "b": MaskedBatch(TEXT, TEXT, TEXT > 3), "c": pair(TEXT, 3)}
    moved = to_device(batch, "meta")
    (a, (b, text, nothing)), c, d = moved["a"], moved["b"], moved["c"]
    assert all(t.device.type == "meta" for t in (a, b, c.inputs, c.targets, c.chosen, d.ids))
    assert isinstance(c, MaskedBatch) and c.mask is None and isinstance(d, pair) and d.name == 3
    assert text == "text" and nothing is None and batch["a"][0].device.type == "cpu"


def test_the_bar_can_be_turned_off(monkeypatch, capsys):
    monkeypatch.setenv("D2LMINI_PROGRESS", "0")
    assert list(progress(range(3), "work")) == [0, 1, 2]
    assert capsys.readouterr() == ("", "")
    monkeypatch.setenv("D2LMINI_PROGRESS", "1")
    assert list(progress(range(3), "work")) == [0, 1, 2]
    assert "work" in capsys.readouterr().err


def test_smoothed_by_hand():
    history = History([4.0, 2.0, 6.0, 0.0])
    assert history.smoothed(2) == [4.0, 3.0, 4.0, 3.0] and history.smoothed(1) == history.losses
    assert history.smoothed(99) == [4.0, 3.0, 4.0, 3.0] and history.steps == 4
    assert History().smoothed() == [] and History().steps == 0


def test_fit_learns_and_keeps_the_record():
    seed_everything(0)
    model = Decoder(CONFIG)
    model.eval()
    optimizers = make_optimizers(model, lr=0.01)
    history = train(model, 60, next_token_loss, random_windows(TEXT, 7, 5, 0), optimizers=optimizers,
                    schedule=linear_decay())
    assert history.steps == 60 and all(type(x) is float for x in history.losses) and history.seconds > 0
    assert history.evaluations == [] and model.training
    assert np.mean(history.losses[-10:]) < 0.85 * np.mean(history.losses[:10])  # each token names the next
    assert [o.param_groups[0]["lr"] for o in optimizers] == [0.01, 0.003]  # the schedule is undone at the end


def test_fit_minimises_the_mean_by_hand():
    # One weight w, loss w * x for each x of the batch: the gradient is the mean of x.
    model = nn.Linear(1, 1, bias=False)
    nn.init.constant_(model.weight, 2.0)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    history = fit(model, lambda m, x: m(x)[:, 0], [torch.tensor([[1.0], [3.0]])] * 3, steps=3, optimizers=sgd,
                  schedule=lambda progress: 1 - progress)
    # rates 0.1, 0.0667, 0.0333: w = 2, 1.8, 1.6667, 1.6
    assert history.losses == pytest.approx([4.0, 3.6, 2 * (1.8 - 2 / 15)], rel=1e-5)
    assert model.weight.item() == pytest.approx(1.6, rel=1e-5)


def test_clip_bounds_the_whole_gradient():
    model = nn.Linear(3, 1, bias=False)
    nn.init.zeros_(model.weight)
    fit(model, lambda m, x: m(x)[:, 0], [torch.tensor([[30.0, 40.0, 0.0]])], steps=1, clip=0.5,
        optimizers=torch.optim.SGD(model.parameters(), lr=1.0))
    assert model.weight.norm().item() == pytest.approx(0.5, rel=1e-4)


def test_evaluation_disturbs_nothing():
    seed_everything(0)
    model = Encoder(dataclasses.replace(CONFIG, dropout=0.5))
    model.train()
    model.tower.blocks[1].eval()  # a mixed state, to be found again
    modes = [m.training for m in model.modules()]
    seed_everything(1)
    want = draws()
    seed_everything(1)
    batches = list(islice(masked(), 3))

    def curious(m, batch):
        assert not any(part.training for part in m.modules()) and not torch.is_grad_enabled()
        draws()
        return masked_loss(m, batch)
    first = evaluate(model, curious, batches)
    assert draws() == want and [m.training for m in model.modules()] == modes and torch.is_grad_enabled()
    assert evaluate(model, curious, batches) == first  # no dropout inside
    with pytest.raises(ZeroDivisionError):
        evaluate(model, lambda m, b: 1 / 0, batches)
    assert [m.training for m in model.modules()] == modes and torch.is_grad_enabled()


def test_evaluations_inside_fit_change_no_step():
    runs = []
    for every in (0, 4):
        seed_everything(2)
        model = Encoder(dataclasses.replace(CONFIG, dropout=0.3))
        look = dict(evaluate_every=every, evaluation=lambda m: (m.training, draws())) if every else {}
        runs.append(train(model, 10, **look))
        assert model.training
    assert runs[0].losses == runs[1].losses
    assert [step for step, _ in runs[1].evaluations] == [0, 4, 8, 10]
    assert not any(training for _, (training, _) in runs[1].evaluations)


def test_every_token_counts_once():
    torch.manual_seed(0)
    model = Encoder(CONFIG)
    batches = []
    for lengths in ((3, 13), (7,)):
        ids, sizes = pad_batch([TEXT[:n] for n in lengths], V - 1)
        mask = padding_mask(sizes)
        batches.append(MaskedBatch(ids, ids, mask[:, 0, 0], mask))
    losses = token_losses(model, masked_loss, batches)
    assert losses.shape == (23,) and losses.dtype == torch.float32 and not losses.requires_grad
    alone = [token_losses(model, masked_loss, [MaskedBatch(t, t, torch.ones_like(t, dtype=torch.bool))])
             for t in (TEXT[None, :3], TEXT[None, :13], TEXT[None, :7])]
    torch.testing.assert_close(losses, torch.cat(alone), atol=1e-5, rtol=1e-5)
    assert evaluate(model, masked_loss, batches) == pytest.approx(torch.cat(alone).mean().item(), abs=1e-5)


def test_limit_takes_the_first_batches_of_an_endless_stream():
    torch.manual_seed(0)
    model = Decoder(CONFIG)
    got = token_losses(model, next_token_loss, random_windows(TEXT, 7, 5, 0), limit=3)
    want = token_losses(model, next_token_loss, list(islice(random_windows(TEXT, 7, 5, 0), 3)))
    assert torch.equal(got, want) and got.shape == (3 * 5 * 6,)


def test_a_model_without_parameters_can_be_evaluated():
    assert evaluate(nn.Identity(), lambda m, b: m(b), [torch.tensor([1.0, 2.0]), torch.tensor([6.0])]) == 3.0


def break_at(step, value=math.nan):
    """A loss that is not finite at one step, and the parameters it saw at each."""
    seen = []

    def loss(model, batch):
        seen.append([p.detach().clone() for p in model.parameters()])
        return masked_loss(model, batch) * (value if len(seen) == step else 1)
    return loss, seen


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("step", [1, 2, 5])
def test_a_loss_that_is_not_finite_stops_and_restores_the_last_good_state(step, value):
    seed_everything(0)
    model = Encoder(CONFIG)
    loss, seen = break_at(step, value)
    optimizers = make_optimizers(model)
    with pytest.raises(NonFiniteLoss, match=rf"the loss is {value} at step {step}; training stopped") as error:
        train(model, 9, loss=loss, optimizers=optimizers, schedule=linear_decay())
    good = seen[max(step - 2, 0)]  # the parameters behind the last finite loss
    assert all(torch.equal(p, g) for p, g in zip(model.parameters(), good))
    assert error.value.step == step and error.value.history.steps == step - 1
    assert isinstance(error.value, ValueError) and optimizers[0].param_groups[0]["lr"] == 0.01
    assert math.isfinite(evaluate(model, masked_loss, masked(), limit=1))


def test_a_blown_up_parameter_is_noticed_after_the_last_step():
    seed_everything(0)
    model = Encoder(CONFIG)
    before = [p.detach().clone() for p in model.parameters()]
    with pytest.raises(NonFiniteLoss, match="left a parameter that is not finite at step 1; training stopped"):
        train(model, 1, loss=lambda m, b: 1e3 * masked_loss(m, b), optimizers=torch.optim.SGD(model.parameters(), lr=3e38))
    assert all(torch.equal(p, b) for p, b in zip(model.parameters(), before))


def test_a_diverging_run_stops_by_itself():
    seed_everything(0)
    model = Encoder(CONFIG)
    with pytest.raises(NonFiniteLoss, match=r"at step \d+"):
        train(model, 50, optimizers=torch.optim.SGD(model.parameters(), lr=1e20))
    assert all(p.isfinite().all() for p in model.parameters())


model0, batch0 = Encoder(CONFIG), next(masked())
sgd0 = torch.optim.SGD(model0.parameters(), lr=0.1)


def go(**changes):
    return fit(**{**dict(model=model0, loss=masked_loss, batches=[batch0] * 3, steps=2, optimizers=sgd0), **changes})


@pytest.mark.parametrize("call, message", [
    (lambda: seed_everything(-1), "seed=-1 is out of range"),
    (lambda: seed_everything(1.5), "seed=1.5 is not an integer"),
    (lambda: seed_everything(2**64), "seed=.* is out of range"),
    (lambda: History([1.0]).smoothed(0), "width=0 is out of range"),
    (lambda: go(steps=0), "steps=0 is out of range"),
    (lambda: go(steps=2.0), "steps=2.0 is not an integer"),
    (lambda: go(steps=9), "batches ran out after step 3 of steps=9"),
    (lambda: go(batches=[]), "batches ran out after step 0 of steps=2"),
    (lambda: go(clip=0), r"clip=0 is outside \(0, inf\]"),
    (lambda: go(evaluate_every=-1), "evaluate_every=-1 is out of range"),
    (lambda: go(evaluate_every=1), "evaluation=None is not a function"),
    (lambda: go(loss=None), "loss=None is not a function"),
    (lambda: go(schedule=0.1), "schedule=0.1 is not a function"),
    (lambda: go(schedule=lambda p: -1.0), r"schedule\(progress\)=-1.0 is outside \[0, inf\)"),
    (lambda: go(schedule=lambda p: math.nan), r"schedule\(progress\)=nan is outside"),
    (lambda: go(optimizers=[]), r"optimizers=\[\] are not optimizers"),
    (lambda: go(optimizers="adam"), r"optimizers=\['adam'\] are not optimizers"),
    (lambda: go(model=Encoder(CONFIG)), "optimizers hold no parameter of this model"),
    (lambda: go(model=3), "model is int; give an nn.Module"),
    (lambda: go(loss=lambda m, b: masked_loss(m, b).mean()), r"loss\(model, batch\) has shape \(\)"),
    (lambda: go(loss=lambda m, b: masked_loss(m, b)[:0]), r"loss\(model, batch\) has shape \(0,\)"),
    (lambda: go(loss=lambda m, b: 3.0), r"loss\(model, batch\) is float"),
    (lambda: go(loss=lambda m, b: masked_loss(m, b).detach()), r"loss\(model, batch\) has no gradient"),
    (lambda: evaluate(model0, masked_loss, []), "batches is empty"),
    (lambda: evaluate(model0, masked_loss, [batch0], limit=0), "limit=0 is out of range"),
    (lambda: evaluate(model0, masked_loss, [batch0], limit="a"), "limit='a' is not an integer"),
    (lambda: evaluate(model0, None, [batch0]), "loss=None is not a function"),
    (lambda: evaluate(None, masked_loss, [batch0]), "model is NoneType"),
    (lambda: token_losses(model0, lambda m, b: torch.ones(2, 3), [batch0]), r"loss\(model, batch\) has shape \(2, 3\)"),
])
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
    assert sgd0.param_groups[0]["lr"] == 0.1  # the rate is put back whatever happens
