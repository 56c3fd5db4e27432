"""Replace absolute paths by names in the records and searches of a runs folder or a version.

    python tools/hide_paths.py runs               # runs of a bench that still wrote paths
    python tools/hide_paths.py leaderboards/v4    # a published version: also pages and manifest

Only texts change: no number, no hash of data, no prediction, no id, no score. The rest of a file
stays the same, byte for byte. In a version, its pages and the hashes of its manifest change too. A
version is changed only if a path was in it; ``leaderboards/ERRATA.md`` has to say so.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.base.files import write_whole
from bench.base.hashes import file_sha256
from bench.base.paths import (
    find_path,
    find_path_in_command,
    hidden_values,
    recorded_command,
)
from bench.records.names import RECORD
from bench.records.packed import MANIFEST
from bench.records.searches import SUMMARY

NOWHERE = Path("/nowhere-at-all")
"""No path is relative to it, so that each becomes its name."""
PAGES = ("*.html", "*.md", "*.csv")


def main(folders: list[str]) -> int:
    if not folders:
        print(__doc__, file=sys.stderr)
        return 2
    for name in folders:
        folder = Path(name)
        changed = hide_in_folder(folder)
        if (folder / MANIFEST).is_file():
            renew_manifest(folder, changed)
        print(f"{folder}: {len(changed)} files changed")
    return 0


def hide_in_folder(folder: Path) -> list[Path]:
    """Replace the paths below ``folder`` and return the files that changed.

    Pages get the names that the records got.
    """
    changed: list[Path] = []
    names: dict[str, str] = {}
    for file in data_files(folder):
        text = file.read_text(encoding="utf-8")
        replaced = text
        for old, new in replacements(json.loads(text)).items():
            replaced = replaced.replace(json.dumps(old), json.dumps(new))
            replaced = replaced.replace(
                json.dumps(old, ensure_ascii=False), json.dumps(new, ensure_ascii=False)
            )
            if old == find_path(old):
                names[old] = new
        if replaced != text:
            write_whole(file, replaced.encode())
            changed.append(file)
    for file in pages(folder):
        text = replaced = file.read_text(encoding="utf-8")
        for old in sorted(names, key=len, reverse=True):
            replaced = replaced.replace(old, names[old])
        if replaced != text:
            write_whole(file, replaced.encode())
            changed.append(file)
    return changed


def data_files(folder: Path) -> Iterator[Path]:
    """Return records and searches: ``SEARCH/search.json`` in a runs folder, ``searches/NAME.json``
    in a version.
    """
    for pattern in (RECORD, SUMMARY, "searches/*.json"):
        yield from sorted(file for file in folder.rglob(pattern) if not file.is_symlink())


def pages(folder: Path) -> Iterator[Path]:
    """Return the pages of a version; a runs folder has none."""
    if (folder / MANIFEST).is_file():
        for pattern in PAGES:
            yield from sorted(folder.rglob(pattern))


def replacements(value: Any, key: str = "") -> dict[str, str]:
    """Return text -> replacement for each text of a JSON value that holds an absolute path."""
    if isinstance(value, str):
        if key == "command":
            hidden = hidden_command(value) if find_path_in_command(value) else value
        else:
            found = find_path(value, is_prompt="prompt" in key)
            hidden = value if found is None else hidden_values(value, NOWHERE)
        return {} if hidden == value else {value: hidden}
    changes: dict[str, str] = {}
    if isinstance(value, dict):
        for name, item in value.items():
            changes |= replacements(item, name)
    elif isinstance(value, list):
        for item in value:
            changes |= replacements(item, key)
    return changes


def hidden_command(command: str) -> str:
    """Return a command with a name for each path; the last folder of a run is kept."""
    try:
        words = shlex.split(command)
    except ValueError:
        return str(hidden_values(command, NOWHERE))
    return recorded_command(words, NOWHERE)


def renew_manifest(version: Path, changed: list[Path]) -> None:
    """Write the new hashes of changed files into the version's manifest, and nothing else."""
    path = version / MANIFEST
    content = json.loads(path.read_bytes())
    for file in changed:
        name = file.relative_to(version).as_posix()
        if name in content["files"]:
            content["files"][name] = file_sha256(file)
    write_whole(path, (json.dumps(content, indent=1) + "\n").encode())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
