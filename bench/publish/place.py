"""Where a version is written before it is one: a folder, and the hash of everything that was put into it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path

from bench.errors import BenchError
from bench.hashes import file_sha256
from bench.verify.folders import MANIFEST

ELSEWHERE = "another folder: --out DIR"


@dataclass(frozen=True)
class Place:
    """A folder. ``hashes``: path below the first folder -> sha256, of all that was written here and in places inside."""

    folder: Path
    hashes: dict[str, str] = field(default_factory=dict)
    prefix: str = ""

    def inside(self, name: str) -> Place:
        """A folder in this one."""
        return Place(self.folder, self.hashes, f"{self.prefix}{name}/")

    def write(self, name: str, data: bytes) -> str:
        """Write a file; returns its sha256. Not synced: the whole folder is renamed when it is done. Raises BenchError."""
        path = self.folder / f"{self.prefix}{name}"
        try:
            try:
                path.write_bytes(data)
            except FileNotFoundError:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
        except OSError as error:
            raise BenchError(f"cannot write {path}: {error.strerror or error}", ELSEWHERE) from None
        self.hashes[f"{self.prefix}{name}"] = found = hashlib.sha256(data).hexdigest()
        return found

    def remove(self) -> None:
        """Everything in this folder."""
        import shutil

        shutil.rmtree(self.folder / self.prefix, ignore_errors=True)
        for name in [name for name in self.hashes if name.startswith(self.prefix)]:
            del self.hashes[name]

    def seal(self) -> None:
        """List everything with its sha256 in ``MANIFEST.json``, which lists all but itself."""
        files = {f"{self.prefix}{name}": sha256 for name, sha256 in sorted(self.hashes.items()) if name != MANIFEST}
        self.write(MANIFEST, (json.dumps({"files": files}, indent=1) + "\n").encode())


def manifest_sha256(folder: Path) -> str | None:
    """Of a version's manifest, and thereby of all that it lists; None where there is none."""
    path = folder / MANIFEST
    return file_sha256(path) if path.is_file() else None
