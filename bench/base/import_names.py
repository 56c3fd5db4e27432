"""Read the names that one file of code imports, and its hash."""

from __future__ import annotations

import ast
import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from bench.base.syntax import hash_tree, parse_source, reads_docstrings

IMPORTS_BY_NAME = frozenset(
    ["import_module", "__import__", "find_spec", "run_module", "resolve_name"]
)
"""A file that uses one of these may import any module that it names in a text."""
LISTS_MODULES = frozenset(["iter_modules", "walk_packages"])
"""A file that uses one of these may import every module of its folder."""
LONGEST_NAME = 199
"""Characters of a text that may name a module or a file."""


@dataclass(frozen=True)
class CodeRead:
    """One file of code, as read."""

    # sha256 of its syntax tree, without docstrings
    hash: str
    reads_docstrings: bool
    # names that it imports, relative ones with their dots
    modules: frozenset[str]
    # names of the modules that it imports by a star
    stars: frozenset[str]
    # texts in it, up to LONGEST_NAME characters
    texts: frozenset[str]
    # it may import any module that it names in a text
    by_name: bool
    # it may import every module of its folder
    lists_modules: bool


def file_state(path: Path) -> tuple[int, int]:
    """Return the time and size of a file; they change with it."""
    facts = path.stat()
    return facts.st_mtime_ns, facts.st_size


@lru_cache(maxsize=1024)
def read_code(path: str, state: tuple[int, int]) -> CodeRead:
    """Read a file. A changed ``state``, its time and size, makes it be read again."""
    source = Path(path).read_bytes()
    tree = parse_source(source) if path.endswith(".py") else None
    if tree is None:  # compiled, or not Python that this version reads
        return CodeRead(
            hash=hashlib.sha256(source).hexdigest(),
            reads_docstrings=False,
            modules=frozenset(),
            stars=frozenset(),
            texts=frozenset(),
            by_name=False,
            lists_modules=False,
        )
    modules: set[str] = set()
    stars: set[str] = set()
    texts: set[str] = set()
    words: set[str] = set()
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and _for_type_checkers(node.test):
            waiting.extend(node.orelse)
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue  # a docstring
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            modules.add(module)
            prefix = module if module.endswith(".") else f"{module}."
            for alias in node.names:
                words.add(alias.name)
                if alias.name == "*":
                    stars.add(module)
                else:
                    modules.add(prefix + alias.name)
        elif isinstance(node, ast.Name):
            words.add(node.id)
        elif isinstance(node, ast.Attribute):
            words.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.add(node.value)
        waiting.extend(ast.iter_child_nodes(node))
    return CodeRead(
        hash=hash_tree(tree),
        reads_docstrings=reads_docstrings(tree),
        modules=frozenset(modules),
        stars=frozenset(stars),
        texts=frozenset(text for text in texts if len(text) <= LONGEST_NAME),
        by_name=not words.isdisjoint(IMPORTS_BY_NAME),
        lists_modules=not words.isdisjoint(LISTS_MODULES),
    )


def hash_with_docstrings(path: Path) -> str:
    """Hash a file's syntax tree with its docstrings, for code that reads docstrings."""
    source = path.read_bytes()
    tree = parse_source(source)
    if tree is None:
        return hashlib.sha256(source).hexdigest()
    return hash_tree(tree, with_docstrings=True)


def _for_type_checkers(test: ast.expr) -> bool:
    """Tell whether a condition is TYPE_CHECKING."""
    if isinstance(test, ast.Attribute):
        return test.attr == "TYPE_CHECKING"
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"
