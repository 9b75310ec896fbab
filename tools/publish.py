"""Tell every place that needs it where the book lives: `make publish-to URL=https://github.com/OWNER/REPO`.

    python -m tools.publish https://github.com/OWNER/REPO [--branch main] [--site https://OWNER.github.io/REPO]
    python -m tools.publish --unset       back to a book without an address
    python -m tools.publish --check       do all places agree?

Written are the blocks between "address" marks in _config.yml (launch buttons, "edit this page", and the site's
own address for social previews where one is given), README.md (badges) and chapters/index.md (one sentence),
and the last line of every notebook's first cell. The tag is
that of the version in d2lmini/__init__.py; after a new version, run it again. Either all files are written
or, when something is wrong with the address or one of them, none.
"""

import argparse
import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

import nbformat

from tools.address import check_address, read_address, release_tag
from tools.freshness import ROOT
from tools.setup_cell import first_place, source, stamp_of, stamped

BEGIN = re.compile(r"^( *)(# |<!-- )address: begin.*\n", re.M)
END = re.compile(r"^ *(# |<!-- )address: end.*$", re.M)
PAGES = ("_config.yml", "README.md", "chapters/index.md")
SITE = re.compile(r"https://[\w.-]+\.\w+(?:/[\w.-]+)*")


class Place(NamedTuple):
    """Where the book lives: its repository and its release's tag, the branch that readers edit, its pages' address."""

    url: str
    tag: str
    branch: str = "main"
    site: str = ""


def theme_block(where: Place) -> list[str]:
    """The options of the theme; launch buttons lead to the tag, as the notebooks' first cells do."""
    if not where.url:
        return ['repository_url: ""', "use_repository_button: false", "use_edit_page_button: false", "launch_buttons: {}"]
    return [f'repository_url: "{where.url}"', f"repository_branch: {where.tag}", "use_repository_button: true",
            "use_edit_page_button: true", "launch_buttons:", "  notebook_interface: jupyterlab",
            "  colab_url: https://colab.research.google.com", "  binderhub_url: https://mybinder.org"]


def site_block(where: Place) -> list[str]:
    """The pages' own address, where there is one: previews of links need it."""
    return [f'baseurl: "{where.site}"'] if where.site else []


def edit_block(where: Place) -> list[str]:
    """Where "edit this page" leads: to a branch, since nothing can be edited at a tag."""
    if not where.url:
        return []
    return [f'edit_page_url_template: "{where.url}/edit/{where.branch}/{{{{ file_name }}}}"', "edit_page_provider_name: GitHub"]


def badges(where: Place) -> list[str]:
    if not where.url:
        return []
    place = where.url.removeprefix("https://github.com/")
    chapter = "chapters/01_three_wirings.ipynb"
    return [
        f"[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)]"
        f"(https://colab.research.google.com/github/{place}/blob/{where.tag}/{chapter})",
        f"[![Launch on Binder](https://mybinder.org/badge_logo.svg)]"
        f"(https://mybinder.org/v2/gh/{place}/{where.tag}?urlpath=lab/tree/{chapter})",
    ]


def sentence(where: Place) -> list[str]:
    if not where.url:
        return []
    return ["In a browser alone: the rocket at the top of a chapter opens it on Colab or Binder. The chapter's first cell",
            f"fetches the package there, at {where.tag} of [the book's repository]({where.url}), and leaves the PyTorch that is there alone."]


BLOCKS = {"_config.yml": (site_block, edit_block, theme_block), "README.md": (badges,), "chapters/index.md": (sentence,)}


def page(name: str, text: str, where: Place) -> str:
    """The text of one of PAGES with its blocks written anew."""
    parts, place = [], 0
    for block in BLOCKS[name]:
        begin = BEGIN.search(text, place)
        end = END.search(text, begin.end()) if begin else None
        if not end:
            raise ValueError(f"{name}: expected {len(BLOCKS[name])} pair(s) of lines `address: begin` and `address: end`.")
        parts += [text[place:begin.end()], *(f"{begin[1]}{line}\n" for line in block(where))]
        place = end.start()
    return "".join(parts) + text[place:]


def publish(where: Place, root: Path = ROOT) -> list[str]:
    """Write this everywhere ("" as address for none); return the names of the files that changed."""
    new = {root / n: page(n, (root / n).read_text(encoding="utf-8"), where) for n in PAGES}
    for path in notebooks(root):
        new[path] = nbformat.writes(stamped(nbformat.read(path, as_version=4), where.url, where.tag)) + "\n"
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


def written(root: Path = ROOT) -> Place:
    """What _config.yml and the version say."""
    text = (root / "_config.yml").read_text(encoding="utf-8")
    branch, site = re.search(r"/edit/([^/]+)/\{\{", text), re.search(r'^ *baseurl: "([^"]*)"$', text, re.M)
    return Place(read_address(root), release_tag(root), branch[1] if branch else "main", site[1] if site else "")


def disagreements(root: Path = ROOT) -> list[str]:
    """Every place that does not say what _config.yml and the version say, as sentences."""
    where = written(root)
    url, tag = where.url, where.tag
    found = []
    for name in PAGES:
        text = (root / name).read_text(encoding="utf-8")
        if page(name, text, where) != text:
            found.append(f"{name} names another address or tag than {url or 'none'} at {tag}")
    for path in notebooks(root):
        notebook = nbformat.read(path, as_version=4)
        stamp = stamp_of(notebook)
        if stamp is None or notebook.cells[first_place(notebook)].source != source(*stamp):
            found.append(f"{path.name} begins with another cell than the one that finds d2lmini; "
                         "run `python -m tools.setup_cell --all`")
        elif stamp != (url, tag):
            found.append(f"{path.name} begins with {stamp[0] or 'no address'} at {stamp[1]}")
    return found


def notebooks(root: Path) -> list[Path]:
    return sorted(p for p in (root / "chapters").rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.publish", description=__doc__.splitlines()[0])
    parser.add_argument("url", nargs="?", default="", help="https://github.com/OWNER/REPO")
    parser.add_argument("--branch", default="main", help="the branch that readers edit")
    parser.add_argument("--site", default="", help="where the built pages stand, if anywhere: https://...")
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
        if options.site and not SITE.fullmatch(options.site.rstrip("/")):
            raise ValueError(f"SITE={options.site!r} is not the address of pages, such as https://OWNER.github.io/REPO.")
        url = "" if options.unset else check_address(options.url)
        site = "" if options.unset else options.site.rstrip("/")
        changed = publish(Place(url, release_tag(root), options.branch, site), root)
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
