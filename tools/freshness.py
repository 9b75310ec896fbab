"""Were a notebook's stored outputs made by the code that is here now?

The digest of a notebook covers what can change its results and nothing else:

- the syntax of its code cells, but for the cell tagged "setup" (imports, and lines for Colab);
- the syntax of the `d2lmini` modules it uses, and of the modules that those import;
- the content of the corpora, results files and figure scripts that they name.

A comment, a docstring, a blank line or a module that is not used does not change it, so such an
edit does not ask for ten minutes of training.
"""

import ast
import hashlib
from collections.abc import Iterable
from pathlib import Path

import nbformat

from tools.syntax import dump, dump_cell, split_magics

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("d2lmini", "benchmarks")
INNOCENT = {"__version__", "__all__", "__doc__"}  # names that no result depends on


def digest_notebook(path: str | Path, root: Path = ROOT) -> str:
    """The digest of the notebook at `path`: 16 hexadecimal digits."""
    notebook = nbformat.read(path, as_version=4)
    sources = [(c.source, c.metadata.get("tags", [])) for c in notebook.cells if c.cell_type == "code"]
    trees = [ast.parse(split_magics(source)[0]) for source, _ in sources]
    modules = closure(used_modules(trees, root), root)
    parts = [dump_cell(source) for source, tags in sources if "setup" not in tags]
    parts += module_parts(modules, root)
    parts += file_parts(trees + [_tree(m, root) for m in modules], root)
    return _hash(parts)


def digest_modules(names: Iterable[str], root: Path = ROOT, follow: bool = True) -> str:
    """The digest of modules, such as ["d2lmini.models", "benchmarks.seeds"], for a results file.

    With `follow`, the modules that they import count too.
    """
    names = set(names)
    missing = sorted(n for n in names if _file(n, root) is None)
    if missing:
        raise ValueError(f"names: no such module of {PACKAGES}: {missing}")
    return _hash(module_parts(closure(names, root) if follow else names, root))


def module_parts(modules: Iterable[str], root: Path = ROOT) -> list[str]:
    return [f"{name} {dump(_tree(name, root))}" for name in sorted(modules)]


def file_parts(trees: list[ast.AST], root: Path = ROOT) -> list[str]:
    """Name and content of each data file whose name, with or without its ending, is a string in `trees`."""
    strings = {
        Path(node.value).name
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 200
    }
    globs = ("d2lmini/data_files/*.txt", "d2lmini/figures/*.js", "d2lmini/results/*.json")
    files = [file for pattern in globs for file in root.glob(pattern)]
    named = (f for f in sorted(files) if f.name in strings or f.stem in strings)
    return [f"{f.name} {hashlib.sha256(f.read_bytes()).hexdigest()}" for f in named]


def used_modules(trees: list[ast.AST], root: Path = ROOT) -> set[str]:
    """The modules of the house that a notebook's cells name, re-exports of a package resolved."""
    found: set[str] = set()
    aliases: dict[str, str] = {}  # name in the notebook -> package it stands for
    for tree in trees:
        found |= imported(tree, package="", root=root, aliases=aliases)
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                if node.value.id in aliases:
                    found |= _resolve(aliases[node.value.id], node.attr, root)
    return found


def closure(modules: Iterable[str], root: Path = ROOT) -> set[str]:
    """These modules and all that they import from the house, directly or not."""
    done: set[str] = set()
    todo = list(modules)
    while todo:
        name = todo.pop()
        if name in done:
            continue
        done.add(name)
        if name in PACKAGES:  # an __init__ is here for a name of its own, not for its re-exports
            continue
        file = _file(name, root)
        package = name if file.name == "__init__.py" else name.rpartition(".")[0]
        todo.extend(imported(_tree(name, root), package, root))
    return done


def imported(tree: ast.AST, package: str, root: Path, aliases: dict | None = None) -> set[str]:
    """The house's modules that the imports in `tree` lead to; `aliases` collects `import d2lmini as d2l`."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                if name.name.split(".")[0] not in PACKAGES:
                    continue
                if name.name in PACKAGES:
                    if aliases is not None:
                        aliases[name.asname or name.name] = name.name
                else:
                    found.add(name.name)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join(above + ([node.module] if node.module else []))
            if base.split(".")[0] in PACKAGES:
                for name in node.names:
                    found |= _resolve(base, name.name, root)
    return {name for name in found if _file(name, root) is not None}


def _resolve(base: str, name: str, root: Path) -> set[str]:
    """The module in which `base.name` is made: a submodule, a re-export, or `base` itself."""
    if _file(f"{base}.{name}", root) is not None:
        return {f"{base}.{name}"}
    file = _file(base, root)
    if file is None or file.name != "__init__.py":
        return {base}
    if name in INNOCENT:
        return set()
    exports = _tree(base, root)
    if name == "*":
        return imported(exports, base, root)
    for node in exports.body:
        if isinstance(node, ast.ImportFrom) and any((a.asname or a.name) == name for a in node.names):
            single = ast.ImportFrom(
                node.module, [a for a in node.names if (a.asname or a.name) == name], node.level
            )
            return imported(ast.Module([single], []), base, root)
    return {base}


def _file(module: str, root: Path) -> Path | None:
    if module.split(".")[0] not in PACKAGES:
        return None
    path = root.joinpath(*module.split("."))
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.is_file():
            return file
    return None


def _tree(module: str, root: Path) -> ast.Module:
    file = _file(module, root)
    return ast.parse(file.read_text(encoding="utf-8"), str(file))


def _hash(parts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
