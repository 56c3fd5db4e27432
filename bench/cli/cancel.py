"""``bench cancel``: end runs that are queued or running on other machines."""

from __future__ import annotations

import time
from pathlib import Path

import click

from bench.base.errors import BenchError
from bench.cli.options import runs_option

PATIENCE = 60.0  # seconds in which every run ends


@click.command()
@click.argument("names", metavar="[RUN]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every run that is queued or running.")
@runs_option
def cancel(names: tuple[str, ...], everything: bool, runs: Path | None) -> None:
    """End runs that are queued or running on other machines. Each saves its state: the same bench run goes on with it.

    Example: bench cancel --all
    """
    from bench.run.jobs import Jobs, ask, engine
    from bench.runs import RunsFolder

    if bool(names) == everything:
        raise BenchError("which runs?", "bench cancel RUN ..., or bench cancel --all")
    jobs = Jobs(RunsFolder(runs))
    wanted = set(jobs.newest) if everything else {jobs.find(name) for name in names}

    def left() -> set[str]:
        return wanted & set(ask(jobs.places))

    going = left()
    for name in {jobs.newest[run][0].engine for run in going}:
        which = [(batch.name, number) for run, (batch, number) in jobs.newest.items() if run in going and batch.engine == name]
        engine(name).cancel([batch for batch in jobs.batches if batch.engine == name], which)
    count, until, pause = len(going), time.monotonic() + PATIENCE, 0.5
    for run in going:
        batch, number = jobs.newest[run]
        batch.set_cancelled(number)
    while going and time.monotonic() < until:
        time.sleep(pause)
        pause, going = min(pause * 2, 10.0), left()
    click.echo(f"{count - len(going)} run{'s' * (count - len(going) != 1)} ended" if count else "nothing of that is queued or running")
    if going:
        raise BenchError(
            f"{len(going)} have not ended within {PATIENCE:.0f} s: {', '.join(sorted(going)[:3])}",
            "bench status; bench cancel again",
        )
