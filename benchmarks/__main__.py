"""Time and quality beside the published figures.

    python -m benchmarks --stored   from what is stored: seconds
    python -m benchmarks            run the benchmarks again, store them, then the same summary: half an hour

A benchmark is a module of this package named in BENCHMARKS whose ``main(arguments)`` returns an exit code.
Experiments that fill other results files (seeds, ablations) are not among them; each has a command of its own.
Alignment, norms and tournament are both: they make the runs that are missing, which are none in a fresh copy,
and say how it stands.
Either way the table of chapters on the book's first page is written from the notebooks.
"""

import argparse
import importlib
import sys

from benchmarks import summary
from tools import table

BENCHMARKS = {"encoder": ["--save"], "reversal": ["--save"], "alignment": [], "perceiver_cost": [], "norms": [], "tournament": []}


def main(arguments: list[str] | None = None) -> int:
    """Run all unless told not to, then print the summary; the exit code is the largest of theirs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("--stored", action="store_true", help="measure nothing, print what is stored")
    codes = {}
    if not parser.parse_args(arguments).stored:
        for name, options in BENCHMARKS.items():
            print(f"== {name}", flush=True)
            codes[name] = importlib.import_module(f"benchmarks.{name}").main(options)
    for line in summary.lines():
        print(line)
    print("chapters/index.md: " + ("new times" if table.update() else "the table is current"))
    for name, code in codes.items():
        if code:
            print(f"benchmarks: {name} ended with exit code {code}", file=sys.stderr)
    return max(codes.values(), default=0)


if __name__ == "__main__":
    sys.exit(main())
