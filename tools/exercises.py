"""Write each chapter's exercises from the package's definitions into its notebook.

    python -m tools.exercises chapters/01_three_wirings.ipynb ...   write or refresh the section at the end
    python -m tools.exercises --all                                 of every chapter

The section's cells carry the tag "exercise". They depend on nothing before them, so only they are run, in a kernel of
their own; the other cells keep their outputs. A last cell that says how long the chapter took stays the last.
"""

import argparse
import re
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from d2lmini.exercises import exercises
from d2lmini.exercises.quizzes import QUESTIONS
from tools.freshness import ROOT
from tools.notebook import stable_id, write

TAG = "exercise"
HIDDEN = {"tags": [TAG, "remove-input"], "jupyter": {"source_hidden": True}, "cellView": "form"}
CHAPTERS = range(1, 8)

INTRODUCTION = """## {number} Exercises

Write your answer in place of the `...`, run the cell, then the check below it. A check names the likely mistake of a wrong \
answer; run it as often as you like. Hints and solutions stay folded until you click them. Except where an exercise asks for the \
chapter's model, all it needs is the set-up cell at the top and the next cell, so you can come back without running the chapter \
again. Left as they are, the cells change nothing.
"""

IMPORTS = """import math

import torch
import torch.nn.functional as F
from torch import nn

from d2lmini import exercises"""


def chapter_of(path: Path) -> int:
    """The chapter's number, from the file's name."""
    return int(path.name[:2])


def cells_of(chapter: int, number: str) -> list:
    """The section's cells, without ids and outputs; `number` is the section's, such as "1.10"."""
    cells = [_text(INTRODUCTION.format(number=number).strip()), _code(IMPORTS)]
    for exercise in exercises(chapter):
        call = f"exercises.{exercise.name}"
        cells += [
            _text(_statement(exercise)), _code(exercise.stub()), _code(f"{call}.check({exercise.variable})"),
            _hidden("Hint", f"{call}.hint()"), _hidden("Solution", f"{call}.solution()"),
        ]
    if chapter in QUESTIONS:
        cells += [_text("### Quiz\n\nChoose, then press *Check*. Every option has its explanation, also the wrong ones."),
                  _hidden("Quiz", f"exercises.quiz({chapter})")]
    return [*cells, _text("### Where you stand"), _code(f"exercises.progress({chapter})")]


def _statement(exercise) -> str:
    minutes = f"about {exercise.minutes} minutes"
    parts = [f"### Exercise {exercise.label.replace(' ', ': ', 1)}",
             f"Difficulty {exercise.difficulty} of 3, {minutes}. *Why it matters:* {exercise.why}", exercise.statement]
    if exercise.worked and (ROOT / "chapters" / "solutions" / f"{exercise.worked}.ipynb").exists():
        parts.append(f"[A worked solution, with what it measured](solutions/{exercise.worked}.ipynb): look after your own attempt.")
    return "\n\n".join(parts)


def _text(source: str):
    return new_markdown_cell(source, metadata={"tags": [TAG]})


def _code(source: str):
    return new_code_cell(source, metadata={"tags": [TAG]})


def _hidden(title: str, source: str):
    return new_code_cell(f"# @title {title}\n{source}", metadata=nbformat.from_dict(HIDDEN))


def split(notebook) -> tuple[list, list, list]:
    """A notebook's cells: before the section, the section, behind it."""
    others = [c for c in notebook.cells if TAG not in c.metadata.get("tags", [])]
    section = [c for c in notebook.cells if TAG in c.metadata.get("tags", [])]
    says_time = others and re.match(r"# @title .*\b(how long|time)\b", others[-1].source, re.I)
    return (others[:-1], section, others[-1:]) if says_time else (others, section, [])


def section_number(cells: list, chapter: int) -> str:
    """The number behind the chapter's last section."""
    found = re.findall(rf"^## {chapter}\.(\d+)\b", "\n".join(c.source for c in cells if c.cell_type == "markdown"), re.M)
    return f"{chapter}.{max(map(int, found), default=0) + 1}"


def expected(notebook, path: Path) -> list:
    """The section as it should be, with the ids that the cells get in this notebook."""
    before, _, _ = split(notebook)
    section = cells_of(chapter_of(path), section_number(before, chapter_of(path)))
    seen = {c.id for c in before}
    for cell in section:
        cell.id = stable_id(cell, seen)
    return section


def refresh(path: Path) -> None:
    """Write the section into the notebook at `path` and run it."""
    notebook = nbformat.read(path, as_version=4)
    before, _, behind = split(notebook)
    section = expected(notebook, path)
    run_alone(section, path.resolve().parent)
    notebook.cells = before + section + behind
    if any(c.get("execution_count") for c in before):
        for count, cell in enumerate((c for c in notebook.cells if c.cell_type == "code" and c.source.strip()), 1):
            cell.execution_count = count
            for output in cell.outputs:
                if output.output_type == "execute_result":
                    output.execution_count = count
    write(notebook, path)


def run_alone(section: list, folder: Path) -> None:
    """Run these cells in a kernel of their own and keep their outputs."""
    alone = new_notebook(cells=section)
    NotebookClient(alone, timeout=None, kernel_name="python3", record_timing=False, extra_arguments=["--log-level=ERROR"],
                   resources={"metadata": {"path": str(folder)}}).execute()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.exercises", description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--all", action="store_true", help="every chapter that has exercises")
    options = parser.parse_args(arguments)
    paths = chapters() if options.all else options.paths
    if not paths:
        parser.error("give the notebooks, or --all")
    for path in paths:
        refresh(path)
        print(f"{path}: {len(exercises(chapter_of(path)))} exercises")
    return 0


def chapters() -> list[Path]:
    """The chapters' notebooks, in order."""
    return [p for p in sorted((ROOT / "chapters").glob("0[1-7]_*.ipynb")) if exercises(chapter_of(p))]


if __name__ == "__main__":
    sys.exit(main())
