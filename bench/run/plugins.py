"""Finds methods. Installed packages register them under the entry-point group ``bench.methods``; ``--plugin FILE``
adds a file.

An entry point names a method class, or a module, of which every method class that it defines is registered. A plugin that does
not import is named in a warning; the others still work.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import inspect
import re
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from bench.base.errors import BenchError, UnknownName
from bench.base.user_code import check_files, import_file, located, place_of_code
from bench.method.contract import SETTINGS, Method
from bench.runs.record import Code

GROUP = "bench.methods"  # of the entry points
BUILT_IN = "sentence-bench"  # the distribution of this package's methods


@dataclass(frozen=True)
class Plugin:
    """A registered method and where it came from."""

    name: str
    cls: type[Method]
    package: str  # the distribution, or the file given with --plugin
    version: str
    sha256: str  # of the source that defines the method, including the modules of its package that it uses

    @property
    def module(self) -> ModuleType:
        return sys.modules[self.cls.__module__]

    @property
    def folder(self) -> Path:
        """The folder of the module; its recipes are in ``recipes/<name>.toml`` next to it."""
        return Path(inspect.getfile(self.cls)).parent


@dataclass(frozen=True)
class Registry:
    plugins: dict[str, Plugin]
    warnings: tuple[str, ...]

    def __getitem__(self, name: str) -> Plugin:
        try:
            return self.plugins[name]
        except KeyError:
            raise UnknownName("method", name, self.plugins, hint="bench methods") from None

    def __iter__(self) -> Any:
        return iter(sorted(self.plugins))

    def of_run(self, run_id: str, method: str, made_by: Code) -> Plugin:
        """The method of a run. ``made_by``: the package or file that its record names. Raises BenchError if it is not here."""
        if method not in self.plugins:
            package = made_by.package or "a plugin"
            raise BenchError(
                f"{run_id} was made with the method '{method}' of {package}, which is not here",
                f"--plugin {package}"
                if package.endswith(".py")
                else "install it, or --plugin FILE",
            )
        return self.plugins[method]


def entry_points() -> list[importlib.metadata.EntryPoint]:
    """The entry points of methods, this package's first: of several methods with one name, the first counts."""
    return sorted(
        importlib.metadata.entry_points(group=GROUP),
        key=lambda point: (distribution(point) != BUILT_IN, distribution(point)),
    )


def distribution(point: importlib.metadata.EntryPoint) -> str:
    return point.dist.name if point.dist else "?"


def discover(files: Sequence[Path] = ()) -> Registry:
    """Every method that is installed or in a given file. If a name occurs twice, the first counts, this package's before all others.

    An entry point whose name is already used is left out with a warning; for a file, BenchError is raised, and for one given twice.
    """
    check_files(files)
    plugins: dict[str, Plugin] = {}
    warnings: list[str] = []
    for point in entry_points():
        try:
            methods = _plugins_of(
                point.load(), distribution(point), point.dist.version if point.dist else ""
            )
            if not methods:
                raise TypeError("it defines no method")
            _add(plugins, methods)
        except (Exception, SystemExit) as error:  # a third party's code may raise anything
            warnings.append(
                f"plugin '{point.name}' of {distribution(point)} was left out: "
                f"{error.message if isinstance(error, BenchError) else located(error)}"
            )
    for file in files:
        _add(plugins, from_file(file))
    return Registry(plugins, tuple(warnings))


def _add(plugins: dict[str, Plugin], more: Sequence[Plugin]) -> None:
    """Add all of ``more``. Raises BenchError, and adds none, if a name is already used: a run could not say which method it is."""
    together = dict(plugins)
    for plugin in more:
        if (taken := together.setdefault(plugin.name, plugin)) is not plugin:
            raise BenchError(
                f"{plugin.package} defines the method '{plugin.name}', and so does {taken.package}",
                f"choose another name in {plugin.package}: name = 'my-{plugin.name}'",
            )
    plugins |= together


def from_file(file: Path) -> list[Plugin]:
    """The methods that a Python file defines. Raises BenchError if it does not import, or defines neither a method nor a suite."""
    module = import_file(file)
    try:
        plugins = _plugins_of(module, str(file))
    except (TypeError, ValueError) as error:
        sys.modules.pop(module.__name__, None)
        raise BenchError(f"--plugin {file}: {error}") from None
    if not plugins and not hasattr(module, "SUITE"):
        raise BenchError(
            f"--plugin {file} defines no method",
            "a method is a class with a `name` that derives from Method or TorchMethod; a suite is a Suite called SUITE",
        )
    return plugins


def _plugins_of(loaded: Any, package: str, version: str = "") -> list[Plugin]:
    """The plugins of a method class, or of the classes that a module defines. Raises TypeError and ValueError for a bad class."""
    classes: list[Any] = (
        [
            cls
            for cls in filter(inspect.isclass, vars(loaded).values())
            if cls.__module__ == loaded.__name__
        ]
        if inspect.ismodule(loaded)
        else [loaded]
    )
    methods = [cls for cls in classes if issubclass(cls, Method) and "name" in vars(cls)]
    for cls in methods:
        if not re.fullmatch("[a-z0-9-]+", str(cls.name)):
            raise ValueError(f"{place_of_code(cls)}: name is {cls.name!r}: use a-z, 0-9 and '-'")
        some = not isinstance(cls.settings, str) and set(cls.settings)
        if not some or not some <= set(SETTINGS):
            raise ValueError(
                f"{place_of_code(cls)}: settings is {cls.settings!r}: write a tuple, and choose from {', '.join(SETTINGS)}"
            )
    return [Plugin(cls.name, cls, package, version, source_hash(cls)) for cls in methods]


def source_hash(cls: type[Method]) -> str:
    """sha256 over the method's module and the modules of the same package that it names: what changes when the code does.

    If ``same_numbers.toml`` next to the module says that this code computes the same as earlier code, the sha256 of the earlier code.
    """
    module = sys.modules[cls.__module__]
    package, modules = _package(cls.__module__) + ".", {module.__name__}
    for value in vars(module).values():
        origin = value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", None)
        if isinstance(origin, str) and origin.startswith(package):
            modules.add(origin)
    digest = hashlib.sha256()
    for name in sorted(modules):
        if file := getattr(sys.modules.get(name), "__file__", None):
            digest.update(Path(file).read_bytes())
    table = Path(getattr(module, "__file__", None) or ".").parent / "same_numbers.toml"
    earlier = tomllib.loads(table.read_text("utf-8")) if table.is_file() else {}
    return str(earlier.get(digest.hexdigest(), digest.hexdigest()))


def _package(module: str) -> str:
    """The package whose modules a method's code may consist of. That of a built-in method is ``bench.methods``, never ``bench``."""
    built_in = "bench.methods"
    return built_in if module.startswith(built_in + ".") else module.partition(".")[0]
