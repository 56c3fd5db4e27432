"""Finds methods.

Installed packages register them under the entry-point group ``bench.methods``; ``--plugin FILE``
adds a file, and :func:`register_class` a class of a script or a notebook.

An entry point names a method class, or a module: then every method class that it defines is
registered. A plugin that does not import is named in a warning; the others still work.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from bench.base.entry_points import (
    distribution_and_version,
    distribution_of,
    method_points,
)
from bench.base.errors import BenchError, UnknownName
from bench.base.paths import recorded_path
from bench.base.plugin_files import check_plugin_files, hash_package, hash_plugin, import_file
from bench.base.text import looks_like_a_run
from bench.base.user_code import located, place_of_code
from bench.method.class_source import (
    file_of_module,
    has_changed_since_import,
    hash_class,
    is_typed_in,
)
from bench.method.contract import SETTINGS, Method
from bench.records.record import Code

TYPED_IN = "the class "
"""How the package of a class begins that a script or a notebook defines."""


@dataclass(frozen=True)
class Plugin:
    """A registered method and its origin."""

    name: str
    cls: type[Method]
    package: str  # the distribution, or the file given with --plugin
    version: str
    # of its code; None for a method of this package, whose ``code_version`` says it
    sha256: str | None

    @property
    def module(self) -> ModuleType:
        return sys.modules[self.cls.__module__]

    @property
    def code(self) -> Code:
        """The code as a record names it: a file as a command of the working directory names it."""
        package = self.package
        if package.endswith(".py"):
            package = recorded_path(package)
        return Code(
            package=package,
            version=self.version,
            sha256=self.sha256,
            code_version=self.cls.code_version,
        )

    @property
    def folder(self) -> Path:
        """The folder of the module; its recipes are in ``recipes/<name>.toml`` next to it.

        Of a notebook: the working directory.
        """
        try:
            return Path(inspect.getfile(self.cls)).parent
        except (TypeError, OSError):
            return Path.cwd()


@dataclass(frozen=True)
class Registry:
    plugins: dict[str, Plugin]
    warnings: tuple[str, ...]

    def __getitem__(self, name: str) -> Plugin:
        try:
            return self.plugins[name]
        except KeyError:
            hint = "bench methods"
            if looks_like_a_run(name):
                hint = "bench evaluate RUN scores a run"
            elif "/" in name or name == "builtin":
                hint = "bench evaluate MODEL scores a model, --backbone MODEL trains one"
            elif Path(file := f"{name}.py").is_file():
                hint = f"{file} in place of {name}, or --plugin {file}"
            raise UnknownName("method", name, self.plugins, hint=hint) from None

    def __iter__(self) -> Any:
        return iter(sorted(self.plugins))

    def of_run(self, run_id: str, method: str, made_by: Code) -> Plugin:
        """Return the method of a run.

        ``made_by``: the package or file that its record names. Raises BenchError if it is not here.
        """
        if method not in self.plugins:
            package = made_by.package or "a plugin"
            hint = "install it, or --plugin FILE"
            if package.endswith(".py"):
                hint = f"--plugin {package}"
            elif package.startswith(TYPED_IN):
                hint = "in Python, plugins=[the class]; or write it into a file: --plugin FILE"
            raise BenchError(
                f"{run_id} was made with the method '{method}' of {package}, which is not here",
                hint,
            )
        return self.plugins[method]


def discover(files: Sequence[Path] = ()) -> Registry:
    """Return every method that is installed or in a given file.

    If a name occurs twice, the first counts; this package's come first.

    An entry point with a name that is already used is left out with a warning. Raises BenchError
    for such a file, and for a file that is given twice.
    """
    check_plugin_files(files)
    plugins: dict[str, Plugin] = {}
    warnings: list[str] = []
    for point in method_points():
        try:
            package, version = distribution_and_version(point)
            methods = _plugins_of(point.load(), package, version, _hash_of_installed)
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
    for name, plugin in _classes.items():
        plugins.setdefault(name, plugin)  # a file that is named wins
    return Registry(plugins, tuple(warnings))


_classes: dict[str, Plugin] = {}
"""The methods that scripts and notebooks handed over as classes, by name: the last one of each
name.
"""


def register_class(cls: Any) -> Plugin:
    """Register the method class of a script or a notebook, also one that it imported.

    This process knows it from now on by its name.

    Raises BenchError for an object that is no method class, for a name that an installed method
    has, and for a class from a file that changed after it was imported.
    """
    if not isinstance(cls, type):
        raise BenchError(
            f"an object of the class {type(cls).__name__} is not a method",
            "bench.train takes the class, or a name; bench.evaluate takes an object that encodes",
        )
    if not issubclass(cls, Method):
        raise BenchError(
            f"the class {cls.__name__} is not a method",
            "derive it from bench.method.TorchMethod, bench.method.Method or a method such as "
            "bench.methods.simcse.SimCSE",
        )
    if "name" not in vars(cls):
        raise BenchError(
            f"the class {cls.__name__} defines no name", f"name = '{_name_for(cls)}' in it"
        )
    _classes.pop(str(cls.name), None)  # an earlier class of this name is replaced
    installed = discover().plugins
    known = installed.get(cls.name)
    if known is not None and known.cls is cls:
        return known
    if has_changed_since_import(cls):
        raise BenchError(
            f"{file_of_module(cls.__module__)} has changed since {cls.__name__} was imported "
            "from it",
            f"importlib.reload({cls.__module__}) and import the class again, or start again",
        )
    try:
        (plugin,) = _plugins_of(cls, _origin_of(cls), "", hash_class)
    except (TypeError, ValueError) as error:
        raise BenchError(str(error)) from None
    _add(installed, [plugin])
    _classes[plugin.name] = plugin
    return plugin


def _name_for(cls: type) -> str:
    """Return the name of a method by its class: "MyLoss" becomes "my-loss"."""
    return re.sub(r"[^a-z0-9]+", "-", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", cls.__name__).lower())


def _origin_of(cls: type) -> str:
    """Return the origin of a class as a record names it: its file, or its name and its script."""
    file = file_of_module(cls.__module__)
    if is_typed_in(cls) or file is None:
        place = "a notebook" if file is None else file.name
        return f"{TYPED_IN}{cls.__qualname__} ({place})"
    return str(file)


def _add(plugins: dict[str, Plugin], more: Sequence[Plugin]) -> None:
    """Add all of ``more``; a class that is there already is no second one.

    Raises BenchError, and adds none, if another class has the name: a run could not say which
    method it is.
    """
    together = dict(plugins)
    for plugin in more:
        taken = together.setdefault(plugin.name, plugin)
        if taken.cls is plugin.cls:
            continue
        hint = f"choose another name in {plugin.package}: name = 'my-{plugin.name}'"
        if taken.package == plugin.package:
            raise BenchError(
                f"{plugin.package} defines the method '{plugin.name}' twice: "
                f"in the classes {taken.cls.__qualname__} and {plugin.cls.__qualname__}",
                hint,
            )
        raise BenchError(
            f"{plugin.package} defines the method '{plugin.name}', and so does {taken.package}",
            hint,
        )
    plugins |= together


def from_file(file: Path) -> list[Plugin]:
    """Return the methods that a Python file defines.

    Raises BenchError if it does not import, or defines no method and no suite.
    """
    module = import_file(file)
    try:
        plugins = _plugins_of(module, str(file), "", lambda _: hash_plugin(file))
    except (TypeError, ValueError) as error:
        sys.modules.pop(module.__name__, None)
        raise BenchError(f"--plugin {file}: {error}") from None
    if not plugins and not hasattr(module, "SUITE"):
        raise BenchError(
            f"--plugin {file} defines no method",
            "a method is a class with a `name` that derives from Method or TorchMethod; a suite "
            "is a Suite called SUITE",
        )
    return plugins


def _plugins_of(
    loaded: Any, package: str, version: str, hash_of: Callable[[type[Method]], str | None]
) -> list[Plugin]:
    """Return the plugins of a method class, or of the classes that a module defines.

    ``hash_of``: class -> the sha256 of its code. Raises TypeError and ValueError for a bad class.
    """
    classes = [loaded]
    if inspect.ismodule(loaded):
        # a class may have several names there: METHOD = Mine
        defined = dict.fromkeys(filter(inspect.isclass, vars(loaded).values()))
        classes = [cls for cls in defined if cls.__module__ == loaded.__name__]
    methods = [cls for cls in classes if issubclass(cls, Method) and "name" in vars(cls)]
    for cls in methods:
        if not re.fullmatch("[a-z0-9-]+", str(cls.name)):
            raise ValueError(f"{place_of_code(cls)}: name is {cls.name!r}: use a-z, 0-9 and '-'")
        some = not isinstance(cls.settings, str) and set(cls.settings)
        if not some or not some <= set(SETTINGS):
            raise ValueError(
                f"{place_of_code(cls)}: settings is {cls.settings!r}: write a tuple, and choose "
                f"from {', '.join(SETTINGS)}"
            )
        if type(cls.code_version) is not int or cls.code_version < 1:
            raise ValueError(
                f"{place_of_code(cls)}: code_version is {cls.code_version!r}: write 1, and 2 "
                "after a change of its numbers"
            )
    return [Plugin(cls.name, cls, package, version, hash_of(cls)) for cls in methods]


def _hash_of_installed(cls: type[Method]) -> str | None:
    """Return the sha256 of the package that defines a class; None for this package."""
    if cls.__module__.partition(".")[0] == "bench":
        return None
    return hash_package(cls.__module__)
