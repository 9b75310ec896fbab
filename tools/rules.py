"""The rules that every notebook of the book keeps, one small function each.

A rule takes a notebook (and its path) and gives the sentences that say where it is broken.
`problems` applies them all; `python -m tools.notebook check` and the tests call it.
"""

import re
from pathlib import Path

from tools.freshness import ROOT, digest_notebook

MAX_LINES = 25
HIDING_TAGS = {"hide-input", "hide-cell", "hide-output", "remove-input", "remove-cell", "remove-output"}
SOURCE_HIDING_TAGS = HIDING_TAGS - {"hide-output", "remove-output"}
WIDGET = "application/vnd.jupyter.widget"
MACHINE_PATH = re.compile(r"(?:/(?:home|Users|root|tmp|work|opt)/|site-packages|ipykernel_\d|[A-Z]:\\\\?Users)")
WARNING = re.compile(r"\b\w*Warning:|warnings\.warn")
PROGRESS = re.compile(r"\r|\x1b\[|\d+%\|")

# What MyST reads and JupyterLab, Colab or GitHub do not, or read otherwise.
MYST_ONLY = {
    "a directive (```{name})": re.compile(r"^\s*(`{3,}|~{3,}|:{3,})\s*\{[^}]*\}", re.M),
    "a colon fence (:::)": re.compile(r"^\s*:{3,}", re.M),
    "a role ({name}`text`)": re.compile(r"\{[\w:.+-]+\}`"),
    "a target ((name)=)": re.compile(r"^\s*\([\w:. -]+\)=\s*$", re.M),
    "a block break (+++)": re.compile(r"^\+\+\+", re.M),
    "a comment (% text)": re.compile(r"^%", re.M),
    "a substitution ({{ name }})": re.compile(r"\{\{\s*\w+\s*\}\}"),
    "a footnote ([^1])": re.compile(r"\[\^[^\]]+\]"),
    "front matter (---)": re.compile(r"\A---\s*$", re.M),
    "an equation label ($$ (name))": re.compile(r"\$\$\s*\([\w:-]+\)"),
    "a link without text ([](target))": re.compile(r"(?<!!)\[\]\("),
    "an attribute block ({#id .class})": re.compile(r"\{[#.][\w-]+[^}]*\}"),
    "an alert (> [!NOTE])": re.compile(r"^>\s*\[!\w+\]", re.M),
    "TeX delimiters other than dollars": re.compile(r"\\\(|\\\[|^\s*\\begin\{(?:align|equation)\*?\}", re.M),
}
CODE_OR_MATH = re.compile(r"^```[^{\n]*\n.*?^```\s*$|\$\$.*?\$\$|(?<!\})`[^`\n]+`|(?<!\$)\$[^$\n]+\$", re.M | re.S)


def problems(notebook, path: Path, root: Path = ROOT) -> list[str]:
    """Every broken rule, as sentences that begin with the notebook's name."""
    found = [
        *plain_markdown(notebook), *clean_outputs(notebook), *in_order(notebook), *described_images(notebook),
        *hidden_marks(notebook), *short_cells(notebook), *no_machine_paths(notebook), *no_widget_state(notebook),
        *fresh(notebook, path, root),
    ]
    return [f"{path.name}: {text}" for text in found]


def fresh(notebook, path: Path, root: Path = ROOT) -> list[str]:
    """The outputs were made by the code that is here."""
    stored = notebook.metadata.get("d2lmini", {}).get("digest")
    if stored is None:
        return ["it records no digest; run it with `python -m tools.notebook run`"]
    if stored != digest_notebook(path, root):
        return ["its outputs were made by other code; run it with `python -m tools.notebook run`"]
    return []


def plain_markdown(notebook) -> list[str]:
    """Markdown cells read the same in Jupyter, Colab, GitHub and the book."""
    found = []
    for index, cell in _cells(notebook, "markdown"):
        labels = MYST_ONLY["an equation label ($$ (name))"].search(cell.source)
        text = CODE_OR_MATH.sub("", cell.source)
        for name, pattern in MYST_ONLY.items():
            hit = labels if name.startswith("an equation") else pattern.search(text)
            if hit:
                found.append(f"cell {index} holds {name}, which only MyST reads: {hit.group().strip()!r}")
        if "{{" in cell.source:
            found.append(f"cell {index} holds '{{{{', which MyST takes for a substitution; put a space between")
    return found


