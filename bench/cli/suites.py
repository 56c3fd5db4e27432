"""``bench suites [NAME]``: what can be scored, and how."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.base.errors import BenchError
from bench.base.text import list_names
from bench.cli.columns import (
    as_findings,
    end_check,
    print_columns,
    print_grid,
    say,
    show_results,
    title,
)
from bench.cli.options import data_option, json_option, json_text, plugin_option
from bench.show.grid import Column, grid

if TYPE_CHECKING:
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
    from bench.score.suites import suite, suite_names

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
    if name is None:
        print_columns(
            [(suite.name, f"{len(suite.tasks):>5}", suite.description) for suite in chosen],
            headings=("suite", "tasks", "measures"),
        )
        title("everything about one: bench suites NAME")
    else:
        _show(chosen[0])


def _show(suite: Suite) -> None:
    from bench.score.suites import suite_plugin

    say(f"{suite.name}: {suite.title}")
    say(suite.description)
    click.echo()
    columns = [
        Column("task"),
        Column("items", right=True),
        Column("metric"),
        Column("protocol"),
        Column("sub-datasets", wrap=20),
    ]
    rows = []
    for task in suite.tasks:
        n = getattr(task, "n", None)
        parts = _parts(getattr(task, "subsets", {}))
        rows.append((task.name, "" if n is None else f"{n:,}", task.metric, task.protocol, parts))
    print_grid(grid(columns, rows))
    click.echo()
    if suite.average:
        say(
            f"Avg.: mean of {list_names(suite.average, 9)}, each rounded to 2 decimals, rounded again"
        )
    plugin = suite_plugin(suite.name)
    say(f"from {plugin.package} {plugin.version}" if plugin else f"documented in docs/{suite.docs}")
    if needed := [data for task in suite.tasks for data in getattr(task, "data", ())]:
        say(f"its data: bench data list {needed[0]}")


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
