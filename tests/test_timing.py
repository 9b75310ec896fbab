"""Time and memory against size, and FLOPs by formula. Nothing here asserts a duration of real work."""

import math
import time

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from d2lmini import costs, timing
from d2lmini.costs import encoder_flops, forward_case, perceiver_flops, weight_bytes
from d2lmini.perceiver import PerceiverIO
from d2lmini.timing import Point, crossover, exponent, peak_memory, sweep, time_call


def allocate(size, factor=1, fail=False):
    """A case whose peak is known: size * factor MiB, touched."""
    if fail:
        raise RuntimeError("no such case")
    return lambda: torch.ones(size * factor * 2**18).sum()


class Clock:
    """A clock that moves only when told: each call of ``fn`` takes ``seconds``."""

    def __init__(self, monkeypatch, seconds):
        self.now, self.seconds, self.calls = 0.0, seconds, 0
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)

    def __call__(self):
        self.calls += 1
        self.now += self.seconds


@pytest.mark.parametrize("seconds, calls, measured", [(0.1, 11, 10), (0.001, 51, 50), (0.9, 4, 3), (1.5, 2, 2), (7.0, 1, 1)])
def test_slow_calls_are_repeated_less(monkeypatch, seconds, calls, measured):
    clock = Clock(monkeypatch, seconds)
    times = time_call(clock)
    assert (clock.calls, len(times)) == (calls, measured)
    assert times == pytest.approx([seconds] * measured)


def test_another_clock_can_be_used():
    ticks = iter(range(100))
    assert time_call(lambda: None, budget=2.0, clock=lambda: next(ticks)) == [1, 1, 1]


def test_sweep_leaves_out_what_would_take_too_long(monkeypatch):
    clocks = {}

    def build(size):
        clocks[size] = Clock(monkeypatch, size**2 / 100)
        return clocks[size]

    points = sweep(build, [2, 4, 8, 16, 32], limit=1.0)
    assert [p.seconds is not None for p in points] == [True, True, True, False, False]
    assert points[3].skipped == "Size 16 was left out: one call would take about 3 s."
    assert points[2] == Point(8, pytest.approx(0.64), pytest.approx(0.64), pytest.approx(0.64), 3)
    assert set(clocks) == {2, 4, 8}


def test_sweep_leaves_out_what_would_not_fit(monkeypatch):
    monkeypatch.setattr(timing, "available_memory", lambda: 4 * 2**30)
    points = sweep(lambda size: lambda: None, [1, 2, 4], needs=lambda size: size * 2**30)
    assert [bool(p.skipped) for p in points] == [False, False, True]
    assert points[2].skipped == ("Size 4 was left out: it needs about 4.0 GiB, "
                                 "more than three quarters of the 4.0 GiB that are free.")
    assert points[2].seconds is None and points[2].peak is None


def test_peak_memory_is_that_of_the_call():
    pytest.importorskip("resource")
    small, large = peak_memory(allocate, 20), peak_memory(allocate, 20, factor=10)
    assert 15 * 2**20 < small < 60 * 2**20
    assert 190 * 2**20 < large < 260 * 2**20


def test_sweep_measures_memory_too():
    pytest.importorskip("resource")
    point, = sweep(allocate, [30], memory=True, budget=0.01, kwargs={"factor": 2})
    assert point.peak > 50 * 2**20 and 0 < point.low <= point.seconds <= point.high and point.repeats >= 1


def test_a_child_that_fails_is_an_error_with_its_reason():
    with pytest.raises(ValueError, match="size=1: the child process failed with 'RuntimeError: no such case'"):
        peak_memory(allocate, 1, fail=True)


def test_a_function_of_a_notebook_cannot_be_imported():
    with pytest.raises(ValueError, match="cannot be imported by a child process"):
        peak_memory(lambda size: None, 1)


def test_exponent_of_known_curves():
    sizes = [2, 4, 8, 16]
    assert exponent(sizes, [3 * s**2 for s in sizes]) == pytest.approx(2)
    assert exponent(sizes, [1, 1, 8, 64], last=2) == pytest.approx(3)