def clean_outputs(notebook) -> list[str]:
    """No errors, nothing on stderr, no warnings, no progress bars."""
    found = []
    for index, cell in _cells(notebook, "code"):
        for output in cell.outputs:
            text = output_text(output)
            if output.output_type == "error":
                found.append(f"cell {index} stopped with {output.ename}: {output.evalue}")
            elif output.output_type == "stream" and output.name == "stderr":
                found.append(f"cell {index} wrote to stderr: {text.strip()[:200]!r}")
            elif PROGRESS.search(text):
                found.append(f"cell {index} left a progress bar or terminal codes: {text.strip()[:80]!r}")
            elif WARNING.search(text):
                found.append(f"cell {index} printed a warning: {text.strip()[:200]!r}")
            if any(mime.startswith(WIDGET) for mime in output.get("data", {})):
                found.append(f"cell {index} stores a widget, which no page without a kernel can show")
    return found


def in_order(notebook) -> list[str]:
    """Run top to bottom in a fresh kernel: the cells are counted 1, 2, 3 ..."""
    counts = [c.execution_count for _, c in _cells(notebook, "code") if c.source.strip()]
    if counts != list(range(1, len(counts) + 1)):
        return [f"its cells were not run once each from top to bottom: {counts}"]
    return []


def described_images(notebook) -> list[str]:
    """One image a cell, with alt text that reached the metadata which Jupyter Book reads."""
    found = []
    for index, cell in _cells(notebook, "code"):
        images = image_alts(cell)
        stored = cell.metadata.get("mystnb", {}).get("image", {}).get("alt")
        if len(images) > 1:
            found.append(f"cell {index} shows {len(images)} images; show one image per cell (the book has one alt text per cell)")
        elif images and not images[0]:
            found.append(f"cell {index} shows an image without alt text; use d2lmini.plotting.show(fig, alt=...)")
        elif images and images[0] != stored:
            found.append(f"cell {index}: the image's alt text did not reach the cell's metadata; run the notebook again")
    return found


def hidden_marks(notebook) -> list[str]:
    """A cell whose code is hidden says so to Jupyter Book, to JupyterLab and to Colab."""
    found = []
    for index, cell in _cells(notebook, "code"):
        marks = {
            "a tag such as hide-input": bool(SOURCE_HIDING_TAGS & set(cell.metadata.get("tags", []))),
            "jupyter.source_hidden": bool(cell.metadata.get("jupyter", {}).get("source_hidden")),
            "a first line `# @title`": cell.source.startswith("# @title"),
        }
        if any(marks.values()) and not all(marks.values()):
            missing = " and ".join(mark for mark, there in marks.items() if not there)
            found.append(f"cell {index} is hidden in one place and not in all: it lacks {missing}")
    return found


def short_cells(notebook) -> list[str]:
    """Code that is read fits into one glance."""
    return [
        f"cell {index} has {lines} lines of code; split it (at most {MAX_LINES}) or hide it"
        for index, cell in _cells(notebook, "code")
        if (lines := len(cell.source.splitlines())) > MAX_LINES
        and not SOURCE_HIDING_TAGS & set(cell.metadata.get("tags", []))
    ]


def no_machine_paths(notebook) -> list[str]:
    found = []
    for index, cell in enumerate(notebook.cells):
        texts = [cell.source] + [output_text(o) for o in cell.get("outputs", [])]
        if hit := next((m for m in map(MACHINE_PATH.search, texts) if m), None):
            found.append(f"cell {index} names a path of one machine: {hit.group()!r}")
    return found


def no_widget_state(notebook) -> list[str]:
    return ["it stores the state of widgets"] if "widgets" in notebook.metadata else []


def image_alts(cell) -> list[str | None]:
    """The alt text of every image in the cell's outputs, None where there is none."""
    return [
        (output.get("metadata", {}).get(mime) or {}).get("alt")
        for output in cell.get("outputs", [])
        for mime in output.get("data", {})
        if mime in ("image/png", "image/jpeg", "image/svg+xml", "image/gif")
    ]


def output_text(output) -> str:
    """What an output says, as text: streams, text and Markdown; HTML for its paths and warnings."""
    data = output.get("data", {})
    parts = [output.get("text", "")] + [data.get(m, "") for m in ("text/plain", "text/markdown", "text/html")]
    return "\n".join("".join(p) for p in parts if p)


def _cells(notebook, kind: str):
    return [(i, cell) for i, cell in enumerate(notebook.cells) if cell.cell_type == kind]
