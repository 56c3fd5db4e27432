"""``bench data list|fetch|check``: evaluation data and corpora, what of them is there, and how to get the rest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.cli import HelpfulGroup
from bench.cli.data_overlap import overlap
from bench.cli.filters import json_text
from bench.cli.options import data_option, json_option, plain_option

if TYPE_CHECKING:
    from rich.table import Table

    from bench.datasets import DataSet, Source, State

WIDTH = 80
WITH_LICENCE = 110  # columns of a terminal from which on the list has room for licences
MARKS = {"found": "green", "unread": "yellow", "missing": "dim", "damaged": "red"}


@click.group(cls=HelpfulGroup)
def data() -> None:
    """Evaluation data and corpora: what there is, found or missing, and how to get it.

    Example: bench data list --data DIR
    """


data.add_command(overlap)


@data.command("list")
@click.argument("name", required=False)
@data_option
@json_option
def list_(name: str | None, data: Path | None, as_json: bool) -> None:
    """What every suite and corpus needs, and which of it is there (by name and size; quick).

    With a NAME everything about that set.  Example: bench data list STS12 --data DIR
    """
    from bench.datasets import DataFolder

    folder = DataFolder(data)
    folder.check_root()
    states = [(one, folder.look(one)) for one in _chosen(name)]
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
    from bench.datasets import DataFolder
    from bench.errors import DataDamaged

    folder = DataFolder(data)
    folder.check_root()
    states = [(one, folder.check(one)) for one in _chosen(name)]
    _show(states, detailed=name is not None, as_json=as_json)
    damaged = [one.name for one, state in states if state.status == "damaged"]
    if damaged:
        raise DataDamaged(
            f"damaged: {', '.join(damaged)}",
            f"bench data check {damaged[0]}{f' --data {data}' if data else ''} says which file and how to get it",
        )
    if name is not None and states[0][1].status == "missing":
        folder.open(states[0][0])  # raises with what was looked for and where


@data.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME|SUITE|all ...")
@click.option("--text", type=click.Choice(["tokenised", "raw"]), default="tokenised", show_default=True,
              help="Text form of the sets that have several; the papers scored the tokenised one.")  # fmt: skip
@data_option
@plain_option
@json_option
def fetch(names: tuple[str, ...], text: str, data: Path | None, plain: bool, as_json: bool) -> None:
    """Get data sets and corpora from their sources, into --data DIR (which may then be copied to a machine without a network).

    Names, sizes, licences and terms are shown first; every file is checked; a cut download goes on where it stopped. What is there
    and whole is not fetched again.  Example: bench data fetch sts wiki1m --data DIR
    """
    from bench.cli import show_error
    from bench.cli.download_progress import downloads
    from bench.cli.planning import announce
    from bench.datasets import DataFolder, Fetcher, fetched_folder, sources_of
    from bench.datasets.store import pending_set
    from bench.errors import BenchError
    from bench.fetching import offline_now

    chosen = _wanted(names)
    if offline_now():
        raise BenchError(
            "HF_HUB_OFFLINE is set: nothing is fetched", "unset HF_HUB_OFFLINE, or fetch on another machine and copy DIR"
        )
    store = data.expanduser() if data is not None else fetched_folder()
    folder = DataFolder(data)
    report = downloads(plain)
    fetcher = Fetcher(store, report)
    failed: list[str] = []
    missing = [one for one in chosen if not any(copy.form in (text, "any") for copy in folder.copies(one)[0])]
    if pending := [pending_set(one, text if one.forms else "any") for one in missing if sources_of(one, text)]:
        announce(pending, report, store)
    for one in chosen:
        try:
            if one in missing:
                fetcher.get(one, text if one.forms else "any")
        except BenchError as error:
            show_error(error)
            failed.append(one.name)
        state = folder.check(one)
        if as_json:
            click.echo(json_text(_as_dict(one, state)))
        else:
            click.echo(f"{one.name}: {state.status}{', in ' + ', '.join(state.places) if state.places else ''}")
    if failed:
        raise BenchError(
            f"not fetched: {', '.join(failed)}", "run the command again when the reason above is gone; the others are there"
        )


def _wanted(names: tuple[str, ...]) -> list[DataSet]:
    """The sets of these names, suites, or all that have a source. UnknownName where one is neither."""
    from bench.datasets import data_sets, sources_of
    from bench.errors import BenchError, UnknownName
    from bench.suites import suite_names

    every = [one for one in data_sets().values() if one.kind != "built-in"]
    chosen: dict[str, DataSet] = {}
    for name in names:
        if name.partition(":")[0] == "mteb":
            task = name.partition(":")[2].partition(",")[0] or "STSBenchmark"
            raise BenchError(
                "the tasks of mteb are fetched by mteb's own loader, when a run needs them or beforehand",
                f"python -c \"import mteb; mteb.get_task('{task}').load_data()\"; the hub's cache (HF_HOME) can be copied to another machine",
            )
        fitting = [one for one in every if one.name.lower() == name.lower()]
        if not fitting and name == "all" or name in suite_names():
            fitting = [one for one in every if (name == "all" or name in one.suites) and sources_of(one)]
        if not fitting:
            known = [*(one.name for one in every), *sorted({suite for one in every for suite in one.suites}), "all"]
            raise UnknownName(
                "data set or suite", name, known, hint="bench data list shows all of them; of mteb: bench run fetches"
            )
        chosen |= {one.name: one for one in fitting}
    return list(chosen.values())


def _chosen(name: str | None) -> list[DataSet]:
    from bench.datasets import data_set, data_sets

    return list(data_sets().values()) if name is None else [data_set(name)]


def _show(states: list[tuple[DataSet, State]], *, detailed: bool, as_json: bool) -> None:
    if as_json:
        for one, state in states:
            click.echo(json_text(_as_dict(one, state)))
        return
    from rich.console import Console

    console = Console(highlight=False) if not detailed else Console(width=WIDTH, highlight=False)
    if not detailed:
        wide = console.width >= WITH_LICENCE
        console.print(_table(states, wide=wide))
        for one, state in states:
            if state.status == "damaged":
                for problem in state.problems:
                    console.print(f"[red]damaged[/red] {one.name}: {_plain(problem)}")
        return
    for one, state in states:
        console.print(_details(one, state))


def _table(states: list[tuple[DataSet, State]], *, wide: bool) -> Table:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for heading in ("set", "for", "items", "MB", "here", "licence"):
        if heading != "licence" or wide:
            wraps = heading in ("for", "here", "licence")
            table.add_column(heading, justify="right" if heading in ("items", "MB") else "left", no_wrap=not wraps)
    for one, state in states:
        items = one.items.get("test", sum(one.items.values()))
        row = [one.name, _needed_by(one), f"{items:,}", f"{one.bytes / 1e6:.1f}", _mark(state, short=True)]
        table.add_row(*row, *([_plain(one.licence)] if wide else []))
    return table


def _details(one: DataSet, state: State) -> Table:
    from rich.table import Table

    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    rows = [
        (one.name, one.title),
        ("needed by", _needed_by(one)),
        (one.unit, ", ".join(f"{split} {n:,}" for split, n in one.items.items())),
        ("size", f"{one.bytes / 1e6:.1f} MB in {len(one.files)} file{'s' if len(one.files) > 1 else ''}"),
        ("licence", one.licence),
        ("terms", one.terms),
        ("source", one.source),
        ("cite", one.cite),
        ("to get it", one.get),
        ("fetched from", "; ".join(source.where for source in _sources(one)) or "nowhere: it has to be brought"),
        ("forms", ", ".join(one.forms) or "one"),
    ]
    for key, value in rows:
        table.add_row(key, _plain(value))
    table.add_row("here", _mark(state))
    for key, values in (("where", state.places), ("problem", state.problems)):
        for value in values:
            table.add_row(key, _plain(value))
    return table


def _sources(one: DataSet) -> list[Source]:
    from bench.datasets import sources

    return [source for source in sources().values() if one.name in source.sets]


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def _mark(state: State, short: bool = False) -> str:
    """The state in a word or two; ``short`` names only the forms where those say that the set is there."""
    words = state.status if state.status != "unread" else "unknown form"
    forms = ", ".join(form for form in state.forms if form != "any")
    if forms:
        words = forms if short and state.status == "found" else f"{words} ({forms})"
    return f"[{MARKS[state.status]}]{words}[/]"


def _needed_by(one: DataSet) -> str:
    needed = ", ".join(one.suites)
    return needed or {"corpus": "training", "built-in": "demo"}.get(one.kind, "")


def _as_dict(one: DataSet, state: State) -> dict[str, Any]:
    about = ("name", "kind", "title", "suites", "unit", "items", "bytes", "licence", "terms", "source", "cite", "get", "forms")
    known = {key: getattr(one, key) for key in about}
    return {
        **known,
        "status": state.status,
        "found_forms": list(state.forms),
        "places": list(state.places),
        "problems": list(state.problems),
        "sources": [{"where": source.where, "form": source.form, "note": source.note} for source in _sources(one)],
        "files": [
            {
                "path": file.path,
                "split": file.split,
                "rows": file.rows,
                "sha256": {k: form.sha256 for k, form in file.forms.items()},
            }
            for file in one.files
        ],
    }
