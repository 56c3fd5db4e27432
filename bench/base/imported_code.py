"""The files that a Python file imports, found by reading and not by importing, and one hash of all of them.

A method, a suite or a model is identified by its code (:func:`hash_code`): the syntax trees of its file and of everything that this file
imports, directly or not, in

* ``bench.methods``, ``bench.score.metrics`` and ``bench.score.suites``, which hold what a loss and a score are computed with,
* the folder of a plugin file, and the packages in it,
* its own package, if it is installed.

Neither torch nor the rest of ``bench`` is followed, nor data files. A module counts wherever it is imported: in a function, by
``from . import x``, by a star, or by a name that stands in the file as a text, if the file imports by name.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.machinery
import importlib.metadata
import importlib.util
import re
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from bench.base.syntax import hash_tree, parse_source, reads_docstrings

GROUPS = ("bench.methods", "bench.suites")
"""The entry points under which packages register methods and suites."""
OWN_PACKAGES = ("bench.methods", "bench.score.metrics", "bench.score.suites")
"""The packages of bench that are followed."""
IMPORTS_BY_NAME = frozenset(
    ["import_module", "__import__", "find_spec", "run_module", "resolve_name"]
)
"""A file that uses one of these may import any module whose name it holds as a text."""
LISTS_MODULES = frozenset(["iter_modules", "walk_packages"])
"""A file that uses one of these may import every module of its folder."""
SUFFIXES = (".py", *importlib.machinery.EXTENSION_SUFFIXES)
LIBRARY_FOLDERS = frozenset(["site-packages", "dist-packages"])


@dataclass(frozen=True)
class CodeFile:
    """A file of code. ``name``: that by which the others import it, "" for the first; ``package``: what a relative import starts from."""

    name: str
    path: Path
    package: str = ""


@dataclass(frozen=True)
class ImportScope:
    """Where imported modules are looked for: a name of ``packages`` in its folder, any other in ``folders``.

    ``tops``: the first parts of names that are looked for in ``folders``; None for any.
    """

    folders: tuple[Path, ...]
    tops: frozenset[str] | None = None
    packages: Mapping[str, Path] = field(default_factory=dict)

    def places(self, name: str) -> tuple[Sequence[Path], str]:
        """The folders to search for a module, and the name below them; no folders if it is not followed."""
        for package, folder in self.packages.items():
            if name.startswith(package + "."):
                return [folder], name[len(package) + 1 :]
        top = name.partition(".")[0]
        if top == "bench" or (self.tops is not None and top not in self.tops):
            return [], name
        return self.folders, name


def own_packages() -> dict[str, Path]:
    """The folders of the packages of bench that are followed."""
    import bench

    found = {}
    for package in OWN_PACKAGES:
        parts = package.split(".")[1:]
        for folder in bench.__path__:
            place = Path(folder).joinpath(*parts)
            if (place / "__init__.py").is_file():
                found[package] = place
                break
    return found


def package_of_file(file: Path) -> tuple[Path, str]:
    """The folder that holds the outermost package of a file, and the package's dotted name; the file's own folder and "" without one."""
    folder, parts = file.absolute().parent, list[str]()
    while (folder / "__init__.py").is_file() and folder.name.isidentifier():
        parts.insert(0, folder.name)
        folder = folder.parent
    return folder, ".".join(parts)


def in_library(path: Path) -> bool:
    """Tell whether a file is one of an installed library or of Python itself."""
    standard = Path(sysconfig.get_path("stdlib"))
    return not LIBRARY_FOLDERS.isdisjoint(path.parts) or path.is_relative_to(standard)


def scope_of_file(file: Path, packages: Mapping[str, Path] | None = None) -> ImportScope:
    """Where the imports of a plugin file are looked for: beside it, and beside its package."""
    container, package = package_of_file(file)
    folders = tuple(dict.fromkeys([file.absolute().parent, container]))
    tops = None
    if in_library(container):
        # everything that is installed lies there: only its own package is its code
        folders, tops = (container,), frozenset([package.partition(".")[0] or file.stem])
    return ImportScope(folders, tops, own_packages() if packages is None else packages)


def find_installed(module: str) -> tuple[CodeFile, ImportScope] | None:
    """The file of an installed module, and where its imports are looked for; None if there is no source.

    Nothing is imported: a package's own finder is asked for its outermost name only.
    """
    top, packages = module.partition(".")[0], own_packages()
    scope = ImportScope((), None, packages)
    if top != "bench":
        try:
            spec = importlib.util.find_spec(top)
        except (ImportError, ValueError, AttributeError):
            return None
        if spec is None:
            return None
        if spec.submodule_search_locations is not None:
            inside = [Path(place) for place in spec.submodule_search_locations]
        elif spec.origin is not None:
            inside = [Path(spec.origin).with_suffix("")]
        else:
            return None
        folders = tuple(dict.fromkeys(place.absolute().parent for place in inside))
        tops = None
        if any(map(in_library, folders)):
            tops = _names_of_distribution(top)
        scope = ImportScope(folders, tops, packages)
    for found in _find(module, scope):
        if found.name == module:
            return CodeFile("", found.path, found.package), scope
    return None


def _names_of_distribution(top: str) -> frozenset[str]:
    """The names that the distribution with this name of a plugin installs next to each other."""
    names = {top}
    for group in GROUPS:
        for point in importlib.metadata.entry_points(group=group):
            if point.module.partition(".")[0] != top or point.dist is None:
                continue
            for file in point.dist.files or []:
                if file.suffix == ".py" and file.parts[0] != "..":
                    names.add(file.parts[0].removesuffix(".py"))
    return frozenset(names)


def code_files(start: CodeFile, scope: ImportScope) -> list[CodeFile]:
    """The file and all files of code that it imports, directly or not, sorted by name; the first file first."""
    found = {start.path.absolute(): start}
    waiting = [start]
    while waiting:
        for file in _imports(waiting.pop(), scope):
            place = file.path.absolute()
            if place not in found:
                found[place] = file
                waiting.append(file)
    return sorted(found.values(), key=lambda file: (file is not start, file.name))


def hash_code(start: CodeFile, scope: ImportScope) -> str:
    """sha256 of the syntax trees of a file and of everything that it imports within the scope (:func:`code_files`)."""
    files = code_files(start, scope)
    read = [_read(str(file.path), _state(file.path)) for file in files]
    with_docstrings = any(one.reads_docstrings for one in read)
    digest = hashlib.sha256()
    for file, one in zip(files, read, strict=True):
        content = one.hash
        if with_docstrings:
            content = _hash_with_docstrings(file.path)
        digest.update(f"{file.name}\0{content}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def files_of_plugin(file: Path) -> list[CodeFile]:
    """A plugin file, and the files beside it and in its package that it imports, directly or not."""
    scope = scope_of_file(file, packages={})
    return code_files(CodeFile("", file.absolute(), package_of_file(file)[1]), scope)


def hash_file(file: Path) -> str:
    """The hash of the code of a plugin file (:func:`hash_code`)."""
    return hash_code(CodeFile("", file.absolute(), package_of_file(file)[1]), scope_of_file(file))


def hash_module(module: str) -> str | None:
    """The hash of the code of an installed module (:func:`hash_code`); None if there is no source. Nothing is imported."""
    found = find_installed(module)
    return None if found is None else hash_code(*found)


# --- what one file says: kept while the file stays as it is ---


@dataclass(frozen=True)
class _FileRead:
    """One file of code, as read. ``modules``: names that it imports, relative ones with their dots; ``stars``: those by a star."""

    hash: str
    reads_docstrings: bool
    modules: frozenset[str]
    stars: frozenset[str]
    texts: frozenset[str]
    by_name: bool
    lists_modules: bool


def _state(path: Path) -> tuple[int, int]:
    facts = path.stat()
    return facts.st_mtime_ns, facts.st_size


@lru_cache(maxsize=1024)
def _read(path: str, state: tuple[int, int]) -> _FileRead:
    """Read a file; ``state``, its time and size, makes a changed one be read again."""
    source = Path(path).read_bytes()
    tree = parse_source(source) if path.endswith(".py") else None
    if tree is None:  # compiled, or not Python that this version reads
        content, none = hashlib.sha256(source).hexdigest(), frozenset[str]()
        return _FileRead(content, False, none, none, none, False, False)
    modules, stars, texts, words = set[str](), set[str](), set[str](), set[str]()
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and _for_type_checkers(node.test):
            waiting.extend(node.orelse)
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue  # a docstring
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            modules.add(module)
            for alias in node.names:
                words.add(alias.name)
                if alias.name == "*":
                    stars.add(module)
                else:
                    modules.add(module + ("" if module.endswith(".") else ".") + alias.name)
        elif isinstance(node, ast.Name):
            words.add(node.id)
        elif isinstance(node, ast.Attribute):
            words.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.add(node.value)
        waiting.extend(ast.iter_child_nodes(node))
    return _FileRead(
        hash=hash_tree(tree),
        reads_docstrings=reads_docstrings(tree),
        modules=frozenset(modules),
        stars=frozenset(stars),
        texts=frozenset(text for text in texts if len(text) < 200),
        by_name=not words.isdisjoint(IMPORTS_BY_NAME),
        lists_modules=not words.isdisjoint(LISTS_MODULES),
    )


def _hash_with_docstrings(path: Path) -> str:
    source = path.read_bytes()
    tree = parse_source(source)
    if tree is None:
        return hashlib.sha256(source).hexdigest()
    return hash_tree(tree, with_docstrings=True)


def _for_type_checkers(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"


# --- from names to files ---


def _imports(file: CodeFile, scope: ImportScope) -> Iterator[CodeFile]:
    """The files within the scope that one file imports; of a module in packages, their ``__init__`` too."""
    read = _read(str(file.path), _state(file.path))
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
    """A module's name without leading dots: "..x" in "a.b" is "a.x"."""
    relative = name.lstrip(".")
    level = len(name) - len(relative)
    if not level:
        return name
    parts = package.split(".") if package else []
    kept = parts[: len(parts) - level + 1]
    return ".".join([*kept, relative] if relative else kept)


