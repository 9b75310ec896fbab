"""The claims ledger: `python -m tools.ledger` writes chapters/appendix/ledger.md from the notebooks' stored claims.

Nothing on that page is typed by hand, and a test compares it with the notebooks: after a chapter was run
again, write the page again (`make run` does). `python -m tools.ledger --check` only compares.
"""

import argparse
import re
import sys
from pathlib import Path

import nbformat
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from myst_parser.mdit_to_docutils.base import default_slugify

from d2lmini.claims import KEY, read_claims
from tools.freshness import ROOT

PAGE = "chapters/appendix/ledger.md"
HEAD = """\
# The claims, with bounds and measurements

% Written by `python -m tools.ledger` from the notebooks. Do not edit.

What a chapter teaches as a fact about its run is checked while it runs, against a bound that was fixed beforehand and leaves room for other machines and other seeds.
This page lists every such claim as the stored run of its notebook left it: the sentence, its bound, what was measured on two CPU cores without a GPU, and, where a source of this book reports a figure for the same thing, that figure and why the two differ.
A claim that compares trained models says over which seeds it holds.
"""


def page(root: Path = ROOT) -> str:
    """The whole page as Markdown."""
    chapters = [c for c in map(_chapter, notebooks(root)) if c["claims"]]
    claims = [c for chapter in chapters for c in chapter["claims"]]
    failing = [c for c in claims if not c["holds"]]
    count = f"{len(claims)} claims in {len(chapters)} notebooks; " + (
        "all of them hold in the stored runs." if not failing else
        f"{len(claims) - len(failing)} hold in the stored runs, and {len(failing)} do not, which is said where they stand.")
    beside = sum(bool(c["published"]) for c in claims)
    return "\n".join([HEAD, f"{count} Beside {beside} of them stands a published figure.", "", *(
        line for chapter in chapters for line in _section(chapter))])


def notebooks(root: Path) -> list[Path]:
    folder = root / "chapters"
    return [*sorted(folder.glob("*.ipynb")), *sorted((folder / "appendix").glob("*.ipynb"))]


def _chapter(path: Path) -> dict:
    """Title and claims of a notebook; each claim with the heading under which it stands."""
    notebook = nbformat.read(path, as_version=4)
    heading, place, slugs = {"text": path.stem, "slug": ""}, {}, []
    title = ""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for heading in _headings(cell.source, slugs):
                title = title or heading["text"]
        for output in cell.get("outputs", []):
            if KEY in output.get("metadata", {}):
                place[output.metadata[KEY]["name"]] = heading
    claims = [{**c, "heading": place[c["name"]]} for c in read_claims(path)]
    return {"path": path, "title": title or path.stem, "claims": claims}


def _headings(markdown: str, slugs: list[str]) -> list[dict]:
    """The headings of a cell, each with the anchor that myst-parser gives it; `slugs` holds those given before."""
    tokens = MarkdownIt().use(dollarmath_plugin).parse(markdown)
    found = []
    for before, inline in zip(tokens, tokens[1:]):
        if before.type == "heading_open" and before.tag in ("h1", "h2", "h3"):
            slug = default_slugify("".join(t.content for t in inline.children if t.type in ("text", "code_inline")))
            number = 1
            while slug in slugs:
                slug, number = f"{slug}-{number}", number + 1
            slugs.append(slug)
            found.append({"text": inline.content, "slug": slug})
    return found


def _section(chapter: dict) -> list[str]:
    path = chapter["path"]
    link = path.name if path.parent.name == "appendix" else f"../{path.name}"
    lines = [f"## {chapter['title']}", ""]
    for c in chapter["claims"]:
        line = f"- **{_capital(_plain(c['statement']))}.** Bound: {c['bound']}. Measured: {_number(c['measured'])}."
        if not c["holds"]:
            line += " **This claim does not hold in the stored run.**"
        line += f" [{c['heading']['text']}]({link}#{c['heading']['slug']})"
        lines.append(line)
        if c["published"]:
            lines += ["", f"  Published: {_plain(c['published'])}." + (f" Why they differ: {_plain(c['why'])}." if c["why"] else ""), ""]
    return [*lines, ""]


def _number(value: float | None) -> str:
    if value is None:
        return "not finite"
    return f"{value:,.0f}" if value == round(value) else f"{value:.4g}"


def _plain(text: str) -> str:
    """On one line, with nothing that Markdown would read but code and formulas."""
    parts = re.split(r"(`[^`]*`|\$[^$]*\$)", " ".join(text.split()).rstrip("."))
    return "".join(part if i % 2 else re.sub(r"([\\*_<>\[\]|])", r"\\\1", part) for i, part in enumerate(parts))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:] if re.match(r"[a-z]+[ ,]", text) else text


def current(root: Path = ROOT) -> bool:
    """Does the page say what the notebooks say?"""
    return (root / PAGE).read_text(encoding="utf-8") == page(root)


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.ledger", description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only say whether the page is current")
    options = parser.parse_args(arguments)
    if options.check:
        print(f"{PAGE}: " + ("current" if current(root) else "stale; run `python -m tools.ledger`"))
        return 0 if current(root) else 1
    (root / PAGE).parent.mkdir(parents=True, exist_ok=True)
    (root / PAGE).write_text(page(root), encoding="utf-8")
    print(f"{PAGE}: written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
