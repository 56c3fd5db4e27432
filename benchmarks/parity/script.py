"""Run single statements, functions and classes of somebody's script without running the script.

The authors' tokenising, collating and embedding functions are nested in a `main()` that also
downloads models and starts a training; here they are found by name in the file and run by
themselves. Needs nothing but Python: both halves can import it.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any


class Script:
    """One of the authors' scripts; its statements can be run one by one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tree = ast.parse(path.read_text(encoding="utf-8"), str(path))

    def run(self, node: ast.stmt, names: dict[str, Any]) -> dict[str, Any]:
        """Run the statement and return ``names`` after it.

        Its free variables, and those of an outer function, are looked up in ``names``.
        """
        exec(compile(ast.Module([node], []), str(self.path), "exec", dont_inherit=True), names)
        return names

    def define(self, name: str, names: dict[str, Any]) -> Any:
        """Define the function or class of that name, wherever it is in the script."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
                return self.run(node, names)[name]
        return None

    def conditions(self, text: str) -> list[ast.stmt]:
        """Return the `if` statements at the top of its main() that have ``text`` in their
        condition.
        """
        main = next(
            node
            for node in self.tree.body
            if isinstance(node, ast.FunctionDef) and node.name == "main"
        )
        return [
            node for node in main.body if isinstance(node, ast.If) and text in conditions_of(node)
        ]


def conditions_of(node: ast.If) -> str:
    """The conditions of an if ... elif ... chain."""
    rest = (
        conditions_of(node.orelse[0])
        if len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If)
        else ""
    )
    return ast.unparse(node.test) + "\n" + rest
