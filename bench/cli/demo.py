"""``bench demo``: from text to page in two minutes, with the package alone."""

from __future__ import annotations

import shlex
import webbrowser
from collections.abc import Sequence
from pathlib import Path

import click

from bench.base.collector import no_collection
from bench.base.errors import BenchError
from bench.base.files import write_or_fail
from bench.base.terminal import warn
from bench.board.pages.board import comparison
from bench.cli.compare_output import print_all_tables
from bench.cli.options import plain_option, say, verbose_option
from bench.cli.plan_facts import plan_sentence
from bench.cli.run_output import execute_and_report
from bench.compare.tables import make_tables
from bench.data.corpora import open_corpus_file
from bench.method.config import RunConfig
from bench.records import Run, RunRecord, RunsFolder
from bench.run.plan_toml import Plan
from bench.run.progress import terminal_reporter
from bench.run.seeds import parse_seeds
from bench.run.session import Session

BATCH = 32

RECIPE = {"batch_size": str(BATCH), "eval_steps": "15", "pooling": "avg_first_last"}
"""The pooling is the best of the untrained ones, trained.

README.md of bench/builtin says how the values were chosen, on the dev pairs.
"""

RECIPE_LINE = (
    "Recipe: SimCSE trains the mean of the first and the last layer (pooling=avg_first_last), "
    "not [CLS] as its paper does."
)
NOTE = "A small sample of image captions: enough to see a method work, not a result. " + RECIPE_LINE


def _read_seeds(context: click.Context, option: click.Parameter, text: str) -> tuple[int, ...]:
    try:
        return parse_seeds(text)
    except ValueError as error:
        raise BenchError(f"--seeds {text}: {error}", "bench demo --help") from None


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("bench-demo"),
    show_default=True,
    help="Folder for the runs and the page.",
)
@click.option(
    "--seeds",
    callback=_read_seeds,
    default="42-44",
    show_default=True,
    help="Seeds of the trained methods.",
)
@click.option(
    "--steps",
    type=click.IntRange(1),
    default=30,
    show_default=True,
    help="Training steps of each seed.",
)
@click.option("--open", "browse", is_flag=True, help="Open the page in the browser.")
@plain_option
@verbose_option
def demo(
    out: Path, seeds: tuple[int, ...], steps: int, browse: bool, plain: bool, verbose: bool
) -> None:
    """Train and score on the data in the package, in about two minutes on two CPU cores.

    Nothing is fetched.

    Four untrained poolings of one encoder are compared with SimCSE, which trains for half a minute
    on Wikipedia sentences. Each is scored on pairs of image captions that people rated. SimCSE
    trains the best of the poolings, the mean of the first and the last layer.

    \b
    Example:  bench demo --out /tmp/demo
    """
    epochs = -(-steps * BATCH // len(open_corpus_file("builtin")))  # as many as the steps need
    config = RunConfig(
        methods=("first-last-avg", "last-avg", "embedding-last-avg", "cls", "simcse"),
        seeds=seeds,
        suites=("check",),
        corpus="builtin",
        overrides=RECIPE | {"max_steps": str(steps), "epochs": str(epochs)},
        offline=True,
        runs=str(out / "runs"),
    )
    session = Session.begin(Plan((config,)), terminal_reporter(plain, verbose))
    runs = session.plan_runs().runs
    warn(f"{plan_sentence(runs)}. {RECIPE_LINE}")
    with session.reporter.display():
        records, code = execute_and_report(session, runs)
    if records:
        show_demo(records, session.store, out, browse)
    raise click.exceptions.Exit(code)


def show_demo(records: Sequence[RunRecord], store: RunsFolder, out: Path, browse: bool) -> None:
    """Print the table with its verdicts, the page's first sentence, and what to do next.

    The first method is the baseline. Writes the page; ``browse`` opens it.
    """
    runs = [Run(record, store.folder(record.run_id)) for record in records]
    page = out / "index.html"
    with no_collection():
        tables = make_tables(runs, baseline=records[0].method)
        text = comparison(runs, tables, "bench demo", NOTE)
    write_or_fail(page, text.encode(), hint="another folder: --out DIR")
    click.echo()
    print_all_tables(tables)
    say(NOTE, blank=True)
    run_id = records[-1].run_id
    folder = f"--runs {shlex.quote(str(store.path))}"
    click.echo(f"page: {page.resolve()}")
    click.echo(f"next: bench runs {run_id} {folder}")
    click.echo(f"      bench export {run_id} --to model {folder}")
    say("on the sets that papers score (bench data list names them), with DIR where they are:")
    click.echo("      bench run --method simcse --corpus builtin --suite sts --data DIR")
    if browse:
        webbrowser.open(page.resolve().as_uri())
