"""The book's public address and its release tag, each read from the one place where it is written.

The address is `repository_url` in _config.yml ("" until the book is published), the tag is "v" and the
`__version__` in d2lmini/__init__.py.
"""

import re
from pathlib import Path

from tools.freshness import ROOT

OWNER, NAME = r"[A-Za-z0-9](?:[A-Za-z0-9]|-(?=[A-Za-z0-9])){0,38}", r"[A-Za-z0-9._-]{1,100}"
ADDRESS = re.compile(rf"https://github\.com/({OWNER})/({NAME})")


def check_address(text: str) -> str:
    """Return the address of a GitHub repository without a closing slash or `.git`, or say what is wrong with `text`."""
    tidy = text.strip().removesuffix("/").removesuffix(".git")
    found = ADDRESS.fullmatch(tidy)
    if not found or found[2].strip(".") == "":
        raise ValueError(f"URL={text!r} is not the address of a repository; expected https://github.com/OWNER/REPO.")
    if found.groups() == ("OWNER", "REPO"):
        raise ValueError(f"URL={text!r} is the example; give the owner and the name of your own repository.")
    return tidy


def read_address(root: Path = ROOT) -> str:
    """The address in _config.yml; "" when the book is not published."""
    found = re.search(r'^ *repository_url: "([^"]*)"$', (root / "_config.yml").read_text(encoding="utf-8"), re.M)
    if not found:
        raise ValueError('_config.yml: expected one line `repository_url: "..."` between the address marks.')
    return found[1]


def release_tag(root: Path = ROOT) -> str:
    """The tag of this version's release, such as v0.1.0."""
    text = (root / "d2lmini" / "__init__.py").read_text(encoding="utf-8")
    return "v" + re.search(r'^__version__ = "([^"]+)"$', text, re.M)[1]
