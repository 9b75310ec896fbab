"""Write the first code cell of notebooks: the one that finds d2lmini or fetches it.

    python -m tools.setup_cell --all                     every notebook in chapters/
    python -m tools.setup_cell chapters/02_encoder.ipynb ...

Its code is tools/first_cell.py; only the address and the release tag in its last line differ between
releases. The address is the one in _config.yml, the tag is "v" and the version of d2lmini. A chapter's own
imports stay in the cell after it. What the cell prints is the same on every machine that has d2lmini, so a
notebook that was run need not be run again for it; nbval compares that line like any other.
"""

import argparse
import re
import sys
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_output

from tools.address import read_address, release_tag
from tools.freshness import ROOT
from tools.notebook import stable_id, write

MARK = "# @title Get d2lmini"
LINE = "d2lmini is ready.\n"
LAST = re.compile(r'^print\(get_d2lmini\("([^"]*)", "([^"]*)"\)\)$', re.M)
METADATA = {"tags": ["setup", "hide-cell"], "jupyter": {"source_hidden": True}, "cellView": "form"}


def source(address: str, tag: str) -> str:
    """The cell's code with this address ("" when the book is not published) and tag."""
    text = Path(__file__).with_name("first_cell.py").read_text(encoding="utf-8").strip()
    return LAST.sub(lambda _: f'print(get_d2lmini("{address}", "{tag}"))', text)


def stamped(notebook, address: str, tag: str):
    """The notebook with that first cell; what it had beside it is kept. The argument itself is changed."""
    place = first_place(notebook)
    text = source(address, tag)
    if place == len(notebook.cells) or not notebook.cells[place].source.startswith(MARK):
        notebook.cells.insert(place, new_code_cell(metadata=METADATA))
        _count_on(notebook, place)
    cell = notebook.cells[place]
    if cell.source != text:
        cell.source = text
        cell.id = stable_id(cell, {c.id for c in notebook.cells if c is not cell})
    return notebook


def first_place(notebook) -> int:
    """The index of the first code cell; the number of cells when there is none."""
    return next((i for i, c in enumerate(notebook.cells) if c.cell_type == "code"), len(notebook.cells))


def stamp_of(notebook) -> tuple[str, str] | None:
    """(address, tag) in the notebook's first code cell, None if that is another cell."""
    first = next((c.source for c in notebook.cells if c.cell_type == "code"), "")
    found = LAST.search(first) if first.startswith(MARK) else None
    return found.groups() if found else None


def _count_on(notebook, place: int) -> None:
    """In a notebook that was run, give the new cell its output and its number, and the others theirs."""
    others = [c for i, c in enumerate(notebook.cells) if c.cell_type == "code" and i != place]
    if not any(c.execution_count for c in others):
        return
    cell = notebook.cells[place]
    cell.execution_count, cell.outputs = 1, [new_output("stream", name="stdout", text=LINE)]
    for other in others:
        if other.execution_count:
            other.execution_count += 1
        for output in other.outputs:
            if output.get("execution_count"):
                output["execution_count"] += 1


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.setup_cell", description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--all", action="store_true", help="every notebook in chapters/")
    options = parser.parse_args(arguments)
    paths = sorted((ROOT / "chapters").rglob("*.ipynb")) if options.all else options.paths
    if not paths:
        parser.error("name notebooks, or give --all")
    address, tag = read_address(ROOT), release_tag(ROOT)
    for path in paths:
        before = path.read_bytes()
        write(stamped(nbformat.read(path, as_version=4), address, tag), path)
        print(f"{path}: " + ("as it was" if path.read_bytes() == before else "new first cell"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
