"""``bench suites [NAME]``: what can be scored, and how."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.base.errors import BenchError
from bench.cli.columns import as_findings, end_check, show_results
from bench.cli.options import data_option, json_option, json_text, plugin_option

if TYPE_CHECKING:
    from rich.table import Table

    from bench.score.suites import Suite


@click.command()
@click.argument("name", required=False)
@click.option(
    "--check",
    "check_name",
    metavar="NAME-or-FILE",
    help="Check a suite, or the one that a plugin file defines.",
)
@data_option
@plugin_option
@json_option
def suites(
    name: str | None,
    check_name: str | None,
    data: Path | None,
    plugins: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Suites of tasks; with a NAME everything about one: protocol, metric, data, counts.

    \b
    Example:  bench suites sts
              bench suites --check my_suite.py --data DIR
    """
    from bench.score.suites import suite, suite_names, suite_plugin

    if check_name:
        _check(check_name, data, as_json)
        return
    chosen = []
    for one_name in suite_names() if name is None else [name]:
        try:
            chosen.append(suite(one_name))
        except BenchError as error:
            if name is not None:
                raise
            click.echo(f"warning: {error.message}", err=True)
    if as_json:
        for chosen_suite in chosen:
            click.echo(json_text(_as_dict(chosen_suite)))
        return
    from rich.console import Console
    from rich.markup import escape

    console = Console(width=80, highlight=False)
    if name is None:
        console.print(_overview(chosen))
        console.print("\neverything about one: bench suites NAME", markup=False)
        return
    chosen_suite = chosen[0]
    console.print(f"[bold]{chosen_suite.name}[/bold]  {escape(chosen_suite.title)}")
    console.print(escape(chosen_suite.description))
    console.print(_tasks(chosen_suite))
    if chosen_suite.average:
        console.print(
            f'\n"Avg.": mean of {", ".join(chosen_suite.average)}, each rounded to 2 decimals, rounded again',
            markup=False,
        )
    plugin = suite_plugin(chosen_suite.name)
    from_where = (
        f"it is of {plugin.package} {plugin.version}".rstrip()
        if plugin
        else f"about it: docs/{chosen_suite.docs}"
    )
    console.print(from_where, markup=False, soft_wrap=True)
    needed = [data for task in chosen_suite.tasks for data in getattr(task, "data", ())]
    if needed:
        console.print(f"its data: bench data list {needed[0]}", markup=False)


def _check(name: str, data: Path | None, as_json: bool) -> None:
    from bench.data.sets import DataFolder
    from bench.run.suite_check import check
    from bench.score.suites import SuitePlugin, suite, suite_names, suite_plugin, use_files

    if name.endswith(".py"):
        use_files([Path(name)])
        plugins = [
            plugin
            for plugin in map(suite_plugin, suite_names())
            if isinstance(plugin, SuitePlugin) and plugin.package == str(Path(name))
        ]
        if not plugins:
            raise BenchError(
                f"--check {name}: it defines no suite",
                "SUITE = Suite(...), see docs/add-a-suite.md",
            )
        chosen = plugins[0].suite
    else:
        chosen = suite(name)
    folder = DataFolder(data)
    folder.check_root()
    results = check(chosen, folder)
    if as_json:
        click.echo(json_text({"suite": chosen.name, "findings": as_findings(results, "task")}))
    else:
        show_results(chosen.name, results)
    end_check(sum(result.failed for result in results), as_json)


def _overview(chosen: list[Suite]) -> Table:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("suite", no_wrap=True)
    table.add_column("tasks", justify="right", no_wrap=True)
    table.add_column("what it asks")
    for suite in chosen:
        table.add_row(suite.name, str(len(suite.tasks)), suite.description)
    return table


def _tasks(suite: Suite) -> Table:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("task", no_wrap=True)
    table.add_column("items", justify="right", no_wrap=True)
    table.add_column("metric", no_wrap=True)
    table.add_column("protocol", no_wrap=True)
    parts = [_parts(getattr(task, "subsets", {})) for task in suite.tasks]
    if any(parts):
        table.add_column("sub-datasets")
    for task, shown in zip(suite.tasks, parts, strict=True):
        n = getattr(task, "n", None)
        row = [task.name, "" if n is None else f"{n:,}", task.metric, task.protocol]
        table.add_row(*row, *([shown] if any(parts) else []))
    return table


def _parts(subsets: dict[str, int]) -> str:
    return ", ".join(f"{name} {n:,}" for name, n in subsets.items()) if len(subsets) > 1 else ""


def _as_dict(suite: Suite) -> dict[str, Any]:
    return {
        "name": suite.name,
        "title": suite.title,
        "description": suite.description,
        "docs": suite.docs,
        "average": list(suite.average) if suite.average else None,
        "tasks": [
            {
                "name": task.name,
                "protocol": task.protocol,
                "metric": task.metric,
                "n": getattr(task, "n", None),
                "data": list(getattr(task, "data", ())),
                "subsets": getattr(task, "subsets", {}),
            }
            for task in suite.tasks
        ],
    }
