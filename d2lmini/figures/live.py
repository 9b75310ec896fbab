"""Cells that need Python: controls in a live kernel, a still of the same in the stored page."""

from __future__ import annotations

import os
from collections.abc import Callable

from ..checks import check_callable, check_text
from ..claims import say


def is_live() -> bool:
    """Is there a reader at a kernel who can move controls, and ipywidgets to show them?

    No when the environment variable D2LMINI_PROGRESS is "0": so run `make run`, the tests and the book, whose outputs
    are stored. No without ipywidgets, and none outside a notebook.
    """
    if os.environ.get("D2LMINI_PROGRESS") == "0":
        return False
    try:
        import ipywidgets  # noqa: F401
        from IPython import get_ipython
    except ImportError:
        return False
    shell = get_ipython()
    return shell is not None and hasattr(shell, "kernel")


def live(function: Callable, *, still: Callable[[], object] | None = None, button: str = "Run", **controls):
    """In a live kernel, show controls and a button that calls ``function`` with what they say; else, a still.

    The still is one line that says to run the cell, and below it what ``function`` shows at the first values.

    Args:
        function: takes the controls' names as arguments, and prints or displays something.
        still: takes nothing and is called in place of ``function`` for the still, where that would take long;
            it can show what the chapter has computed already.
        button: what the button says.
        controls: one per argument: (first, low, high) or (first, low, high, step) of numbers for a slider, a list of
            choices with the first one first, a bool for a box to tick, a str for a line of text.
    Raises:
        ValueError: if a control is none of these, or the first value lies outside its range.
    Used in every chapter.
    """
    check_callable("function", function)
    check_text("button", button)
    first = {name: _first(name, spec) for name, spec in controls.items()}
    if not first:
        raise ValueError("controls are missing; give at least one, such as temperature=(0.7, 0.1, 2.0).")
    if is_live():
        import ipywidgets
        from IPython.display import display

        widgets = {name: _widget(ipywidgets, name, spec) for name, spec in controls.items()}
        display(ipywidgets.interactive(function, {"manual": True, "manual_name": button}, **widgets))
        return
    names = ", ".join(f"{name.replace('_', ' ')} {_range(spec)}" for name, spec in controls.items())
    say(f"*A still. Run this cell in a notebook to choose for yourself: {names}.*")
    function(**first) if still is None else still()


def _first(name: str, spec):
    """The first value of a control; ValueError unless it is one that can be shown."""
    if isinstance(spec, (bool, str)):
        return spec
    if isinstance(spec, list) and spec:
        return spec[0]
    if isinstance(spec, tuple) and len(spec) in (3, 4) and all(isinstance(x, (int, float)) for x in spec):
        if not spec[1] <= spec[0] <= spec[2] or spec[1] == spec[2]:
            raise ValueError(f"{name}={spec} does not begin inside its range; give (first, low, high) with low <= first <= high.")
        return spec[0]
    raise ValueError(f"{name}={spec!r} is no control; give (first, low, high) or (first, low, high, step) of numbers, a list "
                     f"of choices, True or False, or a text.")


def _range(spec) -> str:
    if isinstance(spec, bool):
        return "(yes or no)"
    if isinstance(spec, str):
        return "(any text)"
    if isinstance(spec, list):
        return "(" + ", ".join(map(str, spec)) + ")"
    return f"({spec[1]:g} to {spec[2]:g})"


def _widget(ipywidgets, name: str, spec):
    look = dict(description=name.replace("_", " "), style={"description_width": "initial"})
    if isinstance(spec, bool):
        return ipywidgets.Checkbox(spec, **look)
    if isinstance(spec, str):
        return ipywidgets.Text(spec, layout={"width": "36em"}, **look)
    if isinstance(spec, list):
        return ipywidgets.Dropdown(options=spec, value=spec[0], **look)
    if all(isinstance(x, int) for x in spec):
        return ipywidgets.IntSlider(spec[0], spec[1], spec[2], *spec[3:], **look)
    step = spec[3] if len(spec) == 4 else (spec[2] - spec[1]) / 20
    return ipywidgets.FloatSlider(value=spec[0], min=spec[1], max=spec[2], step=step, **look)
