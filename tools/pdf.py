"""The whole book as one PDF: `python -m tools.pdf`, after `make book`.

Each built page is printed by the system's Chromium; the prints are joined behind a title page and a contents page,
with bookmarks for chapters and sections, page numbers, and links between pages that stay inside the file.
"""

import argparse
import io
import os
import shutil
import sys
from dataclasses import dataclass
from html import escape
from pathlib import Path
from urllib.parse import unquote, urlparse

import yaml
from playwright.sync_api import sync_playwright
from pypdf import PdfReader, PdfWriter
from pypdf.annotations import Link
from pypdf.generic import ArrayObject, Fit, FloatObject, NameObject, NullObject, NumberObject

from tools.draw import cover_html
from tools.freshness import ROOT

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
LINES, TOP, STEP = 42, 42, 5.6  # of a contents page: lines, and in millimetres where the first stands and how far apart
POINTS = 72 / 25.4              # in a millimetre
WIDTH, HEIGHT = 210, 297        # A4, in millimetres
BASE = f"""<!doctype html><html lang="en"><meta charset="utf-8"><style>
@page {{ size: A4; margin: 0 }} body {{ margin: 0; font-family: "Liberation Sans", Arial, sans-serif; color: #1f2937 }}
.page {{ position: relative; width: {WIDTH}mm; height: {HEIGHT}mm; break-after: page; overflow: hidden }}
.page > * {{ position: absolute }} .number {{ bottom: 10mm; width: 100%; text-align: center; font-size: 9pt; color: #56606e }}
.line {{ left: 22mm; right: 22mm; display: flex; gap: 2mm; font-size: 9.5pt; white-space: nowrap }}
.line i {{ flex: 1; border-bottom: 1px dotted #aab; margin-bottom: 1.2mm }} .line b {{ padding-top: 0 }}
.line span {{ overflow: hidden; text-overflow: ellipsis }} h1 {{ left: 22mm; right: 22mm; margin: 0; line-height: 1.15 }}
.book-cover {{ left: 22mm; right: 22mm; top: 120mm; display: grid; grid-template-columns: repeat(4, 1fr); gap: 8mm;
  text-align: center; font-size: 7.5pt }} .book-cover .family {{ color: #56606e; text-decoration: none }}
.book-cover b {{ display: block; font-size: 9.5pt; margin: 2mm 0 0.5mm; color: #1f2937 }} .blue {{ fill: #0072b2 }}
.orange {{ fill: #e69f00 }} .green {{ fill: #009e73 }} .purple {{ fill: #cc79a7 }} .empty {{ fill: #e8ebef }}
</style>"""


@dataclass
class Entry:
    """A line of the contents: depth 0 for a page of the book, 1 for a section; page counted from 0 in the joined file."""

    title: str
    depth: int
    page: int


