"""`make matrix`: what is too long for every change, one environment a row, and what is not here is skipped with a reason.

    python -m tools.matrix                 all rows
    python -m tools.matrix colab 3.12      rows whose name contains one of these
    python -m tools.matrix --list          their names, and what each would do

Rows "pins 3.11", "3.12", "3.13": the pins of requirements.txt and the unit tests. Rows "torch ...": d2lmini alone on
Python 3.10 with the lowest torch, NumPy and matplotlib that pyproject.toml allows, and on the newest Python here
with the newest that there are. Rows "colab ...": ranges as Colab has them, a stand-in for its module, the package
from a git address at its tag, torch unchanged, one chapter a row from top to bottom.

Environments stand in .matrix/ and are used again; delete the folder to begin anew. Torch for another Python
is a download of gigabytes, and so is a newer one: rows that would need it are skipped unless D2LMINI_MATRIX_DOWNLOADS=1.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tools.freshness import ROOT

FOLDER = ROOT / ".matrix"
# Tests of the package alone: they need neither the book's tools nor a browser.
UNIT = ["--ignore=tests/test_book.py", "--ignore=tests/test_browser.py", "--deselect=tests/test_setup_cell.py", "tests"]
COLAB = ["numpy>=2,<2.3", "matplotlib>=3.10,<3.11", "ipython==7.34.*", "ipykernel<7", "ipywidgets<8", "tqdm", "nbclient", "nbformat",
         "setuptools"]
TESTING = ["pytest", "nbformat", "nbclient", "ipykernel", "jupyterquiz", "ipywidgets"]  # and what pyproject.toml asks for


@dataclass(frozen=True)
class Row:
    """One environment: its name, its Python, what is installed, which torch, and what is done in it."""

    name: str
    python: str
    install: tuple[str, ...]
    torch: str
    task: str


def dependencies(lowest: bool) -> list[str]:
    """What pyproject.toml asks for, torch first; at its lowest versions, or as it stands there."""
    block = re.search(r"^dependencies = \[(.*?)^\]", (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.M | re.S)[1]
    found = sorted(re.findall(r'"([^"]+)"', block), key=lambda text: not text.startswith("torch"))
    return [re.sub(r">=([\d.]+)", r"==\1.*", text) if lowest else text for text in found]


def rows() -> list[Row]:
    chapters = sorted(p.stem for p in (ROOT / "chapters").glob("[0-9][0-9]_*.ipynb"))
    low, high = dependencies(lowest=True), dependencies(lowest=False)
    newest = next((v for v in ("3.13", "3.12", "3.11") if interpreter(v)), "3.11")
    return [
        *(Row(f"pins {v}", v, ("-r", str(ROOT / "requirements.txt")), "", "tests") for v in ("3.11", "3.12", "3.13")),
        Row("torch lowest", "3.10", (*low[1:], *TESTING), low[0], "package"),
        Row("torch newest", newest, (*high[1:], *TESTING), high[0], "package"),
        *(Row(f"colab {name}", "3.12", tuple(COLAB), "torch", name) for name in chapters),
    ]


def interpreter(version: str) -> str | None:
    """The command that starts this Python, if one is here."""
    for name in (f"python{version}", sys.executable):
        path = shutil.which(name)
        if path:
            done = subprocess.run([path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True)
            if done.stdout.strip() == version:
                return path
    return None


def environment(row: Row) -> Path:
    """The row's Python, made and filled when it is not there yet; raises LookupError with the reason when it cannot be."""
    python = interpreter(row.python)
    if python is None:
        raise LookupError(f"no Python {row.python} on this machine")
    folder = FOLDER / ("colab" if row.name.startswith("colab") else row.name.replace(" ", "-"))
    inside = folder / "bin" / "python"
    if not (folder / "filled").exists():
        mine = "%d.%d" % sys.version_info[:2]
        if (row.python != mine or row.name == "torch newest") and os.environ.get("D2LMINI_MATRIX_DOWNLOADS") != "1":
            raise LookupError(f"its torch for Python {row.python} is a download of gigabytes; D2LMINI_MATRIX_DOWNLOADS=1 allows it")
        subprocess.run([python, "-m", "venv", "--clear", folder], check=True)
        for wanted in ([row.torch], list(row.install)):
            if wanted != [""]:
                done = subprocess.run([inside, "-m", "pip", "install", "--quiet", *wanted], capture_output=True, text=True)
                assert done.returncode == 0, f"pip could not install {' '.join(wanted)}: {done.stderr.strip()[-500:]}"
        (folder / "filled").touch()
    return inside


