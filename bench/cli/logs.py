"""``bench logs``: what the workers of a run said on other machines."""

from __future__ import annotations

from pathlib import Path

import click

from bench.base.errors import BenchError
from bench.cli.options import runs_option


@click.command()
@click.argument("run")
@runs_option
def logs(run: str, runs: Path | None) -> None:
    """What the workers of RUN said, on whichever machine, from the first attempt to the last. RUN may be the beginning of an id.

    Example: bench logs simcse-builtin-s1
    """
    from bench.run.jobs import Jobs
    from bench.runs import RunsFolder

    jobs = Jobs(RunsFolder(runs))
    batch, number = jobs.newest[jobs.find(run)]
    try:
        text = batch.log(number).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        raise BenchError(f"{batch.runs[number].run_id}: no worker of it has begun yet", "bench status") from None
    click.echo("".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text), nl=False)
