"""The arguments of ``bench.train`` and similar functions, turned into the options of a run."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.base.errors import BenchError, UnknownName
from bench.base.typed import convert_typed
from bench.data.fetching import offline_now
from bench.data.sets import DataFolder
from bench.method import Method
from bench.method.finished import optional_keys
from bench.method.plugins import Plugin, discover, from_file, register_class
from bench.method.recipe_checks import OF_ENCODERS, OTHER_NAMES, plain_key
from bench.method.recipe_defaults import ENCODER_VALUES, ON_REQUEST, TRAINING
from bench.method.recipe_files import read_custom
from bench.run.config import RunConfig, as_typed, split_variant
from bench.score.suites import split_names, use_files

PathLike = str | os.PathLike[str]
Plugins = PathLike | type[Method] | Sequence[PathLike | type[Method]]
Methods = PathLike | type[Method] | Sequence[PathLike | type[Method]]
Seeds = int | str | Iterable[int]


@dataclass(frozen=True)
class NamedMethods:
    """The methods of a call: names, plugin files and recipe files."""

    names: tuple[str, ...]
    plugins: tuple[str, ...]
    recipes: tuple[str, ...]


def as_path(path: PathLike | None, argument: str = "runs") -> Path | None:
    """Return a path with the home folder expanded. Raises BenchError for anything else."""
    return None if path is None else Path(path_text(path, argument)).expanduser()


def path_text(path: Any, argument: str) -> str:
    """Return a path or a name as a text.

    Raises BenchError, which names the argument, for anything else.
    """
    if not isinstance(path, str | os.PathLike):
        raise BenchError(
            f"{argument}={path!r:.60}, of type {type(path).__name__}: expected a path or a name"
        )
    return str(os.fspath(path))


def check_argument(argument: str, value: Any, kind: Any) -> None:
    """Raise BenchError, which names the argument, if a value is not of a type of msgspec."""
    try:
        convert_typed(value, kind)
    except ValueError as error:
        raise BenchError(f"{argument}={value!r:.60}: {error}") from None


def check_mapping(value: Any, argument: str, example: str) -> None:
    """Raise BenchError if an argument is not None or a dictionary."""
    if value is not None and not isinstance(value, Mapping):
        raise BenchError(f"{argument}={value!r:.60}: expected a dictionary", example)


def listed(value: Any) -> list[Any]:
    """Return one thing, or several, as a list."""
    if isinstance(value, str | os.PathLike | type) or not isinstance(value, Iterable):
        return [value]
    return list(value)


def backbone_names(backbone: PathLike | Sequence[PathLike]) -> list[str]:
    """Return the backbones that a call names, as texts. Raises BenchError for anything else."""
    return [path_text(name, "backbone") for name in listed(backbone)]


def use_plugins(plugins: Plugins) -> tuple[str, ...]:
    """Register classes of methods, and the suites of Python files; return the files."""
    files = []
    for plugin in listed(plugins):
        if isinstance(plugin, str | os.PathLike):
            files.append(str(Path(plugin).expanduser()))
        else:
            register_class(plugin)
    if files:
        use_files([Path(file) for file in files])
    return tuple(files)


def find_methods(method: Methods, plugins: Plugins) -> NamedMethods:
    """Find the methods that a call names: by name, class, Python file with methods, or recipe file.

    Raises BenchError if none is named, for anything else, and for a class and a file that define
    methods of one name.
    """
    names: list[str] = []
    files: list[str] = []
    recipes: list[str] = []
    classes: list[Plugin] = []
    for named in listed(method):
        if not isinstance(named, str | os.PathLike):
            plugin = register_class(named)
            classes.append(plugin)
            names.append(plugin.name)
            continue
        text = os.fspath(named)
        if text.endswith(".py"):
            file = Path(text).expanduser()
            use_files([file])
            files.append(str(file))
            names += [plugin.name for plugin in from_file(file)]
        elif text.endswith(".toml"):
            recipes.append(str(Path(text).expanduser()))
        else:
            names += [name.strip() for name in text.split(",") if name.strip()]
    others = [file for file in use_plugins(plugins) if file not in files]
    registry = discover([Path(file) for file in (*files, *others)])
    for plugin in classes:
        if registry[plugin.name].cls is not plugin.cls:
            raise BenchError(
                f"{registry[plugin.name].package} defines the method '{plugin.name}', "
                f"and so does {plugin.package}",
                f"choose another name in {plugin.package}: name = 'my-{plugin.name}'",
            )
    if not names and not recipes:
        raise BenchError("no method was named", 'bench.train("simcse"), or a class, or a file')
    return NamedMethods(tuple(dict.fromkeys(names)), (*files, *others), tuple(recipes))


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
        known |= {*cls.defaults, *optional_keys(cls)}
    name = f"bench.{function.__name__}"
    for key in values:
        if key in known:
            continue
        other = OTHER_NAMES.get(plain_key(key), "")
        if other and not other.startswith("--on "):  # which only the command line has
            raise BenchError(f"unknown argument '{key}' of {name}: it has another name", other)
        raise UnknownName("argument", key, known, f"of {name}", f"help({name})")


def classes_of(methods: NamedMethods) -> list[type[Method]]:
    """Return the classes of the methods of a call.

    Names that no plugin defines are left out; a later check refuses them.
    """
    registry = discover([Path(file) for file in methods.plugins])
    names = [split_variant(name)[0] for name in methods.names]
    names += [read_custom(Path(file)).method for file in methods.recipes]
    return [registry.plugins[name].cls for name in names if name in registry.plugins]


def call_options(
    methods: NamedMethods, values: Mapping[str, str], **options: Any
) -> dict[str, Any]:
    """Return the options of a run, for :func:`run_config`, from the arguments of a call.

    ``values``: recipe values, as :func:`recipe_texts` returns them. Options that are None are left
    out, so that a recipe file decides them.
    """
    given = {key: value for key, value in options.items() if value is not None}
    return {
        "methods": list(methods.names),
        "recipes": list(methods.recipes),
        "plugins": list(methods.plugins),
        "set": dict(values),
        **given,
    }


def run_config(
    options: Mapping[str, Any], suites: PathLike | Sequence[PathLike], data: PathLike | None
) -> RunConfig:
    """Build the options of a run.

    Raises BenchError for one of the wrong type, and for a folder without data.
    """
    folder = as_path(data or os.environ.get("BENCH_DATA") or None, "data")
    DataFolder(folder).check_root()
    names = ",".join(path_text(suite, "suites") for suite in listed(suites))
    is_offline = options.get("offline", False) or offline_now()
    table = {
        **options,
        "suites": list(split_names(names)),
        "data": None if folder is None else str(folder),
        "offline": is_offline,
    }
    return RunConfig.from_options(table)
