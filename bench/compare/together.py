"""Which submitted runs came together: ``submitted_with.txt``, which ``bench submit`` writes next to
each record of one command.

A name proves nothing, so runs of one name may belong to several people, and their mean would be
nobody's. The file has the sha256 of every ``run.json`` of the command. Two runs came together only
if both files are equal and each has the hash of its own record: whoever adds a run later cannot be
in the files that were there before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from bench.base.hashes import file_sha256
from bench.base.reading import read_plain_file
from bench.records.names import RECORD

TOGETHER_FILE = "submitted_with.txt"
TOGETHER_BYTES = 1 << 17
"""Of some 2,000 runs."""
_HASH = re.compile(r"[0-9a-f]{64}")


def write_together(folders: Iterable[Path]) -> None:
    """Note in the folders of these submitted runs that they came together; a single one needs no
    note. Raises OSError."""
    places = list(folders)
    if len(places) < 2:
        return
    hashes = sorted(file_sha256(folder / RECORD, inside=folder) for folder in places)
    for folder in places:
        (folder / TOGETHER_FILE).write_text(
            "".join(f"{sha256}\n" for sha256 in hashes), encoding="ascii"
        )


def read_together(folder: Path) -> frozenset[str]:
    """Return the hashes of the records that came together with a submitted run, with its own; only
    its own if no file says more."""
    own = file_sha256(folder / RECORD, inside=folder)
    try:
        text = read_plain_file(folder / TOGETHER_FILE, TOGETHER_BYTES).decode("ascii")
    except (OSError, ValueError):
        return frozenset([own])
    hashes = frozenset(text.split())
    if own not in hashes or not all(_HASH.fullmatch(sha256) for sha256 in hashes):
        return frozenset([own])
    return hashes
