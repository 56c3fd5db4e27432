"""``bench status``: the runs that were handed to an engine, and what has become of each."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench.base.errors import BenchError
from bench.cli.options import json_option, json_text, runs_option, warn

if TYPE_CHECKING:
    from bench.run.jobs import Standing
    from bench.runs import RunsFolder

EVERY = 10.0  # seconds between two questions to an engine
ORDER = ("running", "queued", "lost", "failed", "interrupted", "unknown", "finished")
SHOWN = 30  # runs of one state that are listed where not all are asked for


@click.command()
@runs_option
@click.option("--watch", is_flag=True, help=f"Again every {EVERY:.0f} s, until nothing is queued or running.")
@click.option("--all", "everything", is_flag=True, help=f"Every run, not {SHOWN} of each state.")
@json_option
def status(runs: Path | None, watch: bool, everything: bool, as_json: bool) -> None:
    """Of every run that was handed to Slurm or Ray: queued, running and where, finished, failed, interrupted or lost, and why.

    Example: bench status --runs /shared/runs --watch
    """
    from bench.runs import RunsFolder

    store, before = RunsFolder(runs), ""
    while True:
        found, silent = look(store)
        if not found:
            raise BenchError(
                f"no run of {store.path} was handed to an engine",
                "bench run ... --executor slurm, or --runs DIR; bench runs lists all runs",
            )
        if silent:
            warn(f"{silent}; what is queued or running is not known now")
        text = json_text([asdict(standing) for standing in found]) if as_json else drawn(found, everything)
        if text != before:
            click.echo(text)
        before = text
        if not watch or not (silent or any(standing.state in ("queued", "running") for standing in found)):
            return
        time.sleep(EVERY)


def look(store: RunsFolder) -> tuple[list[Standing], str | None]:
    """What has become of every run; and why an engine was silent, where it was."""
    from bench.run.jobs import EngineSilent, Jobs, ask, standings

    jobs = Jobs(store)
    try:
        return standings(jobs, places=ask(jobs.places, times=2)), None
    except EngineSilent as error:
        return standings(jobs, silent=error.message), error.message


def drawn(found: list[Standing], everything: bool) -> str:
    """One line of counts, then a line a run: what goes on or went wrong first."""
    counts = Counter(standing.state for standing in found)
    lines = [", ".join(f"{counts[state]} {state}" for state in ORDER if counts[state])]
    wide = min(60, max(len(standing.run_id) for standing in found))
    for state in ORDER:
        of_state = [standing for standing in found if standing.state == state]
        shown = of_state if everything else of_state[:SHOWN]
        lines += [f"  {standing.run_id:<{wide}}  {' '.join(standing.words().split())}" for standing in shown]
        if len(shown) < len(of_state):
            lines.append(f"  and {len(of_state) - len(shown):,} more {state}: bench status --all")
    return "\n".join("".join(c if c.isprintable() or c == "\n" else " " for c in line) for line in lines)
