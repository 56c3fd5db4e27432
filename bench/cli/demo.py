"""``bench demo``: the whole way from text to page, in minutes, with nothing but the package."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from bench.cli.options import plain_option

METHODS = "cls,last-avg,simcse"
RECIPE = {"eval_steps": "25", "epochs": "4"}
NOTE = "A check of the machinery on generated sentences: not evidence about any method."


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("bench-demo"),
    show_default=True,
    help="Folder for the runs and the page.",
)
@click.option("--method", "methods", default=METHODS, show_default=True, help="Methods, separated by commas.")
@click.option("--seeds", default="42", show_default=True)
@plain_option
def demo(out: Path, methods: str, seeds: str, plain: bool) -> None:
    """Train and score on what the package carries: no data, no network, about three minutes on two CPU cores.

    \b
    Example:  bench demo --out /tmp/demo
    """
    from bench import devices, plan
    from bench.cli.options import comma_list
    from bench.cli.progress import reporter as make_reporter
    from bench.cli.run import parse_seeds
    from bench.cli.run_all import run_all
    from bench.datasets import DataFolder
    from bench.executors.options import Options
    from bench.pages import write_page
    from bench.plugins import discover
    from bench.runs import RunsFolder
    from bench.tables import render_terminal

    device = devices.choose_device("auto")
    request = plan.Request(
        methods=comma_list(methods), seeds=parse_seeds(seeds), suites=("check",), corpus="builtin", overrides=RECIPE,
        precision=devices.choose_precision("auto", device, partial(click.echo, err=True)),
    )  # fmt: skip
    store = RunsFolder(out / "runs")
    planned = plan.make(request, discover(), DataFolder(None))
    with make_reporter(plain) as reporter:
        records, code = run_all(planned, store, Options(device=device, offline=True), reporter, False)
    if not records:
        raise click.exceptions.Exit(code)
    render_terminal(records, together=True)
    folders = {record.run_id: store.folder(record.run_id) for record in records}
    page = write_page(records, out / "index.html", "bench demo", NOTE, together=True, folders=folders)
    click.echo(NOTE)
    click.echo(f"page: {page}")
    click.echo(
        "next: bench run --method simcse --backbone builtin --suite sts --data DIR --corpus FILE   (bench data list: what DIR holds)"
    )
    if code:
        raise click.exceptions.Exit(code)
