"""The package reads from top to bottom: each module imports only from those before it."""

import ast

from conftest import ROOT

PACKAGE = ROOT / "d2lmini"

ORDER = [
    "checks",
    "masks",
    "positions",
    "attention",
    "blocks",
    "models",
    "perceiver",
    "text_perceiver",
    "text",
    "batches",
    "losses",
    "optim",
    "training",
    "sampling",
    "generation",
    "seq2seq",
    "tasks",
    "wirings",
    "contests",
    "tournament",
    "baselines",
    "results",
    "claims",
    "plotting",
    "diagrams",
    "timing",
    "costs",
    "parameters",
    "figures",
    "exercises",
]


def modules() -> list[str]:
    """The names of the package's modules; a folder counts as one."""
    files = [p.stem for p in PACKAGE.glob("*.py") if p.stem != "__init__"]
    return sorted(files + [p.parent.name for p in PACKAGE.glob("*/__init__.py")])


def sources(name: str) -> list:
    folder = PACKAGE / name
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [PACKAGE / f"{name}.py"]


def imports(name: str) -> set[str]:
    """The modules of the package that `name` imports, wherever in the file it does."""
    found = set()
    for file in sources(name):
        inside = len(file.relative_to(PACKAGE).parts)  # 1 for a module, 2 in a folder
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                parts = (node.module or "").split(".") if node.module else []
                if node.level == inside:
                    found |= {parts[0]} if parts else {alias.name for alias in node.names}
                elif node.level == 0 and parts[:1] == ["d2lmini"]:
                    found |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
            elif isinstance(node, ast.Import):
                found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("d2lmini.")}
                assert all(a.name != "d2lmini" for a in node.names), f"{file.name} imports the whole package"
    return found


def test_every_module_has_its_place_in_the_order():
    assert modules() == sorted(ORDER), "put new modules into ORDER, after those they import from"


def test_imports_point_one_way():
    for place, name in enumerate(ORDER):
        later = imports(name) - set(ORDER[:place])
        assert not later, f"{name} imports {sorted(later)}, which do not come before it in ORDER"


def test_the_package_itself_only_exports():
    first = (PACKAGE / "__init__.py").read_text(encoding="utf-8")
    tree = ast.parse(first)
    allowed = (ast.Import, ast.ImportFrom, ast.Assign, ast.Expr)
    assert all(isinstance(node, allowed) for node in tree.body), "__init__ exports; it does not compute"
