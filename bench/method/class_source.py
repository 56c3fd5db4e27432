"""The source of a class that a script or a notebook hands over, and its hash."""

from __future__ import annotations

import ast
import hashlib
import inspect
import linecache
import sys
import types
from collections.abc import Iterator
from pathlib import Path

from bench.base.user_code import in_library

PLAIN = (str, int, float, bool, tuple, list, dict, type(None))
"""Values of a class whose text is the same in every process."""


def hash_class(cls: type) -> str:
    """Return the sha256 of a class's source, and of its bases that belong neither to bench nor to
    a library.

    A class of a running script or a notebook counts by its own source, because the rest of the
    script changes whenever its next experiment is written. One that was imported counts by its
    whole file. Functions of a script that the class calls do not count.
    """
    digest = hashlib.sha256()
    for base in cls.__mro__:
        file = file_of_module(base.__module__)
        if base.__module__ == "builtins" or base.__module__.partition(".")[0] == "bench":
            continue
        if file is not None and in_library(file):
            continue
        if file is None or is_typed_in(base):
            digest.update(source_of_class(base).encode("utf-8", "surrogatepass"))
        else:
            digest.update(file.read_bytes())
    return digest.hexdigest()


def source_of_class(cls: type) -> str:
    """Return the source of a class, also of a notebook's; without any, what was compiled."""
    try:
        return inspect.getsource(cls)
    except (OSError, TypeError):
        pass  # a notebook's class: Python knows the cell of its functions only
    for value in vars(cls).values():
        function = getattr(value, "__func__", value)
        if isinstance(function, types.FunctionType):
            found = _class_in_cell(cls.__name__, function.__code__.co_filename)
            if found is not None:
                return found
    return _compiled(cls)


def _compiled(cls: type) -> str:
    """Return the compiled functions and the plain values of a class that has no source, as of
    ``python -c``.
    """
    parts = [cls.__qualname__]
    for name, value in sorted(vars(cls).items()):
        function = getattr(value, "__func__", value)
        if isinstance(function, types.FunctionType):
            parts += [name, *map(_compiled_text, _codes_in(function.__code__))]
        elif not name.startswith("__") and isinstance(value, PLAIN):
            parts += [name, repr(value)]
    return "\n".join(parts)


def _compiled_text(code: types.CodeType) -> str:
    """Return a compiled function's code and constants, without its line numbers."""
    constants = []
    for constant in code.co_consts:
        if isinstance(constant, frozenset):
            constants.append(repr(sorted(map(repr, constant))))
        elif not isinstance(constant, types.CodeType):
            constants.append(repr(constant))
    return " ".join([code.co_code.hex(), *code.co_names, *code.co_varnames, *constants])


def _class_in_cell(name: str, cell: str) -> str | None:
    """Return the source of the class with that name in a cell of a notebook; None without one."""
    source = "".join(linecache.getlines(cell))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef) and node.name == name:
            return ast.get_source_segment(source, node)
    return None


def file_of_module(name: str) -> Path | None:
    """Return the source file of an imported module; None without one."""
    file = getattr(sys.modules.get(name), "__file__", None)
    if file is None or not Path(file).is_file():
        return None
    return Path(file)


def is_typed_in(cls: type) -> bool:
    """Tell whether a class was defined in a running script or a notebook."""
    return cls.__module__ == "__main__" or file_of_module(cls.__module__) is None


def has_changed_since_import(cls: type) -> bool:
    """Tell whether the file of a class has other functions now than those that were imported."""
    module = sys.modules.get(cls.__module__)
    file = file_of_module(cls.__module__)
    loader = type(getattr(module, "__loader__", None)).__name__
    if file is None or loader != "SourceFileLoader":  # others change the code on purpose
        return False
    try:
        whole = compile(file.read_bytes(), str(file), "exec", dont_inherit=True)
    except (SyntaxError, ValueError, OSError):
        return True
    code_now = set(_codes_in(whole))
    for value in vars(cls).values():
        function = getattr(value, "__func__", value)
        if not isinstance(function, types.FunctionType):
            continue
        if function.__code__.co_filename == str(file) and function.__code__ not in code_now:
            return True
    return False


def _codes_in(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield a compiled code and all of the functions and classes in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes_in(constant)
