"""Find the files behind imported names, as Python would."""

from __future__ import annotations

import importlib.machinery
import importlib.metadata
import importlib.util
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.base.import_names import file_state, read_code
from bench.base.import_scope import CodeFile, ImportScope, in_library, own_packages

GROUPS = ("bench.methods", "bench.suites")
"""The entry points where packages register methods and suites."""
SUFFIXES = (".py", *importlib.machinery.EXTENSION_SUFFIXES)


def find_installed(module: str) -> tuple[CodeFile, ImportScope] | None:
    """Return the file of an installed module and the scope of its imports; None without source.

    Nothing is imported: a package's own finder is asked only for its outermost name.
    """
    top = module.partition(".")[0]
    if top == "bench":
        scope: ImportScope | None = ImportScope((), None, own_packages())
    else:
        scope = _scope_of_installed(top)
    if scope is None:
        return None
    for found in _find(module, scope):
        if found.name == module:
            return CodeFile("", found.path, found.package), scope
    return None


def _scope_of_installed(top: str) -> ImportScope | None:
    """Return the scope of an installed package or module; None if it is not installed."""
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError, AttributeError):
        return None
    if spec is None:
        return None
    if spec.submodule_search_locations is not None:
        inside = [Path(location) for location in spec.submodule_search_locations]
    elif spec.origin is not None:
        inside = [Path(spec.origin).with_suffix("")]
    else:
        return None
    folders = tuple(dict.fromkeys(path.absolute().parent for path in inside))
    tops = None
    if any(map(in_library, folders)):
        tops = _names_of_distribution(top)
    return ImportScope(folders, tops, own_packages())


def _names_of_distribution(top: str) -> frozenset[str]:
    """Return the names that the distribution of a plugin installs next to each other."""
    names = {top}
    for group in GROUPS:
        for point in importlib.metadata.entry_points(group=group):
            if point.module.partition(".")[0] != top or point.dist is None:
                continue
            for file in point.dist.files or []:
                if file.suffix == ".py" and file.parts[0] != "..":
                    names.add(file.parts[0].removesuffix(".py"))
    return frozenset(names)


def imported_files(file: CodeFile, scope: ImportScope) -> Iterator[CodeFile]:
    """Yield the files within the scope that one file imports, ``__init__`` files included."""
    read = read_code(str(file.path), file_state(file.path))
    for name in read.modules:
        yield from _find(_absolute(name, file.package), scope)
    for name in read.stars:
        yield from _find_starred(_absolute(name, file.package), scope)
    if read.by_name:
        for name in _named_by_text(read.texts, file.package):
            yield from _find(name, scope)
            if name.endswith("."):  # "helpers." and a name that is only known at run time
                yield from _find_all(name.rstrip("."), scope)
    if read.lists_modules and file.path.name == "__init__.py":
        yield from _find_all(file.package, scope)
    yield from _files_by_text(file, read.texts)


def _absolute(name: str, package: str) -> str:
    """Return a module's name without leading dots: "..x" in "a.b" is "a.x"."""
    relative = name.lstrip(".")
    level = len(name) - len(relative)
    if not level:
        return name
    parts = package.split(".") if package else []
    kept = parts[: len(parts) - level + 1]
    if relative:
        kept.append(relative)
    return ".".join(kept)


def _named_by_text(texts: frozenset[str], package: str) -> Iterator[str]:
    """Yield the module names among the texts of a file that imports by name.

    A relative name is yielded with each package that it may start from.
    """
    names = [text for text in sorted(texts) if re.fullmatch(r"\.*\w+(\.\w+)*\.?", text)]
    absolute = [name for name in names if not name.startswith(".")]
    yield from absolute
    for name in names:
        if not name.startswith("."):
            continue
        for start in [package, *absolute]:
            if start:
                yield _absolute(name, start)


def _find(name: str, scope: ImportScope) -> Iterator[CodeFile]:
    """Yield the files that an import of this name runs: each ``__init__``, then the module."""
    name = name.rstrip(".")
    folders, rest = scope.places(name)
    parts = rest.split(".")
    before = name.removesuffix(rest)
    for i, part in enumerate(parts):
        if not part.isidentifier():
            return
        dotted = before + ".".join(parts[: i + 1])
        below, file = _look(part, folders)
        if file is not None:
            package = dotted if below else dotted.rpartition(".")[0]
            yield CodeFile(dotted, file, package)
        folders = below
        if not folders:
            return


def _look(part: str, folders: Sequence[Path]) -> tuple[Sequence[Path], Path | None]:
    """Return the folders of the modules within a name, and the file of the name itself.

    They are found as Python does: a package, a module, then a folder without ``__init__``.
    """
    spread = []
    for folder in folders:
        for suffix in SUFFIXES:
            init = folder / part / f"__init__{suffix}"
            if init.is_file():
                return [folder / part], init
        for suffix in SUFFIXES:
            file = folder / f"{part}{suffix}"
            if file.is_file():
                return [], file
        if (folder / part).is_dir():
            spread.append(folder / part)
    return spread, None


def _find_starred(name: str, scope: ImportScope) -> Iterator[CodeFile]:
    """Yield the modules that a star import may bring: those that ``__init__`` names in a text."""
    for found in list(_find(name, scope)):
        if found.name == name and found.package == name:
            for text in sorted(read_code(str(found.path), file_state(found.path)).texts):
                if text.isidentifier():
                    yield from _find(f"{name}.{text}", scope)


def _find_all(package: str, scope: ImportScope) -> Iterator[CodeFile]:
    """Yield all modules of a package, and those within its packages."""
    folders, rest = scope.places(package)
    for part in rest.split("."):
        folders, _ = _look(part, folders)
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            yield from _find(".".join((package, *parts)).removesuffix(".__init__"), scope)


def _files_by_text(file: CodeFile, texts: frozenset[str]) -> Iterator[CodeFile]:
    """Yield Python files that a file names by a text, in its folder or below.

    ``spec_from_file_location`` and ``runpy`` take such names.
    """
    folder = file.path.absolute().parent
    names = [text for text in sorted(texts) if text.endswith(".py") and "\0" not in text]
    if not names:
        return
    below = [text for text in sorted(texts) if text and not text.startswith((".", "/", "~"))]
    for name in names:
        for part in ["", *below]:
            path = Path(folder, part, name)
            try:
                inside = path.is_file() and path.resolve().is_relative_to(folder.resolve())
            except (OSError, ValueError):
                continue
            if inside:
                yield CodeFile(path.relative_to(folder).as_posix(), path, file.package)
