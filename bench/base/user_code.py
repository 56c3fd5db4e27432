"""Plugins of other people: the import of a file that ``--plugin`` names, and where in it something was raised."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import inspect
import os
import sys
import sysconfig
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from bench.base.errors import (
    BenchError,
    PluginFailed,
    one_line,
)

# --- where in a plugin something was raised: the file and the line that its author looks for ---

GROUPS = ("bench.methods", "bench.suites")  # the entry points of plugins
STANDARD_LIBRARY = sysconfig.get_path("stdlib")


def located(error: BaseException) -> str:
    """ "dcl.py:37, in loss: IndexError: ...": what was raised, in one line, and where in a plugin's code, if it came through any."""
    place = place_of(error)
    return f"{place}: {one_line(error)}" if place else one_line(error)


def place_of(error: BaseException) -> str:
    """ "dcl.py:37, in loss": the last line of a plugin's code that the error came through; "" where it came through none."""
    if isinstance(error, SyntaxError) and error.filename and _is_plugin(error.filename, ""):
        return f"{_short(error.filename)}:{error.lineno}"
    place = function = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        if _is_plugin(code.co_filename, str(frame.f_globals.get("__name__"))):
            function = (
                function if code.co_name.startswith("<") else f", in {code.co_name}"
            )  # not "in <listcomp>"
            place = f"{_short(code.co_filename)}:{line}{function}"
    return place


def place_of_code(written: Any) -> str:
    """ "dcl.py:30, in loss": where a function or a class of a plugin begins; its name alone where no source is there."""
    written = inspect.unwrap(written)
    try:
        return f"{_short(inspect.getfile(written))}:{inspect.getsourcelines(written)[1]}, in {written.__name__}"
    except (OSError, TypeError):
        return str(written.__name__)


def _is_plugin(file: str, module: str) -> bool:
    """Neither this package nor a library: a file of the user, or of an installed package that registers plugins."""
    package = module.partition(".")[0]
    if file.startswith("<"):
        return False
    if module.startswith("bench.methods."):
        return True
    if package == "bench":
        return False
    library = file.startswith(STANDARD_LIBRARY) or not {
        "site-packages",
        "dist-packages",
    }.isdisjoint(Path(file).parts)
    return not library or package in {
        point.module.partition(".")[0]
        for group in GROUPS
        for point in importlib.metadata.entry_points(group=group)
    }


def _short(file: str) -> str:
    """Below the working directory the path from there, else the name of the file."""
    path, here = Path(file), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else path.name


@cache
def watch_exit() -> None:
    """Let ``os._exit`` of a plugin's code be an error of this process: it would end with exit code 0 and without a word."""
    leave, process = os._exit, os.getpid()

    def checked_exit(status: int) -> NoReturn:
        caller = sys._getframe(1)
        file, module = caller.f_code.co_filename, str(caller.f_globals.get("__name__"))
        if os.getpid() != process or not _is_plugin(file, module):
            leave(status)
        place = f"{_short(file)}:{caller.f_lineno}, in {caller.f_code.co_name}"
        sys.stdout.flush()
        print(
            f"error: {place}: os._exit({status!r}) ended the process", file=sys.stderr, flush=True
        )
        leave(1)

    os._exit = checked_exit


@contextmanager
def plugin_code(about: str) -> Iterator[None]:
    """While open, what a plugin's code raises becomes a PluginFailed, also ``sys.exit``; what bench itself raises stays as it is."""
    watch_exit()
    try:
        yield
    except BenchError:
        raise
    except (Exception, SystemExit) as error:
        if not place_of(error):
            raise
        raise PluginFailed(f"{about}: {located(error)}") from error


# --- the Python file that a user gives by ``--plugin``: imported under a name of its own ---


def check_files(files: Sequence[Path]) -> None:
    """Raises BenchError where --plugin names no file, or one file twice."""
    for i, file in enumerate(files):
        if not file.is_file():
            raise BenchError(
                f"--plugin {file}: no such file",
                "a Python file that defines a method or a suite: docs/add-a-method.md, docs/add-a-suite.md",
            )
        if file.resolve() in [other.resolve() for other in files[:i]]:
            raise BenchError(f"--plugin {file} was given twice", "give each file once")


def import_file(file: Path) -> ModuleType:
    """The module that the file is, run anew. Raises BenchError where it does not import."""
    check_files([file])
    watch_exit()
    name = f"bench_plugin_{hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise BenchError(
            f"--plugin {file}: not a Python file", "give a file whose name ends in .py"
        )
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # a third party's code may raise anything
        sys.modules.pop(name, None)
        raise (PluginFailed if isinstance(error, SystemExit) else BenchError)(
            f"--plugin {file} does not import: {located(error)}"
        ) from None
    return module
