"""Where a version is written before it is one: a folder, and the hash of everything that was put into it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.base.errors import BenchError
from bench.base.files import file_sha256
from bench.runs.reading import MANIFEST

ELSEWHERE = "another folder: --out DIR"
ASIDE = ".publishing-"  # how the name of a folder begins in which a version is written before it is one


@dataclass(frozen=True)
class StagedFolder:
    """A folder. ``hashes``: path below the first folder -> sha256, of all that was written here and in places inside.

    ``held``: (path, sha256) -> the older version that has this very file; ``older``: path -> (that version, sha256), of what is
    left there and not written.
    """

    folder: Path
    hashes: dict[str, str] = field(default_factory=dict)
    prefix: str = ""
    held: Mapping[tuple[str, str], str] = field(default_factory=dict)
    older: dict[str, tuple[str, str]] = field(default_factory=dict)

    def inside(self, name: str) -> StagedFolder:
        """A folder in this one."""
        return replace(self, prefix=f"{self.prefix}{name}/")

    def write(self, name: str, data: bytes) -> str:
        """Write a file; returns its sha256. Not synced: the whole folder is renamed when it is done, and removed where that fails.

        Raises BenchError.
        """
        path = self.folder / f"{self.prefix}{name}"
        try:
            try:
                path.write_bytes(data)
            except FileNotFoundError:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
        except OSError as error:
            why = f"cannot write {self.prefix}{name} of the new version: {error.strerror or error}"
            raise BenchError(f"{why}; nothing was published, what was there is as it was", ELSEWHERE) from None
        self.hashes[f"{self.prefix}{name}"] = found = hashlib.sha256(data).hexdigest()
        return found

    def leave(self, name: str, data: bytes) -> str | None:
        """The older version that has this very file, which is then left there; None where none has it, and nothing was done."""
        path, sha256 = f"{self.prefix}{name}", hashlib.sha256(data).hexdigest()
        version = self.held.get((path, sha256))
        if version is not None:
            self.older[path] = version, sha256
        return version

    def remove(self) -> None:
        """Everything in this folder."""
        import shutil

        shutil.rmtree(self.folder / self.prefix, ignore_errors=True)
        for names in (self.hashes, self.older):
            for name in [name for name in names if name.startswith(self.prefix)]:
                del names[name]

    def remove_but(self, kept: Container[str]) -> None:
        """Every file whose path does not begin with the name of a folder in ``kept``."""
        for name in [name for name in self.hashes if name.split("/")[0] not in kept]:
            (self.folder / name).unlink(missing_ok=True)
            del self.hashes[name]

    def seal(self) -> None:
        """List everything with its sha256 in ``MANIFEST.json``, which lists all but itself."""
        content: dict[str, Any] = {"files": {name: sha256 for name, sha256 in sorted(self.hashes.items()) if name != MANIFEST}}
        for name, (version, sha256) in sorted(self.older.items()):
            content.setdefault("older", {}).setdefault(version, {})[name] = sha256
        self.write(MANIFEST, (json.dumps(content, indent=1) + "\n").encode())


def held_files(folder: Path) -> dict[str, str]:
    """Path -> sha256, of what a published version holds itself."""
    files: dict[str, str] = json.loads((folder / MANIFEST).read_bytes())["files"]
    return files


def manifest_sha256(folder: Path) -> str | None:
    """Of a version's manifest, and thereby of all that it lists; None where there is none."""
    path = folder / MANIFEST
    return file_sha256(path) if path.is_file() else None
