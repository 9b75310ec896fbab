"""Begin a chapter: `make new-chapter NAME=08_mixtures` writes chapters/08_mixtures.ipynb, run and in its place.

What it writes keeps every rule of the book, so that `make test` passes before and after each change of yours:
title and question, the first cell, imports, one section with a prediction, a measurement, a figure, a claim, and
what they do not show. Replace it piece by piece; `make run CH=08` after each.
"""

import re
import sys
from pathlib import Path

from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools import ledger, notebook, table
from tools.address import read_address, release_tag
from tools.freshness import ROOT
from tools.setup_cell import METADATA, stamped

NAME = re.compile(r"(\d\d)_([a-z][a-z0-9_]*)")
HIDDEN = {"tags": ["hide-input"], "jupyter": {"source_hidden": True}, "cellView": "form"}
IMPORTS = """\
# @title Set-up
import torch

from d2lmini import attention_weights, causal_mask, claim, say, seed_everything
from d2lmini.plotting import attention_map, figure, show"""
OPENING = """\
# {number}. {title}

**The question.** What does this chapter find out?

**You will be able to**

- say what you could not say before.

**Builds on** the attention of chapter 1."""
SECTION = """\
## {number}.1 A first measurement

A **term** is defined where it first occurs. A formula is said in words:

$$A = \\operatorname{{softmax}}\\!\\left(QK^\\top / \\sqrt{{d_k}} + M\\right)$$

> **In words.** Each row of weights is a share-out of one.

> **Prediction.** How much of its attention does the last of eight random tokens give to itself? Write a number down."""
CODE = """\
seed_everything(0)
tokens = torch.randn(1, 1, 8, 16)                     # (B, H, T, d_k)
A = attention_weights(tokens, tokens, causal_mask(8))  # (B, H, T, S)
print("shape:", tuple(A.shape))"""
MEASURED = """\
# @title What was measured
say(f"The last token gives itself {A[0, 0, -1, -1]:.2f} of its attention.")"""
CLAIM = """\
# @title Claim
claim("rows-sum-to-one", "every row of weights sums to 1 within 1e-6", (A.sum(-1) - 1).abs().max(), at_most=1e-6)"""
FIGURE = """\
# @title Figure
fig, ax = figure(width=4)
names = [str(i) for i in range(1, 9)]
attention_map(ax, A[0, 0], names, names)
show(fig, alt="Attention weights of eight random tokens under a causal mask: nothing above the diagonal.")"""
CLOSING = """\
**Reading it.** Queries run down, keys across; the upper triangle is empty.

> **What this does not show.** Anything about trained weights."""


def cells(name: str) -> list:
    number, words = NAME.fullmatch(name).groups()
    say = dict(number=int(number), title=words.replace("_", " ").capitalize())
    loose = {**HIDDEN, "tags": ["hide-input", "nbval-ignore-output"]}
    return [
        new_markdown_cell(OPENING.format(**say)), new_code_cell(IMPORTS, metadata=METADATA), new_markdown_cell(SECTION.format(**say)),
        new_code_cell(CODE), new_code_cell(MEASURED, metadata=loose), new_code_cell(CLAIM, metadata=HIDDEN),
        new_code_cell(FIGURE, metadata=loose), new_markdown_cell(CLOSING),
    ]


def in_contents(text: str, name: str) -> str:
    """_toc.yml with a line for the chapter after the last numbered one."""
    lines = text.splitlines(keepends=True)
    places = [i for i, line in enumerate(lines) if re.match(r" *- file: chapters/\d\d_", line)]
    if not places:
        raise ValueError("_toc.yml: expected a line `- file: chapters/NN_name` to put the new one after.")
    last = places[-1]
    indent = lines[last][: len(lines[last]) - len(lines[last].lstrip())]
    return "".join([*lines[: last + 1], f"{indent}- file: chapters/{name}\n", *lines[last + 1:]])


def create(name: str, root: Path = ROOT, run: bool = True) -> Path:
    """Write, run and list the chapter; raise ValueError, with nothing written, when the name will not do."""
    found = NAME.fullmatch(name)
    if not found:
        raise ValueError(f"NAME={name!r} is not two digits, an underscore and lower-case words, such as 08_mixtures.")
    taken = sorted((root / "chapters").glob(f"{found[1]}_*"))
    if taken:
        raise ValueError(f"NAME={name!r}: {taken[0].name} has that number; take another.")
    contents = in_contents((root / "_toc.yml").read_text(encoding="utf-8"), name)
    path = root / "chapters" / f"{name}.ipynb"
    book = new_notebook(cells=cells(name))
    notebook.write(stamped(book, read_address(root), release_tag(root)), path)
    if run:
        notebook.run(path)
    (root / "_toc.yml").write_text(contents, encoding="utf-8")
    table.update(root)
    (root / ledger.PAGE).write_text(ledger.page(root), encoding="utf-8")
    return path


def main(arguments: list[str]) -> int:
    try:
        path = create(arguments[0] if arguments else "")
    except ValueError as error:
        print(f"{error}\nNothing was changed.", file=sys.stderr)
        return 2
    print(f"{path.relative_to(ROOT)} is written, run, and listed in _toc.yml and on the first page.")
    print("Edit it with `make lab`; after each change: make run CH=" + path.name[:2])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