def tests(python: Path, arguments: list[str]) -> str:
    """Run pytest with the checkout in front of the path; its last line, or AssertionError with the end of its output."""
    done = subprocess.run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments], cwd=ROOT, capture_output=True,
                          text=True, env=os.environ | {"PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    return done.stdout.strip().splitlines()[-1]


def of_the_package() -> list[str]:
    """The test files that need d2lmini, torch and pytest and nothing of the book."""
    found = []
    for path in sorted((ROOT / "tests").glob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        imports = re.search(r"^\s*(?:from|import) (?:tools|benchmarks|clean|playwright|axe|conftest)\b", text, re.M)
        if not imports and not re.search(r"def \w+\([^)]*\b(?:book|pages|visit|browser|show)\b", text):
            found.append(str(path.relative_to(ROOT)))
    return found


def as_on_colab(python: Path, chapter: str) -> str:
    """A chapter from top to bottom, where torch must stay as it is."""
    sys.path.insert(0, str(ROOT / "tests"))
    import nbformat
    from clean import execute, install_stand_in, repository

    from tools.address import release_tag
    from tools.setup_cell import stamped

    tag, version = release_tag(ROOT), "import torch; print(torch.__version__, torch.__file__)"
    site = next(python.parent.parent.glob("lib/python*/site-packages"))
    install_stand_in(site)
    subprocess.run([python, "-m", "pip", "uninstall", "--quiet", "--yes", "d2lmini", "jupyterquiz"], capture_output=True)
    before = subprocess.run([python, "-c", version], capture_output=True, text=True).stdout
    plain = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as outside:  # where no folder above holds the book
        address = repository(Path(outside, "book"), tag)
        content = Path(outside, "content")
        content.mkdir()
        path = ROOT / "chapters" / f"{chapter}.ipynb"
        nbformat.write(stamped(nbformat.read(path, as_version=4), address, tag), content / path.name)
        done = execute(python, content / path.name, content, environment=plain)
    assert "was fetched from" in done["first"], done["first"]
    assert all(done["claims"]), f"claims of {chapter} fail: {done['claims']}"
    after = subprocess.run([python, "-c", version], capture_output=True, text=True).stdout
    assert before == after and before, f"torch was {before} and is {after}"
    return f"{before.split()[0]} unchanged, {len(done['claims'])} claims hold"


def run(row: Row) -> str:
    python = environment(row)
    if row.task == "tests":
        return tests(python, UNIT)
    if row.task == "package":
        return tests(python, of_the_package())
    return as_on_colab(python, row.task)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.matrix", description=__doc__.splitlines()[0])
    parser.add_argument("only", nargs="*", help="rows whose name contains one of these")
    parser.add_argument("--list", action="store_true", help="name the rows")
    options = parser.parse_args(arguments)
    failed = 0
    for row in rows():
        if options.only and not any(word in row.name for word in options.only):
            continue
        if options.list:
            print(f"{row.name}: Python {row.python}, {row.torch or 'the pins'}")
            continue
        start = time.perf_counter()
        try:
            said = "passed: " + run(row)
        except LookupError as reason:
            said = f"skipped: {reason}"
        except (AssertionError, subprocess.CalledProcessError) as error:
            said, failed = f"FAILED: {error}", failed + 1
        print(f"{row.name:24s} {said} ({time.perf_counter() - start:.0f} s)", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