def test_crossover_of_known_curves():
    sizes = [1, 10, 100]
    assert crossover(sizes, [1, 10, 100], [10, 10, 10]) == pytest.approx(10)
    assert crossover(sizes, [1, 10, 100], [10**0.5] * 3) == pytest.approx(10**0.5)
    assert crossover(sizes, [5, 5, 5], [1, 2, 3]) == 1
    assert crossover(sizes, [1, 2, 3], [5, 5, 5]) is None


@pytest.mark.parametrize("call, message", [
    (lambda: time_call(lambda: None, budget=0), "budget=0"),
    (lambda: time_call(lambda: None, max_repeats=0), "max_repeats=0"),
    (lambda: time_call(3), "fn=3"),
    (lambda: sweep(allocate, []), "are empty or do not rise"),
    (lambda: sweep(allocate, [2, 2]), "are empty or do not rise"),
    (lambda: sweep(allocate, [0, 2]), "size=0"),
    (lambda: sweep(allocate, [1], limit=0), "limit=0"),
    (lambda: exponent([1], [1]), "do not give a slope"),
    (lambda: exponent([1, 2], [1, 0]), "do not give a slope"),
    (lambda: exponent([1, 2], [1, 2, 3]), "do not give a slope"),
    (lambda: crossover([1, 2], [1, 2], [1]), "2, 2 and 1 values"),
    (lambda: forward_case(0), "num_inputs=0"),
    (lambda: forward_case(5, design="tree"), "design='tree'"),
    (lambda: forward_case(5, num_latents=0), "num_latents=0"),
])
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def counted(fn):
    with FlopCounterMode(display=False) as counter:
        fn()
    return counter.get_total_flops()


SHAPE = dict(d_model=12, num_heads=3, num_layers=2)


def test_flop_formulas_equal_the_counter():
    """With the weights built: the counter does not know the CPU's fused kernel, which does the same products."""
    full = forward_case(17, design="full", fused=False, **SHAPE)
    assert counted(full) == encoder_flops(17, 12, 2)
    reads = forward_case(17, design="perceiver", num_latents=5, fused=False, **SHAPE)
    assert counted(reads) == perceiver_flops(17, 5, d_model=12, num_layers=2)


def test_flop_formula_of_perceiver_io_equals_the_counter():
    model = PerceiverIO(11, 5, 7, d_model=12, num_heads=3, num_layers=2, d_ff=13)
    x = torch.randn(1, 17, 11)
    assert counted(lambda: model(x, trace={})) == perceiver_flops(17, 5, 7, d_model=12, num_layers=2, d_input=11, d_ff=13)


def test_flops_grow_linearly_in_inputs_and_in_outputs():
    sizes = [2**k for k in range(5, 15)]
    reads = [perceiver_flops(n, 64, d_model=256, num_layers=2) for n in sizes]
    steps = [(b - a) / (m - n) for a, b, n, m in zip(reads, reads[1:], sizes, sizes[1:])]
    assert len(set(steps)) == 1  # every further input costs the same
    writes = [perceiver_flops(64, 64, o, d_model=256, num_layers=2) for o in sizes]
    assert len({(b - a) / (m - n) for a, b, n, m in zip(writes, writes[1:], sizes, sizes[1:])}) == 1
    full = [encoder_flops(n, 256, 2) for n in sizes]
    assert exponent(sizes, full, last=2) > 1.8 > 1.01 > exponent(sizes, reads, last=2)


def test_forward_cases_run_alike_fused_or_not():
    for design, shape in (("full", (1, 17, 12)), ("perceiver", (1, 5, 12))):
        results = []
        for fused in (True, False):
            torch.manual_seed(0)
            results.append(forward_case(17, design=design, num_latents=5, fused=fused, **SHAPE)())
        assert results[0].shape == shape and not results[0].requires_grad
        torch.testing.assert_close(*results, atol=1e-5, rtol=1e-5)


def test_forgotten_weights_are_not_kept():
    trace = costs.Forget()
    trace["a"] = torch.ones(2)
    assert not trace and weight_bytes(1024, 4) == 2 * 4 * 4 * 1024**2


def test_available_memory_is_plausible():
    free = timing.available_memory()
    assert free is None or 2**20 < free < 2**50 and math.isfinite(free)
