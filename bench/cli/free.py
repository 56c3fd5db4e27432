"""``bench runs --free``: the sizes of runs on the disk, and the removal of stored vectors."""

from __future__ import annotations

import sys

import click

from bench.base.errors import BenchError
from bench.base.grid import Grid, GridColumn, grid
from bench.base.printing import print_grid
from bench.base.terminal import warn
from bench.base.text import format_bytes, plural
from bench.cli.options import say
from bench.records.sizes import RunSize, measure_runs, remove_vectors
from bench.records.store import RunsFolder

SHOWN = 20
"""Runs that are listed; the others share one line."""


def free_space(store: RunsFolder, yes: bool) -> None:
    """List the sizes of runs, ask, and remove their stored vectors. ``yes``: do not ask.

    Raises BenchError if there is nobody to ask.
    """
    sizes = measure_runs(store)
    vectors = sum(run.vectors for run in sizes)
    if not sizes:
        click.echo(f"no run in {store.path}; bench run makes them")
        return
    print_grid(_size_grid(sizes))
    if not vectors:
        say("no stored vectors: nothing can be removed without losing a result")
        return
    say(
        f"stored vectors take {format_bytes(vectors)}; they only save time when the same model "
        "is scored "
        "on more"
    )
    if not yes and not sys.stdin.isatty():
        raise BenchError(
            "nobody can answer here, and nothing was removed", "bench runs --free --yes"
        )
    if not yes and not click.confirm("Remove the stored vectors?"):
        click.echo("nothing was removed")
        return
    freed, left = remove_vectors(store)
    for line in left:
        warn(f"left as it is: {line}")
    click.echo(f"removed {format_bytes(freed)}")


def _size_grid(sizes: list[RunSize]) -> Grid:
    """Lay out a line for each of the largest runs, and the sum of all."""
    rows = [_row(run.run_id, [run]) for run in sizes[:SHOWN]]
    if len(sizes) > SHOWN:
        rows.append(_row(f"{plural(len(sizes) - SHOWN, 'smaller run')}", sizes[SHOWN:]))
    if len(sizes) > 1:
        rows.append(_row("all", sizes))
    columns = [
        GridColumn(name, right=True)
        for name in ("checkpoint", "vectors", "to resume", "rest", "in all")
    ]
    return grid(["run", *columns], rows)


def _row(name: str, runs: list[RunSize]) -> list[str]:
    parts = [
        sum(run.checkpoint for run in runs),
        sum(run.vectors for run in runs),
        sum(run.state for run in runs),
        sum(run.rest for run in runs),
        sum(run.total for run in runs),
    ]
    return [name, *(format_bytes(part) if part else "" for part in parts)]
