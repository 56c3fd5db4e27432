"""The packages and folders that are searched for the modules that a file imports."""

from __future__ import annotations

import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

OWN_PACKAGES = ("bench.methods", "bench.score.metrics", "bench.score.suites")
"""The packages of bench that are followed."""
LIBRARY_FOLDERS = frozenset(["site-packages", "dist-packages"])


@dataclass(frozen=True)
class CodeFile:
    """A file of code."""

    # the name that the others import; "" for the first file
    name: str
    path: Path
    # the package that its relative imports start from
    package: str = ""


@dataclass(frozen=True)
class ImportScope:
    """The places where imported modules are looked for."""

    folders: tuple[Path, ...]
    # the first parts of names that are looked for in ``folders``; None: any
    tops: frozenset[str] | None = None
    # packages that are looked for in their own folders
    packages: Mapping[str, Path] = field(default_factory=dict)

    def places(self, name: str) -> tuple[Sequence[Path], str]:
        """Return the folders to search for a module, and the name below them.

        There are no folders if the module is not followed.
        """
        for package, folder in self.packages.items():
            if name.startswith(package + "."):
                return [folder], name[len(package) + 1 :]
        top = name.partition(".")[0]
        if top == "bench" or (self.tops is not None and top not in self.tops):
            return [], name
        return self.folders, name


def own_packages() -> dict[str, Path]:
    """Return the folders of the packages of bench that are followed."""
    import bench

    found = {}
    for package in OWN_PACKAGES:
        parts = package.split(".")[1:]
        for folder in bench.__path__:
            package_folder = Path(folder).joinpath(*parts)
            if (package_folder / "__init__.py").is_file():
                found[package] = package_folder
                break
    return found


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


def in_library(path: Path) -> bool:
    """Tell whether a file belongs to an installed library or to Python itself."""
    standard = Path(sysconfig.get_path("stdlib"))
    return not LIBRARY_FOLDERS.isdisjoint(path.parts) or path.is_relative_to(standard)


def scope_of_file(file: Path, packages: Mapping[str, Path] | None = None) -> ImportScope:
    """Return the scope of a plugin file: its folder, and the folder of its package."""
    container, package = package_of_file(file)
    if packages is None:
        packages = own_packages()
    if in_library(container):
        # every installed package is there: only the file's own package is its code
        top = package.partition(".")[0] or file.stem
        return ImportScope((container,), frozenset([top]), packages)
    folders = dict.fromkeys([file.absolute().parent, container])
    return ImportScope(tuple(folders), None, packages)
