"""Claims and measured sentences: the line that is the same everywhere, the data behind it, the ledger."""

import json
import math
import re

import numpy as np
import pytest
import torch

from d2lmini import claim, say
from d2lmini.claims import KEY, main, read_claims


@pytest.fixture
def shown(monkeypatch):
    """What a notebook would be given: a list of (bundle, metadata)."""
    got = []
    monkeypatch.setattr("IPython.get_ipython", lambda: object())
    monkeypatch.setattr("IPython.display.display", lambda bundle, raw, metadata: got.append((bundle, metadata, raw)))
    return got


def notebook(path, *outputs):
    cells = [{"cell_type": "markdown", "source": "words"}]
    cells += [{"cell_type": "code", "outputs": [dict(output_type="display_data", data=bundle, metadata=metadata)]}
              for bundle, metadata, _ in outputs]
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    return path


def test_a_claim_that_holds_prints_the_same_line_whatever_was_measured(capsys):
    for measured in (0.1, 0.39, torch.tensor(0.2), np.float32(0.3), np.int64(0)):
        assert claim("two-sides", "Two sides cost at most 0.4", measured, at_most=0.4) is None
    lines = capsys.readouterr().out.splitlines()
    assert set(lines) == {"✔ Claim holds (at most 0.4): Two sides cost at most 0.4"} and len(lines) == 5


@pytest.mark.parametrize("measured", [0.5, math.nan, math.inf])
def test_a_claim_that_fails_says_what_was_measured_and_goes_on(capsys, measured):
    assert claim("two-sides", "Two sides cost at most 0.4", measured, at_most=0.4) is None
    assert capsys.readouterr().out == f"✘ CLAIM FAILS: measured {measured:.6g}, claimed at most 0.4: " \
                                      "Two sides cost at most 0.4\n"


def test_bounds_belong_to_the_claim(capsys):
    claim("a", "s", 1.0, at_least=1.0)
    claim("a", "s", 1.0, at_most=1.0)
    claim("a", "s", 1.5, at_least=1, at_most=2)
    claim("a", "s", 0.999, at_least=1, at_most=2)
    claim("a", "s", 2.001, at_least=1, at_most=2)
    out = capsys.readouterr().out
    assert "".join(line[0] for line in out.splitlines()) == "✔✔✔✘✘"
    assert "(at least 1 and at most 2)" in out


def test_the_data_travel_in_the_output(shown):
    claim("edge-costs", "The edge costs at least 1.5 times", 1.9, at_least=1.5, published="2.0 (a paper)", why="fewer steps")
    claim("broken", "It is finite", math.nan, at_most=1)
    (bundle, metadata, raw), (_, broken, _) = shown
    assert raw and bundle == {"text/plain": "✔ Claim holds (at least 1.5): The edge costs at least 1.5 times"}
    assert metadata == {KEY: dict(name="edge-costs", statement="The edge costs at least 1.5 times", bound="at least 1.5",
                                  measured=1.9, published="2.0 (a paper)", why="fewer steps", holds=True)}
    assert broken[KEY]["measured"] is None and broken[KEY]["holds"] is False
    assert json.loads(json.dumps(metadata)) == metadata


def test_say_shows_markdown(shown, capsys, monkeypatch):
    say("The loss is **1.28** nats.")
    assert shown == [({"text/markdown": "The loss is **1.28** nats.", "text/plain": "The loss is **1.28** nats."}, {}, True)]
    monkeypatch.setattr("IPython.get_ipython", lambda: None)
    say(r"A banana has no $\inf$ in its info.")
    assert capsys.readouterr().out == "A banana has no $\\inf$ in its info.\n"


