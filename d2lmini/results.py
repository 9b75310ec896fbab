"""Stored results of runs too long for a notebook: read by the chapters, written by the benchmarks."""

from __future__ import annotations

import datetime
import json
import os
from importlib import resources
from pathlib import Path


def _folder() -> Path:
    return Path(str(resources.files(__package__))) / "results"


def load_results(name: str) -> dict:
    """Return a stored result by name.

    Args:
        name: of a file in the package's ``results`` folder, without ".json".
    Returns:
        The stored dict: ``command`` that made it, ``date``, ``digest`` of the code, and its data.
    Raises:
        ValueError: if there is no such file; the message lists those there are.
    """
    path = _folder() / f"{name}.json"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in _folder().glob("*.json"))) or "none yet"
        raise ValueError(f"name={name!r} is not a stored result; there are: {known}.")
    return json.loads(path.read_text(encoding="utf-8"))


def save_results(name: str, data: dict, *, command: str, digest: str) -> Path:
    """Write a result whole or not at all: to a temporary file first, then renamed into place.

    Args:
        name: file name without ".json".
        data: what was measured, JSON-ready.
        command: the command line that makes it.
        digest: of the code that made it, as ``tools.freshness.digest_modules`` returns it.
    Returns:
        The path written.
    """
    folder = _folder()
    folder.mkdir(exist_ok=True)
    record = dict(command=command, date=datetime.date.today().isoformat(), digest=digest, **data)
    part = folder / f"{name}.{os.getpid()}.part"
    part.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    os.replace(part, folder / f"{name}.json")
    return folder / f"{name}.json"
