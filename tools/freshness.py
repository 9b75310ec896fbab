"""Were a notebook's stored outputs made by the code that is here now?

The digest of a notebook covers what can change its results and nothing else:

- the syntax of its code cells, but for the cell tagged "setup" (imports, and lines for Colab);
- the syntax of the functions, classes and constants of `d2lmini` that it uses, and of what those use;
- the content of the corpora, results files and figure scripts that they name.

The cells of a chapter's exercises are left out: nothing else depends on them, a test compares them with what
`tools.exercises` writes, and they are so quick that they are run again by themselves.

A comment, a docstring, the words of an error message, or a function that is not used does not
change it, so such an edit does not ask for ten minutes of training.
"""

import ast
import hashlib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import nbformat

from tools.syntax import dump, dump_cell, split_magics

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("d2lmini", "benchmarks")
INNOCENT = {"__version__", "__all__", "__doc__"}  # names that no result depends on


def digest_notebook(path: str | Path, root: Path = ROOT) -> str:
    """The digest of the notebook at `path`: 16 hexadecimal digits."""
    notebook = nbformat.read(path, as_version=4)
    sources = [(c.source, c.metadata.get("tags", [])) for c in notebook.cells
               if c.cell_type == "code" and "exercise" not in c.metadata.get("tags", [])]
    trees = [ast.parse(split_magics(source)[0]) for source, _ in sources]
    wanted = set()
    cells = ast.Module([node for tree in trees for node in tree.body], [])
    for names in imports_of(cells, "", root).values():
        wanted |= names
    used = closure(wanted | through_aliases(cells, cells, "", root), root)
    parts = [dump_cell(source) for source, tags in sources if "setup" not in tags]
    return _hash(parts + parts_of(used, root) + file_parts(trees + statements(used, root), root))


def digest_modules(names: Iterable[str], root: Path = ROOT, follow: bool = True) -> str:
    """The digest of modules, such as ["d2lmini.models", "benchmarks.seeds"], for a results file.

    Each counts whole; with `follow`, what they use of other modules counts too.
    """
    names = set(names)
    missing = sorted(n for n in names if _file(n, root) is None)
    if missing:
        raise ValueError(f"names: no such module of {PACKAGES}: {missing}")
    used = {(name, "*") for name in names}
    used = closure(used, root) if follow else {(name, n) for name in names for n in definitions(name, root)}
    return _hash(parts_of(used, root))


def parts_of(used: set[tuple[str, str]], root: Path = ROOT) -> list[str]:
    """The text form of each (module, name), in order."""
    return [f"{module} {name} {dump(node)}" for module, name in sorted(used)
            for node in definitions(module, root).get(name, [])]


def statements(used: set[tuple[str, str]], root: Path = ROOT) -> list[ast.AST]:
    return [node for module, name in sorted(used) for node in definitions(module, root).get(name, [])]


def file_parts(trees: list[ast.AST], root: Path = ROOT) -> list[str]:
    """Name and content of each data file whose name, with or without its ending, is a string in `trees`."""
    strings = {
        Path(node.value).name
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 200
    }
    globs = ("d2lmini/data_files/*.txt", "d2lmini/figures/*.js", "d2lmini/figures/*.css", "d2lmini/results/*.json")
    files = [file for pattern in globs for file in root.glob(pattern)]
    named = (f for f in sorted(files) if f.name in strings or f.stem in strings)
    return [f"{f.name} {hashlib.sha256(f.read_bytes()).hexdigest()}" for f in named]


def closure(wanted: Iterable[tuple[str, str]], root: Path = ROOT) -> set[tuple[str, str]]:
    """These (module, name) pairs and all that their definitions use from the house, directly or not.

    The name "*" stands for the whole module. A module's statements that bind no name (they act when
    it is imported) belong to it whenever something of it is used.
    """
    done: set[tuple[str, str]] = set()
    todo = list(wanted)
    while todo:
        module, name = todo.pop()
        if (module, name) in done:
            continue
        known = definitions(module, root)
        package = module if _file(module, root).name == "__init__.py" else module.rpartition(".")[0]
        if name == "*":
            todo.extend((module, n) for n in known)
            continue
        if name not in known:
            continue
        done.add((module, name))
        todo.append((module, ""))
        outside = imports_of(_tree(module, root), package, root)
        for node in known[name]:
            names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
            todo.extend((module, n) for n in names & known.keys())
            for n in names & outside.keys():
                todo.extend(outside[n])
            for found in imports_of(node, package, root).values():  # imports inside a function
                todo.extend(found)
            todo.extend(through_aliases(node, _tree(module, root), package, root))
    return done


