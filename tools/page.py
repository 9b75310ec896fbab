"""What the book's pages get when they are built, as a Sphinx extension: captions, sizes, descriptions.

Nothing of it is stored in the notebooks, so JupyterLab, Colab and GitHub show them as they are.

- A figure that a cell shows gets a number, a caption (the title of its cell) and its size on the page.
- The first page gets the cover, with links to the chapters that are there.
- A paragraph before a table that begins with "**Table.**" becomes its caption, with a number.
- Pages carry a description and a social preview; its picture needs the book's public address
  (`html: baseurl` in `_config.yml`) and is left out where none is set.
- Of MathJax's bundles stays the one that the pages ask for, of the theme's icons those that they show.
"""

import re
from html import escape
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from PIL import Image

from tools.draw import ALT, cover_html

PIXELS_PER_INCH = 120  # of a page, for an inch of figure; d2lmini.plotting says the same to notebooks
TITLE = re.compile(r"#\s*@title\s+(?:Figure:\s*|Draw\s+)?(.+)")
UNUSED = (  # below _static: bundles that hold what tex-chtml.js holds, and maps for debuggers
    "mathjax/mml-*.js", "mathjax/tex-mml-*.js", "mathjax/tex-svg*.js", "mathjax/tex-chtml-*.js", "mathjax/node-main.js",
    "scripts/*.map", "styles/*.map",
)
ICON = re.compile(r"""(?<=[{,])"?([a-z0-9-]+)"?:\[\d+,\d+,\[([^\]]*)\],"[0-9a-f]+",(?:"[^"]*"|\[[^\]]*\])\],?""")
CARD = ("social.png", 1200, 630)


def caption_of(source: str) -> str:
    """The caption that a cell's first line holds: `# @title Figure: the leak` gives "The leak"."""
    found = TITLE.match(source.strip().split("\n")[0])
    text = found.group(1).strip() if found else ""
    return text[:1].upper() + text[1:]


def label_of(docname: str, count: int) -> str:
    """The number of a figure: 2.3 in chapter 2; on a page without a number 3."""
    chapter = re.match(r"(\d+)_", docname.rpartition("/")[2])
    return f"{int(chapter.group(1))}.{count}" if chapter else str(count)


def width_of(path: Path) -> int | None:
    """The width of a picture on the page, from its size in inches; None where the file does not say."""
    with Image.open(path) as image:
        dots = image.info.get("dpi", (0, 0))[0]
        return round(image.width / dots * PIXELS_PER_INCH) if dots else None


def figures(app, doctree, docname):
    count = 0
    for cell in [c for c in doctree.findall(nodes.container) if "cell" in c.get("classes", [])]:
        code = next((block.astext() for block in cell.findall(nodes.literal_block)), "")
        for image in list(cell.findall(nodes.image)):
            count += 1
            number = label_of(docname, count)
            path = Path(app.srcdir, image["uri"])
            width = width_of(path) if path.suffix == ".png" and path.is_file() else None
            if width:
                image["width"] = f"{width}px"
            figure = nodes.figure("", ids=[f"figure-{number.replace('.', '-')}"], classes=["book-figure"])
            if width and width > 5.3 * PIXELS_PER_INCH:
                figure["classes"].append("wide-figure")
            image.replace_self(figure)
            figure += image
            text = caption_of(code)
            figure += nodes.caption("", "", nodes.strong("", f"Figure {number}."), nodes.Text(f" {text}." if text else ""))


def tables(app, doctree, docname):
    """Captions of tables: the bold-led paragraph before one, or the title `# @title Table: …` of the cell that prints it."""
    count = 0
    for table in list(doctree.findall(nodes.table)):
        words = _words_before(table) or _words_of_cell(table)
        if words:
            count += 1
            number = label_of(docname, count)
            table["ids"].append(f"table-{number.replace('.', '-')}")
            lead = nodes.strong("", f"Table {number}.")
            table.insert(0, nodes.title("", "", lead, nodes.Text(" "), *words))


