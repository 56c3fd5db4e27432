"""Import the Python file of ``--plugin`` under its own name, with the files that it imports."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

from bench.base.errors import BenchError, PluginFailed
from bench.base.hashes import file_sha256
from bench.base.import_scope import CodeFile, in_library, package_of_file
from bench.base.imported_code import files_of_plugin
from bench.base.user_code import located, watch_exit

_loaded: dict[str, tuple[Path, str]] = {}
"""Module -> its file and the hash of its content, for files that plugins have imported from their
folders.
"""


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

    It may import files of its folder and its own package. Such a file is run anew as well if it has
    changed since an earlier call, or if another plugin's folder has a file of that name.
    """
    check_plugin_files([file])
    watch_exit()
    _, package = package_of_file(file)
    helpers = files_of_plugin(file)[1:]
    _forget_changed(helpers)
    _make_importable(helpers)
    name = f"bench_plugin_{hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:12]}"
    if package:  # for its relative imports
        name = f"{package}.{name}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise BenchError(
            f"--plugin {file}: not a Python file", "give a file whose name ends in .py"
        )
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # a third party's code may raise anything
        sys.modules.pop(name, None)
        kind = PluginFailed if isinstance(error, SystemExit) else BenchError
        raise kind(f"--plugin {file} does not import: {located(error)}") from None
    for helper in helpers:
        if helper.name in sys.modules:
            _loaded[helper.name] = (helper.path, file_sha256(helper.path))
    return module


class _BesidePlugins:
    """A finder of Python's imports for files in the folders of plugins.

    The folders are not on ``sys.path``: a file ``datasets.py`` in one of them would hide the
    library of that name from everybody.
    """

    def __init__(self) -> None:
        # first part of a module's name -> the folder with that module
        self.folders: dict[str, Path] = {}

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return the spec of a module in a plugin's folder; None for all others."""
        if path is not None or name not in self.folders:
            return None
        return PathFinder.find_spec(name, [str(self.folders[name])])


_finder = _BesidePlugins()


def _make_importable(helpers: Sequence[CodeFile]) -> None:
    """Let Python find these files by name, unless an installed library has the name."""
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    for helper in helpers:
        top = helper.name.partition(".")[0]
        depth = helper.name.count(".")
        if not top.isidentifier() or _is_library(top):
            continue
        is_package = helper.path.name.startswith("__init__.")
        _finder.folders[top] = helper.path.parents[depth + is_package]
    importlib.invalidate_caches()


def _is_library(top: str) -> bool:
    """Tell whether Python or an installed library has a module of this name."""
    if top in sys.stdlib_module_names:
        return True
    spec = PathFinder.find_spec(top)
    return spec is not None and spec.origin is not None and in_library(Path(spec.origin))


def _forget_changed(helpers: Sequence[CodeFile]) -> None:
    """Let the files of a plugin's folder be imported anew if Python holds another version of one.

    All are forgotten, because unchanged ones hold objects of the changed ones.
    """
    for helper in helpers:
        _forget_folders_above(helper)
    imported = [helper for helper in helpers if _is_imported(helper)]
    if all(_is_current(helper) for helper in imported):
        return
    for helper in imported:
        sys.modules.pop(helper.name, None)
        _loaded.pop(helper.name, None)


def _forget_folders_above(helper: CodeFile) -> None:
    """Let a folder without ``__init__`` be looked for anew.

    Another plugin may have a folder of that name.
    """
    parent = helper.name.rpartition(".")[0]
    while parent:
        module = sys.modules.get(parent)
        if module is not None and getattr(module, "__file__", None) is None:
            del sys.modules[parent]
        parent = parent.rpartition(".")[0]


def _is_imported(helper: CodeFile) -> bool:
    """Tell whether the module of that name came from this file, or from another plugin's folder."""
    module = sys.modules.get(helper.name)
    if module is None:
        return False
    file = getattr(module, "__file__", None)
    return helper.name in _loaded or (file is not None and Path(file).absolute() == helper.path)


def _is_current(helper: CodeFile) -> bool:
    """Tell whether the module of that name was imported from this content of this file."""
    return _loaded.get(helper.name) == (helper.path, file_sha256(helper.path))
