"""``bench data overlap``: sentences of the evaluation sets that a training corpus also has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from bench.base.errors import DataMissing
from bench.base.printing import print_grid
from bench.base.text import plural
from bench.cli.options import data_option, json_option, json_text, say
from bench.compare.forms.run_report import overlap_grid
from bench.data.overlap import (
    ScoredSentences,
    count_overlaps,
    merge_overlaps,
    scored_sentences,
)
from bench.data.sets import DataFolder
from bench.records.names import text_of
from bench.run.corpora import open_corpus
from bench.run.progress import RunReporter
from bench.score.suites import expand_suites, split_names, suite


@click.command(short_help="Count test sentences that a training text contains.")
@click.argument("corpus")
@click.option(
    "--suite",
    "suites",
    default="sts,cxc,transfer,clustering",  # that papers report, and have sentences of their own
    show_default=True,
    help="Suites whose sentences are looked for; or all.",
)
@click.option(
    "--column",
    help="Only this column of the corpus: sent0, sent1, hard_neg.  [default: every cell]",
)
@data_option
@json_option
def overlap(
    corpus: str,
    suites: str,
    column: str | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """Count the evaluation sentences that are also in CORPUS, which is named as in bench run.

    Equal sentences are counted, and nearly equal ones.

    The same: equal letters and digits, ignoring case, punctuation and white space. Nearly the same:
    the two share at least 4 of 5 of their words. A run counts this, too, for the tasks that it
    scores: bench runs RUN --all.

    \b
    Example:  bench data overlap nli.csv --data DIR
    """
    folder = DataFolder(data, offline=True)
    opened = open_corpus(corpus, True, folder, ())
    if column not in (None, "all") and len(opened.columns) > 1:
        opened = opened.only(column)
    tasks = _scored_sentences(folder, split_names(suites))
    reporter = RunReporter()
    reporter.phase("rows", len(opened))
    overlaps = count_overlaps(opened, tasks, progress=reporter.advance)
    if as_json:
        facts = {
            "corpus": opened.name,
            "sha256": opened.sha256,
            "rows": len(opened),
            "tasks": [asdict(overlap) for overlap in overlaps],
        }
        click.echo(json_text(facts))
        return
    say(f"{opened.name}: {plural(len(opened), 'row')} of {', '.join(opened.columns)}")
    print_grid(overlap_grid(merge_overlaps(overlaps)), blank=True)


def _scored_sentences(data: DataFolder, suites: Sequence[str]) -> list[ScoredSentences]:
    """Return the sentences of every task that has its data here, and print a line for other sets.

    Raises DataMissing if no set is here.
    """
    # one entry for texts that are scored under two protocols
    tasks = {}
    for name in expand_suites(suites):
        for task in suite(name).tasks:
            tasks[task.suite, task.name, text_of(task.protocol)] = task
    loaded: list[ScoredSentences] = []
    missing: dict[str, DataMissing] = {}
    for (name, _, text), task in tasks.items():
        try:
            read = task.load(data)
        except DataMissing as error:
            missing.setdefault(error.message, error)
            continue
        sentences = scored_sentences(read)
        if sentences:
            loaded.append(ScoredSentences(name, task.name, text, sentences))
    if missing and not loaded:
        raise next(iter(missing.values()))
    for problem in missing:
        click.echo(f"left out: {problem}", err=True)
    return loaded
