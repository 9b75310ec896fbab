"""`make matrix`: its rows, and that what is not here is skipped with a sentence. What it runs is run by it alone."""

import sys
from pathlib import Path

import pytest
from conftest import ROOT, notebooks

from tools import matrix

MINE = "%d.%d" % sys.version_info[:2]


def test_rows_cover_the_pins_the_ends_of_torch_and_every_chapter():
    rows = {row.name: row for row in matrix.rows()}
    assert {"pins 3.11", "pins 3.12", "pins 3.13", "torch lowest", "torch newest"} <= set(rows)
    assert rows["torch lowest"].python == "3.10" and rows["torch lowest"].torch == "torch==2.6.*"
    assert {"numpy==1.24.*", "matplotlib==3.7.*"} <= set(rows["torch lowest"].install)
    assert rows["torch newest"].torch == "torch>=2.6"
    assert {f"colab {p.stem}" for p in notebooks() if p.parent.name == "chapters"} <= set(rows)
    assert all("-r" not in row.install and not any(w.startswith("torch") for w in row.install) for row in rows.values() if row.torch)


def test_the_tests_of_the_package_need_nothing_of_the_book():
    found = matrix.of_the_package()
    assert {"tests/test_attention.py", "tests/test_masks.py", "tests/test_devices.py"} <= set(found)
    assert not {"tests/test_book.py", "tests/test_publish.py", "tests/test_house.py", "tests/test_tools.py"} & set(found)


def row(**changes):
    return matrix.Row(**dict(name="pins trial", python=MINE, install=(), torch="", task="tests") | changes)


def test_what_is_not_here_is_skipped_with_a_sentence(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(matrix, "FOLDER", tmp_path)
    monkeypatch.setattr(matrix, "interpreter", lambda version: None if version == "3.99" else sys.executable)
    monkeypatch.delenv("D2LMINI_MATRIX_DOWNLOADS", raising=False)
    with pytest.raises(LookupError, match="no Python 3.99 on this machine"):
        matrix.environment(row(python="3.99"))
    with pytest.raises(LookupError, match="download of gigabytes; D2LMINI_MATRIX_DOWNLOADS=1 allows it"):
        matrix.environment(row(python="3.10"))
    monkeypatch.setattr(matrix, "rows", lambda: [row(python="3.99"), row(name="another")])
    assert matrix.main(["pins"]) == 0
    assert "pins trial" in (said := capsys.readouterr().out) and "skipped: no Python 3.99" in said and "another" not in said


def test_a_row_that_fails_makes_the_command_fail(monkeypatch, capsys):
    monkeypatch.setattr(matrix, "rows", lambda: [row(), row(name="fine")])

    def run(row):
        assert row.name == "fine", "claims fail"
        return "3 passed"

    monkeypatch.setattr(matrix, "run", run)
    assert matrix.main([]) == 1
    said = capsys.readouterr().out
    assert "FAILED: claims fail" in said and "passed: 3 passed" in said


def test_interpreters_are_found_by_what_they_say_they_are():
    assert Path(matrix.interpreter(MINE)).exists() and matrix.interpreter("2.1") is None
    assert (ROOT / ".gitignore").read_text(encoding="utf-8").count(".matrix/") == 1
