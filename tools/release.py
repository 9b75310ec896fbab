"""Build the wheel and the sdist of d2lmini into dist/, and say whether they carry what the notebooks need.

    python -m tools.release [--into DIR]

Needs no network: the build runs in this environment, with the pinned setuptools.
"""

import argparse
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from tools.freshness import ROOT

BUILD = "from setuptools import build_meta as b; import sys; out = sys.argv[1]; b.build_sdist(out); b.build_wheel(out)"
CARRIED = ("d2lmini/**/*.py", "d2lmini/**/*.txt", "d2lmini/**/*.json", "d2lmini/**/*.js", "d2lmini/**/*.css")
NEEDED = ("pyproject.toml", "README.md", "LICENSE", "LICENSES")


def build(into: Path, root: Path = ROOT) -> tuple[Path, Path]:
    """Build from a copy, so that nothing is left in the checkout; return the paths of (wheel, sdist)."""
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        copy, out = Path(folder) / "book", Path(folder) / "out"
        out.mkdir()
        copy.mkdir()
        for name in NEEDED:
            source = root / name
            shutil.copytree(source, copy / name) if source.is_dir() else shutil.copy2(source, copy / name)
        shutil.copytree(root / "d2lmini", copy / "d2lmini", ignore=shutil.ignore_patterns("__pycache__", "*.part"))
        done = subprocess.run([sys.executable, "-c", BUILD, out], cwd=copy, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"the build failed: {done.stderr[-2000:]}")
        built = {p.suffix: into / p.name for p in out.iterdir()}
        for path in out.iterdir():
            shutil.copy2(path, into / path.name)
    return built[".whl"], built[".gz"]


def missing(wheel: Path, sdist: Path, root: Path = ROOT) -> list[str]:
    """The files of d2lmini that one of the two lacks, as sentences."""
    wanted = {p.relative_to(root).as_posix() for pattern in CARRIED for p in root.glob(pattern)}
    with zipfile.ZipFile(wheel) as w, tarfile.open(sdist) as s:
        held = {wheel.name: set(w.namelist()), sdist.name: {n.partition("/")[2] for n in s.getnames()}}
    return [f"{name} lacks {file}" for name, files in held.items() for file in sorted(wanted - files)]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.release", description=__doc__.splitlines()[0])
    parser.add_argument("--into", type=Path, default=ROOT / "dist")
    wheel, sdist = build(parser.parse_args(arguments).into)
    found = missing(wheel, sdist)
    print("\n".join([f"{wheel.name}\n{sdist.name}", *found]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
