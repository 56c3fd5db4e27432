"""Plugins of other people: the import of a file that ``--plugin`` names, and what a check of the contract found."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from bench.base.errors import BenchError, one_line


@dataclass(frozen=True)
class CheckResult:
    """``about``: the setting of a method, or the task of a suite."""

    about: str
    check: str
    passed: bool
    seen: str


DEPRECATED = r"bench\.(method|score\.suites)\b"
"""How the text of a DeprecationWarning begins that is about the contract: docs/releasing.md."""


class Failed(Exception):
    """A check that does not hold; the text is what was seen."""


def result_of(about: str, check: str, function: Callable[[], str]) -> CheckResult:
    """What ``function`` returned, or why it failed: also where it uses what is deprecated. Raises BenchError where nothing could be
    checked at all."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", DEPRECATED, DeprecationWarning)
            return CheckResult(about, check, True, function())
    except Failed as error:
        return CheckResult(about, check, False, str(error))
    except BenchError:
        raise
    except Exception as error:  # a plugin's own code
        return CheckResult(about, check, False, one_line(error))


# --- the Python file that a user gives by ``--plugin``: imported under a name of its own ---


def check_file(file: Path) -> None:
    """Raises BenchError where --plugin names no file."""
    if not file.is_file():
        raise BenchError(
            f"--plugin {file}: no such file",
            "a Python file that defines a method or a suite: docs/add-a-method.md, docs/add-a-suite.md",
        )


def check_files(files: Sequence[Path]) -> None:
    """Raises BenchError where --plugin names no file, or one file twice."""
    seen: set[Path] = set()
    for file in files:
        check_file(file)
        if file.resolve() in seen:
            raise BenchError(f"--plugin {file} was given twice", "give each file once")
        seen.add(file.resolve())


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
