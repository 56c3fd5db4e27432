"""Hash the code of a class that a script or a notebook defines.

The file of a script does not identify a method in it: a script changes whenever its next experiment
is written. So the class is walked as Python holds it (:func:`hash_class`): its functions and
values, its bases, and everything that these name in the same script or notebook, directly or not.
Modules that they import from files are hashed like the code of a plugin file
(:mod:`bench.base.imported_code`).
"""

from __future__ import annotations

import hashlib
import sys
import types
from typing import Any

from bench.base.class_parts import (
    codes_in,
    compiled_text,
    describe_value,
    file_of_module,
    full_name,
    is_named,
)


def hash_class(cls: type) -> str:
    """Return the sha256 of a class and of everything that its code names in its own module.

    A function counts by its syntax tree, without comments; a number, a text or an array by its
    value; a module of the user, and its imports, by its whole file; a library by its name. Blanks
    and the order of definitions do not count.
    """
    described: dict[str, str] = {}
    seen: set[int] = set()
    waiting: list[tuple[str, Any]] = [(cls.__qualname__, cls)]
    kept_alive = []  # an id belongs to one object only while the object lives
    while waiting:
        name, value = waiting.pop()
        if is_named(value) and id(value) in seen:
            continue
        seen.add(id(value))
        kept_alive.append(value)
        text, parts = describe_value(value, cls.__module__)
        for part, value_below in parts:
            below_name = f"{name}.{part}"
            if is_named(value_below) and "<" not in full_name(value_below):
                # a function has one name, however many others use it
                below_name = full_name(value_below)
                text += f"; {part} is {below_name}"
            waiting.append((below_name, value_below))
        # a cell that was run again leaves two functions with the same name
        described[name] = described.get(name, "") + text
    digest = hashlib.sha256()
    for name in sorted(described):
        digest.update(f"{name}\0{described[name]}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def is_typed_in(cls: type) -> bool:
    """Tell whether a class was defined in a running script or a notebook, out of imports' reach."""
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
    compiled_now = {code.co_qualname: compiled_text(code) for code in codes_in(whole)}
    for value in vars(cls).values():
        function = getattr(value, "__func__", value)
        if not isinstance(function, types.FunctionType) or function.__module__ != cls.__module__:
            continue
        code = function.__code__
        if code.co_filename != str(file):
            continue
        if compiled_now.get(code.co_qualname) != compiled_text(code):
            return True
    return False
