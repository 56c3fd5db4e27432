"""Find the code of a method or suite on this machine by its name, without importing it."""

from __future__ import annotations

import ast
import importlib.metadata
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path

from bench.base.import_scope import CodeFile
from bench.base.import_search import find_installed
from bench.base.imported_code import hash_file, hash_module
from bench.base.syntax import parse_source

GROUP = "bench.methods"
"""The entry points of methods."""
BUILT_IN = "sentence-bench"
"""The distribution of this package's methods."""
LARGEST = 10_000_000
"""Bytes of a file that is read because a record names it."""


def hash_of_method(method: str, package: str | None = None) -> str | None:
    """Return the hash of a method's current code here; None without the method or its source.

    ``package``: a distribution, or the file of ``--plugin``, as a record names it. Does not import
    torch.
    """
    if package is not None and package.endswith(".py"):
        file = Path(package)
        try:
            readable = file.is_file() and file.stat().st_size <= LARGEST
        except (OSError, ValueError):
            return None
        return hash_file(file) if readable else None
    module = installed_methods().get(method)
    return None if module is None else _hash_of_module(module)


@cache
def _hash_of_module(module: str) -> str | None:
    return hash_module(module)


@cache
def installed_methods() -> dict[str, str]:
    """Return name -> module of each installed method, read from its source, our own first."""
    found: dict[str, str] = {}
    for point in method_points():
        module = point.module
        if module in found.values():
            continue
        installed = find_installed(module)
        if installed is None:
            continue
        file, _ = installed
        for name in _names_in(file):
            found.setdefault(name, module)
    return found


def method_points() -> list[importlib.metadata.EntryPoint]:
    """Return the entry points of methods, our own first: the first with a name counts."""
    return sorted(
        importlib.metadata.entry_points(group=GROUP),
        key=lambda point: (distribution_of(point) != BUILT_IN, distribution_of(point)),
    )


def distribution_of(point: importlib.metadata.EntryPoint) -> str:
    """Return the name of the distribution that registers an entry point."""
    return distribution_and_version(point)[0]


def distribution_and_version(point: importlib.metadata.EntryPoint) -> tuple[str, str]:
    """Return name and version of the distribution that registers an entry point."""
    if point.dist is None:
        return "?", ""
    return _name_and_version(point.dist)


# each question for a name parses a file, and a distribution may have 40 entry points
@lru_cache(maxsize=32)
def _name_and_version(distribution: importlib.metadata.Distribution) -> tuple[str, str]:
    return distribution.name, distribution.version


def _names_in(file: CodeFile) -> Iterator[str]:
    """Yield the values of ``name`` in the classes that a file defines."""
    tree = parse_source(file.path.read_bytes())
    if tree is None:
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef):
            continue
        for statement in node.body:
            if isinstance(statement, ast.Assign):
                yield from _values_of_name(statement.targets[0], statement.value)
            elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
                yield from _values_of_name(statement.target, statement.value)


def _values_of_name(target: ast.expr, value: ast.expr) -> Iterator[str]:
    """Yield the text that an assignment gives to ``name``.

    It may be ``name = "cls"`` or ``name, pooler = "cls", "avg"``.
    """
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for inner_target, inner_value in zip(target.elts, value.elts, strict=False):
            yield from _values_of_name(inner_target, inner_value)
        return
    if not isinstance(target, ast.Name) or target.id != "name":
        return
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield value.value
