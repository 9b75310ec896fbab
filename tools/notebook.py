"""Run, check and list the book's notebooks.

    python -m tools.notebook run chapters/02_encoder.ipynb ...   execute in place, in a fresh kernel
    python -m tools.notebook check [chapters/02_encoder.ipynb ...]   say which rules are broken
    python -m tools.notebook table    write the chapters' measured times into chapters/index.md

`run` leaves the file untouched when a cell fails, writes to stderr or breaks another rule.
"""

import argparse
import hashlib
import os
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from tools import table
from tools.freshness import ROOT, digest_notebook
from tools.rules import WIDGET, clean_outputs, described_images, image_alts, no_machine_paths, problems

ENVIRONMENT = {"D2LMINI_PROGRESS": "0", "OMP_NUM_THREADS": "2", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
# Without the version, so that a run on another Python changes nothing here.
LANGUAGE = {
    "file_extension": ".py", "mimetype": "text/x-python", "name": "python", "pygments_lexer": "ipython3",
}
KEPT_CELL_KEYS = {"tags", "jupyter", "mystnb", "cellView"}


class NotebookError(Exception):
    """A notebook did not run clean; the message says in which cell and why."""


def run(path: Path) -> float:
    """Execute the notebook at `path` in place and return the seconds it took."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    client = NotebookClient(
        notebook, timeout=None, kernel_name="python3", record_timing=False,
        extra_arguments=["--log-level=ERROR"],  # of the kernel's own log, not of what cells print
        resources={"metadata": {"path": str(path.resolve().parent)}},
    )
    start = time.perf_counter()
    try:
        client.execute()
    except CellExecutionError as error:
        raise NotebookError(f"{path}: a cell failed; the file is unchanged.\n{error}") from None
    seconds = round(time.perf_counter() - start, 1)
    tidy(notebook)
    broken = [*clean_outputs(notebook), *described_images(notebook), *no_machine_paths(notebook)]
    if broken:
        raise NotebookError("\n".join([f"{path}: the file is unchanged."] + broken))
    version = (ROOT / "d2lmini" / "__init__.py").read_text(encoding="utf-8").partition("__version__ = ")[2]
    notebook.metadata["d2lmini"] = {
        "digest": digest_notebook(path), "seconds": seconds, "version": version.split("\n")[0].strip("\"' "),
    }
    write(notebook, path)
    return seconds


def tidy(notebook) -> None:
    """Leave in the notebook only what a reader or a test needs, the same on every machine."""
    seen: set[str] = set()
    for index, cell in enumerate(notebook.cells):
        cell.metadata = nbformat.from_dict({k: v for k, v in cell.metadata.items() if k in KEPT_CELL_KEYS})
        cell.id = stable_id(cell, seen)
        if cell.cell_type == "code":
            cell.outputs = _merge_streams(_drop_widgets(cell, index))
            _copy_alt(cell)
            if cell.metadata.get("jupyter", {}).get("source_hidden"):
                cell.metadata["cellView"] = "form"  # with `# @title`, what makes Colab fold the code
    notebook.metadata = nbformat.from_dict({"kernelspec": KERNEL, "language_info": LANGUAGE})
    notebook.nbformat, notebook.nbformat_minor = 4, 5


def write(notebook, path: Path) -> None:
    """Write whole or not at all."""
    nbformat.validate(notebook)
    temporary = path.with_suffix(".ipynb.part")
    try:
        nbformat.write(notebook, temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _merge_streams(outputs: list) -> list:
    merged: list = []
    for output in outputs:
        last = merged[-1] if merged else None
        if output.output_type == "stream" and last and last.output_type == "stream" and last.name == output.name:
            last.text += output.text
        else:
            merged.append(output)
    return merged


def _drop_widgets(cell, index: int) -> list:
    """Without widgets: with no kernel behind them they are debris, and no test can compare them."""
    kept = [o for o in cell.outputs if not any(m.startswith(WIDGET) for m in o.get("data", {}))]
    if len(kept) < len(cell.outputs) and "nbval-ignore-output" not in cell.metadata.get("tags", []):
        raise NotebookError(f"cell {index} shows a widget, which is not stored; tag it nbval-ignore-output")
    return kept


def _copy_alt(cell) -> None:
    """Jupyter's viewers read the output's alt text, myst-nb the cell's: copy the one into the other."""
    mystnb = cell.metadata.get("mystnb", {})
    image = {k: v for k, v in mystnb.get("image", {}).items() if k != "alt"}
    alts = image_alts(cell)
    if alts and alts[0]:
        image["alt"] = alts[0]
    mystnb = {k: v for k, v in mystnb.items() if k != "image"} | ({"image": image} if image else {})
    cell.metadata.pop("mystnb", None)
    if mystnb:
        cell.metadata["mystnb"] = mystnb


def stable_id(cell, seen: set[str]) -> str:
    """An id made of what the cell says, so that converting a notebook anew changes no other cell's."""
    salt = 0
    while True:
        text = f"{cell.cell_type} {salt} {cell.source}"
        name = hashlib.sha256(text.encode()).hexdigest()[:8]
        if name not in seen:
            seen.add(name)
            return name
        salt += 1


def _run_all(paths: list[Path]) -> int:
    for path in paths:
        try:
            seconds = run(path)
        except NotebookError as error:
            print(error, file=sys.stderr)
            return 1
        print(f"{path}: {seconds:.1f} s")
    return 0


def _check_all(paths: list[Path]) -> int:
    found = [text for path in paths for text in problems(nbformat.read(path, as_version=4), path)]
    print("\n".join(found) if found else f"{len(paths)} notebooks keep all rules")
    return 1 if found else 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.notebook", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("run").add_argument("paths", nargs="+", type=Path)
    commands.add_parser("check").add_argument("paths", nargs="*", type=Path)
    commands.add_parser("table")
    options = parser.parse_args(arguments)
    if options.command == "run":
        return _run_all(options.paths)
    if options.command == "check":
        return _check_all(options.paths or sorted((ROOT / "chapters").glob("**/*.ipynb")))
    print("chapters/index.md: " + ("new times" if table.update() else "the table is current"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
