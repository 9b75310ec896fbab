"""Time and memory against size, for any callable: adaptive, bounded, one child process per memory reading.

``python -m d2lmini.timing module:function SIZE '{"keyword": value}'`` measures one peak and prints it as JSON.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .checks import check_int, check_number


@dataclass(frozen=True)
class Point:
    """What was measured at one size.

    size; seconds: median of the repetitions, None if skipped; low, high: their first and third quartile;
    repeats: how many; peak: bytes above the baseline at the highest point, None if not measured;
    skipped: the sentence that says why, empty if measured.
    """

    size: int
    seconds: float | None = None
    low: float | None = None
    high: float | None = None
    repeats: int = 0
    peak: int | None = None
    skipped: str = ""


def time_call(fn: Callable[[], object], *, budget: float = 1.0, max_repeats: int = 50,
              clock: Callable[[], float] | None = None) -> list[float]:
    """Time a callable, fast ones often and slow ones once or twice.

    The first call warms up and sets the number of repetitions, about ``budget`` seconds' worth and at least 3.
    One that is slower than the budget is counted itself, and repeated once if it took less than twice that.

    Args:
        fn: takes no arguments.
        budget: seconds to spend on repetitions, > 0.
        max_repeats: at most so many, at least 1.
        clock: ``time.perf_counter`` by default, the time on the wall. ``time.process_time`` counts what this
            process really computed: on a busy machine the better measure of a single-threaded call.
    Returns:
        Seconds of each repetition, in order.
    Raises:
        ValueError: on numbers out of range, or if ``fn`` is not callable.
    """
    check_number("budget", budget, 0, low_open=True)
    check_int("max_repeats", max_repeats)
    if not callable(fn):
        raise ValueError(f"fn={fn!r} cannot be called; give a function without arguments.")

    clock = time.perf_counter if clock is None else clock

    def once() -> float:
        start = clock()
        fn()
        return clock() - start

    first = once()
    if first > budget:
        return [first, once()] if first < 2 * budget else [first]
    repeats = min(max_repeats, max(3, round(budget / max(first, 1e-9))))
    return [once() for _ in range(repeats)]


def available_memory() -> int | None:
    """Return the bytes that a new process could use, or None where the system does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return None


def peak_memory(build: Callable, size: int, **kwargs) -> int | None:
    """Return how many bytes one call needs at its highest point, measured in a fresh process.

        peak = max RSS after build(size, **kwargs)() - max RSS before that call

    Args:
        build: ``build(size, **kwargs)`` returns a callable without arguments. It must be importable: defined at
            the top of a module, not in a notebook cell, since the child process imports it by name.
        size: passed to ``build``.
        kwargs: passed on; JSON values only.
    Returns:
        Bytes, or None on systems that do not tell (Windows).
    Raises:
        ValueError: if ``build`` cannot be imported by another process, or if the child failed; the message holds
            its last line.
    Built in chapter 5.
    """
    target = _target(build)
    done = subprocess.run([sys.executable, "-m", "d2lmini.timing", target, str(size), json.dumps(kwargs)],
                          capture_output=True, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(
                              p or os.getcwd() for p in sys.path)})
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"stopped by signal {-done.returncode}"]
        raise ValueError(f"size={size}: the child process failed with '{lines[-1]}'; choose a smaller size.")
    return json.loads(done.stdout.splitlines()[-1])["peak"]


def _target(build: Callable) -> str:
    module, name = getattr(build, "__module__", None), getattr(build, "__qualname__", "")
    if not module or module == "__main__" or not name.isidentifier():
        raise ValueError(f"build={build!r} cannot be imported by a child process; define it at the top of a .py file "
                         f"and import it, or measure time alone.")
    return f"{module}:{name}"


