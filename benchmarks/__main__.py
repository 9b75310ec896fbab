"""`python -m benchmarks`: every benchmark that prints a line of its own at the end, one after the other.

A benchmark is a module of this package named in BENCHMARKS whose ``main([])`` returns an exit code. Experiments
that fill the results files (seeds, ablations) are not among them; each has a command of its own. The tournament and
norms are both: they make the runs that are missing, which are none in a fresh copy, and say how it stands.
"""

import importlib
import sys

BENCHMARKS = ("encoder", "perceiver_cost", "norms", "tournament")


def main() -> int:
    """Run all; the exit code is the largest of theirs, and their last lines are repeated together."""
    codes = {}
    for name in BENCHMARKS:
        print(f"== {name}", flush=True)
        codes[name] = importlib.import_module(f"benchmarks.{name}").main([])
    for name, code in codes.items():
        if code:
            print(f"benchmarks: {name} ended with exit code {code}", file=sys.stderr)
    return max(codes.values())


if __name__ == "__main__":
    sys.exit(main())
