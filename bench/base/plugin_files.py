"""Import the Python file of ``--plugin`` under its own name, with the files of its folder."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

from bench.base.errors import BenchError, PluginFailed
from bench.base.user_code import in_library, located

NAME = "bench_plugin_"
"""How the name of a plugin file's module begins."""

_files: dict[Path, tuple[Path, ...]] = {}
"""Plugin file -> itself and the files below its folder that it imported, sorted."""


def check_plugin_files(files: Sequence[Path]) -> None:
    """Raise BenchError if --plugin names no file, or one file twice."""
    for i, file in enumerate(files):
        if not file.is_file():
            raise BenchError(
                f"--plugin {file}: no such file",
                "a Python file that defines a method or a suite: docs/add-a-method.md, "
                "docs/add-a-suite.md",
            )
        if file.resolve() in [other.resolve() for other in files[:i]]:
            raise BenchError(f"--plugin {file} was given twice", "give each file once")


def import_file(file: Path) -> ModuleType:
    """Run a plugin file anew, and return it as a module. Raises BenchError if it does not import.

    It may import files of its folder and its own package, which are run anew as well: they may
    have changed, and another plugin's folder may have a file of that name.
    """
    check_plugin_files([file])
    folder, package = package_of_file(file)
    name = f"{NAME}{hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:12]}"
    if package:  # for its relative imports
        name = f"{package}.{name}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise BenchError(
            f"--plugin {file}: not a Python file", "give a file whose name ends in .py"
        )
    module = importlib.util.module_from_spec(spec)
    aside = _set_aside(file)
    _let_find([file.absolute().parent, folder])
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # a third party's code may raise anything
        sys.modules.pop(name, None)
        kind = PluginFailed if isinstance(error, SystemExit) else BenchError
        raise kind(f"--plugin {file} does not import: {located(error)}") from None
    finally:
        beside = _modules_beside(file)
        _imported.update(beside)
        for earlier, one in aside.items():
            sys.modules.setdefault(earlier, one)
    files = {Path(str(one.__file__)).absolute() for one in beside.values() if _has_file(one)}
    _files[file.resolve()] = tuple(sorted(files | {file.absolute()}))
    return module


def files_of_plugin(file: Path) -> tuple[Path, ...]:
    """Return an imported plugin file, and the files below its folder that it imported, sorted."""
    return _files[file.resolve()]


def hash_plugin(file: Path) -> str:
    """Return the sha256 of an imported plugin file and of the files below its folder that it
    imported.
    """
    folder, _ = package_of_file(file)
    digest = hashlib.sha256()
    for path in files_of_plugin(file):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(folder).as_posix()}\0{content}\n".encode())
    return digest.hexdigest()


def hash_package(module: str) -> str:
    """Return the sha256 of every Python file of the installed package that has a module."""
    top = sys.modules[module.partition(".")[0]]
    folders = [Path(place) for place in getattr(top, "__path__", ())]
    files = [path for folder in folders for path in sorted(folder.rglob("*.py"))]
    if not folders and _has_file(top):
        files = [Path(str(top.__file__))]
    digest = hashlib.sha256(module.encode())
    for path in files:
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def package_of_file(file: Path) -> tuple[Path, str]:
    """Return the folder above the outermost package of a file, and the package's dotted name.

    Without a package: the file's own folder, and "".
    """
    folder = file.absolute().parent
    parts: list[str] = []
    while (folder / "__init__.py").is_file() and folder.name.isidentifier():
        parts.insert(0, folder.name)
        folder = folder.parent
    return folder, ".".join(parts)


_imported: set[str] = set()
"""The names of all modules beside plugin files that these have imported."""


def _set_aside(file: Path) -> dict[str, ModuleType]:
    """Let the modules of a plugin's folder be imported anew, even if another plugin's folder has
    files with the same names. Returns them.
    """
    names = _imported.union(_modules_beside(file))
    return {name: sys.modules.pop(name) for name in names if name in sys.modules}


def _modules_beside(file: Path) -> dict[str, ModuleType]:
    """Return the imported modules with files below the folder of a plugin file, or in its package.

    Plugin files, modules of libraries and of bench are none of them, wherever they are installed.
    """
    folder, package = package_of_file(file)
    if package:
        folder = folder / package.partition(".")[0]
    found = {}
    for name, module in list(sys.modules.items()):
        # not getattr of a name: a lazy module would import what it stands for; None is no module
        about = getattr(module, "__dict__", {})
        places = [about.get("__file__"), *about.get("__path__", ())]
        place = next((Path(str(place)) for place in places if place), None)
        if place is None or name.partition(".")[0] in ("bench", "__main__") or NAME in name:
            continue
        if place.absolute().is_relative_to(folder) and not in_library(place):
            found[name] = module
    return found


def _has_file(module: ModuleType) -> bool:
    """Tell whether a module is a file, and not a folder without ``__init__``."""
    return getattr(module, "__file__", None) is not None


class _BesidePlugins:
    """A finder of Python's imports for files in the folders of plugins.

    The folders are not on ``sys.path``: a file ``datasets.py`` in one of them would hide the
    library of that name from everybody.
    """

    def __init__(self) -> None:
        self.folders: list[str] = []

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return the spec of a module in a plugin's folder, of the last plugin first; None for
        libraries.
        """
        if path is not None or name in sys.stdlib_module_names:
            return None
        spec = PathFinder.find_spec(name)
        if spec is not None and spec.origin is not None and in_library(Path(spec.origin)):
            return None
        for folder in self.folders:
            spec = PathFinder.find_spec(name, [folder])
            if spec is not None:
                return spec
        return None


_finder = _BesidePlugins()


def _let_find(folders: Sequence[Path]) -> None:
    """Let Python find the files in these folders by name, before the files of earlier plugins."""
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    _finder.folders = list(dict.fromkeys([*map(str, folders), *_finder.folders]))
    importlib.invalidate_caches()
