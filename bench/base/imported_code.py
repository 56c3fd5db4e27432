"""Hash the code of a Python file and of every file that it imports, by reading, not importing.

A method, a suite or a model is identified by its code (:func:`hash_code`): the syntax trees of its
file and of everything that this file imports, directly or not, in

* ``bench.methods``, ``bench.score.metrics`` and ``bench.score.suites``: the code that computes
  losses and scores,
* the folder of a plugin file, and the packages in it,
* its own package, if it is installed.

Imports of torch and of the rest of ``bench`` are not followed, and data files are not read. A
module counts wherever it is imported: in a function, by ``from . import x``, by a star, or by a
name in a text of the file, if the file imports by name.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from bench.base.import_names import file_state, hash_with_docstrings, read_code
from bench.base.import_scope import CodeFile, ImportScope, package_of_file, scope_of_file
from bench.base.import_search import find_installed, imported_files


def code_files(start: CodeFile, scope: ImportScope) -> list[CodeFile]:
    """Return the file and all files of code that it imports, directly or not.

    The first file comes first; the others are sorted by name.
    """
    found = {start.path.absolute(): start}
    waiting = [start]
    while waiting:
        for file in imported_files(waiting.pop(), scope):
            path = file.path.absolute()
            if path not in found:
                found[path] = file
                waiting.append(file)
    return sorted(found.values(), key=lambda file: (file is not start, file.name))


def hash_code(start: CodeFile, scope: ImportScope) -> str:
    """Return the sha256 of the syntax trees of a file and its imports (:func:`code_files`)."""
    files = code_files(start, scope)
    contents = [read_code(str(file.path), file_state(file.path)) for file in files]
    with_docstrings = any(content.reads_docstrings for content in contents)
    digest = hashlib.sha256()
    for file, content in zip(files, contents, strict=True):
        tree_hash = content.hash
        if with_docstrings:
            tree_hash = hash_with_docstrings(file.path)
        digest.update(f"{file.name}\0{tree_hash}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def files_of_plugin(file: Path) -> list[CodeFile]:
    """Return a plugin file, and the files that it imports from its folder and its package."""
    return code_files(_plugin_file(file), scope_of_file(file, packages={}))


def hash_file(file: Path) -> str:
    """Return the hash of the code of a plugin file (:func:`hash_code`)."""
    return hash_code(_plugin_file(file), scope_of_file(file))


def _plugin_file(file: Path) -> CodeFile:
    _, package = package_of_file(file)
    return CodeFile("", file.absolute(), package)


def hash_module(module: str) -> str | None:
    """Return the hash of the code of an installed module; None without source. Imports nothing."""
    found = find_installed(module)
    if found is None:
        return None
    file, scope = found
    return hash_code(file, scope)
