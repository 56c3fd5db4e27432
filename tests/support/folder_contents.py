"""What is in a folder, without the parts that depend on the clock."""

from __future__ import annotations

import json
from pathlib import Path

# git: others may change the checkout meanwhile, and a busy machine may not answer in time
TIMES = ("created", "execution", "git")
"""Parts of a record that depend on the clock or the machine."""


def contents(folder: Path, but: str = "\n") -> dict[str, bytes]:
    """Return path -> bytes of every file, except in folders with names that begin with ``but``.

    Records and curves are reduced to the part that does not depend on the clock; locks, logs and
    notes on where downloads come from are left out.
    """
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if not path.is_file() or name.startswith(but):
            continue
        if path.name.endswith((".lock", ".from")):
            continue
        if path.name == "written.txt":
            continue
        found[name] = _timeless(path)
    return found


def _timeless(path: Path) -> bytes:
    """Return a file's bytes without the parts that depend on the clock."""
    data = path.read_bytes()
    if path.name == "run.json":
        content = json.loads(data)
        content["cost"] = None
        for key in TIMES:
            content["provenance"].pop(key, None)
        return json.dumps(content).encode()
    if path.name == "search.json":
        content = json.loads(data)
        content["study"]["created"] = ""
        for trials in content["trials"].values():
            for trial in trials:
                trial["seconds"] = 0
        return json.dumps(content).encode()
    if path.name == "curve.jsonl":
        entries = [json.loads(line) for line in data.splitlines()]
        for entry in entries:
            entry.pop("sentences_per_second", None)
        return json.dumps(entries).encode()
    if path.suffix == ".toml":
        # a recipe file says how long its search took
        lines = data.splitlines(keepends=True)
        return b"".join(line for line in lines if not line.startswith(b"seconds = "))
    return data
