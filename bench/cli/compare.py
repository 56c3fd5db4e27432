"""``bench compare``: runs side by side, as the papers print them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench.cli.filters import record_filters
from bench.errors import BenchError

if TYPE_CHECKING:
    from bench.cli.filters import Kept


@click.command()
@record_filters
@click.option("--baseline", help="A method; the others' Avg. is printed less its own.")
@click.option("--together", is_flag=True, help="All backbones and settings in one table.")
@click.option("--format", "form", type=click.Choice(["table", "md", "latex", "json", "csv"]), default="table", show_default=True)
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="Also write one self-contained page.")
def compare(kept: list[Kept], baseline: str | None, together: bool, form: str, html: Path | None) -> None:
    """Put runs side by side: methods by tasks, mean and deviation over seeds.

    RUN is an id, the beginning of ids, or a path; without any, all runs in the runs folder.

    \b
    Example:  bench compare --suite sts --baseline simcse
    """
    from bench.statistics.summary import summarise
    from bench.tables import print_tables, render

    tables = summarise((one.record for one in kept), baseline=baseline, together=together)
    if not tables:
        raise BenchError("none of these runs has a score", "bench run ... --suite sts")
    if html is not None:
        from bench.pages import write_page

        write_page([one.record for one in kept], html, baseline=baseline, together=together,
                   folders={one.record.run_id: one.folder for one in kept})  # fmt: skip
    if form == "table":
        print_tables(tables)
    else:
        click.echo(render(tables, form), nl=False)
    if html is not None:
        click.echo(f"page: {html}", err=form != "table")
