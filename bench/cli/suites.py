"""``bench suites [NAME]``: what can be scored, and how."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bench.cli.options import json_option, json_text

if TYPE_CHECKING:
    from rich.table import Table

    from bench.score.suites import Suite

WIDTH = 80


@click.command()
@click.argument("name", required=False)
@json_option
def suites(name: str | None, as_json: bool) -> None:
    """Suites of tasks; with a NAME everything about one: protocol, metric, data, counts.

    Example: bench suites sts
    """
    from bench.score.suites import suite, suite_names

    chosen = [suite(one) for one in (suite_names() if name is None else [name])]
    if as_json:
        for one in chosen:
            click.echo(json_text(_as_dict(one)))
        return
    from rich.console import Console
    from rich.markup import escape

    console = Console(width=WIDTH, highlight=False)
    if name is None:
        console.print(_overview(chosen))
        console.print("\neverything about one: bench suites NAME", markup=False)
        return
    one = chosen[0]
    console.print(f"[bold]{one.name}[/bold]  {escape(one.title)}")
    console.print(escape(one.description))
    console.print(_tasks(one))
    if one.average:
        console.print(f'\n"Avg.": mean of {", ".join(one.average)}, each rounded to 2 decimals, rounded again', markup=False)
    console.print(f"about it: docs/{one.docs}", markup=False)
    needed = [data for task in one.tasks for data in getattr(task, "data", ())]
    if needed:
        console.print(f"its data: bench data list {needed[0]}", markup=False)


def _overview(chosen: list[Suite]) -> Table:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("suite", "tasks", "what it asks"):
        table.add_column(heading, justify="right" if heading == "tasks" else "left", no_wrap=heading != "what it asks")
    for one in chosen:
        table.add_row(one.name, str(len(one.tasks)), one.description)
    return table


def _tasks(one: Suite) -> Table:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("task", no_wrap=True)
    table.add_column("items", justify="right", no_wrap=True)
    table.add_column("metric", no_wrap=True)
    table.add_column("protocol", no_wrap=True)
    parts = [_parts(getattr(task, "subsets", {})) for task in one.tasks]
    if any(parts):
        table.add_column("sub-datasets")
    for task, shown in zip(one.tasks, parts, strict=True):
        row = [task.name, _count(getattr(task, "n", None)), task.metric, task.protocol]
        table.add_row(*row, *([shown] if any(parts) else []))
    return table


def _parts(subsets: dict[str, int]) -> str:
    return ", ".join(f"{name} {n:,}" for name, n in subsets.items()) if len(subsets) > 1 else ""


def _count(n: int | None) -> str:
    return "" if n is None else f"{n:,}"


def _as_dict(one: Suite) -> dict[str, Any]:
    tasks = [
        {
            "name": task.name,
            "protocol": task.protocol,
            "metric": task.metric,
            "n": getattr(task, "n", None),
            "data": list(getattr(task, "data", ())),
            "subsets": getattr(task, "subsets", {}),
        }
        for task in one.tasks
    ]
    return {
        "name": one.name,
        "title": one.title,
        "description": one.description,
        "docs": one.docs,
        "average": list(one.average) if one.average else None,
        "tasks": tasks,
    }