def sweep(build: Callable, sizes: Sequence[int], *, memory: bool = False, budget: float = 1.0, limit: float = 60.0,
          needs: Callable[[int], float] | None = None, clock: Callable[[], float] | None = None,
          kwargs: dict | None = None) -> list[Point]:
    """Measure time, and memory if asked, at each size; leave out what would not fit, and say so.

    Args:
        build: ``build(size, **kwargs)`` returns a callable without arguments; see ``peak_memory`` when ``memory``.
        sizes: positive, rising.
        memory: also measure the peak, one child process per size.
        budget: seconds of repetitions per size.
        limit: seconds; a size whose one call is expected to take longer, from the two before it, is left out.
        needs: bytes that a size will need; a size that needs over 3/4 of the free memory is left out.
        clock: as in ``time_call``.
        kwargs: further arguments of ``build``.
    Returns:
        One ``Point`` per size; those left out carry the sentence that says why.
    Raises:
        ValueError: if ``sizes`` are empty, not positive or not rising.
    Built in chapter 5.
    """
    sizes = [check_int("size", size) for size in sizes]
    if not sizes or any(a >= b for a, b in zip(sizes, sizes[1:])):
        raise ValueError(f"sizes={sizes} are empty or do not rise; give different sizes from small to large.")
    check_number("limit", limit, 0, low_open=True)
    points: list[Point] = []
    for size in sizes:
        reason = _too_big(size, needs) or _too_slow(size, [p for p in points if p.seconds], limit)
        if reason:
            points.append(Point(size, skipped=reason))
            continue
        peak = peak_memory(build, size, **(kwargs or {})) if memory else None
        seconds = time_call(build(size, **(kwargs or {})), budget=budget, clock=clock)
        low, high = np.quantile(seconds, (0.25, 0.75))
        points.append(Point(size, statistics.median(seconds), float(low), float(high), len(seconds), peak))
    return points


def _too_big(size: int, needs: Callable[[int], float] | None) -> str:
    free = available_memory()
    if needs is None or free is None or needs(size) <= 0.75 * free:
        return ""
    return (f"Size {size:,} was left out: it needs about {needs(size) / 2**30:.1f} GiB, "
            f"more than three quarters of the {free / 2**30:.1f} GiB that are free.")


def _too_slow(size: int, measured: list[Point], limit: float) -> str:
    if len(measured) < 2:
        return ""
    last = measured[-2:]
    slope = max(exponent([p.size for p in last], [p.seconds for p in last]), 0.0)
    expected = last[-1].seconds * (size / last[-1].size) ** slope
    return f"Size {size:,} was left out: one call would take about {expected:.0f} s." if expected > limit else ""


def exponent(sizes: Sequence[float], values: Sequence[float], last: int | None = None) -> float:
    """Fit values = c * size^e and return e: the slope of the least-squares line on log-log axes.

    Args:
        sizes, values: positive numbers, as many of each, at least 2.
        last: use only the last so many intervals (last + 1 points); all by default.
    Returns:
        1 for linear growth, 2 for quadratic.
    Raises:
        ValueError: if there are fewer than 2 points, or numbers that are not positive.
    Built in chapter 5.
    """
    if last is not None:
        keep = check_int("last", last) + 1
        sizes, values = list(sizes)[-keep:], list(values)[-keep:]
    if len(sizes) != len(values) or len(sizes) < 2 or min(*sizes, *values) <= 0:
        raise ValueError(f"sizes={list(sizes)} and values={list(values)} do not give a slope; "
                         f"give as many of one as of the other, at least 2, all positive.")
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def crossover(sizes: Sequence[float], first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return the size from which ``second`` stays below ``first``, read between points on log-log axes.

    Returns:
        The size; ``sizes[0]`` if it is below everywhere, None if it is not below at the last.
    Raises:
        ValueError: if the three differ in length or are empty.
    Built in chapter 5.
    """
    if not len(sizes) == len(first) == len(second) or not len(sizes):
        raise ValueError(f"sizes, first and second have {len(sizes)}, {len(first)} and {len(second)} values; "
                         f"give as many of each, at least one.")
    gaps = [math.log(a / b) for a, b in zip(first, second)]
    if gaps[-1] <= 0:
        return None
    above = [i for i, gap in enumerate(gaps) if gap <= 0]
    if not above:
        return float(sizes[0])
    i = above[-1]
    share = gaps[i] / (gaps[i] - gaps[i + 1])
    return float(sizes[i] * (sizes[i + 1] / sizes[i]) ** share)


def _peak_rss() -> int | None:
    """The largest resident size of this process so far, in bytes."""
    try:  # Linux; its getrusage would hand a child the maximum of the parent that started it
        with open("/proc/self/status", encoding="ascii") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        pass
    try:
        import resource
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main(arguments: list[str] | None = None) -> int:
    """Measure the peak of one call, in this process."""
    parser = argparse.ArgumentParser(prog="python -m d2lmini.timing", description="Measure the peak of one call.")
    parser.add_argument("target", help="module:function"), parser.add_argument("size", type=int)
    parser.add_argument("kwargs", nargs="?", default="{}", type=json.loads, help="JSON object")
    options = parser.parse_args(arguments)
    module, _, name = options.target.partition(":")
    call = getattr(importlib.import_module(module), name)(options.size, **options.kwargs)
    before = _peak_rss()
    call()
    print(json.dumps({"peak": None if before is None else _peak_rss() - before}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
