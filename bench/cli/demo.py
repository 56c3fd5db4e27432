"""``bench demo``: the whole way from text to page, in two minutes, with nothing but the package."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench.cli.columns import say
from bench.cli.options import comma_list, no_collection, plain_option
from bench.cli.run import parse_seeds
from bench.cli.run_all import run_all

if TYPE_CHECKING:
    from bench.compare.statistics.table import Row, Table
    from bench.runs import RunRecord, RunsFolder

BATCH = 32
RECIPE = {"learning_rate": "3e-4", "batch_size": str(BATCH), "eval_steps": "30"}
"""What README.md of bench/builtin measured: enough for several points within two minutes on two cores."""
NOTE = "A small sample of image captions: enough to see a method work, not a result."


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("bench-demo"),
    show_default=True,
    help="Folder for the runs and the page.",
)
@click.option(
    "--method",
    "methods",
    default="cls,last-avg,simcse",
    show_default=True,
    help="Methods, separated by commas; the others are compared with the first.",
)
@click.option("--seeds", default="42-44", show_default=True, help="Of the methods that are trained.")
@click.option("--steps", type=click.IntRange(min=1), default=60, show_default=True, help="Training steps of each seed.")
@click.option("--open", "browse", is_flag=True, help="Open the page in the browser.")
@plain_option
def demo(out: Path, methods: str, seeds: str, steps: int, browse: bool, plain: bool) -> None:
    """Train and score on what the package carries: no data, no network, about two minutes on two CPU cores.

    Untrained [CLS], untrained mean, and SimCSE trained for a minute on Wikipedia sentences, scored on pairs of image captions that
    people rated: does training move the score?

    \b
    Example:  bench demo --out /tmp/demo
    """
    from bench.base import devices
    from bench.cli.progress import reporting
    from bench.data.sets import DataFolder
    from bench.run import plan
    from bench.run.executors.build import Options
    from bench.run.plugins import discover
    from bench.runs import RunsFolder

    device = devices.choose_device("auto")
    request = plan.Request(
        methods=comma_list(methods),
        seeds=parse_seeds(seeds),
        suites=("check",),
        corpus="builtin",
        overrides=recipe(steps),
        precision=devices.choose_precision("auto", device),
    )
    store = RunsFolder(out / "runs")
    planned = plan.make(request, discover(), DataFolder(None))
    with reporting(plain) as reporter:
        records, code = run_all(planned, store, Options(device=device, offline=True), reporter, False)
    if records:
        show(records, store, out, browse)
    raise click.exceptions.Exit(code)


def recipe(steps: int) -> dict[str, str]:
    """Recipe values for so many steps: as many passes over the corpus as they need."""
    from bench.data.corpora import open_corpus

    return RECIPE | {"max_steps": str(steps), "epochs": str(-(-steps * BATCH // len(open_corpus("builtin"))))}


def show(records: Sequence[RunRecord], store: RunsFolder, out: Path, browse: bool) -> None:
    """The table with its verdicts, what it says in words, the page, and what to do next.

    The page is what ``bench publish --preview`` makes, with the first method of the records as baseline; without matplotlib there is none.
    """
    from bench.board.board import PREVIEW, PublishedRun
    from bench.board.content import board
    from bench.publish.build import PublishOptions, publish
    from bench.show.figures.drawing import missing_library
    from bench.show.tables import print_tables

    page, title, baseline = None, "bench demo", records[0].method
    lacks = missing_library(title)
    click.echo("comparing ..." if lacks else "comparing, and making the page ...", err=True)
    with no_collection():
        if lacks:
            runs_here = [PublishedRun(record=record, folder=store.folder(record.run_id)) for record in store.records()[0]]
            compared = board(runs_here, version=PREVIEW, title=title, baseline=baseline)
        else:
            made = publish(PublishOptions(runs=store.path, out=out, preview=True, title=title, note=NOTE, baseline=baseline))
            assert made.folder is not None
            compared, page = made.board, (made.folder / "index.html").resolve()
    ours = {record.run_id for record in records}
    tables = [board_table.table for board_table in compared.tables if any(ours.intersection(row.runs) for row in board_table.table.rows)]
    print_tables(tables)
    for table in tables:
        for line in verdict_lines(table):
            say(line)
    say(NOTE)
    last, runs = records[-1].run_id, f"--runs {shlex.quote(str(store.path))}"
    click.echo(f"no page: {lacks.message} (try: {lacks.hint})" if lacks else f"page: {page}")
    click.echo(f"next: bench show {last} {runs}")
    click.echo(f"      bench encode {last} sentences.txt --to vectors.npy {runs}")
    say("on the sets that papers score (bench data list names them), with DIR where they are:")
    click.echo("      bench run --method simcse --corpus builtin --suite sts --data DIR")
    if browse and page:
        import webbrowser

        if not webbrowser.open(page.as_uri()):
            click.echo("no browser could be started; the page is a file that any browser opens", err=True)


def verdict_lines(table: Table) -> list[str]:
    """For each trained method one line: how far it is from the baseline, how surely, and which of the two is better."""
    from bench.board.judged_tables import row_name

    base = next((row for row in table.rows if row.is_baseline), None)
    trained = [row for row in table.rows if row.setting != "none" and not row.is_baseline]
    return [] if base is None else [_told(row_name(row, table), row, row_name(base, table), table) for row in trained]


def _told(name: str, row: Row, base: str, table: Table) -> str:
    from bench.compare.formatting import signed_number

    cell = row.cells[-1]
    against = None if cell is None else cell.against
    if cell is None or against is None or against.low is None or against.high is None or table.tested is None:
        return f"{name}: its difference from {base} was not tested"
    verdict = {"better": f"is better than {base}", "worse": f"is worse than {base}", "equivalent": f"is equivalent to {base}"}
    seeds = f"{len(row.seeds)} seed{'s' * (len(row.seeds) != 1)}"
    return (
        f"{name} {verdict.get(against.verdict or '', f'cannot be told from {base}')}: {signed_number(against.difference)} points"
        f" ({1 - table.tested.alpha:.0%} interval {signed_number(against.low)} to {signed_number(against.high)}, {seeds})"
    )
