"""Time and memory of a Perceiver and of self-attention over the full input, against the input's length.

    python -m benchmarks.perceiver_cost                     every curve that is still missing
    python -m benchmarks.perceiver_cost --curve full-fused  this one, anew

Everything runs on one thread, and the clock counts what the process computed: the curves are about arithmetic, not
about how two cores share it or who else is at work. One child process per point measures the peak.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from dataclasses import asdict

import torch

from d2lmini.costs import encoder_flops, forward_case, perceiver_flops, weight_bytes
from d2lmini.results import load_results, save_results
from d2lmini.timing import sweep
from tools.freshness import digest_modules

NAME = "perceiver_cost"
SIZES = [2**k for k in range(5, 15)]  # 32 ... 16,384
SHAPE = dict(d_model=256, num_heads=4, num_layers=2)
CURVES = {
    "full-unfused": dict(design="full", fused=False),
    "full-fused": dict(design="full", fused=True),
    "perceiver-16": dict(design="perceiver", num_latents=16),
    "perceiver-64": dict(design="perceiver", num_latents=64),
    "perceiver-256": dict(design="perceiver", num_latents=256),
}


def measure(name: str) -> dict:
    """Sweep one curve; return its points and the FLOPs of each size."""
    case = CURVES[name]
    points = sweep(forward_case, SIZES, memory=True, budget=1.0, limit=90.0, clock=time.process_time, kwargs={**case, **SHAPE},
                   needs=weight_bytes if name == "full-unfused" else None)
    shape = dict(d_model=SHAPE["d_model"], num_layers=SHAPE["num_layers"])
    flops = [encoder_flops(n, **shape) if case["design"] == "full" else
             perceiver_flops(n, case["num_latents"], **shape) for n in SIZES]
    return dict(points=[asdict(p) for p in points], flops=flops)


def stored_curves(digest: str) -> dict:
    """Return the curves that the results file holds from this code."""
    try:
        stored = load_results(NAME)
    except ValueError:
        return {}
    return stored["curves"] if stored["digest"] == digest else {}


def main() -> None:
    """Measure the curves asked for, and save after each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--curve", choices=CURVES, action="append")
    wanted = parser.parse_args().curve
    torch.set_num_threads(1)
    digest = digest_modules([f"benchmarks.{NAME}"])
    machine = dict(system=platform.system(), cores=os.cpu_count(), threads=1, torch=torch.__version__)
    for name in wanted or [c for c in CURVES if c not in stored_curves(digest)]:
        curve = measure(name)
        curves = {**stored_curves(digest), name: curve}  # read again: another process may have finished one meanwhile
        save_results(NAME, dict(sizes=SIZES, shape=SHAPE, machine=machine, curves=curves),
                     command="python -m benchmarks.perceiver_cost", digest=digest)
        for p in curve["points"]:
            print(f"{name} {p['size']:6d}: " + (p["skipped"] or f"{1e3 * p['seconds']:.2f} ms "
                  f"[{1e3 * p['low']:.2f}, {1e3 * p['high']:.2f}], {p['repeats']} times, {p['peak'] / 2**20:.1f} MiB"), flush=True)


if __name__ == "__main__":
    main()
