"""Cells that need Python: a still where outputs are stored, controls where a reader sits at a kernel."""

import importlib

import pytest

from d2lmini import figures
live_module = importlib.import_module("d2lmini.figures.live")  # the package gives the function this name


@pytest.fixture
def calls():
    return []


@pytest.fixture
def sample(calls):
    def sample(temperature, kind, greedy, prompt):
        calls.append((temperature, kind, greedy, prompt))

    return sample


CONTROLS = dict(temperature=(0.7, 0.1, 2.0), kind=["pre", "post"], greedy=False, prompt="The tide")


def test_the_still_says_what_can_be_moved_and_shows_the_first_values(sample, calls, monkeypatch, capsys):
    monkeypatch.setenv("D2LMINI_PROGRESS", "0")
    assert figures.live(sample, **CONTROLS) is None
    assert calls == [(0.7, "pre", False, "The tide")]
    assert capsys.readouterr().out.strip() == ("*A still. Run this cell in a notebook to choose for yourself: temperature (0.1 to 2), "
                                               "kind (pre, post), greedy (yes or no), prompt (any text).*")


def test_a_still_of_its_own_spares_a_long_run(sample, calls, monkeypatch, capsys):
    monkeypatch.setenv("D2LMINI_PROGRESS", "0")
    figures.live(sample, still=lambda: print("stored"), **CONTROLS)
    assert calls == [] and capsys.readouterr().out.endswith("stored\n")


def test_outside_a_kernel_nothing_is_live(monkeypatch):
    monkeypatch.delenv("D2LMINI_PROGRESS", raising=False)
    assert not live_module.is_live()


def test_in_a_live_kernel_there_are_controls_and_a_button(sample, calls, monkeypatch):
    ipywidgets = pytest.importorskip("ipywidgets")
    import IPython.display

    shown = []
    monkeypatch.setattr(live_module, "is_live", lambda: True)
    monkeypatch.setattr(IPython.display, "display", shown.append)
    figures.live(sample, button="Sample", **CONTROLS)
    (widget,) = shown
    kinds = [type(child).__name__ for child in widget.children]
    assert kinds == ["FloatSlider", "Dropdown", "Checkbox", "Text", "Button", "Output"]
    assert calls == [], "nothing runs before the button is pressed"
    assert widget.children[4].description == "Sample" and isinstance(widget, ipywidgets.interactive)
    assert widget.children[0].value == 0.7 and widget.children[0].max == 2.0


@pytest.mark.parametrize("environment, expected", [({"D2LMINI_PROGRESS": "0"}, False), ({}, True)])
def test_a_kernel_is_live_unless_its_outputs_are_stored(monkeypatch, environment, expected):
    import IPython

    monkeypatch.delenv("D2LMINI_PROGRESS", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    pytest.importorskip("ipywidgets")
    monkeypatch.setattr(IPython, "get_ipython", lambda: type("Shell", (), {"kernel": True})())
    assert live_module.is_live() is expected


@pytest.mark.parametrize("wrong, says", [((3, 1, 2), "does not begin inside"), ((1, 2), "no control"), ([], "no control"), (None, "no control")])
def test_a_wrong_control_is_refused(sample, wrong, says):
    with pytest.raises(ValueError, match=says):
        figures.live(sample, temperature=wrong)
    with pytest.raises(ValueError, match="at least one"):
        figures.live(sample)
