"""Describe one value inside a class: its text, and the values in it."""

from __future__ import annotations

import ast
import dis
import functools
import hashlib
import importlib.util
import linecache
import pickle
import re
import sys
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.base.import_scope import OWN_PACKAGES, in_library
from bench.base.imported_code import hash_file, hash_module
from bench.base.syntax import hash_tree, parse_source

MADE_BY_PYTHON = frozenset(
    [
        "__abstractmethods__",
        "__annotate__",
        "__annotate_func__",
        "__annotations__",
        "__annotations_cache__",
        "__conditional_annotations__",
        "__dict__",
        "__doc__",
        "__firstlineno__",
        "__module__",
        "__parameters__",
        "__qualname__",
        "__static_attributes__",
        "__weakref__",
        "_abc_impl",
    ]
)
"""Attributes of a class that its author did not write, or that compute nothing."""
GLOBAL_NAMES = ("LOAD_GLOBAL", "LOAD_NAME")
"""Bytecode instructions that read a global name."""
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
"""The address of an object in its ``repr``, which is another one in each process."""


def file_of_module(name: str) -> Path | None:
    """Return the source file of an imported module; None without one."""
    file = getattr(sys.modules.get(name), "__file__", None)
    if file is None or not Path(file).is_file():
        return None
    return Path(file)


def is_named(value: Any) -> bool:
    """Tell whether a value has its own name: a class, a function or a module."""
    return isinstance(value, type | types.FunctionType | types.ModuleType)


def full_name(value: Any) -> str:
    """Return the full name of a class, a function or a module."""
    if isinstance(value, types.ModuleType):
        return value.__name__
    return f"{value.__module__}:{value.__qualname__}"


def describe_value(value: Any, home: str) -> tuple[str, list[tuple[str, Any]]]:
    """Return a text for a value, and the named values in it.

    ``home``: the module of the class that is hashed.
    """
    if isinstance(value, types.ModuleType):
        return _module_text(value.__name__), []
    if isinstance(value, type):
        if value.__module__ != home:
            return f"{full_name(value)} {_module_text(value.__module__)}", []
        return "class", list(_parts_of_class(value))
    if isinstance(value, types.FunctionType):
        if value.__module__ != home:
            return f"{full_name(value)} {_module_text(value.__module__)}", []
        return _function_text(value), list(_parts_of_function(value))
    if isinstance(value, staticmethod | classmethod):
        return type(value).__name__, [("function", value.__func__)]
    if isinstance(value, property):
        return "property", [("get", value.fget), ("set", value.fset), ("delete", value.fdel)]
    if isinstance(value, functools.partial):
        parts = [("function", value.func), ("args", value.args), ("keywords", value.keywords)]
        return "partial", parts
    if isinstance(value, list | tuple):
        return type(value).__name__, [(str(i), part) for i, part in enumerate(value)]
    if isinstance(value, Mapping):
        return type(value).__name__, [(repr(key), part) for key, part in value.items()]
    if isinstance(value, set | frozenset):
        return f"set {sorted(map(repr, value))}", []
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return f"{type(value).__name__} {value!r}", []
    return _object_text(value), [("type", type(value))]


def _module_text(name: str) -> str:
    """Return the text for an imported module.

    It is the hash of its code if it is the user's or a method's, else its name.
    """
    if name.partition(".")[0] == "bench":
        for package in OWN_PACKAGES:
            if name == package or name.startswith(f"{package}."):
                return hash_module(name) or name
        return name
    file = file_of_module(name)
    if file is None or in_library(file):
        return name
    return hash_file(file)


def _object_text(value: Any) -> str:
    """Return the hash of any other object's content, such as an array's.

    An object that cannot be stored is described by its ``repr``.
    """
    try:
        return hashlib.sha256(pickle.dumps(value, protocol=4)).hexdigest()
    except Exception:  # an object's own code may raise anything
        return ADDRESS.sub("", repr(value))


def _parts_of_class(cls: type) -> Iterator[tuple[str, Any]]:
    """Yield the bases and attributes of a class, with their names."""
    for i, base in enumerate(cls.__bases__):
        yield f"base {i}", base
    for name, value in sorted(vars(cls).items()):
        if name not in MADE_BY_PYTHON:
            yield name, value


def _parts_of_function(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the values that a function uses, with names that tell them apart.

    These are its defaults, the variables that it encloses, the function that it wraps, and each
    global or imported name in it. Globals of a library's wrapper, such as ``torch.no_grad()``, are
    left out: they are the library's.
    """
    yield "defaults", function.__defaults__
    yield "keyword defaults", function.__kwdefaults__
    if hasattr(function, "__wrapped__"):
        yield "wrapped", function.__wrapped__
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if name == "__class__":  # of super()
            continue
        try:
            yield f"enclosed {name}", cell.cell_contents
        except ValueError:  # not bound yet
            continue
    if in_library(Path(function.__code__.co_filename)):
        return
    for code in codes_in(function.__code__):
        for step in dis.get_instructions(code):
            name = str(step.argval)
            if step.opname in GLOBAL_NAMES and name in function.__globals__:
                yield f"global {name}", function.__globals__[name]
            if step.opname == "IMPORT_NAME":
                yield f"import {name}", _import_text(name)


def _import_text(name: str) -> str:
    """Return the text for a module that a function imports; nothing is imported here."""
    if name in sys.modules:
        return _module_text(name)
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return name
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return name
    file = Path(spec.origin)
    return name if in_library(file) else hash_file(file)


def _function_text(function: types.FunctionType) -> str:
    """Return the hash of a function's syntax tree.

    A lambda, or a function without source, is hashed in its compiled form.
    """
    code = function.__code__
    if in_library(Path(code.co_filename)):
        return f"{Path(code.co_filename).name} {code.co_qualname}"
    tree = parse_source("".join(linecache.getlines(code.co_filename)).encode())
    if tree is None:
        return compiled_text(code)
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        if first == code.co_firstlineno and node.name == code.co_name:
            return hash_tree(node)
    return compiled_text(code)


def codes_in(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield a code object, and the code objects of the functions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes_in(constant)


def compiled_text(code: types.CodeType) -> str:
    """Return the hash of compiled code, without line numbers."""
    digest = hashlib.sha256()
    for part in codes_in(code):
        names = (part.co_names, part.co_varnames, part.co_freevars)
        constants = [_constant_text(constant) for constant in part.co_consts]
        digest.update(repr((part.co_code.hex(), names, constants)).encode())
    return digest.hexdigest()


def _constant_text(constant: Any) -> str:
    """Return a constant of compiled code as a text that is equal in each process."""
    if isinstance(constant, types.CodeType):
        return constant.co_name  # its own code is hashed as well
    if isinstance(constant, frozenset):  # which has another order in each process
        return f"frozenset {sorted(map(repr, constant))}"
    return repr(constant)
