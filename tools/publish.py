"""Tell every place that needs it where the book lives: `make publish-to URL=https://github.com/OWNER/REPO`.

    python -m tools.publish https://github.com/OWNER/REPO [--branch main]
    python -m tools.publish --unset       back to a book without an address
    python -m tools.publish --check       do all places agree?

Written are the blocks between "address" marks in _config.yml (launch buttons, "edit this page"), README.md
(badges) and chapters/index.md (one sentence), and the last line of every notebook's first cell. The tag is
that of the version in d2lmini/__init__.py; after a new version, run it again. Either all files are written
or, when something is wrong with the address or one of them, none.
"""

import argparse
import os
import re
import sys
from pathlib import Path

import nbformat

from tools.address import check_address, read_address, release_tag
from tools.freshness import ROOT
from tools.setup_cell import stamp_of, stamped

BEGIN = re.compile(r"^( *)(# |<!-- )address: begin.*\n", re.M)
END = re.compile(r"^ *(# |<!-- )address: end.*$", re.M)
PAGES = ("_config.yml", "README.md", "chapters/index.md")


def theme_block(url: str, tag: str, branch: str) -> list[str]:
    """The options of the theme; launch buttons lead to the tag, as the notebooks' first cells do."""
    if not url:
        return ['repository_url: ""', "use_repository_button: false", "use_edit_page_button: false", "launch_buttons: {}"]
    return [f'repository_url: "{url}"', f"repository_branch: {tag}", "use_repository_button: true",
            "use_edit_page_button: true", "launch_buttons:", "  notebook_interface: jupyterlab",
            "  colab_url: https://colab.research.google.com", "  binderhub_url: https://mybinder.org"]


def edit_block(url: str, tag: str, branch: str) -> list[str]:
    """Where "edit this page" leads: to a branch, since nothing can be edited at a tag."""
    if not url:
        return []
    return [f'edit_page_url_template: "{url}/edit/{branch}/{{{{ file_name }}}}"', "edit_page_provider_name: GitHub"]


def badges(url: str, tag: str, branch: str) -> list[str]:
    if not url:
        return []
    place = url.removeprefix("https://github.com/")
    chapter = "chapters/01_three_wirings.ipynb"
    return [
        f"[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)]"
        f"(https://colab.research.google.com/github/{place}/blob/{tag}/{chapter})",
        f"[![Launch on Binder](https://mybinder.org/badge_logo.svg)]"
        f"(https://mybinder.org/v2/gh/{place}/{tag}?urlpath=lab/tree/{chapter})",
    ]


def sentence(url: str, tag: str, branch: str) -> list[str]:
    if not url:
        return []
    return ["In a browser alone: the rocket at the top of a chapter opens it on Colab or Binder. The chapter's first cell",
            f"fetches the package there, at {tag} of [the book's repository]({url}), and leaves the PyTorch that is there alone."]


BLOCKS = {"_config.yml": (edit_block, theme_block), "README.md": (badges,), "chapters/index.md": (sentence,)}


def page(name: str, text: str, url: str, tag: str, branch: str) -> str:
    """The text of one of PAGES with its blocks written anew."""
    parts, place = [], 0
    for block in BLOCKS[name]:
        begin = BEGIN.search(text, place)
        end = END.search(text, begin.end()) if begin else None
        if not end:
            raise ValueError(f"{name}: expected {len(BLOCKS[name])} pair(s) of lines `address: begin` and `address: end`.")
        parts += [text[place:begin.end()], *(f"{begin[1]}{line}\n" for line in block(url, tag, branch))]
        place = end.start()
    return "".join(parts) + text[place:]


def publish(url: str, branch: str = "main", root: Path = ROOT) -> list[str]:
    """Write the address (checked before, "" for none) everywhere; return the names of the files that changed."""
    tag = release_tag(root)
    new = {root / n: page(n, (root / n).read_text(encoding="utf-8"), url, tag, branch) for n in PAGES}
    for path in notebooks(root):
        new[path] = nbformat.writes(stamped(nbformat.read(path, as_version=4), url, tag)) + "\n"
    changed = {path: text for path, text in new.items() if path.read_text(encoding="utf-8") != text}
    parts = {path: path.with_name(path.name + ".part") for path in changed}
    try:
        for path, text in changed.items():
            parts[path].write_text(text, encoding="utf-8")
        for path, part in parts.items():
            os.replace(part, path)
    finally:
        for part in parts.values():
            part.unlink(missing_ok=True)
    return [path.relative_to(root).as_posix() for path in changed]


def disagreements(root: Path = ROOT) -> list[str]:
    """Every place that does not say what _config.yml and the version say, as sentences."""
    url, tag = read_address(root), release_tag(root)
    template = re.search(r"/edit/([^/]+)/\{\{", (root / "_config.yml").read_text(encoding="utf-8"))
    found = []
    for name in PAGES:
        text = (root / name).read_text(encoding="utf-8")
        if page(name, text, url, tag, template[1] if template else "main") != text:
            found.append(f"{name} names another address or tag than {url or 'none'} at {tag}")
    for path in notebooks(root):
        stamp = stamp_of(nbformat.read(path, as_version=4))
        if stamp != (url, tag):
            found.append(f"{path.name} begins with " + (f"{stamp[0] or 'no address'} at {stamp[1]}" if stamp else
                         "another cell than the one that finds d2lmini; run `python -m tools.setup_cell --all`"))
    return found


def notebooks(root: Path) -> list[Path]:
    return sorted(p for p in (root / "chapters").rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.publish", description=__doc__.splitlines()[0])
    parser.add_argument("url", nargs="?", default="", help="https://github.com/OWNER/REPO")
    parser.add_argument("--branch", default="main", help="the branch that readers edit")
    parser.add_argument("--unset", action="store_true", help="take the address out again")
    parser.add_argument("--check", action="store_true", help="only say whether all places agree")
    options = parser.parse_args(arguments)
    try:
        if options.check:
            found = disagreements(root)
            print("\n".join(found) if found else "all places agree")
            return 1 if found else 0
        if not re.fullmatch(r"\w[\w.-]*", options.branch):
            raise ValueError(f"BRANCH={options.branch!r} is not the name of a branch without slashes, such as main.")
        url = "" if options.unset else check_address(options.url)
        changed = publish(url, options.branch, root)
    except ValueError as error:
        print(f"{error}\nNothing was changed.", file=sys.stderr)
        return 2
    print("\n".join(changed) if changed else "everything says so already")
    if url:
        tag = release_tag(root)
        print(f"Now commit, and give the release its tag, which the notebooks ask for: git tag {tag} && git push origin {tag}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
