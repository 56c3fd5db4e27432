"""Finds methods. Installed packages register them under the entry-point group ``bench.methods``; ``--plugin FILE``
adds a file.

An entry point names a method class, or a module, of which every method class that it defines is registered. A plugin that does
not import is named in a warning; the others still work.
"""

from __future__ import annotations

import hashlib
import inspect
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from bench.base.errors import BenchError, UnknownName
from bench.base.imported_code import hash_file, hash_module
from bench.base.installed_code import distribution_of, method_points
from bench.base.plugin_files import check_files, import_file
from bench.base.user_code import located, place_of_code
from bench.method.contract import SETTINGS, Method
from bench.runs.record import Code


@dataclass(frozen=True)
class Plugin:
    """A registered method and where it came from."""

    name: str
    cls: type[Method]
    package: str  # the distribution, or the file given with --plugin
    version: str
    sha256: str  # of its code, see code_hash

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


def discover(files: Sequence[Path] = ()) -> Registry:
    """Every method that is installed or in a given file. If a name occurs twice, the first counts, this package's before all others.

    An entry point whose name is already used is left out with a warning; for a file, BenchError is raised, and for one given twice.
    """
    check_files(files)
    plugins: dict[str, Plugin] = {}
    warnings: list[str] = []
    for point in method_points():
        try:
            methods = _plugins_of(
                point.load(), distribution_of(point), point.dist.version if point.dist else ""
            )
            if not methods:
                raise TypeError("it defines no method")
            _add(plugins, methods)
        except (Exception, SystemExit) as error:  # a third party's code may raise anything
            warnings.append(
                f"plugin '{point.name}' of {distribution_of(point)} was left out: "
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
        plugins = _plugins_of(module, str(file), file=file)
    except (TypeError, ValueError) as error:
        sys.modules.pop(module.__name__, None)
        raise BenchError(f"--plugin {file}: {error}") from None
    if not plugins and not hasattr(module, "SUITE"):
        raise BenchError(
            f"--plugin {file} defines no method",
            "a method is a class with a `name` that derives from Method or TorchMethod; a suite is a Suite called SUITE",
        )
    return plugins


def _plugins_of(
    loaded: Any, package: str, version: str = "", file: Path | None = None
) -> list[Plugin]:
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
    return [Plugin(cls.name, cls, package, version, code_hash(cls, file)) for cls in methods]


def code_hash(cls: type[Method], file: Path | None = None) -> str:
    """The hash of a method's code: of its module and of all that this imports within ``bench.base.imported_code``'s reach.

    ``file``: the plugin file that defines it. An installed module's hash is that of its first look: what was imported stays as it
    was, whatever is written to its files later.
    """
    if file is not None:
        return hash_file(file)
    module = sys.modules[cls.__module__]
    if module not in _hashes:
        _hashes[module] = _hash_of_installed(module)
    return _hashes[module]


_hashes: WeakKeyDictionary[ModuleType, str] = WeakKeyDictionary()


def _hash_of_installed(module: ModuleType) -> str:
    known = hash_module(module.__name__)
    if known is not None:
        return known
    place = getattr(module, "__file__", None)
    if place is not None and Path(place).is_file():
        return hash_file(Path(place))
    return hashlib.sha256(
        module.__name__.encode()
    ).hexdigest()  # made in memory: there is no source
