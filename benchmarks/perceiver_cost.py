"""Time and memory of a Perceiver and of self-attention over the full input, against the input's length.

    python -m benchmarks.perceiver_cost                            two curves up to 8,192 inputs, and their gap
    python -m benchmarks.perceiver_cost --save                     every stored curve that is still missing
    python -m benchmarks.perceiver_cost --save --curve full-fused  this one, anew

The last line of the first is

    perceiver_cost: gap G at 8,192 inputs, exponents E and P, faster from C inputs

where G is the time of fused self-attention over that of 64 latents, E and P are their exponents over the last two
doublings, and C is where the latents begin to pay. The exit code is 1 if the gap is less than tenfold.

Everything runs on one thread, and the clock counts what the process computed: the curves are about arithmetic, not
about how two cores share it or who else is at work. One child process per point measures the peak.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from dataclasses import asdict

import torch

from d2lmini.costs import encoder_flops, forward_case, perceiver_flops, weight_bytes
from d2lmini.results import load_results, save_results
from d2lmini.timing import Point, crossover, exponent, sweep
from tools.freshness import digest_modules

NAME = "perceiver_cost"
SIZES = [2**k for k in range(5, 15)]  # 32 ... 16,384
SHAPE = dict(d_model=256, num_heads=4, num_layers=2)
GAP = 10  # what the chapter claims at the least
CURVES = {
    "full-unfused": dict(design="full", fused=False),
    "full-fused": dict(design="full", fused=True),
    "perceiver-16": dict(design="perceiver", num_latents=16),
    "perceiver-64": dict(design="perceiver", num_latents=64),
    "perceiver-256": dict(design="perceiver", num_latents=256),
}


def measure(name: str, sizes: list[int] = SIZES, memory: bool = True) -> list[Point]:
    """Sweep one curve."""
    return sweep(forward_case, sizes, memory=memory, budget=1.0, limit=60.0, clock=time.process_time,
                 kwargs={**CURVES[name], **SHAPE}, needs=weight_bytes if name == "full-unfused" else None)


def flops(name: str) -> list[int]:
    """Count the operations of one curve at each size."""
    case, shape = CURVES[name], dict(d_model=SHAPE["d_model"], num_layers=SHAPE["num_layers"])
    return [encoder_flops(n, **shape) if case["design"] == "full" else perceiver_flops(n, case["num_latents"], **shape)
            for n in SIZES]


def row(name: str, p: Point) -> str:
    peak = "" if p.peak is None else f", {p.peak / 2**20:.1f} MiB"
    return f"{name} {p.size:6d}: " + (p.skipped or f"{1e3 * p.seconds:.2f} ms [{1e3 * p.low:.2f}, {1e3 * p.high:.2f}], "
                                      f"{p.repeats} times{peak}")


def stored_curves(digest: str) -> dict:
    """Return the curves that the results file holds from this code."""
    try:
        stored = load_results(NAME)
    except ValueError:
        return {}
    return stored["curves"] if stored["digest"] == digest else {}


def save(wanted: list[str] | None) -> None:
    """Measure the curves asked for, or all that are missing, and save after each."""
    digest = digest_modules([f"benchmarks.{NAME}"])
    machine = dict(system=platform.system(), cores=os.cpu_count(), threads=1, torch=torch.__version__)
    for name in wanted or [c for c in CURVES if c not in stored_curves(digest)]:
        points = measure(name)
        curve = dict(points=[asdict(p) for p in points], flops=flops(name))
        curves = {**stored_curves(digest), name: curve}  # read again: another process may have finished one meanwhile
        save_results(NAME, dict(sizes=SIZES, shape=SHAPE, machine=machine, curves=curves),
                     command="python -m benchmarks.perceiver_cost --save", digest=digest)
        print("\n".join(row(name, p) for p in points), flush=True)


def compare() -> float:
    """Measure the two curves that the chapter compares, print its figures, and return the gap at the last size."""
    sizes, seconds = SIZES[:-1], {}
    for name in ("full-fused", "perceiver-64"):
        points = measure(name, sizes, memory=False)
        print("\n".join(row(name, p) for p in points), flush=True)
        seconds[name] = [p.seconds or float("nan") for p in points]
    full, latents = seconds.values()
    start = crossover(sizes, full, latents)
    print(f"\nperceiver_cost: gap {full[-1] / latents[-1]:.0f} at {sizes[-1]:,} inputs, exponents {exponent(sizes, full, 2):.2f} "
          f"and {exponent(sizes, latents, 2):.2f}, faster from {start:.0f} inputs" if start else "\nperceiver_cost: no gap")
    return full[-1] / latents[-1]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.perceiver_cost", description=__doc__.splitlines()[0])
    parser.add_argument("--save", action="store_true", help="store whole curves, with memory")
    parser.add_argument("--curve", choices=CURVES, action="append", help="with --save: measure this one anew")
    options = parser.parse_args(arguments)
    if options.curve and not options.save:
        parser.error("--curve stores a curve; give --save as well")
    torch.set_num_threads(1)
    if options.save:
        save(options.curve)
        return 0
    return 0 if compare() >= GAP else 1


if __name__ == "__main__":
    sys.exit(main())
