"""Claims with bounds that are checked as the notebook runs, and sentences that carry measured numbers.

``python -m d2lmini.claims --json chapters/*.ipynb`` prints the claims stored in executed notebooks.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from pathlib import Path

from ..checks import check_number, check_text

KEY = "d2lmini_claim"


def claim(name: str, statement: str, measured: float, *, at_least: float | None = None, at_most: float | None = None,
          published: str | None = None, why: str | None = None) -> None:
    """Check a claim, print whether it holds, and leave its data in the cell's output for the ledger.

    When it holds, the line printed names the bound and nothing measured, so it is the same on every machine;
    when it does not, the line says what was measured. Either way the notebook goes on.

    Args:
        name: short, unique within its chapter: lower-case words joined by hyphens.
        statement: the sentence claimed, which should contain its bound in words.
        measured: the number measured in this run.
        at_least, at_most: the bound; give one, or both for an interval.
        published: the corresponding figure of a source, as text, with the source.
        why: where ours and the published figure differ, why.
    Raises:
        ValueError: if the name is not of that form, the statement is empty or has several lines, no bound is given, a
            bound is not finite, the bounds cross, or ``measured`` is no number.
    """
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", check_text("name", name)):
        raise ValueError(f"name={name!r} is not lower-case words joined by hyphens, such as 'two-sides-beat-one'.")
    if not check_text("statement", statement).strip() or "\n" in statement:
        raise ValueError(f"statement={statement!r} is not one line of text; give the sentence that is claimed.")
    for word, value in (("at_least", at_least), ("at_most", at_most)):
        if value is not None:
            check_number(word, value, -sys.float_info.max, sys.float_info.max)
    if at_least is None and at_most is None:
        raise ValueError("at_least and at_most are both missing; a claim needs a bound that could fail.")
    if at_least is not None and at_most is not None and at_least > at_most:
        raise ValueError(f"at_least={at_least} is above at_most={at_most}; no number could satisfy both.")
    try:
        if isinstance(measured, (bool, str)):
            raise TypeError
        measured = float(measured)  # NumPy's and PyTorch's single numbers too
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"measured={measured!r} is not a number; give the one number that this run measured.") from None
    bound = " and ".join(f"{word} {value:g}" for word, value in (("at least", at_least), ("at most", at_most))
                         if value is not None)
    holds = not math.isnan(measured) and (at_least is None or measured >= at_least) and \
        (at_most is None or measured <= at_most)
    line = f"✔ Claim holds ({bound}): {statement}" if holds else \
        f"✘ CLAIM FAILS: measured {measured:.6g}, claimed {bound}: {statement}"
    data = dict(name=name, statement=statement, bound=bound, measured=measured if math.isfinite(measured) else None,
                published=published, why=why, holds=holds)
    _display({"text/plain": line}, data)


def say(text: str) -> None:
    """Display a Markdown sentence: the way a measured number enters the prose.

    Args:
        text: Markdown, with the numbers already formatted into it.
    Raises:
        ValueError: if the text is empty or holds a NaN or an infinity.
    """
    if not isinstance(text, str) or not text.strip():
        raise ValueError("text is empty; give the sentence to show.")
    if re.search(r"(?<![\w$\\])(nan|inf)(?!\w)", text):
        raise ValueError(f"text holds a number that is not finite: {text!r}; measure again before you state it.")
    _display({"text/markdown": text, "text/plain": text})


def _display(bundle: dict, data: dict | None = None) -> None:
    try:
        from IPython import get_ipython
        from IPython.display import display
    except ImportError:
        get_ipython = None
    if get_ipython is None or get_ipython() is None:
        print(bundle["text/plain"])
    else:
        display(bundle, raw=True, metadata={KEY: data} if data else {})


def read_claims(path: str | Path) -> list[dict]:
    """Return the claims stored in an executed notebook, in order.

    Args:
        path: of an .ipynb file.
    Returns:
        Dicts {chapter, name, statement, bound, measured, published, why, holds}; ``chapter`` is the file's stem.
    Raises:
        ValueError: if the file is missing or is not a notebook, or two of its claims share a name.
    """
    path = Path(path)
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        found = [{"chapter": path.stem, **output["metadata"][KEY]}
                 for cell in cells for output in cell.get("outputs", []) if KEY in output.get("metadata", {})]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"path={str(path)!r} is not a notebook that can be read ({error}).") from None
    names = [c["name"] for c in found]
    twice = {n for n in names if names.count(n) > 1}
    if twice:
        raise ValueError(f"{path} holds several claims of the same name: {', '.join(sorted(twice))}; rename one.")
    return found


def main(arguments: list[str] | None = None) -> int:
    """Print the ledger; the exit code is 1 if a stored claim does not hold, 2 if a file cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m d2lmini.claims", description="List the claims of notebooks.")
    parser.add_argument("notebooks", nargs="+", help="executed .ipynb files")
    parser.add_argument("--json", action="store_true", help="print a JSON list instead of lines")
    options = parser.parse_args(arguments)
    try:
        found = [c for path in options.notebooks for c in read_claims(path)]
    except ValueError as error:
        print(f"d2lmini.claims: {error}", file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps(found, indent=1, ensure_ascii=False))
    else:
        for c in found:
            print(f"{'✔' if c['holds'] else '✘'} {c['chapter']}: {c['name']}: {c['bound']}, measured {c['measured']}")
    return 0 if all(c["holds"] for c in found) else 1
