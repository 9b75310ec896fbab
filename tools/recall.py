"""Write a copy of each chapter to study without the answers: headings, the left sides of its formulas, empty cells.

    python -m tools.recall                            every chapter, into build/recall/
    python -m tools.recall chapters/02_encoder.ipynb  one of them

What a cell has to define is named in a comment; the exercises keep their questions, stubs and checks.
"""

import argparse
import ast
import re
import sys
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools.exercises import TAG
from tools.freshness import ROOT
from tools.notebook import KERNEL, LANGUAGE, stable_id, write
from tools.rules import SOURCE_HIDING_TAGS
from tools.syntax import split_magics

FOLDER = ROOT / "build" / "recall"
DISPLAY = re.compile(r"\$\$(.+?)\$\$", re.S)
CODE = re.compile(r"^```.*?^```\s*$", re.M | re.S)
ENVIRONMENT = re.compile(r"\\(?:begin|end)\{(?:aligned|align\*?|gathered|split)\}")
APART = re.compile(r"\\\\(?:\[[^\]]*\])?|,?\s*\\q?quad")
RELATION = re.compile(r"=|\\approx|\\propto|\\equiv|\\sim(?![a-z])|\\(?:long)?rightarrow|\\to(?![a-z])|\\gets|\\leftarrow|\\leq?(?![a-z])|\\geq?(?![a-z])")

NOTE = """*The recall copy of this chapter.* The headings are there, the left sides of the formulas, and a cell wherever the chapter \
has code. Fill it in from memory: say each section's idea aloud, complete the formulas on paper, write the code, and only then \
open the chapter."""


def recall(notebook):
    """The copy of one notebook."""
    cells, seen = [], set()
    for cell in notebook.cells:
        cells += _exercise(cell) if TAG in cell.metadata.get("tags", []) else _chapter(cell)
    cells.insert(1, new_markdown_cell(NOTE))
    for cell in cells:
        cell.id = stable_id(cell, seen)
        seen.add(cell.id)
    return new_notebook(cells=cells, metadata={"kernelspec": KERNEL, "language_info": LANGUAGE})


def _chapter(cell) -> list:
    tags = set(cell.metadata.get("tags", []))
    if cell.cell_type == "markdown":
        text = "\n\n".join(outline(cell.source))
        return [new_markdown_cell(text)] if text else []
    if "setup" in tags:
        return [new_code_cell(cell.source, metadata={"tags": ["setup"]})]
    return [] if tags & SOURCE_HIDING_TAGS else [new_code_cell(wanted(cell.source))]


def _exercise(cell) -> list:
    if cell.cell_type == "markdown":
        return [new_markdown_cell(cell.source)]
    return [] if cell.source.startswith("# @title") else [new_code_cell(cell.source)]


def outline(source: str) -> list[str]:
    """Headings and formulas' left sides, in order."""
    found = []
    for part in re.split(r"(\$\$.+?\$\$)", CODE.sub("", source), flags=re.S):
        if part.startswith("$$") and len(part) > 4:
            sides = left_sides(part.strip("$"))
            found += ["$$" + r", \qquad ".join(rf"{side} = \; ?" for side in sides) + "$$"] if sides else []
        else:
            found += [line for line in part.split("\n") if re.match(r"#{1,6} ", line)]
    return found


def left_sides(formula: str) -> list[str]:
    """What stands before the first relation sign of each equation in a displayed formula."""
    sides = []
    for equation in top_level(ENVIRONMENT.sub("", formula).replace("&", ""), APART):
        halves = top_level(equation, RELATION)
        left = re.sub(r"(?:\\[;,:! ]|\s)+$", "", halves[0]).strip().rstrip(",")
        if len(halves) > 1 and left:
            sides.append(left)
    return sides


def top_level(text: str, separator: re.Pattern) -> list[str]:
    """Split at a separator that stands outside all braces and brackets."""
    parts, depth, start, place = [], 0, 0, 0
    while place < len(text):
        hit = separator.match(text, place) if depth == 0 else None
        if hit:
            parts.append(text[start:place])
            start = place = hit.end()
            continue
        if text[place] == "\\" and text[place + 1:place + 2] in "{}":
            place += 1
        else:
            depth += (text[place] in "{([") - (text[place] in "})]")
        place += 1
    return [*parts, text[start:]]


def wanted(source: str) -> str:
    """A comment that names what the cell defines, or nothing: the cell to fill in."""
    tree = ast.parse(split_magics(source)[0])
    names = [f"{'class' if isinstance(n, ast.ClassDef) else 'function'} {n.name}" for n in tree.body
             if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
    return f"# {', '.join(names)}" if names else ""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.recall", description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--to", type=Path, default=FOLDER, help="where to write (build/recall)")
    options = parser.parse_args(arguments)
    options.to.mkdir(parents=True, exist_ok=True)
    for path in options.paths or sorted((ROOT / "chapters").glob("0[1-7]_*.ipynb")):
        copy = recall(nbformat.read(path, as_version=4))
        write(copy, options.to / path.name)
        print(options.to / path.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
