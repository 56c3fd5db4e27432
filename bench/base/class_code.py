"""The code of a class that a script or a notebook defines, as one hash.

The file of a script does not identify a method in it: a script changes whenever its next experiment is written. So the class is walked
as Python holds it (:func:`hash_class`): its functions and values, its bases, and whatever these name in the same script or notebook,
directly or not. What they import from files is hashed as the code of a plugin file is (:mod:`bench.base.imported_code`).
"""

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

from bench.base.imported_code import OWN_PACKAGES, hash_file, hash_module, in_library
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
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def hash_class(cls: type) -> str:
    """sha256 of a class and of everything that its code names in its own module, directly or not.

    A function counts by its syntax tree, without comments; a number, a text or an array by its value; a module of the user, and what is
    imported from it, by its whole file; a library by its name. Blanks, and the order of definitions, do not count.
    """
    described: dict[str, str] = {}
    seen: set[int] = set()
    waiting: list[tuple[str, Any]] = [(cls.__qualname__, cls)]
    kept_alive = []  # an id is that of one object only while the object lives
    while waiting:
        name, value = waiting.pop()
        if _is_named(value) and id(value) in seen:
            continue
        seen.add(id(value))
        kept_alive.append(value)
        text, parts = _describe(value, cls.__module__)
        for part, below in parts:
            below_name = f"{name}.{part}"
            if _is_named(below) and "<" not in _full_name(below):
                # a function has one name, however many others use it
                below_name = _full_name(below)
                text += f"; {part} is {below_name}"
            waiting.append((below_name, below))
        # a cell that was run again leaves two functions of one name
        described[name] = described.get(name, "") + text
    digest = hashlib.sha256()
    for name in sorted(described):
        digest.update(f"{name}\0{described[name]}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def is_typed_in(cls: type) -> bool:
    """Tell whether a class was defined in a script that runs, or in a notebook: no import finds it again."""
    return cls.__module__ == "__main__" or file_of_module(cls.__module__) is None


def file_of_module(name: str) -> Path | None:
    """The source file of an imported module; None if it has none."""
    place = getattr(sys.modules.get(name), "__file__", None)
    if place is None or not Path(place).is_file():
        return None
    return Path(place)


def has_changed_since_import(cls: type) -> bool:
    """Tell whether the file of a class has other functions in it now than those that were imported."""
    module = sys.modules.get(cls.__module__)
    file = file_of_module(cls.__module__)
    loader = type(getattr(module, "__loader__", None)).__name__
    if file is None or loader != "SourceFileLoader":  # others change the code on purpose
        return False
    try:
        whole = compile(file.read_bytes(), str(file), "exec", dont_inherit=True)
    except (SyntaxError, ValueError, OSError):
        return True
    there = {code.co_qualname: _compiled_text(code) for code in _codes_in(whole)}
    for value in vars(cls).values():
        function = getattr(value, "__func__", value)
        if not isinstance(function, types.FunctionType) or function.__module__ != cls.__module__:
            continue
        code = function.__code__
        if code.co_filename != str(file):
            continue
        if there.get(code.co_qualname) != _compiled_text(code):
            return True
    return False


# --- one thing that the walk meets: its text, and the things in it ---


def _is_named(value: Any) -> bool:
    return isinstance(value, type | types.FunctionType | types.ModuleType)


def _full_name(value: Any) -> str:
    if isinstance(value, types.ModuleType):
        return value.__name__
    return f"{value.__module__}:{value.__qualname__}"


def _describe(value: Any, home: str) -> tuple[str, list[tuple[str, Any]]]:
    """Return a thing as a text, and the parts that it is made of. ``home``: the module of the class that is hashed."""
    if isinstance(value, types.ModuleType):
        return _module_text(value.__name__), []
    if isinstance(value, type):
        if value.__module__ != home:
            return f"{_full_name(value)} {_module_text(value.__module__)}", []
        return "class", list(_parts_of_class(value))
    if isinstance(value, types.FunctionType):
        if value.__module__ != home:
            return f"{_full_name(value)} {_module_text(value.__module__)}", []
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
    """Return what stands for an imported module: the hash of its code if it is the user's or a method's, else its name."""
    if name.partition(".")[0] == "bench":
        followed = any(name == one or name.startswith(f"{one}.") for one in OWN_PACKAGES)
        return (hash_module(name) or name) if followed else name
    file = file_of_module(name)
    if file is None or in_library(file):
        return name
    return hash_file(file)


def _object_text(value: Any) -> str:
    """The content of any other object, such as an array; its form in words if it cannot be stored."""
    try:
        return hashlib.sha256(pickle.dumps(value, protocol=4)).hexdigest()
    except Exception:  # an object's own code may raise anything
        return ADDRESS.sub("", repr(value))


def _parts_of_class(cls: type) -> Iterator[tuple[str, Any]]:
    for i, base in enumerate(cls.__bases__):
        yield f"base {i}", base
    for name, value in sorted(vars(cls).items()):
        if name not in MADE_BY_PYTHON:
            yield name, value


def _parts_of_function(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Defaults, what it encloses, what it is a wrapper of, and each thing of its module, or imported in it, that it names.

    Of a library's wrapper, such as ``torch.no_grad()``, no globals: they are the library's.
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
    for code in _codes_in(function.__code__):
        for step in dis.get_instructions(code):
            name = str(step.argval)
            if step.opname in GLOBAL_NAMES and name in function.__globals__:
                yield f"global {name}", function.__globals__[name]
            if step.opname == "IMPORT_NAME":
                yield f"import {name}", _import_text(name)


def _import_text(name: str) -> str:
    """Return what stands for a module that a function imports; nothing is imported here."""
    if name in sys.modules:
        return _module_text(name)
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return name
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return name
    return name if in_library(Path(spec.origin)) else hash_file(Path(spec.origin))


def _function_text(function: types.FunctionType) -> str:
    """The hash of a function's syntax tree; without its source, or for a lambda, its compiled form."""
    code = function.__code__
    if in_library(Path(code.co_filename)):
        return f"{Path(code.co_filename).name} {code.co_qualname}"
    tree = parse_source("".join(linecache.getlines(code.co_filename)).encode())
    for node in ast.walk(tree) if tree is not None else ():
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
        if first == code.co_firstlineno and node.name == code.co_name:
            return hash_tree(node)
    return _compiled_text(code)


def _codes_in(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes_in(constant)


def _compiled_text(code: types.CodeType) -> str:
    """The hash of compiled code, without the places of its lines."""
    digest = hashlib.sha256()
    for one in _codes_in(code):
        names = (one.co_names, one.co_varnames, one.co_freevars)
        constants = [_constant_text(constant) for constant in one.co_consts]
        digest.update(repr((one.co_code.hex(), names, constants)).encode())
    return digest.hexdigest()


def _constant_text(constant: Any) -> str:
    if isinstance(constant, types.CodeType):
        return constant.co_name  # its own code is hashed beside it
    if isinstance(constant, frozenset):  # which has another order in each process
        return f"frozenset {sorted(map(repr, constant))}"
    return repr(constant)
