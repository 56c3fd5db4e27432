"""``bench demo``: the whole way from text to page, in two minutes, with nothing but the package."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench.cli.columns import say
from bench.cli.options import comma_list, no_collection, parse_seeds, plain_option
from bench.cli.run_all import run_all

if TYPE_CHECKING:
    from bench.runs import RunRecord, RunsFolder

BATCH = 32
RECIPE = {"batch_size": str(BATCH), "eval_steps": "15"}
POOLER = {"pooler": "avg_first_last"}
"""Of methods with a pooler, such as SimCSE: the best of the untrained poolings, trained. README.md of bench/builtin says how the values were chosen, on the dev pairs."""
NOTE = "A small sample of image captions: enough to see a method work, not a result."
POOLED = "What is trained is the mean of the first and the last layer (pooler=avg_first_last), not [CLS] as in SimCSE's paper."


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
    default="first-last-avg,last-avg,embedding-last-avg,cls,simcse",
    show_default=True,
    help="Methods, separated by commas; the others are compared with the first.",
)
@click.option(
    "--seeds", default="42-44", show_default=True, help="Of the methods that are trained."
)
@click.option(
    "--steps",
    type=click.IntRange(min=1),
    default=30,
    show_default=True,
    help="Training steps of each seed.",
)
@click.option("--open", "browse", is_flag=True, help="Open the page in the browser.")
@plain_option
def demo(out: Path, methods: str, seeds: str, steps: int, browse: bool, plain: bool) -> None:
    """Train and score on what the package carries: no data, no network, about two minutes on two CPU cores.

    Four untrained poolings of one encoder, and SimCSE trained for half a minute on Wikipedia sentences, scored on pairs of image captions
    that people rated: is training better than the best pooling?

    \b
    Example:  bench demo --out /tmp/demo
    """
    from bench.cli.progress import reporting
    from bench.data.sets import DataFolder
    from bench.run import plan
    from bench.run.config import RunConfig
    from bench.run.plugins import discover
    from bench.run.settle import settled
    from bench.runs import RunsFolder

    registry = discover()
    classes = [registry[plan.split_variant(name)[0]].cls for name in comma_list(methods)]
    with_pooler = any(POOLER.keys() <= cls.defaults.keys() for cls in classes)
    config = RunConfig(
        methods=comma_list(methods),
        seeds=parse_seeds(seeds),
        suites=("check",),
        corpus="builtin",
        overrides=recipe(steps) | (POOLER if with_pooler else {}),
        offline=True,
    )
    config, store = settled(config), RunsFolder(out / "runs")
    planned = plan.make(config, registry, DataFolder(None))
    with reporting(plain) as reporter:
        records, code = run_all(planned, store, config, reporter, False)
    if records:
        show(records, store, out, browse)
    raise click.exceptions.Exit(code)


def recipe(steps: int) -> dict[str, str]:
    """Recipe values for so many steps: as many passes over the corpus as they need."""
    from bench.data.corpora import open_corpus

    return RECIPE | {
        "max_steps": str(steps),
        "epochs": str(-(-steps * BATCH // len(open_corpus("builtin")))),
    }


def show(records: Sequence[RunRecord], store: RunsFolder, out: Path, browse: bool) -> None:
    """The table with its verdicts, the sentence with which the page begins, where that is, and what to do next.

    The page is what ``bench publish --preview`` makes, with the first method of the records as baseline; without matplotlib there is none.
    """
    from bench.board.board import PREVIEW
    from bench.board.content import board
    from bench.publish.build import publish
    from bench.runs.run import Run
    from bench.show.figures.drawing import missing_library
    from bench.show.tables.scores import print_tables

    page, title, baseline = None, "bench demo", records[0].method
    pooled = any(
        value.value == POOLER["pooler"]
        for record in records
        if (value := record.recipe.get("pooler"))
    )
    note = f"{NOTE} {POOLED}" if pooled else NOTE
    lacks = missing_library(title)
    click.echo("comparing ..." if lacks else "comparing, and making the page ...", err=True)
    with no_collection():
        if lacks:
            runs_here = [Run(record, store.folder(record.run_id)) for record in store.records()[0]]
            compared = board(runs_here, version=PREVIEW, title=title, baseline=baseline)
        else:
            made = publish(
                runs=store.path, out=out, preview=True, title=title, note=note, baseline=baseline
            )
            assert made.folder is not None
            compared, page = made.board, (made.folder / "index.html").resolve()
    ours = {record.run_id for record in records}
    print_tables(
        [
            shown.table
            for shown in compared.tables
            if any(ours.intersection(row.runs) for row in shown.table.rows)
        ]
    )
    say(compared.answer)
    say(note)
    last, runs = records[-1].run_id, f"--runs {shlex.quote(str(store.path))}"
    click.echo(f"no page: {lacks.message} (try: {lacks.hint})" if lacks else f"page: {page}")
    click.echo(f"next: bench runs {last} {runs}")
    click.echo(f"      bench encode {last} sentences.txt --to vectors.npy {runs}")
    say("on the sets that papers score (bench data list names them), with DIR where they are:")
    click.echo("      bench run --method simcse --corpus builtin --suite sts --data DIR")
    if browse and page:
        import webbrowser

        if not webbrowser.open(page.as_uri()):
            click.echo(
                "no browser could be started; the page is a file that any browser opens", err=True
            )
