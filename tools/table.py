"""The table of chapters in chapters/index.md, made from what the notebooks record.

The block between the two marker lines is written by `python -m tools.notebook table`; a test
compares it with the notebooks. The rest of the page is written by hand.
"""

import re
from pathlib import Path

import nbformat

from tools.freshness import ROOT

BEGIN, END = "<!-- chapters: begin -->", "<!-- chapters: end -->"


def chapters(root: Path = ROOT) -> list[dict]:
    """File, title, question and measured seconds of every numbered chapter, in order."""
    found = []
    for path in sorted((root / "chapters").glob("[0-9][0-9]_*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        seconds = notebook.metadata.get("d2lmini", {}).get("seconds")
        found.append({"file": path.name, "seconds": seconds, **_opening(notebook)})
    return found


def block(root: Path = ROOT) -> str:
    """The table as Markdown, marker lines included."""
    lines = [BEGIN, "", "| Chapter | Its question | Time to run |", "|:--|:--|--:|"]
    rows = chapters(root)
    for row in rows:
        lines.append(f"| [{row['title']}]({row['file']}) | {row['question']} | {duration(row['seconds'])} |")
    measured = [row["seconds"] for row in rows if row["seconds"] is not None]
    if len(measured) > 1:
        lines.append(f"| All together | | {duration(sum(measured))} |")
    return "\n".join([*lines, "", END])


def duration(seconds: float | None) -> str:
    """Rounded for a reader: 8 s, 95 s, 11 min."""
    if seconds is None:
        return "not measured"
    if seconds < 120:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.1f} min" if seconds < 600 else f"{round(seconds / 60)} min"


def update(root: Path = ROOT) -> bool:
    """Write the table into the page; True when it changed."""
    page = root / "chapters" / "index.md"
    text = page.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{page}: expected the lines {BEGIN!r} and {END!r} around the table")
    new = before + block(root) + after
    if new != text:
        page.write_text(new, encoding="utf-8")
    return new != text


def current(root: Path = ROOT) -> bool:
    """Does the page say what the notebooks say?"""
    return block(root) in (root / "chapters" / "index.md").read_text(encoding="utf-8")


def _opening(notebook) -> dict:
    """Title: the first heading. Question: the first paragraph, which every chapter opens with, up to its last question mark."""
    text = "\n\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")
    title = re.search(r"^# (.+)$", text, re.M)
    after = text[title.end():] if title else text
    paragraphs = [p.strip() for p in re.split(r"\n\s*\n", after) if p.strip()]
    plain = next((p for p in paragraphs if not p.startswith(("#", ">", "|", "-", "!"))), "")
    words = re.sub(r"\*\*|(?<!\w)[*_]|[*_](?!\w)", "", " ".join(plain.split())).removeprefix("The question.")
    question = words[: words.rfind("?") + 1].strip()
    return {"title": title.group(1).strip() if title else "", "question": question.replace("|", "\\|")}
