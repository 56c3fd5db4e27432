"""``bench data list|fetch|check|overlap``: evaluation data and corpora, what of them is there, how to get the rest, and what they share."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.base.errors import BenchError, DataDamaged, DataMissing, UnknownName
from bench.base.text import plural, size
from bench.cli import HelpfulGroup, show_error
from bench.cli.columns import print_facts, print_grid, say
from bench.cli.options import comma_list, data_option, json_option, json_text, plain_option
from bench.cli.run_card import print_section
from bench.show.grid import Column, grid

if TYPE_CHECKING:
    from bench.data.corpora import Corpus
    from bench.data.overlap import Match, Overlap, ScoredSentences
    from bench.data.sets import DataFolder, DataSet, Source, State


@click.group(cls=HelpfulGroup)
def data() -> None:
    """Evaluation data and corpora: what there is, found or missing, and how to get it.

    Example: bench data list --data DIR
    """


@data.command("list")
@click.argument("name", required=False)
@data_option
@json_option
def list_(name: str | None, data: Path | None, as_json: bool) -> None:
    """What every suite and corpus needs, and which of it is there (by name and size; quick).

    With a NAME everything about that set.  Example: bench data list STS12 --data DIR
    """
    from bench.data.sets import DataFolder

    folder = DataFolder(data)
    folder.check_root()
    states = [(data_set, folder.look(data_set)) for data_set in _chosen(name)]
    _show(states, detailed=name is not None, as_json=as_json)
    if not as_json and name is None:
        click.echo("\neverything about one, and how to get it: bench data list NAME")
        click.echo("judged by name and size; every byte: bench data check")
        click.echo("to get what is missing: bench data fetch NAME, or a suite, or all")
        if data is None:
            click.echo("no data folder was given: pass --data DIR or set BENCH_DATA")
        if folder.store is not None and folder.store.is_dir():
            click.echo(f"what was fetched is in {folder.store}")


@data.command()
@click.argument("name", required=False)
@data_option
@json_option
def check(name: str | None, data: Path | None, as_json: bool) -> None:
    """Read every byte of what is there and compare it with the known checksums.

    Exit code 2 where something is damaged, or where the NAME asked for is missing.  Example: bench data check --data DIR
    """
    from bench.data.sets import DataFolder

    folder = DataFolder(data)
    folder.check_root()
    states = [(data_set, folder.check(data_set)) for data_set in _chosen(name)]
    _show(states, detailed=name is not None, as_json=as_json)
    damaged = [data_set.name for data_set, state in states if state.status == "damaged"]
    if damaged:
        raise DataDamaged(
            f"damaged: {', '.join(damaged)}",
            f"bench data check {damaged[0]}{f' --data {data}' if data else ''} says which file and how to get it",
        )
    if name is not None and states[0][1].status == "missing":
        folder.open(states[0][0])  # raises with what was looked for and where


@data.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME|SUITE|all ...")
@click.option(
    "--text",
    type=click.Choice(["tokenised", "raw"]),
    default="tokenised",
    show_default=True,
    help="Text form of the sets that have several; the papers scored the tokenised one.",
)
@data_option
@plain_option
@json_option
def fetch(names: tuple[str, ...], text: str, data: Path | None, plain: bool, as_json: bool) -> None:
    """Get data sets and corpora from their sources, into --data DIR (which may then be copied to a machine without a network).

    Names, sizes, licences and terms are shown first; every file is checked; a cut download goes on where it stopped. What is there
    and whole is not fetched again.  Example: bench data fetch sts wiki1m --data DIR
    """
    from bench.cli.planning import announce
    from bench.cli.progress import downloads
    from bench.data.fetching import offline_now
    from bench.data.sets import DataFolder, Fetcher, fetched_folder, sources_of
    from bench.data.sets.sources import pending_set

    chosen = _wanted(names)
    if offline_now():
        raise BenchError(
            "HF_HUB_OFFLINE is set: nothing is fetched",
            "unset HF_HUB_OFFLINE, or fetch on another machine and copy DIR",
        )
    store = data.expanduser() if data is not None else fetched_folder()
    folder = DataFolder(data)
    report = downloads(plain)
    fetcher = Fetcher(store, report)
    failed: list[str] = []
    missing = [
        data_set
        for data_set in chosen
        if not any(copy.form in (text, "any") for copy in folder.copies(data_set)[0])
    ]
    if pending := [
        pending_set(data_set, text if data_set.forms else "any")
        for data_set in missing
        if sources_of(data_set, text)
    ]:
        announce(pending, report, store)
    for data_set in chosen:
        try:
            if data_set in missing:
                fetcher.get(data_set, text if data_set.forms else "any")
        except BenchError as error:
            show_error(error)
            failed.append(data_set.name)
        state = folder.check(data_set)
        if as_json:
            click.echo(json_text(_as_dict(data_set, state)))
        else:
            click.echo(
                f"{data_set.name}: {state.status}{', in ' + ', '.join(state.places) if state.places else ''}"
            )
    if failed:
        raise BenchError(
            f"not fetched: {', '.join(failed)}",
            "run the command again when the reason above is gone; the others are there",
        )


def _wanted(names: tuple[str, ...]) -> list[DataSet]:
    """The sets of these names, suites, or all that have a source. UnknownName where one is neither."""
    from bench.data.sets import data_sets, sources_of
    from bench.score.suites import suite_names

    known_sets = [data_set for data_set in data_sets().values() if data_set.kind != "built-in"]
    chosen: dict[str, DataSet] = {}
    for name in names:
        if name.partition(":")[0] == "mteb":
            task = name.partition(":")[2].partition(",")[0] or "STSBenchmark"
            raise BenchError(
                "the tasks of mteb are fetched by mteb's own loader, when a run needs them or beforehand",
                f"python -c \"import mteb; mteb.get_task('{task}').load_data()\"; the hub's cache (HF_HOME) can be copied to another machine",
            )
        fitting = [data_set for data_set in known_sets if data_set.name.lower() == name.lower()]
        if not fitting and name == "all" or name in suite_names():
            fitting = [
                data_set
                for data_set in known_sets
                if (name == "all" or name in data_set.suites) and sources_of(data_set)
            ]
        if not fitting:
            known = [
                *(data_set.name for data_set in known_sets),
                *sorted({suite for data_set in known_sets for suite in data_set.suites}),
                "all",
            ]
            raise UnknownName(
                "data set or suite",
                name,
                known,
                hint="bench data list shows all of them; of mteb: bench run fetches",
            )
        chosen |= {data_set.name: data_set for data_set in fitting}
    return list(chosen.values())


def _chosen(name: str | None) -> list[DataSet]:
    from bench.data.sets import data_set, data_sets

    return list(data_sets().values()) if name is None else [data_set(name)]


def _show(states: list[tuple[DataSet, State]], *, detailed: bool, as_json: bool) -> None:
    if as_json:
        for data_set, state in states:
            click.echo(json_text(_as_dict(data_set, state)))
        return
    if detailed:
        for data_set, state in states:
            print_facts(_details(data_set, state))
        return
    columns = [
        Column("set"),
        Column("for", wrap=12),
        Column("items", right=True),
        Column("MB", right=True),
        Column("here", wrap=12),
        Column("licence", wrap=24, drop=1),
    ]
    print_grid(grid(columns, [_row(*one) for one in states], whole="bench data list NAME"))
    for data_set, state in states:
        if state.status == "damaged":
            for problem in state.problems:
                say(f"damaged {data_set.name}: {problem}", hang=2)


def _row(data_set: DataSet, state: State) -> tuple[str, ...]:
    return (
        data_set.name,
        _needed_by(data_set),
        f"{data_set.items.get('test', sum(data_set.items.values())):,}",
        f"{data_set.bytes / 1e6:.1f}",
        _mark(state, short=True),
        data_set.licence,
    )


def _details(data_set: DataSet, state: State) -> list[tuple[str, str]]:
    where = "; ".join(source.where for source in _sources(data_set))
    return [
        (data_set.name, data_set.title),
        ("needed by", _needed_by(data_set)),
        (data_set.unit, ", ".join(f"{split} {n:,}" for split, n in data_set.items.items())),
        ("size", f"{size(data_set.bytes)} in {plural(len(data_set.files), 'file')}"),
        ("licence", data_set.licence),
        ("terms", data_set.terms),
        ("source", data_set.source),
        ("cite", data_set.cite),
        ("to get it", data_set.get),
        ("fetched from", where or "nowhere: it has to be brought"),
        ("forms", ", ".join(data_set.forms) or "one"),
        ("here", _mark(state)),
        *(("where", place) for place in state.places),
        *(("problem", problem) for problem in state.problems),
    ]


def _sources(data_set: DataSet) -> list[Source]:
    from bench.data.sets import sources

    return [source for source in sources().values() if data_set.name in source.sets]


def _mark(state: State, short: bool = False) -> str:
    """The state in a word or two; ``short`` names only the forms where those say that the set is there."""
    words = state.status if state.status != "unread" else "unknown form"
    forms = ", ".join(form for form in state.forms if form != "any")
    if forms:
        words = forms if short and state.status == "found" else f"{words} ({forms})"
    return words


def _needed_by(data_set: DataSet) -> str:
    return ", ".join(data_set.suites) or {
        "corpus": "training",
        "vectors": "word vectors",
        "built-in": "demo",
    }.get(data_set.kind, "")


def _as_dict(data_set: DataSet, state: State) -> dict[str, Any]:
    about = (
        "name",
        "kind",
        "title",
        "suites",
        "unit",
        "items",
        "bytes",
        "licence",
        "terms",
        "source",
        "cite",
        "get",
        "forms",
    )
    known = {key: getattr(data_set, key) for key in about}
    return {
        **known,
        "status": state.status,
        "found_forms": list(state.forms),
        "places": list(state.places),
        "problems": list(state.problems),
        "sources": [
            {"where": source.where, "form": source.form, "note": source.note}
            for source in _sources(data_set)
        ],
        "files": [
            {
                "path": file.path,
                "split": file.split,
                "rows": file.rows,
                "sha256": {k: form.sha256 for k, form in file.forms.items()},
            }
            for file in data_set.files
        ],
    }


# --- ``bench data overlap``: which sentences of the evaluation sets stand in a training corpus ---

SUITES = "sts,cxc,transfer,clustering"  # of the suites that papers report, those with sentences of their own


@data.command()
@click.argument("corpus")
@click.option(
    "--suite",
    "suites",
    default=SUITES,
    show_default=True,
    help="Suites whose sentences are looked for; or all.",
)
@click.option(
    "--text",
    default="tokenised",
    show_default=True,
    help="Text form of the sets that have several.",
)
@click.option(
    "--column",
    help="Only this column of the corpus: sent0, sent1, hard_neg.  [default: every cell]",
)
@click.option(
    "--matches",
    type=click.Path(path_type=Path),
    help="Write every match into this file: .jsonl, one object a line.",
)
@data_option
@json_option
def overlap(
    corpus: str,
    suites: str,
    text: str,
    column: str | None,
    matches: Path | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """Sentences of the evaluation sets that stand in CORPUS (a file, or builtin): the same, and nearly the same.

    The same: equal letters and digits, whatever the case, punctuation and white space. Nearly: both have at least 4 of 5
    words that either has. A run counts it too, for the tasks that it scores; bench runs RUN --overlap.

    \b
    Example:  bench data overlap nli.csv --data DIR
    """
    from bench.cli.progress import PlainReporter
    from bench.data.corpora import open_corpus
    from bench.data.overlap import count_overlaps, merge_overlaps
    from bench.data.sets import DataFolder
    from bench.show.tables.report import section

    opened = open_corpus(corpus)
    if column not in (None, "all") and len(opened.columns) > 1:
        opened = opened.only(column)
    wanted = _wanted_tasks(DataFolder(data, offline=True), comma_list(suites), text)
    reporter = PlainReporter()
    reporter.phase("rows", len(opened))
    if matches is None:
        overlaps = count_overlaps(opened, wanted, progress=reporter.advance)
    else:
        overlaps = _listed(opened, wanted, matches, reporter.advance)
    if as_json:
        tasks = [asdict(shared) for shared in overlaps]
        click.echo(
            json_text(
                {
                    "corpus": opened.name,
                    "sha256": opened.sha256,
                    "rows": len(opened),
                    "tasks": tasks,
                }
            )
        )
        return
    say(f"{opened.name}: {len(opened):,} rows of {', '.join(opened.columns)}")
    print_section(section(merge_overlaps(overlaps)))
    if matches is not None:
        click.echo(f"every match: {matches}")


def _wanted_tasks(data: DataFolder, suites: Sequence[str], text: str) -> list[ScoredSentences]:
    """Every task of the suites whose data is here; what is not is said, once."""
    from bench.data.overlap import ScoredSentences, scored_sentences
    from bench.score.suites import expand_suites, suite

    wanted: dict[tuple[str, str], ScoredSentences] = {}
    missing: dict[str, DataMissing] = {}
    for name in expand_suites(suites):
        for task in suite(name).tasks:
            if (name, task.name) in wanted:  # one set under two protocols
                continue
            try:
                loaded = task.load(data, text)
            except DataMissing as error:
                missing.setdefault(error.message, error)
                continue
            if sentences := scored_sentences(loaded):
                wanted[name, task.name] = ScoredSentences(name, task.name, loaded.form, sentences)
    if not wanted and missing:
        raise next(iter(missing.values()))
    for problem in missing:
        click.echo(f"left out: {problem}", err=True)
    return list(wanted.values())


def _listed(
    corpus: Corpus, wanted: Sequence[ScoredSentences], file: Path, progress: Callable[[int], None]
) -> list[Overlap]:
    """As ``count_overlaps``, with every match written to ``file``, whole or not at all."""
    from bench.base.files import writing
    from bench.data.overlap import count_overlaps

    if file.suffix != ".jsonl":
        raise BenchError(
            f"--matches {file}: unknown format '{file.suffix}'",
            f"--matches {file.with_suffix('.jsonl')}",
        )
    aside = file.with_name(file.name + ".part")
    try:
        with writing(file, None):
            with aside.open("w", encoding="utf-8") as stream:

                def write(match: Match) -> None:
                    line = json.dumps(
                        {**asdict(match), "similarity": round(match.similarity, 4)},
                        ensure_ascii=False,
                    )
                    stream.write(line + "\n")

                overlaps = count_overlaps(corpus, wanted, progress=progress, found=write)
            os.replace(aside, file)
    finally:
        aside.unlink(missing_ok=True)
    return overlaps
