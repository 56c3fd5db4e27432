"""Find the file and line in a plugin's code where an error was raised."""

from __future__ import annotations

import importlib.metadata
import inspect
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.base.entry_points import GROUP
from bench.base.errors import BenchError, PluginFailed, one_line

LIBRARY_FOLDERS = frozenset(["site-packages", "dist-packages"])
STANDARD_LIBRARY = sysconfig.get_path("stdlib")


def located(error: BaseException) -> str:
    """Return the error in one line, after its place in a plugin's code.

    For example "dcl.py:37, in loss: IndexError: ...".
    """
    reason = one_line(error)
    place = place_of(error)
    if not place:
        return reason
    return f"{place}: {reason}"


def place_of(error: BaseException) -> str:
    """Return the last line of a plugin's code that the error came through: "dcl.py:37, in loss".

    It is "" if the error came through none.
    """
    if isinstance(error, SyntaxError) and error.filename and _is_plugin(error.filename, ""):
        return f"{_short(error.filename)}:{error.lineno}"
    place = function = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        if _is_plugin(code.co_filename, str(frame.f_globals.get("__name__"))):
            if not code.co_name.startswith("<"):  # not "in <listcomp>"
                function = f", in {code.co_name}"
            place = f"{_short(code.co_filename)}:{line}{function}"
    return place


def place_of_code(written: Any) -> str:
    """Return the first line of a plugin's function or class: "dcl.py:30, in loss".

    Without its source, only the name is returned.
    """
    written = inspect.unwrap(written)
    try:
        file = inspect.getfile(written)
        _, line = inspect.getsourcelines(written)
        return f"{_short(file)}:{line}, in {written.__name__}"
    except (OSError, TypeError):
        return str(written.__name__)


def _is_plugin(file: str, module: str) -> bool:
    """Tell whether a file is neither ours nor a library's.

    It may be the user's, or belong to an installed package that registers plugins.
    """
    package = module.partition(".")[0]
    if file.startswith("<"):
        return False
    if module.startswith("bench.methods."):
        return True
    if package == "bench":
        return False
    if not file.startswith(STANDARD_LIBRARY) and LIBRARY_FOLDERS.isdisjoint(Path(file).parts):
        return True
    for point in importlib.metadata.entry_points(group=GROUP):
        if point.module.partition(".")[0] == package:
            return True
    return False


def in_library(path: Path) -> bool:
    """Tell whether a file belongs to an installed library or to Python itself."""
    return not LIBRARY_FOLDERS.isdisjoint(path.parts) or path.is_relative_to(STANDARD_LIBRARY)


def _short(file: str) -> str:
    """Return the path from the working directory, or the file's name if it is elsewhere."""
    path, working_folder = Path(file), Path.cwd()
    if path.is_relative_to(working_folder):
        return str(path.relative_to(working_folder))
    return path.name


@contextmanager
def plugin_code(action: str) -> Iterator[None]:
    """Turn errors of a plugin's code, ``sys.exit`` included, into a PluginFailed.

    Errors of bench itself are unchanged.
    """
    try:
        yield
    except BenchError:
        raise
    except (Exception, SystemExit) as error:
        if not place_of(error):
            raise
        raise PluginFailed(f"{action}: {located(error)}") from error