def _named_by_text(texts: frozenset[str], package: str) -> Iterator[str]:
    """The names of modules among the texts of a file that imports by name; a relative one with each package that it may start from."""
    names = [text for text in sorted(texts) if re.fullmatch(r"\.*\w+(\.\w+)*\.?", text)]
    absolute = [name for name in names if not name.startswith(".")]
    yield from absolute
    for name in names:
        if name.startswith("."):
            for start in filter(None, [package, *absolute]):
                yield _absolute(name, start)


def _find(name: str, scope: ImportScope) -> Iterator[CodeFile]:
    """The files that an import of this name runs: of each package on the way its ``__init__``, then the module."""
    folders, rest = scope.places(name.rstrip("."))
    parts = rest.split(".")
    before = name.rstrip(".")[: len(name.rstrip(".")) - len(rest)]
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
    """Where the modules within this name lie, and its own file, as Python looks for them: a package, a module, a folder without
    ``__init__``."""
    spread = []
    for folder in folders:
        for suffix in SUFFIXES:
            if (init := folder / part / f"__init__{suffix}").is_file():
                return [folder / part], init
        for suffix in SUFFIXES:
            if (file := folder / f"{part}{suffix}").is_file():
                return [], file
        if (folder / part).is_dir():
            spread.append(folder / part)
    return spread, None


def _find_starred(name: str, scope: ImportScope) -> Iterator[CodeFile]:
    """The modules that a star import of a package may bring: those that its ``__init__`` names in a text, as ``__all__`` does."""
    for found in list(_find(name, scope)):
        if found.name == name and found.package == name:
            for text in sorted(_read(str(found.path), _state(found.path)).texts):
                if text.isidentifier():
                    yield from _find(f"{name}.{text}", scope)


def _find_all(package: str, scope: ImportScope) -> Iterator[CodeFile]:
    """All modules of a package, and those within its packages."""
    folders, rest = scope.places(package)
    for part in rest.split("."):
        folders, _ = _look(part, folders)
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            yield from _find(".".join((package, *parts)).removesuffix(".__init__"), scope)


def _files_by_text(file: CodeFile, texts: frozenset[str]) -> Iterator[CodeFile]:
    """Python files that a file names by a text, as ``spec_from_file_location`` and ``runpy`` take them, in its folder or below."""
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
