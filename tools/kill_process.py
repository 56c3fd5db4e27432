"""The processes that are killed: each does one kind of work in a folder."""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.process
import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kill_sets import data_world

PATIENCE = 600.0
"""Seconds after which a process hangs."""
PRELOADED = [
    "bench.cli.run",
    "bench.run.execute",
    "bench.training",
    "bench.score.suites.sts",
    "bench.methods.simcse",
    "transformers",
    "bench.cli.evaluate",
    "bench.cli.export",
    "bench.cli.publish",
    "bench.publish.build",
    "bench.board.board",
    "matplotlib.figure",
]
"""Modules that a process has imported before it begins, so that a kill hits the work."""
SUITES = ("check", "sts", "cxc", "transfer-quick", "transfer", "fewshot", "clustering", "geometry")


def command(folder: Path, *arguments: str) -> None:
    """Run a bench command in the folder."""
    from bench.cli import main

    os.chdir(folder)
    sys.argv = ["bench", *arguments]
    main(list(arguments))


def records(folder: Path, last: str) -> None:
    """Write one record after the other and note each that is written."""
    from factories import record
    from msgspec import structs

    from bench.records import RunsFolder

    store = RunsFolder(folder / "runs")
    made = record()
    known = store.read(made.run_id).seed if store.ids() else None
    with store.lock(made.run_id), (folder / "written.txt").open("a", buffering=1) as noted:
        # its process may have been killed before it said so
        if known:
            noted.write(f"{known}\n")
        for i in range((known or 0) + 1, int(last) + 1):
            store.write(structs.replace(made, seed=i))
            noted.write(f"{i}\n")


def fetch(folder: Path) -> None:
    """Fetch two sets from a server on this machine, one in an archive and one that is converted."""
    from bench.data import fetching
    from bench.data.sets.fetch import Fetcher

    fetching.WAITS = (0.0, 0.0, 0.0)
    with data_world() as sets:
        for data_set in sets:
            Fetcher(folder / "data").get(data_set)


JOBS: dict[str, Callable[..., None]] = {"command": command, "records": records, "fetch": fetch}
"""Name -> what a process does, given its folder and the arguments of the work."""


def child(
    do: str, arguments: Sequence[str], folder: str, environment: Mapping[str, str], log: str
) -> None:
    """Do the job ``do`` in this process; everything that it prints goes to ``log``."""
    os.environ.update(environment)
    shorten_sets()
    with (
        open(log, "a", buffering=1) as stream,
        contextlib.redirect_stdout(stream),
        contextlib.redirect_stderr(stream),
    ):
        JOBS[do](Path(folder), *arguments)


def start_process(
    do: str, arguments: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path
) -> multiprocessing.process.BaseProcess:
    """Start a process that does the job ``do`` in ``folder``."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    process = context.Process(
        target=child, args=(do, tuple(arguments), str(folder), dict(environment), str(log))
    )
    process.start()
    return process


def shorten_sets() -> None:
    """Keep few rows of each set in this process, so that a kill does not wait for thousands of
    sentences, classifiers and clusters.
    """
    from bench.score.suites import check, clustering, fewshot, suite, transfer

    for name in SUITES:
        if name == "check":
            continue
        for task in suite(name).tasks:
            # 0: the number of rows is not checked
            vars(task)["n"] = 0
    all_pairs = check.CHECK_TASK.n
    read_pairs = check._read_captions
    read_labelled = transfer.read_transfer
    read_classes = clustering.read_clustering

    def read_few_pairs(*given: Any, **how: Any) -> Any:
        vars(check.CHECK_TASK)["n"] = all_pairs
        loaded = read_pairs(*given, **how)
        if loaded.n == all_pairs:
            vars(check.CHECK_TASK)["n"] = len(range(0, all_pairs, 9))
        rows = range(0, loaded.n, 9)
        columns = ("sentences1", "sentences2", "gold", "subset", "caption1", "caption2", "image")
        chosen = {name: _rows(getattr(loaded.data, name), rows) for name in columns}
        return replace(loaded, data=replace(loaded.data, **chosen))

    def read_few_labelled(*given: Any, **how: Any) -> Any:
        data = read_labelled(*given, **how)
        kinds = [f"{label} {split}" for label, split in zip(data.labels, data.split, strict=True)]
        rows = _first_of_each(kinds, 40)
        texts = tuple(_rows(column, rows) for column in data.texts)
        return replace(data, texts=texts, labels=data.labels[rows], split=data.split[rows])

    def read_few_classes(*given: Any, **how: Any) -> Any:
        data = read_classes(*given, **how)
        rows = _first_of_each([str(label) for label in data.labels], 4)
        return replace(data, texts=_rows(data.texts, rows), labels=data.labels[rows])

    check._read_captions = read_few_pairs
    vars(check.CHECK_TASK)["read"] = read_few_pairs
    transfer.read_transfer = read_few_labelled
    fewshot.read_transfer = read_few_labelled
    clustering.read_clustering = read_few_classes


def _rows(values: Any, rows: Sequence[int]) -> Any:
    """Return these rows of a list or an array."""
    if isinstance(values, list):
        return [values[row] for row in rows]
    return values[list(rows)]


def _first_of_each(kinds: Sequence[str], most: int) -> list[int]:
    """Return the first ``most`` rows of each kind."""
    seen: Counter[str] = Counter()
    rows = []
    for row, kind in enumerate(kinds):
        seen[kind] += 1
        if seen[kind] <= most:
            rows.append(row)
    return rows
