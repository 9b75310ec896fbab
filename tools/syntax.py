"""A text form of Python's syntax trees that is the same on Python 3.11, 3.12 and 3.13.

`ast.dump` is not: 3.12 added `type_params`, 3.13 leaves out empty lists, and f-strings are cut
into constants differently. Here empty fields are skipped and neighbouring string parts joined.
Comments, layout, docstrings and the words of errors are not part of the form; names, constants
and order are.
"""

import ast

SKIPPED_FIELDS = {"ctx", "kind", "type_comment", "type_ignores"}


def dump(tree: ast.AST) -> str:
    """The text form of a node and all below it."""
    if isinstance(tree, ast.JoinedStr):
        return f"(JoinedStr {' '.join(_joined_parts(tree))})"
    if isinstance(tree, ast.Raise):  # what an error says changes no result; that and which one it raises may
        tree = ast.Raise(tree.exc.func if isinstance(tree.exc, ast.Call) else tree.exc, tree.cause)
    parts = [type(tree).__name__]
    for name, value in ast.iter_fields(tree):
        if name in SKIPPED_FIELDS:
            continue
        text = _value(value, statements=name in ("body", "orelse", "finalbody"))
        if text:
            parts.append(f"{name}={text}")
    return f"({' '.join(parts)})"


def dump_cell(source: str) -> str:
    """The text form of a notebook cell; IPython's own lines (`%magic`, `!command`) as they stand."""
    code, extra = split_magics(source)
    body = ast.parse(code).body
    # The last expression of a cell is shown, even when it is a bare string.
    parts = [dump(node) for node in body] + [ascii(line) for line in extra]
    if source.rstrip().endswith(";"):
        parts.append("quiet")
    return "\n".join(parts)


def split_magics(source: str) -> tuple[str, list[str]]:
    """A cell as (Python that parses, the lines that only IPython understands)."""
    if source.lstrip().startswith("%%"):
        return "", [source.strip()]
    try:
        ast.parse(source)
        return source, []
    except SyntaxError:
        lines, extra = [], []
        for line in source.splitlines():
            bare = line.strip()
            if bare.startswith(("%", "!", "?")) or bare.endswith("?"):
                extra.append(bare)
                line = line[: len(line) - len(line.lstrip())] + "pass"
            lines.append(line)
        return "\n".join(lines), extra


def _value(value, statements: bool = False) -> str:
    if value is None or (isinstance(value, list) and not value):
        return ""
    if isinstance(value, ast.AST):
        return dump(value)
    if isinstance(value, list):
        kept = [v for v in value if not (statements and _does_nothing(v))]
        return f"[{' '.join(_value(v) or '-' for v in kept)}]" if kept else ""
    return f"{type(value).__name__}:{value!a}"


def _does_nothing(node: ast.stmt) -> bool:
    bare_string = (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
    return bare_string or isinstance(node, ast.Pass)


def _joined_parts(node: ast.JoinedStr) -> list[str]:
    parts, text = [], ""
    for part in node.values:
        if isinstance(part, ast.Constant):
            text += str(part.value)
            continue
        if text:
            parts.append(ascii(text))
        text = ""
        parts.append(dump(part))
    return parts + ([ascii(text)] if text else [])