def order(root: Path = ROOT) -> list[str]:
    """The book's pages in reading order, as _toc.yml names them."""
    found: list[str] = []

    def walk(node):
        if isinstance(node, dict):
            found.extend(str(node[key]).removesuffix(".ipynb") for key in ("root", "file") if key in node)
            for key in ("parts", "chapters", "sections", "subtrees", "entries"):
                walk(node.get(key, []))
        elif isinstance(node, list):
            for child in node:
                walk(child)

    walk(yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8")))
    return found


def browser_path() -> str:
    path = os.environ.get("D2LMINI_CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        raise SystemExit("The PDF needs Chromium; install the package `chromium`, or name one with D2LMINI_CHROMIUM.")
    return path


def print_page(browser, address: str) -> tuple[PdfReader, list[str]]:
    """One built page as PDF, its formulas set; and its headings in words.

    Chromium's outline loses formulas, and the space where a heading's line breaks; the page's own words have both.
    """
    page = browser.new_page(color_scheme="light")
    page.goto(address, wait_until="load", timeout=180_000)
    page.evaluate("window.MathJax && MathJax.startup ? MathJax.startup.promise.then(() => true) : true")
    headings = page.evaluate(
        """() => [...document.querySelectorAll("article :is(h1, h2, h3, h4, h5, h6)")].map(heading => {
            const copy = heading.cloneNode(true);
            copy.querySelectorAll(".headerlink").forEach(link => link.remove());
            copy.querySelectorAll("mjx-container").forEach(math => {
                const words = math.querySelector("mjx-assistive-mml");
                math.replaceWith(words ? words.textContent : "");
            });
            return copy.textContent;
        })""")
    data = page.pdf(prefer_css_page_size=True, print_background=True, outline=True, tagged=True)
    page.close()
    return PdfReader(io.BytesIO(data)), [" ".join(text.split()) for text in headings]


def print_html(browser, html: str) -> PdfReader:
    page = browser.new_page()
    page.set_content(BASE + html)
    data = page.pdf(prefer_css_page_size=True, print_background=True)
    page.close()
    return PdfReader(io.BytesIO(data))


def sections(reader: PdfReader, headings: list[str]) -> list[tuple[str, int, int]]:
    """(title, depth, page) of every heading of a printed page, from Chromium's outline."""
    found = []

    def walk(items, depth):
        for item in items:
            if isinstance(item, list):
                walk(item, depth + 1)
            else:
                found.append((" ".join(str(item.title).split()), depth, reader.get_destination_page_number(item) or 0))

    walk(reader.outline, 0)
    if len(headings) == len(found):
        found = [(words, depth, page) for words, (_, depth, page) in zip(headings, found)]
    return found


def contents_html(entries: list[Entry], front: int, title: str) -> str:
    """Title page and contents pages; `front` is how many pages they take, which the numbers count."""
    parts = [f'<div class="page"><h1 style="top: 60mm; font-size: 34pt">{escape(title)}</h1>{cover_html()}</div>']
    for start in range(0, len(entries), LINES):
        lines = "".join(
            f'<div class="line" style="top: {TOP + i * STEP}mm; padding-left: {5 * e.depth}mm; '
            f'font-weight: {400 if e.depth else 700}"><span>{escape(e.title)}</span><i></i>{e.page + front + 1}</div>'
            for i, e in enumerate(entries[start:start + LINES]))
        heading = '<h1 style="top: 22mm; font-size: 20pt">Contents</h1>' if start == 0 else ""
        parts.append(f'<div class="page">{heading}{lines}</div>')
    return "".join(parts)


def numbers_html(first: int, last: int) -> str:
    return "".join(f'<div class="page"><div class="number">{n}</div></div>' for n in range(first, last + 1))


def keep_links_inside(writer: PdfWriter, names: list[str], readers: list[PdfReader], starts: list[int], html: Path) -> None:
    """Links to pages and headings of the book go to their place in this file; others to files of this machine go away."""
    at = dict(zip(names, starts))
    for name, reader, start in zip(names, readers, starts):
        targets = reader.named_destinations
        for number in range(start, start + len(reader.pages)):
            page = writer.pages[number]
            kept = ArrayObject()
            for reference in page.get("/Annots", []):
                link = reference.get_object()
                action = link.get("/A", {})
                goal = link.get("/Dest") or (action.get("/D") if action.get("/S") == "/GoTo" else None)
                address = str(action.get("/URI", ""))
                if isinstance(goal, str):
                    goal = targets.get(goal)
                    place = start + (reader.get_destination_page_number(goal) or 0) if goal else None
                    top = goal.get("/Top") if goal else None
                elif address.startswith("file:"):
                    path = Path(unquote(urlparse(address).path))
                    inside = path.relative_to(html).with_suffix("").as_posix() if path.is_relative_to(html) else ""
                    place, top = at.get(inside), None
                else:
                    kept.append(reference)
                    continue
                if place is None:
                    continue
                link.pop("/A", None)
                spot = FloatObject(top) if isinstance(top, (int, float)) else NullObject()
                link[NameObject("/Dest")] = ArrayObject(
                    [writer.pages[place].indirect_reference, NameObject("/XYZ"), NullObject(), spot, NumberObject(0)])
                kept.append(reference)
            if "/Annots" in page:
                page[NameObject("/Annots")] = kept


def build(html: Path, target: Path, root: Path = ROOT) -> int:
    """Print, join and save; returns the number of pages."""
    title = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))["title"]
    names = order(root)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path(), args=["--no-sandbox", "--disable-gpu"])
        readers, entries, total = [], [], 0
        for name in names:
            reader, headings = print_page(browser, (html / f"{name}.html").resolve().as_uri())
            entries += [Entry(text, depth, total + page) for text, depth, page in sections(reader, headings) if depth < 2]
            total += len(reader.pages)
            readers.append(reader)
            print(f"{name}: {len(reader.pages)} pages", flush=True)
        front = 1 + -(-len(entries) // LINES)
        opening = print_html(browser, contents_html(entries, front, title))
        stamps = print_html(browser, numbers_html(front + 1, front + total))
        browser.close()
    assert len(opening.pages) == front and len(stamps.pages) == total, (len(opening.pages), front, len(stamps.pages), total)
    writer, starts = PdfWriter(), []
    writer.append(opening, import_outline=False)
    for reader in readers:
        starts.append(len(writer.pages))
        writer.append(reader, import_outline=False)
    keep_links_inside(writer, names, readers, starts, html.resolve())
    for page, stamp in zip(writer.pages[front:], stamps.pages):
        page.merge_page(stamp)
    writer.add_outline_item("Contents", 1)
    parents = {}
    for e in entries:
        above = parents.get(e.depth - 1) if e.depth else None
        parents[e.depth] = writer.add_outline_item(e.title, e.page + front, parent=above)
    for i, e in enumerate(entries):
        top = HEIGHT - TOP - (i % LINES) * STEP
        box = (22 * POINTS, (top - STEP) * POINTS, (WIDTH - 22) * POINTS, top * POINTS)
        writer.add_annotation(1 + i // LINES, Link(rect=box, target_page_index=e.page + front, fit=Fit.fit_horizontally()))
    writer.add_metadata({"/Title": title})
    writer.compress_identical_objects()
    target.parent.mkdir(parents=True, exist_ok=True)
    writer.write(target)
    return front + total


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.pdf", description=__doc__.splitlines()[0])
    parser.add_argument("--html", type=Path, default=ROOT / "_build" / "html")
    parser.add_argument("--to", type=Path, default=ROOT / "_build" / "book.pdf")
    options = parser.parse_args(arguments)
    if not (options.html / "index.html").is_file():
        print(f"{options.html} holds no built book; run `make book` first", file=sys.stderr)
        return 2
    pages = build(options.html, options.to)
    print(f"{options.to}: {pages} pages, {options.to.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
