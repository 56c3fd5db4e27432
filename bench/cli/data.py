"""``bench data list|check``: evaluation data and corpora, what of them is there, and how to get the rest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.cli.options import data_option, json_option

if TYPE_CHECKING:
    from rich.table import Table

    from bench.datasets import DataSet, State

WIDTH = 80
MARKS = {"found": "green", "unread": "yellow", "missing": "dim", "damaged": "red"}


@click.group()
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
    from bench.datasets import DataFolder

    folder = DataFolder(data)
    states = [(one, folder.look(one)) for one in _chosen(name)]
    _show(states, detailed=name is not None, as_json=as_json)
    if not as_json and name is None:
        click.echo("\neverything about one, and how to get it: bench data list NAME")
        click.echo("judged by name and size; every byte: bench data check")
        if data is None:
            click.echo("no data folder was given: pass --data DIR or set BENCH_DATA")


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
    states = [(one, folder.check(one)) for one in _chosen(name)]
    _show(states, detailed=name is not None, as_json=as_json)
    damaged = [one.name for one, state in states if state.status == "damaged"]
    if damaged:
        raise DataDamaged(f"damaged: {', '.join(damaged)}", "bench data check NAME says which file and how to get it")
    if name is not None and states[0][1].status == "missing":
        folder.open(states[0][0])  # raises with what was looked for and where


def _chosen(name: str | None) -> list[DataSet]:
    from bench.datasets import data_set, data_sets

    return list(data_sets().values()) if name is None else [data_set(name)]


def _show(states: list[tuple[DataSet, State]], *, detailed: bool, as_json: bool) -> None:
    if as_json:
        for one, state in states:
            click.echo(json.dumps(_as_dict(one, state), ensure_ascii=False))
        return
    from rich.console import Console

    console = Console(width=WIDTH, highlight=False)
    if not detailed:
        console.print(_table(states))
        for one, state in states:
            if state.status == "damaged":
                for problem in state.problems:
                    console.print(f"[red]damaged[/red] {one.name}: {_plain(problem)}")
        return
    for one, state in states:
        console.print(_details(one, state))


def _table(states: list[tuple[DataSet, State]]) -> Table:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for heading in ("set", "for", "items", "MB", "licence", "here"):
        table.add_column(
            heading, justify="right" if heading in ("items", "MB") else "left", no_wrap=heading not in ("licence", "here")
        )
    for one, state in states:
        items = one.items.get("test", sum(one.items.values()))
        here = _mark(state, short=True)
        table.add_row(one.name, _needed_by(one), f"{items:,}", f"{one.bytes / 1e6:.1f}", _plain(one.licence), here)
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
        ("forms", ", ".join(one.forms) or "one"),
    ]
    for key, value in rows:
        table.add_row(key, _plain(value))
    table.add_row("here", _mark(state))
    for key, values in (("where", state.places), ("problem", state.problems)):
        for value in values:
            table.add_row(key, _plain(value))
    return table


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
