"""Hash the syntax tree of a Python file, without comments, docstrings and layout.

``ast.dump`` writes one tree differently in Python 3.11, 3.12 and 3.13, and a run has one name on
all of them. So the tree is written here: every node with its fields that hold something.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable
from typing import Any

# how a name is used follows from its place; the others are words for type checkers, or about how a
# text was written
SKIPPED = {"ctx", "kind", "type_comment", "type_ignores"}


def parse_source(source: bytes) -> ast.Module | None:
    """Return the syntax tree of a file; None if this version cannot read it as Python."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def reads_docstrings(tree: ast.AST) -> bool:
    """Tell whether the code reads docstrings: then they count as code."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in ("__doc__", "getdoc"):
            return True
        if isinstance(node, ast.Attribute) and node.attr in ("__doc__", "getdoc"):
            return True
        if isinstance(node, ast.Constant) and node.value == "__doc__":
            return True
    return False


def hash_tree(tree: ast.AST, with_docstrings: bool = False) -> str:
    """Return the sha256 of a syntax tree, the same in every supported version of Python.

    ``with_docstrings``: statements that consist of a text count as well.
    """
    digest = hashlib.sha256()
    # a stack instead of recursion: a sum of a thousand terms is a tree a thousand levels deep
    waiting: list[Any] = [tree]
    while waiting:
        value = waiting.pop()
        if isinstance(value, _Written):
            digest.update(value)
        elif isinstance(value, ast.Constant):
            digest.update(_written("constant", type(value.value).__name__, _literal(value.value)))
        elif isinstance(value, ast.AST):
            digest.update(_written("node", type(value).__name__))
            waiting.append(_END)
            waiting.extend(reversed(_fields(value, with_docstrings)))
        elif isinstance(value, list):
            digest.update(_written("list", str(len(value))))
            waiting.extend(reversed(value))
        else:
            digest.update(_written("value", type(value).__name__, _literal(value)))
    return digest.hexdigest()


class _Written(bytes):
    """Bytes that go into the hash unchanged."""


def _written(*words: str | bytes) -> _Written:
    """Return the words, each after its length, so that different lists give different bytes."""
    parts = []
    for word in words:
        encoded = word if isinstance(word, bytes) else word.encode("utf-8", "surrogatepass")
        parts.append(b"%d:%s" % (len(encoded), encoded))
    return _Written(b"".join(parts))


_END = _written("end")


def _fields(node: ast.AST, with_docstrings: bool) -> list[Any]:
    """Return the names and values of a node's fields in turn, without empty fields."""
    found: list[Any] = []
    for name in sorted(node._fields):
        value = getattr(node, name, None)
        if name in SKIPPED:
            continue
        if isinstance(node, ast.JoinedStr):
            value = _joined_parts(node.values)
        elif isinstance(value, ast.JoinedStr) and not _joined_parts(value.values):
            continue  # "{x:}" has an empty format in some versions and none in others
        elif isinstance(value, list):
            value = _with_effect(value, with_docstrings)
        if value is None or value == []:
            continue
        found.append(_written("field", name))
        found.append(value)
    return found


def _with_effect(values: list[Any], with_docstrings: bool) -> list[Any]:
    """Return a list of nodes without ``pass`` and statements that are only a value."""
    kept = []
    for value in values:
        alone = value.value if isinstance(value, ast.Expr) else None
        is_text = isinstance(alone, ast.Constant) and isinstance(alone.value, str)
        if isinstance(value, ast.Pass):
            continue
        if isinstance(alone, ast.Constant) and not (is_text and with_docstrings):
            continue
        kept.append(value)
    return _with_sorted_imports(kept)


def _with_sorted_imports(values: list[Any]) -> list[Any]:
    """Return the list with imports sorted and split, so that a formatter changes nothing."""
    if not any(isinstance(value, ast.Import | ast.ImportFrom) for value in values):
        return values
    result: list[Any] = []
    run: list[ast.Import | ast.ImportFrom] = []
    for value in values:
        if isinstance(value, ast.Import):
            run.extend(ast.Import([alias]) for alias in value.names)
        elif isinstance(value, ast.ImportFrom):
            run.extend(ast.ImportFrom(value.module, [alias], value.level) for alias in value.names)
        else:
            result.extend(_sorted_run(run))
            result.append(value)
            run = []
    return result + _sorted_run(run)


def _sorted_run(run: list[ast.Import | ast.ImportFrom]) -> list[ast.Import | ast.ImportFrom]:
    """Sort neighbouring imports, unless a star or a repeated name makes their order count."""
    names = [node.names[0].asname or node.names[0].name for node in run]
    if "*" in names or len(set(names)) < len(names):
        return run
    return sorted(run, key=_import_key)


def _import_key(node: ast.Import | ast.ImportFrom) -> tuple[int, str, str, str]:
    """Return the sort key of an import of one name."""
    alias = node.names[0]
    if isinstance(node, ast.Import):
        return -1, "", alias.name, alias.asname or ""
    return node.level, node.module or "", alias.name, alias.asname or ""


def _joined_parts(values: Iterable[ast.expr]) -> list[ast.expr]:
    """Return the parts of an f-string with neighbouring texts joined and empty ones left out."""
    parts: list[ast.expr] = []
    for value in values:
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            before = parts[-1] if parts else None
            if isinstance(before, ast.Constant) and isinstance(before.value, str):
                parts[-1] = ast.Constant(before.value + value.value)
            elif value.value:
                parts.append(value)
        else:
            parts.append(value)
    return parts


def _literal(value: Any) -> str | bytes:
    """Return a value of the source as text.

    A text stays itself, because its ``repr`` depends on the version's table of Unicode.
    """
    if isinstance(value, str | bytes):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return hex(value)  # decimal digits are limited
    return repr(value)
