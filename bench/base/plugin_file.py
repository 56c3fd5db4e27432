"""Python files that a user gives by ``--plugin``: imported under a name of their own."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from bench.base.errors import BenchError, one_line


def check_file(file: Path) -> None:
    """Raises BenchError where --plugin names no file."""
    if not file.is_file():
        raise BenchError(
            f"--plugin {file}: no such file",
            "a Python file that defines a method or a suite: docs/add-a-method.md, docs/add-a-suite.md",
        )


def import_file(file: Path) -> ModuleType:
    """The module that the file is, run anew. Raises BenchError where it does not import."""
    check_file(file)
    name = f"bench_plugin_{hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise BenchError(f"--plugin {file}: not a Python file", "give a file whose name ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # a third party's code may raise anything
        sys.modules.pop(name, None)
        raise BenchError(f"--plugin {file} does not import: {one_line(error)}") from None
    return module
