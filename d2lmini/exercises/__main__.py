"""``python -m d2lmini.exercises --mutants``: every wrong answer against its check."""

from __future__ import annotations

import argparse
import sys

from .base import exercises, progress
from .mutants import refused, table


def main(arguments: list[str] | None = None) -> int:
    """Print the table; the exit code is 1 if a wrong answer is accepted or misnamed, or a right one refused."""
    parser = argparse.ArgumentParser(prog="python -m d2lmini.exercises", description="List the exercises, or test their checks.")
    parser.add_argument("--mutants", action="store_true", help="hand every wrong answer to its check")
    options = parser.parse_args(arguments)
    if not options.mutants:
        progress()
        return 0
    rows = table()
    for exercise, mistake, said, named in rows:
        print(f"{exercise.name:18s} {mistake.name:24s} {'' if named else 'WRONGLY NAMED: '}{said.splitlines()[0]}")
    faults = refused()
    print(*faults, sep="\n", end="\n" if faults else "")
    survivors = sum(said.startswith("right.") for _, _, said, _ in rows)
    misnamed = sum(not named for *_, named in rows) - survivors
    if misnamed:
        print(f"{misnamed} rejected, but without their own diagnosis")
    print(f"{len(exercises())} exercises, {len(rows)} wrong answers, {survivors} accepted")
    return int(bool(survivors or misnamed or faults))


if __name__ == "__main__":
    sys.exit(main())