def definitions(module: str, root: Path = ROOT) -> dict[str, list[ast.stmt]]:
    """The statements of a module by the name that each binds; under "" those that bind none."""
    found: dict[str, list[ast.stmt]] = {}
    for node in _tree(module, root).body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names = [node.name]
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]
        else:
            names = []
        if any(n in INNOCENT for n in names) or _is_docstring(node):
            continue
        for name in names or [""]:
            found.setdefault(name, []).append(node)
    return found


def imports_of(tree: ast.AST, package: str, root: Path) -> dict[str, set[tuple[str, str]]]:
    """For each name that `tree` imports from the house: the (module, name) it stands for; modules are left out."""
    found: dict[str, set[tuple[str, str]]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and _base(node, package).split(".")[0] in PACKAGES:
            base = _base(node, package)
            for alias in node.names:
                if not _is_module(base, alias.name, root) and _file(base, root) is not None:
                    found.setdefault(alias.asname or alias.name, set()).update(_resolve(base, alias.name, root))
    return found


def through_aliases(node: ast.AST, scope: ast.AST, package: str, root: Path) -> set[tuple[str, str]]:
    """What `node` uses as an attribute of a module that `scope` imports: `d2l.fit`, `d2lmini.text.letters`."""
    aliases: dict[str, str] = {}
    for statement in ast.walk(scope):
        if isinstance(statement, ast.Import):
            for a in statement.names:
                if a.name.split(".")[0] in PACKAGES:
                    aliases[a.asname or a.name.split(".")[0]] = a.name if a.asname else a.name.split(".")[0]
        elif isinstance(statement, ast.ImportFrom):
            for a in statement.names:
                base = _base(statement, package)
                if base.split(".")[0] in PACKAGES and _is_module(base, a.name, root):
                    aliases[a.asname or a.name] = f"{base}.{a.name}"
    found = set()
    for n in ast.walk(node):
        path = _dotted(n) if isinstance(n, ast.Attribute) else []
        if len(path) > 1 and path[0] in aliases:
            module = aliases[path[0]]
            for i, part in enumerate(path[1:], 1):
                if not _is_module(module, part, root):
                    found |= _resolve(module, part, root)
                    break
                module = f"{module}.{part}"
    return found


def _dotted(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Name):
        return [node.id]
    return [*head, node.attr] if isinstance(node, ast.Attribute) and (head := _dotted(node.value)) else []


def _base(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    above = package.split(".")[: len(package.split(".")) - node.level + 1]
    return ".".join(above + ([node.module] if node.module else []))


def _resolve(base: str, name: str, root: Path) -> set[tuple[str, str]]:
    """Where `base.name` is made, re-exports followed."""
    file = _file(base, root)
    if file is None or name in INNOCENT:
        return set()
    if file.name == "__init__.py" and name not in definitions(base, root):
        exports = imports_of(_tree(base, root), base, root)
        if name == "*":
            return set().union(*exports.values()) if exports else set()
        return exports.get(name, set())
    return {(base, name)}


def _is_module(base: str, name: str, root: Path) -> bool:
    """Does `base.name` mean a module? Not where the package gives the name of one to something in it."""
    if _file(f"{base}.{name}", root) is None:
        return False
    package = _file(base, root)
    return package is None or package.name != "__init__.py" or not any(
        isinstance(node, ast.ImportFrom) and node.module and any((a.asname or a.name) == name for a in node.names)
        for node in _tree(base, root).body)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _file(module: str, root: Path) -> Path | None:
    if module.split(".")[0] not in PACKAGES:
        return None
    path = root.joinpath(*module.split("."))
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.is_file():
            return file
    return None


def _tree(module: str, root: Path) -> ast.Module:
    return _parsed(_file(module, root).read_text(encoding="utf-8"))


@lru_cache(maxsize=None)
def _parsed(source: str) -> ast.Module:
    return ast.parse(source)


def _hash(parts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