def _words_before(table) -> list[nodes.Node]:
    place = table.parent.index(table)
    before = table.parent[place - 1] if place else None
    children = [c for c in before.children if c.astext()] if isinstance(before, nodes.paragraph) else []
    if len(children) < 2 or not isinstance(children[0], nodes.strong) or children[0].astext() != "Table.":
        return []
    before.parent.remove(before)
    first, *rest = [child.deepcopy() for child in children[1:]]
    return [nodes.Text(first.astext().lstrip()), *rest]


def _words_of_cell(table) -> list[nodes.Node]:
    cell = table.parent
    while cell is not None and "cell" not in cell.get("classes", []):
        cell = cell.parent
    code = next((block.astext() for block in cell.findall(nodes.literal_block)), "") if cell else ""
    found = re.match(r"#\s*@title\s+Table:\s*(\S.*)", code)
    return [nodes.Text(found.group(1)[:1].upper() + found.group(1)[1:].strip() + ".")] if found else []


def description_of(doctree) -> str:
    """The page's first paragraph, which states its question, in at most 200 characters."""
    for paragraph in doctree.findall(nodes.paragraph) if doctree else ():
        if isinstance(paragraph.parent, nodes.section):
            text = " ".join(paragraph.astext().split()).removeprefix("The question. ")
            return text if len(text) <= 200 else text[:200].rsplit(" ", 1)[0] + " …"
    return ""


def head(app, pagename, templatename, context, doctree):
    """Description and social preview, with absolute addresses only where the book has one."""
    if doctree is None:
        return
    text, title = description_of(doctree), re.sub("<[^>]+>", "", context.get("title", ""))
    address = (app.config.html_baseurl or "").rstrip("/")
    tags = [("name", "description", text), ("property", "og:type", "article"), ("property", "og:title", title),
            ("property", "og:description", text), ("property", "og:site_name", app.config.html_title)]
    if address:
        name, width, height = CARD
        tags += [("property", "og:url", f"{address}/{pagename}.html"), ("property", "og:image", f"{address}/_static/{name}"),
                 ("property", "og:image:width", width), ("property", "og:image:height", height),
                 ("property", "og:image:alt", ALT),
                 ("name", "twitter:card", "summary_large_image")]
    written = context.get("metatags", "")
    context["metatags"] = written + "".join(
        f'\n<meta {kind}="{name}" content="{escape(str(value), quote=True)}" />' for kind, name, value in tags if value
        and not (name == "description" and 'name="description"' in written))


def prune(app, error):
    """Remove what no page asks for, so that the book stays small."""
    if error or app.builder.format != "html":
        return
    static = Path(app.outdir, "_static")
    for pattern in UNUSED:
        for path in static.glob(pattern):
            path.unlink()
    script = static / "scripts" / "fontawesome.js"
    if script.is_file():
        texts = [f.read_text(encoding="utf-8") for kind in ("*.html", "*.js") for f in Path(app.outdir).rglob(kind) if f != script]
        used = set(re.findall(r"\bfa-([a-z0-9-]+)", "".join(texts)))
        script.write_text(icons_used(script.read_text(encoding="utf-8"), used), encoding="utf-8")


def icons_used(script: str, used: set[str]) -> str:
    """The theme's script of 2,000 icons with only those whose name or other name is used; it is a third of a page otherwise."""
    return ICON.sub(lambda icon: icon[0] if used & {icon[1], *re.findall(r'"([a-z0-9-]+)"', icon[2])} else "", script)


class Cover(Directive):
    """The cover, drawn when the page is built."""

    def run(self):
        return [nodes.raw("", cover_html(), format="html")]


def setup(app):
    app.add_directive("cover", Cover)
    app.connect("doctree-resolved", figures)
    app.connect("doctree-resolved", tables)
    app.connect("html-page-context", head)
    app.connect("build-finished", prune)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