def test_the_ledger_reads_notebooks(shown, tmp_path, capsys):
    claim("one", "s one", 1.0, at_most=2)
    say("Not a claim: 3.")
    claim("two", "s two", 3.0, at_most=4, published="5")
    path = notebook(tmp_path / "02_encoder.ipynb", *shown)
    found = read_claims(path)
    assert [(c["chapter"], c["name"], c["holds"]) for c in found] == [("02_encoder", "one", True), ("02_encoder", "two", True)]
    assert set(found[0]) == {"chapter", "name", "statement", "bound", "measured", "published", "why", "holds"}
    assert main(["--json", str(path)]) == 0
    assert json.loads(capsys.readouterr().out) == found
    assert main([str(path)]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "✔ 02_encoder: two: at most 4, measured 3.0"


def test_the_ledger_tells_by_its_exit_code(shown, tmp_path, capsys):
    claim("one", "s", 3.0, at_most=2)
    path = notebook(tmp_path / "x.ipynb", *shown)
    assert main([str(path)]) == 1 and capsys.readouterr().out.startswith("✘ x: one")
    assert main([str(path), str(tmp_path / "missing.ipynb")]) == 2
    out, err = capsys.readouterr()
    assert out == "" and "missing.ipynb" in err
    assert main(["--json", str(notebook(tmp_path / "empty.ipynb"))]) == 0 and capsys.readouterr().out == "[]\n"


def test_names_are_unique_in_a_chapter(shown, tmp_path):
    claim("one", "s", 1.0, at_most=2)
    claim("one", "t", 1.0, at_most=2)
    with pytest.raises(ValueError, match="holds several claims of the same name: one; rename one"):
        read_claims(notebook(tmp_path / "x.ipynb", *shown))


@pytest.mark.parametrize("content", ["", "{}", "[]", "not json", '{"cells": 3}', '{"cells": [3]}'])
def test_what_is_no_notebook_is_refused(tmp_path, content):
    path = tmp_path / "x.ipynb"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"path='.*x\.ipynb' is not a notebook that can be read"):
        read_claims(path)


@pytest.mark.parametrize("name, statement, measured, bounds, message", [
    ("Two Sides", "s", 1.0, dict(at_most=2), "name='Two Sides' is not lower-case words joined by hyphens"),
    ("", "s", 1.0, dict(at_most=2), "name='' is not lower-case"),
    ("a-", "s", 1.0, dict(at_most=2), "name='a-' is not"),
    ("a\n", "s", 1.0, dict(at_most=2), re.escape(r"name='a\n' is not")),
    (None, "s", 1.0, dict(at_most=2), "name is NoneType; give a str"),
    ("a", " ", 1.0, dict(at_most=2), "statement=' ' is not one line of text"),
    ("a", "two\nlines", 1.0, dict(at_most=2), "statement='two.*lines' is not one line"),
    ("a", None, 1.0, dict(at_most=2), "statement is NoneType"),
    ("a", "s", 1.0, {}, "at_least and at_most are both missing"),
    ("a", "s", 1.0, dict(at_least=2, at_most=1), "at_least=2 is above at_most=1"),
    ("a", "s", 1.0, dict(at_least=math.nan), "at_least=nan is outside"),
    ("a", "s", 1.0, dict(at_most=math.inf), "at_most=inf is outside"),
    ("a", "s", 1.0, dict(at_most="2"), "at_most='2' is not a number"),
    ("a", "s", "1.0", dict(at_most=2), "measured='1.0' is not a number"),
    ("a", "s", None, dict(at_most=2), "measured=None is not a number"),
    ("a", "s", True, dict(at_most=2), "measured=True is not a number"),
    ("a", "s", np.ones(2), dict(at_most=2), "measured=.* is not a number"),
    ("a", "s", torch.ones(2), dict(at_most=2), "measured=.* is not a number"),
])
def test_bad_claims(name, statement, measured, bounds, message):
    with pytest.raises(ValueError, match=message):
        claim(name, statement, measured, **bounds)


@pytest.mark.parametrize("text", ["", "  ", None, 3])
def test_an_empty_sentence_is_refused(text):
    with pytest.raises(ValueError, match="text is empty; give the sentence"):
        say(text)


@pytest.mark.parametrize("text", [f"It took {math.nan:.1f} s.", f"{math.inf:.0f} times", f"from {-math.inf} on", "1.2±nan"])
def test_a_sentence_with_a_number_that_is_not_finite_is_refused(text):
    with pytest.raises(ValueError, match="text holds a number that is not finite"):
        say(text)
