"""One interactive figure as one piece of HTML: the data, a static version, the style and the scripts, all inside."""

from __future__ import annotations

import html
import json
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from importlib import resources

from ..checks import check_text

LIMIT = 60_000  # bytes of one figure's HTML
_shown: Counter = Counter()  # how often this kernel has shown each figure, for ids that no two outputs share


class InteractiveFigure:
    """A figure that a notebook or a page shows as HTML with its own script; without scripts, as a table.

    Args:
        name: of the .js file that draws it, and part of its id on the page.
        title: what screen readers call it.
        summary: what it shows, in a sentence: the plain-text form.
        data: anything JSON can hold; the script receives it.
        static: HTML that stands there until the script has run, and stays where scripts are off. Must be escaped.
    Raises:
        ValueError: if the data are not finite numbers and text, or the whole takes more than 60,000 bytes.
    """

    def __init__(self, name: str, title: str, summary: str, data: dict, static: str):
        self.name, self.title, self.summary, self._data, self._static = name, title, summary, _json(data), static
        if (size := len(self._html("x").encode())) > LIMIT:
            raise ValueError(f"the {title.lower()} would take {size:,} bytes of HTML; give less data, so that it stays "
                             f"within {LIMIT:,}: a shorter text, fewer steps or a smaller tree.")

    def __repr__(self) -> str:
        return f"{self.title} (interactive where HTML is shown). {self.summary}"

    def _repr_html_(self) -> str:
        _shown[self.name] += 1
        return self._html(f"{self.name.replace('_', '-')}-{_shown[self.name]}")

    def _html(self, name: str) -> str:
        return (f'<style>{_file("figure.css")}</style>\n'
                f'<div class="d2l-figure tex2jax_ignore mathjax_ignore" id="{name}" data-figure="{self.name}" '
                f'role="group" aria-label="{html.escape(self.title)}" data-lm-suppress-shortcuts="true">\n'  # JupyterLab's keys
                f'<div class="d2l-static">{self._static}</div>\n'
                f'<script type="application/json">{self._data}</script>\n</div>\n'
                f'<script>(function () {{\n"use strict";\n{_file("figure.js")}\n{_file(self.name + ".js")}}})();</script>')


def table(caption: str, header: Sequence, rows: Sequence[Sequence]) -> str:
    """Return an HTML table of escaped text; the first cell of each row is its heading."""
    top = "".join(f'<th scope="col">{_cell(c)}</th>' for c in header)
    body = "".join(f'<tr><th scope="row">{_cell(row[0])}</th>' + "".join(f"<td>{_cell(c)}</td>" for c in row[1:]) + "</tr>"
                   for row in rows)
    return f"<table><caption>{_cell(caption)}</caption><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def visible(token: str) -> str:
    """The token with a sign for what would not be seen: ␣ for a space, ⏎ for a line end, ∅ for the empty string."""
    return {"": "∅", " ": "␣", "\n": "⏎", "\t": "⇥"}.get(token, token)


def check_labels(name: str, labels, low: int, high: int) -> list[str]:
    """Return ``labels`` as a list, or raise ValueError unless they are ``low`` to ``high`` strings."""
    if isinstance(labels, str):
        raise ValueError(f"{name}={labels[:40]!r} is one string; give a list of tokens: {name}={name}.split() for words, "
                         f"list({name}) for characters.")
    labels = list(labels) if isinstance(labels, (list, tuple)) else [None]
    for label in labels:
        check_text(f"each of {name}", label)
    if not low <= len(labels) <= high:
        raise ValueError(f"{name} has {len(labels)} entries; the figure shows {low} to {high}.")
    return labels


def _cell(value) -> str:
    return f"<bdi>{html.escape(value)}</bdi>" if isinstance(value, str) else html.escape(str(value))


def _json(data) -> str:
    try:
        text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        raise ValueError("the data hold NaN or an infinity; give finite numbers.") from None
    # Inside <script> nothing may look like the end of it, or like markup of any kind.
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


@lru_cache
def _file(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="utf-8")
