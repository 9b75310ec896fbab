"""A Sphinx extension: the house's docstrings as the API reference shows them.

The docstrings are plain text: a sentence, the equation set in, then Args, Returns, Raises, Source. Here the
equation becomes a literal block, each argument an item of a list, and what reStructuredText would take for
markup (a star, a bar, an underscore at the end of a word) stands as it is written.
"""

import re

SECTION = re.compile(r"^(Args|Returns|Raises|Yields|Attributes):\s*$")
SOURCE = re.compile(r"^Source: ")
LISTS = ("Args", "Raises", "Attributes")
ITEM = re.compile(r"^    (\*{0,2}\w+(?:, \*{0,2}\w+)*): ?(.*)$")


def convert(lines: list[str]) -> list[str]:
    """A docstring's lines, as inspect.getdoc gives them, in reStructuredText."""
    out: list[str] = []
    section = None
    for line, before in zip(lines, ["", *lines]):
        if found := SECTION.match(line):
            section = found[1]
            out += ["", f"**{section}**", *([""] if section in LISTS else [])]
        elif line and not line.startswith(" ") and section:
            section = None
            out += ["", escaped(line)]
        elif section in LISTS and (found := ITEM.match(line)):
            out.append(f"- ``{found[1]}``: {escaped(found[2])}")
        elif section:
            out.append(("  " if section in LISTS else "") + escaped(line.strip()))
        elif line.startswith("    ") and not before.strip():
            out += [".. code-block:: text", "", line]
        elif line.startswith("    "):
            out.append(line)
        else:
            if SOURCE.match(line):
                out.append("")
            out.append(escaped(line))
    return [*out, ""]


def escaped(text: str) -> str:
    """`text` with its markup disarmed, code in double backticks apart."""
    parts = re.split(r"(``.+?``)", text)
    return "".join(part if part.startswith("``") else re.sub(r"([\\*|`])|_(?!\w)", lambda m: "\\" + m.group(), part) for part in parts)


def process(app, what, name, obj, options, lines) -> None:
    lines[:] = convert(lines)


def setup(app) -> dict:
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", process)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
