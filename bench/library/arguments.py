"""The arguments of ``bench.train`` and similar functions, turned into the options of a run."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.base.errors import BenchError, UnknownName
from bench.base.files import expand_home
from bench.base.typed import convert_typed
from bench.library.results import Result
from bench.method import Method
from bench.method.config import KINDS, OPTIONS, split_variant
from bench.method.plugins import discover, register_class
from bench.method.recipe_checks import OF_ENCODERS, OTHER_NAMES, plain_key
from bench.method.recipe_defaults import ENCODER_VALUES, ON_REQUEST, TRAINING
from bench.method.recipe_files import read_custom
from bench.run.options import as_typed, read_fields
from bench.run.request import name_methods
from bench.score.suites import use_files

PathLike = str | os.PathLike[str]
Plugins = PathLike | type[Method] | Sequence[PathLike | type[Method]]
Methods = PathLike | type[Method] | Sequence[PathLike | type[Method]]
Seeds = int | str | Iterable[int]


def as_path(path: PathLike | None, argument: str = "runs") -> Path | None:
    """Return a path with the home folder expanded. Raises BenchError for anything else."""
    return None if path is None else expand_home(path_text(path, argument))


def path_text(path: Any, argument: str) -> str:
    """Return a path or a name as a text.

    Raises BenchError, which names the argument, for anything else.
    """
    if not isinstance(path, str | os.PathLike):
        raise BenchError(
            f"{argument}={path!r:.60}, of type {type(path).__name__}: expected a path or a name"
        )
    return str(os.fspath(path))


def run_reference(run: Any, argument: str = "run") -> str:
    """Return the folder of a result, or what else names a run, with the home folder expanded.

    Raises BenchError for anything else.
    """
    if isinstance(run, Result):
        return str(run.folder)
    return os.path.expanduser(path_text(run, argument))


def check_argument(argument: str, value: Any, kind: Any) -> None:
    """Raise BenchError, which names the argument, if a value is not of a type of msgspec."""
    try:
        convert_typed(value, kind)
    except ValueError as error:
        raise BenchError(f"{argument}={value!r:.60}: {error}") from None


def check_mapping(value: Any, argument: str, example: str) -> None:
    """Raise BenchError if an argument is not None or a dictionary with texts as keys."""
    if value is None:
        return
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise BenchError(f"{argument}={value!r:.60}: expected a dictionary of names", example)


def listed(value: Any) -> list[Any]:
    """Return one thing, or several, as a list."""
    if isinstance(value, str | os.PathLike | type) or not isinstance(value, Iterable):
        return [value]
    return list(value)


def use_plugins(plugins: Plugins) -> tuple[str, ...]:
    """Register classes of methods, and the suites of Python files; return the files."""
    files = []
    for plugin in listed(plugins):
        if isinstance(plugin, str | os.PathLike):
            files.append(str(expand_home(plugin)))
        else:
            register_class(plugin)
    if files:
        use_files([Path(file) for file in files])
    return tuple(files)


def find_methods(method: Methods, plugins: Plugins) -> dict[str, tuple[str, ...]]:
    """Return the fields of RunConfig that name methods: by name, class, Python file with methods,
    or recipe file.

    Raises BenchError if none is named, for anything else, and for a class and a file that define
    methods of one name.
    """
    targets = [_expanded(target) for target in listed(method)]
    fields = name_methods(targets, {"plugins": use_plugins(plugins)})
    if not fields.get("methods") and not fields.get("recipes"):
        raise BenchError("no method was named", 'bench.train("simcse"), or a class, or a file')
    return {"methods": (), "plugins": (), "recipes": (), **fields}


def _expanded(target: Any) -> Any:
    """Return a file with the home folder expanded; a name and a class as they are."""
    if isinstance(target, str | os.PathLike):
        return os.path.expanduser(os.fspath(target))
    return target


def recipe_texts(settings: Mapping[str, Any] | None, values: Mapping[str, Any]) -> dict[str, str]:
    """Return recipe values as ``--set`` takes them; a list is a series.

    Raises BenchError for a key that is given twice.
    """
    check_mapping(settings, "settings", 'settings={"batch_size": 128}')
    for key in (settings or {}).keys() & values.keys():
        raise BenchError(f"{key} is given twice: {key}=... and settings=", "leave one of them out")
    texts = {}
    for key, value in {**(settings or {}), **values}.items():
        series = value if isinstance(value, list | tuple | range) else [value]
        # numbers of numpy and torch become those of Python
        numbers = [item.item() if hasattr(item, "item") else item for item in series]
        texts[key] = as_typed(numbers)
    return texts


def check_recipe_keys(
    values: Iterable[str], function: Callable[..., Any], classes: Iterable[type[Method]]
) -> None:
    """Raise UnknownName for a keyword that is no argument and no recipe value."""
    arguments = [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is not parameter.VAR_KEYWORD
    ]
    known = {*TRAINING, *ON_REQUEST, *ENCODER_VALUES, *OF_ENCODERS, *arguments}
    for cls in classes:
        known |= {*cls.defaults, *cls.optional}
    name = f"bench.{function.__name__}"
    for key in values:
        if key in known:
            continue
        other = OTHER_NAMES.get(plain_key(key), "")
        if other and not other.startswith("--on "):  # which only the command line has
            raise BenchError(f"unknown argument '{key}' of {name}: it has another name", other)
        raise UnknownName("argument", key, known, f"of {name}", f"help({name})")


def classes_of(fields: Mapping[str, Sequence[str]]) -> list[type[Method]]:
    """Return the classes of the methods of a call, which :func:`find_methods` found.

    Names that no plugin defines are left out; a later check refuses them.
    """
    registry = discover([Path(file) for file in fields.get("plugins", ())])
    names = [split_variant(name)[0] for name in fields.get("methods", ())]
    names += [read_custom(Path(file)).method for file in fields.get("recipes", ())]
    return [registry.plugins[name].cls for name in names if name in registry.plugins]


ARGUMENTS = {"backbones": "backbone", "names": "name"}
"""Field of RunConfig -> its argument, where the names differ."""


def read_arguments(arguments: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """Return the arguments of a call, by name, as fields of RunConfig.

    An argument that is None is not given, so that a recipe file or the environment decides.
    ``fields``: fields that are read already. Raises BenchError, which names the argument, for a
    value of the wrong type or out of its range.
    """
    given = {field: value for field, value in fields.items() if value is not None}
    for field in KINDS:
        argument = ARGUMENTS.get(field, field)
        value = arguments.get(argument)
        if field in fields or (value is None and field != "suites"):  # suites=None is a mistake
            continue
        if field in ("backbones", "suites"):
            value = [path_text(name, argument) for name in listed(value)]
        elif field in ("data", "runs"):
            value = path_text(as_path(value, argument), argument)
        elif field == "names":
            value = [value] if value else []
        given[field] = value
    for field, option in OPTIONS.items():
        text = os.environ.get(option.variable or "")
        if text:
            given.setdefault(field, os.path.expanduser(text))
    return read_fields(given, as_argument)


def as_argument(field: str, value: Any) -> str:
    """Return a field of RunConfig, or a recipe value, as an argument of a call."""
    name = field.removeprefix("set.")
    return f"{ARGUMENTS.get(name, name)}={value!r:.60}"
