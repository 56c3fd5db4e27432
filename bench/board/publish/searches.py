"""Chooses the searches of recipe values that a version publishes."""

from __future__ import annotations

import contextlib

import msgspec

from bench.base.errors import BenchError, DataDamaged
from bench.board.board import Board
from bench.board.publish.versions import Version
from bench.records.paths import refuse_paths
from bench.records.record import RunRecord
from bench.records.searches import SUMMARY, Search, read_search
from bench.records.store import RunsFolder
from bench.records.value_sources import search_of


def find_searches(
    board: Board, store: RunsFolder, last: Version | None
) -> tuple[list[Search], dict[str, str]]:
    """Return the searches behind values of own runs, and name -> why for searches that are missing,
    do not fit, or name a folder.

    A search is read from its folder, from the version that has these runs, or from the last
    version.
    """
    named: dict[str, list[RunRecord]] = {}
    for run_id, record in board.records.items():
        name = search_of(record).get("name")
        if run_id not in board.senders and isinstance(name, str):
            named.setdefault(name, []).append(record)
    version = store.path.absolute().parent
    files = [(file, store.path) for file in store.path.glob(f"*/{SUMMARY}")]
    files += [(file, version) for file in version.glob("searches/*.json")]
    if last is not None:
        files += [(file, last.folder) for file in last.folder.glob("searches/*.json")]
    known: dict[str, Search] = {}
    for file, inside in files:
        with contextlib.suppress(BenchError):
            search = read_search(file, inside)
            if search is not None:
                known.setdefault(search.name, search)
    fitting: list[Search] = []
    missing: dict[str, str] = {}
    for name, records in sorted(named.items()):
        found = known.get(name)
        if found is None or not all(map(found.of, records)):
            missing[name] = "although runs here use values that it found"
            continue
        try:
            refuse_paths(msgspec.to_builtins(found), SUMMARY)
        except DataDamaged as error:
            missing[name] = f"because of {error.message}"
        else:
            fitting.append(found)
    return fitting, missing
