"""Rules that hold for every file in the repository."""

import re
import subprocess
import sys

import pytest
from conftest import ROOT

FORBIDDEN = {
    "a path of one machine": re.compile(r"(?<![\w.])/(?:home/[a-z]|Users/[a-z]|root/|work/|tmp/|opt/)"),
    "a folder outside the repository": re.compile(r"\.\./shared"),
    "a package index": re.compile(r"--?index-url|extra-index|find.links|pypi\.org|pythonhosted\.org|download\.pytorch"),
}
ALLOWED = {(".ci/run", "a folder outside the repository")}
SAY_THE_WORDS = {"tests/test_house.py", "tests/test_tools.py", "tools/rules.py"}  # they look for them


def tracked() -> list[str]:
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("not a git checkout, so there is no list of tracked files")
    return [name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


def text(name: str) -> str | None:
    try:
        content = (ROOT / name).read_text(encoding="utf-8")
        # Encoded pictures may hold any letters by chance.
        return re.sub(r'"image/png": "[^"]*"', "", content) if name.endswith(".ipynb") else content
    except UnicodeDecodeError:
        return None  # a picture


def test_no_file_says_where_it_was_made():
    for name in tracked():
        content = text(name)
        for what, pattern in FORBIDDEN.items():
            if content is None or (name, what) in ALLOWED or name in SAY_THE_WORDS:
                continue
            hit = pattern.search(content)
            assert hit is None, f"{name} holds {what}: {content[max(0, hit.start() - 40):hit.end() + 40]!r}"


def test_nothing_that_is_made_is_tracked():
    made = re.compile(r"(^|/)(_build|\.venv|__pycache__|\.ipynb_checkpoints|\.pytest_cache)(/|$)|\.egg-info|\.part$")
    assert [name for name in tracked() if made.search(name)] == []


def test_pins_are_exact_and_sorted_into_groups():
    lines = [line for line in text("requirements.txt").splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+(; .+)?", line) for line in lines)
    names = [line.partition("==")[0].lower().replace("_", "-") for line in lines]
    assert len(names) == len(set(names))
    assert "torch==2.13.0" in lines


def test_the_version_is_written_once():
    if sys.version_info < (3, 11):
        pytest.skip("tomllib came with Python 3.11")
    import tomllib

    project = tomllib.loads(text("pyproject.toml"))
    assert "version" in project["project"]["dynamic"] and "version" not in project["project"]
    assert len(re.findall(r"^__version__ = \"[\d.]+\"$", text("d2lmini/__init__.py"), re.M)) == 1


def test_ci_runs_what_a_reader_runs():
    script = text(".ci/run")
    assert script.startswith("#!/usr/bin/env bash") and "set -euo pipefail" in script
    assert "make test" in script and "D2LMINI_REQUIRE_BROWSER=1" in script
