"""``bench reproduce PAPER:TABLE``: run a printed table again and put ours beside the print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench.cli.options import comma_list, data_option, json_option, plain_option, plugin_option, runs_option, save_seconds
from bench.errors import BenchError, UnknownName

if TYPE_CHECKING:
    from bench.datasets import DataFolder
    from bench.executors.options import Options
    from bench.plugins import Registry
    from bench.reproduce.execute import Asked, Job
    from bench.runs import RunsFolder


@click.command()
@click.argument("name", metavar="PAPER:TABLE")
@click.option("--rows", "words", help="Only these rows (a,b): a setting, a method, own, copied, or part of a label.")
@click.option("--backbone", "backbones", help="Only rows of these backbones; any other name or folder stands in for all of them.")
@click.option("--seeds", default="42", show_default=True, help="42, 1-5, or 1,3,7-9.")
@click.option("--corpus", "corpora", multiple=True, metavar="[NAME=]FILE",
              help="Training text instead of the recipes' own; with NAME= only where a recipe says wiki1m, nli or nli-labelled.")  # fmt: skip
@click.option("--set", "pairs", multiple=True, metavar="KEY=VALUE", help="Change a recipe value of the methods that know it.")
@click.option("--max-steps", type=click.IntRange(min=1), help="Optimiser steps at most: a trial, no reproduction.")
@click.option("--text", default="tokenised", show_default=True, help="Text form of the sets that have several.")
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda, cuda:1, mps.")
@click.option("--precision", type=click.Choice(["auto", "fp32", "tf32", "bf16", "fp16"]), default="auto", show_default=True,
              help="Of training; scores are always float32.")  # fmt: skip
@click.option("--margin", type=click.FloatRange(0, 100, min_open=True), default=0.5, show_default=True,
              help="Points within which two numbers are as good as equal.")  # fmt: skip
@click.option("--wait", is_flag=True, help="If another process works on a run, wait for it.")
@click.option("--offline", is_flag=True, help="Open no connection; what is missing is left out.")
@click.option(
    "--dry-run", is_flag=True, help="List the runs, what they need, what is missing and what they would take; run nothing."
)
@data_option
@runs_option
@plugin_option
@json_option
@plain_option
def reproduce(
    name: str, words: str | None, backbones: str | None, seeds: str, corpora: tuple[str, ...], pairs: tuple[str, ...],
    max_steps: int | None, text: str, device: str, precision: str, margin: float, wait: bool, offline: bool, dry_run: bool, data: Path | None,
    runs: Path | None, plugins: tuple[Path, ...], as_json: bool, plain: bool,
) -> None:  # fmt: skip
    """Run a paper's table again; say of each cell whether ours is equivalent to the print, different, or cannot be told apart yet.

    Run again, what is done is not repeated. Rows that cannot be run are listed with the reason. bench references has the tables.

    \b
    Example:  bench reproduce promcse:1 --rows unsupervised --backbone bert-base-uncased --seeds 1-5 --dry-run
              bench reproduce promcse:5 --rows unsupervised --backbone builtin --corpus builtin --max-steps 5
    """
    from bench import devices
    from bench.cli.reproduce_report import show_plan, show_results, warn
    from bench.cli.run import parse_overrides, parse_seeds
    from bench.datasets import DataFolder
    from bench.executors.options import Options
    from bench.plugins import discover
    from bench.references.rows import split_name
    from bench.reproduce.execute import Asked, in_order, jobs
    from bench.reproduce.wanted import check_rows, check_table, wanted
    from bench.runs import RunsFolder

    if margin != margin:
        raise BenchError("--margin nan is no number of points", "--margin 0.5")
    paper, table = split_name(name)
    check_rows(paper, check_table(paper, table), comma_list(words))
    overrides, numbers, files = parse_overrides(pairs, max_steps), parse_seeds(seeds), parse_corpora(corpora)
    registry = discover(plugins)
    for warning in registry.warnings:
        warn(f"warning: {warning}")
    found = wanted(paper, check_table(paper, table), registry, words=comma_list(words), backbones=comma_list(backbones),
                   asked=overrides)  # fmt: skip
    folder, store = DataFolder(data, offline=offline), RunsFolder(runs)
    folder.check_root()
    asked = Asked(seeds=numbers, text=text, corpora=files, precision="fp32")
    listed = jobs(found, registry, folder, asked)
    check_corpora(asked.corpora, {job.corpus for job in in_order(listed)})
    if dry_run:
        show_plan(name, listed, asked, as_json)
        return
    device = devices.choose_device(device)
    asked = replace(asked, precision=devices.choose_precision(precision, device, warn))
    options = Options(device=device, offline=offline, wait_seconds=1e9 if wait else 0.0, save_seconds=save_seconds())
    code = run_jobs(listed, registry, folder, asked, store, options, plain or as_json)
    show_results(name, listed, store, asked, as_json, margin)
    raise click.exceptions.Exit(code)


def parse_corpora(given: Sequence[str]) -> dict[str, str]:
    """``nli=FILE`` as {"nli": FILE}; a FILE alone is that of all recipes: {"": FILE}. Raises BenchError for a name twice."""
    corpora: dict[str, str] = {}
    for one in given:
        name, equals, file = one.partition("=")
        if not equals or "/" in name or Path(one).exists():
            name, file = "", one
        if name in corpora:
            raise BenchError(
                f"--corpus {one}: a second file for {name or 'all recipes'}", "--corpus wiki1m=FILE --corpus nli=FILE"
            )
        corpora[name] = file
    return corpora


def check_corpora(given: Mapping[str, str], known: set[str | None]) -> None:
    """Raises UnknownName for a file of a corpus that no recipe of the table names."""
    for name in given:
        if name and name not in known:
            raise UnknownName("corpus", name, {one for one in known if one}, "among the recipes of these rows")


def run_jobs(
    listed: Sequence[Job], registry: Registry, data: DataFolder, asked: Asked, store: RunsFolder, options: Options, plain: bool
) -> int:
    """Plan all that can be planned, then run it, then what stands on it; returns the exit code.

    What cannot be planned is told and left out. Raises the first such error where nothing is left.
    """
    from bench.backbones import fetch
    from bench.cli.progress import reporter as make_reporter
    from bench.cli.reproduce_report import warn
    from bench.cli.run_all import run_all
    from bench.reproduce.execute import in_order, plan_job

    worst = 0
    ready = partial(fetch, offline=options.offline)
    order = in_order(listed)
    for stage in ([job for job in order if job.first is None], [job for job in order if job.first is not None]):
        for job in stage:
            try:
                job.planned = tuple(plan_job(job, registry, data, asked, ready, store))
            except BenchError as error:
                job.error, worst = error, max(worst, 1)
                warn(f"left out: {job.run.name}: {error.message}" + (f" (try: {error.hint})" if error.hint else ""))
        missing = {error.message: error for job in stage for one in job.planned for error in one.missing}
        for told in missing.values():  # sets that are not here: the others go on
            worst = max(worst, 1)
            warn(f"missing: {told.message}" + (f" (try: {told.hint})" if told.hint else ""))
        if stage and not any(job.planned for job in order):
            first = next(job.error for job in stage if job.error)
            raise BenchError(f"nothing of this can be run here: {first.message}", first.hint)
        with make_reporter(plain) as reporter:
            _, code = run_all([run for job in stage for run in job.planned], store, options, reporter, as_json=False)
        worst = max(worst, code)
    return worst
