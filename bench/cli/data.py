"""``bench data list|fetch|check|overlap``: evaluation data and corpora, what of them is there, how to get the rest, and what they share."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from bench.base.errors import DIFFERS, BenchError, DataDamaged, DataMissing, Finding, UnknownName
from bench.base.files import write_or_fail
from bench.base.terminal import warn
from bench.base.text import plural, size
from bench.cli import HelpfulGroup, show_error
from bench.cli.options import (
    data_option,
    json_option,
    json_text,
    print_facts,
    print_findings,
    print_grid,
    print_json,
    say,
)
from bench.data.corpora import open_corpus
from bench.data.fetching import offline_now
from bench.data.overlap import (
    Match,
    ScoredSentences,
    count_overlaps,
    merge_overlaps,
    scored_sentences,
)
from bench.data.sets import (
    DataFolder,
    DataSet,
    State,
    data_sets,
    fetched_folder,
    pending_set,
    sources,
    sources_of,
)
from bench.data.sets.fetch import Fetcher
from bench.score.suites import expand_suites, suite
from bench.session.needs import announce_fetches
from bench.session.progress import RunReporter
from bench.session.values import comma_list
from bench.show.grid import Column, grid
from bench.show.tables.report import overlap_grid


@click.group(cls=HelpfulGroup)
def data() -> None:
    """Evaluation data and training text: what is here, what is missing, and how to get it.

    Example: bench data list --data DIR
    """


@data.command("list")
@click.argument("name", required=False)
@data_option
@json_option
def list_(name: str | None, data: Path | None, as_json: bool) -> None:
    """What every suite and corpus needs, and how much of it is here (judged by file names; quick).

    With a NAME, everything about that set.  Example: bench data list STS12 --data DIR
    """
    folder = DataFolder(data)
    folder.check_root()
    _show(
        [(wanted, folder.look(wanted)) for wanted in _chosen(name)],
        name,
        as_json,
        notes=(
            "judged by file names; to read every byte: bench data check",
            "to get what is missing: bench data fetch NAME, or a suite, or all",
            "data folder: --data DIR, or BENCH_DATA",
        ),
    )


@data.command()
@click.argument("name", required=False)
@data_option
@json_option
def check(name: str | None, data: Path | None, as_json: bool) -> None:
    """Read every byte of what is there and compare it with the known checksums.

    Exit code 2 if something is damaged or NAME is missing.  Example: bench data check --data DIR
    """
    folder = DataFolder(data)
    folder.check_root()
    states = [(wanted, folder.check(wanted)) for wanted in _chosen(name)]
    _show(states, name, as_json)
    for wanted, state in states:
        if state.status == "damaged":
            raise DataDamaged(
                f"damaged: {wanted.name}",
                f"bench data check {wanted.name}{f' --data {data}' if data else ''} "
                "says which file and how to get it",
            )
        if name is not None and state.status == "missing":
            folder.open(wanted)  # raises with what was looked for and where


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
@json_option
def fetch(names: tuple[str, ...], text: str, data: Path | None, as_json: bool) -> None:
    """Get data sets and corpora from their sources, into --data DIR (which may then be copied to a machine without a network).

    Names, sizes, licences and terms are shown first; every file is checked; an interrupted download resumes.
    Complete sets are not fetched again.  Example: bench data fetch sts wiki1m --data DIR
    """
    folder, store = DataFolder(data), data.expanduser() if data is not None else fetched_folder()
    chosen = {wanted.name: wanted for name in names for wanted in _chosen(name, fetched=True)}
    missing = [
        (wanted, text if wanted.forms else "any")
        for wanted in chosen.values()
        if not any(copy.form in (text, "any") for copy in folder.copies(wanted)[0])
    ]
    pending = [pending_set(wanted, form) for wanted, form in missing if sources_of(wanted, form)]
    if pending and offline_now():
        listed = " ".join(item.name for item in pending)
        raise BenchError(
            f"{listed}: missing, and HF_HUB_OFFLINE forbids fetching",
            f"unset HF_HUB_OFFLINE, or on a machine with a network: bench data fetch {listed} --data DIR; then copy DIR here",
        )
    if pending:
        announce_fetches(pending, store)
    code, fetcher = 0, Fetcher(store, warn)
    for wanted, form in missing:
        try:
            fetcher.get(wanted, form)
        except BenchError as error:
            show_error(error)
            code = 2
    for wanted in chosen.values():
        state = folder.check(wanted)
        line = ", in ".join(filter(None, [state.status, ", ".join(state.places)]))
        click.echo(json_text(_as_data(wanted, state)) if as_json else f"{wanted.name}: {line}")
    raise click.exceptions.Exit(code)


def _chosen(name: str | None, *, fetched: bool = False) -> list[DataSet]:
    """The set of that name, the sets of a suite, or all for "all" and None; with ``fetched`` only those that have a source.
    Raises UnknownName for anything else."""
    sets = list(data_sets().values())
    if same := [wanted for wanted in sets if wanted.name.lower() == str(name).lower()]:
        return same
    suites = {suite for wanted in sets for suite in wanted.suites}
    if str(name).partition(":")[0] == "mteb":
        raise BenchError(
            "mteb's loader fetches the data of its tasks, when a run needs it or beforehand",
            "python -c \"import mteb; mteb.get_task('STSBenchmark').load_data()\"; the hub's cache (HF_HOME) can be copied to another machine",
        )
    if name not in (None, "all", *suites):
        raise UnknownName(
            "data set or suite",
            str(name),
            [*(wanted.name for wanted in sets), *sorted(suites), "all"],
            hint="bench data list",
        )
    return [
        wanted
        for wanted in sets
        if (name in (None, "all") or name in wanted.suites)
        and (not fetched or (wanted.kind != "built-in" and sources_of(wanted)))
    ]


def _show(
    states: Sequence[tuple[DataSet, State]],
    name: str | None,
    as_json: bool,
    notes: Sequence[str] = (),
) -> None:
    """Print a line for each set, or everything about one set."""
    if as_json:
        print_json(_as_data(wanted, state) for wanted, state in states)
    elif len(states) == 1 and name is not None:
        print_facts(_details(*states[0]))
    else:
        rows = [
            (
                wanted.name,
                ", ".join(wanted.suites) or USES.get(wanted.kind, ""),
                f"{wanted.items.get('test', sum(wanted.items.values())):,}",
                f"{wanted.bytes / 1e6:.1f}",
                ", ".join(form for form in state.forms if form != "any") or state.status,
                wanted.licence,
            )
            for wanted, state in states
        ]
        print_grid(
            grid(
                [
                    "set",
                    Column("for", wrap=12),
                    Column("items", right=True),
                    Column("MB", right=True),
                    Column("here", wrap=12),
                    Column("licence", wrap=24, drop=1),
                ],
                rows,
                whole="bench data list NAME",
                notes=notes,
            )
        )
        if findings := [
            Finding("data", wanted.name, DIFFERS, problem, hint=wanted.get)
            for wanted, state in states
            if state.status == "damaged"
            for problem in state.problems
        ]:
            print_findings(findings)


def _details(wanted: DataSet, state: State) -> list[tuple[str, str]]:
    return [
        (wanted.name, wanted.title),
        ("needed by", ", ".join(wanted.suites) or USES.get(wanted.kind, "")),
        (wanted.unit, ", ".join(f"{split} {n:,}" for split, n in wanted.items.items())),
        ("size", f"{size(wanted.bytes)} in {plural(len(wanted.files), 'file')}"),
        *((key, getattr(wanted, key)) for key in ("licence", "terms", "source", "cite")),
        ("to get it", wanted.get),
        (
            "fetched from",
            "; ".join(s.where for s in sources().values() if wanted.name in s.sets)
            or "no source: copy the file into the data folder",
        ),
        ("text forms", ", ".join(wanted.forms)),
        ("here", ", ".join([state.status, *(form for form in state.forms if form != "any")])),
        *(("where", place) for place in state.places),
        *(("problem", problem) for problem in state.problems),
    ]


USES = {"corpus": "training", "vectors": "word vectors", "built-in": "demo"}
"""Kind of a set that no suite scores -> its use."""


def _as_data(wanted: DataSet, state: State) -> dict[str, Any]:
    return {
        **{
            key: getattr(wanted, key)
            for key in (
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
        },
        "status": state.status,
        "found_forms": list(state.forms),
        "places": list(state.places),
        "problems": list(state.problems),
        "sources": [
            {"where": source.where, "form": source.form, "note": source.note}
            for source in sources().values()
            if wanted.name in source.sets
        ],
        "files": [
            {
                "path": file.path,
                "split": file.split,
                "rows": file.rows,
                "sha256": {k: form.sha256 for k, form in file.forms.items()},
            }
            for file in wanted.files
        ],
    }


# --- ``bench data overlap``: which sentences of the evaluation sets stand in a training corpus ---


@data.command()
@click.argument("corpus")
@click.option(
    "--suite",
    "suites",
    default="sts,cxc,transfer,clustering",  # that papers report, and have sentences of their own
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
    """Sentences of the evaluation sets that also occur in CORPUS (a file, or builtin): the same, or nearly the same.

    The same: equal letters and digits, ignoring case, punctuation and white space. Nearly the same: the two share at least 4 of 5
    of their words. A run counts this, too, for the tasks that it scores: bench runs RUN --all.

    \b
    Example:  bench data overlap nli.csv --data DIR
    """
    opened = open_corpus(corpus)
    if column not in (None, "all") and len(opened.columns) > 1:
        opened = opened.only(column)
    if matches is not None and matches.suffix != ".jsonl":
        raise BenchError(
            f"--matches {matches}: unknown format '{matches.suffix}'",
            f"--matches {matches.with_suffix('.jsonl')}",
        )
    tasks = _sentences(DataFolder(data, offline=True), comma_list(suites), text)
    reporter, found = RunReporter(), list[Match]()
    reporter.phase("rows", len(opened))
    overlaps = count_overlaps(
        opened,
        tasks,
        progress=reporter.advance,
        found=found.append if matches is not None else None,
    )
    if matches is not None:
        rows = ({**asdict(match), "similarity": round(match.similarity, 4)} for match in found)
        written = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        write_or_fail(matches, written.encode(), "--matches FILE")
    if as_json:
        click.echo(
            json_text(
                {
                    "corpus": opened.name,
                    "sha256": opened.sha256,
                    "rows": len(opened),
                    "tasks": [asdict(overlap) for overlap in overlaps],
                }
            )
        )
    else:
        say(f"{opened.name}: {plural(len(opened), 'row')} of {', '.join(opened.columns)}")
        print_grid(overlap_grid(merge_overlaps(overlaps)), blank=True)
        if matches is not None:
            click.echo(f"every match: {matches}")


def _sentences(data: DataFolder, suites: Sequence[str], text: str) -> list[ScoredSentences]:
    """The sentences of every task of the suites whose data is here; prints a line for each missing set."""
    loaded: list[ScoredSentences] = []
    missing: dict[str, DataMissing] = {}
    # one entry for a set that is scored under two protocols
    tasks = {
        (name, task.name): task for name in expand_suites(suites) for task in suite(name).tasks
    }
    for (name, _), task in tasks.items():
        try:
            read = task.load(data, text)
        except DataMissing as error:
            missing.setdefault(error.message, error)
        else:
            if sentences := scored_sentences(read):
                loaded.append(ScoredSentences(name, task.name, read.form, sentences))
    if not loaded and missing:
        raise next(iter(missing.values()))
    for problem in missing:
        click.echo(f"left out: {problem}", err=True)
    return loaded
