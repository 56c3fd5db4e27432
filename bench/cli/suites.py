"""``bench suites``: list the suites, or show everything about one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bench.base.grid import GridColumn, grid
from bench.base.printing import print_grid
from bench.base.text import list_names
from bench.cli.options import (
    json_option,
    json_text,
    plugin_option,
    print_facts,
    print_json,
)
from bench.data.sets import data_sets
from bench.score.suites import Suite, suite, suite_names, suite_plugin


@click.command()
@click.argument("name", required=False)
@plugin_option
@json_option
def suites(
    name: str | None,
    plugins: tuple[Path, ...],
    as_json: bool,
) -> None:
    """List the suites of tasks; with a NAME show its protocol, metric, data and counts.

    \b
    Example:  bench suites sts
    """
    if name is not None:
        facts = _describe_suite(suite(name))
        if as_json:
            click.echo(json_text(facts))
        else:
            _print_suite(facts)
        return
    described = []
    for suite_name in suite_names():
        described.append(_describe_suite(suite(suite_name)))
    if as_json:
        print_json(described)
        return
    columns = ("suite", GridColumn("tasks", right=True), GridColumn("measures", wrap=24))
    rows = [
        (
            facts["name"],
            str(sum(not task["on_request"] for task in facts["tasks"])),
            facts["description"],
        )
        for facts in described
    ]
    print_grid(grid(columns, rows, notes=["bench suites NAME: everything about one"]))


def _print_suite(facts: dict[str, Any]) -> None:
    """Print protocol, metric, items and sub-datasets of each task."""
    plugin = suite_plugin(facts["name"])
    average = ""
    if facts["average"]:
        average = f"mean of {list_names(facts['average'], 9)}, each rounded to 2 decimals"
    averages = []
    for protocol, part in facts.get("averages", {}).items():
        averages.append(f"{protocol}: mean of {part['holds']}")
    if averages:
        average = "; ".join(averages)
    has_data_sets = any(facts["name"] in wanted.suites for wanted in data_sets().values())
    place = f"docs/{facts['docs']}" if plugin is None else plugin.file
    print_facts(
        [
            (facts["name"], f"{facts['title']}: {facts['description']}"),
            ("average", average),
            ("defined in", place),
            ("data", f"bench data list {facts['name']}" if has_data_sets else ""),
        ]
    )
    if not facts["tasks"]:
        return
    columns = (
        "task",
        GridColumn("items", right=True),
        "metric",
        "protocol",
        GridColumn("sub-datasets", wrap=20),
    )
    print_grid(grid(columns, [_task_row(task) for task in facts["tasks"]]), blank=True)


def _task_row(task: dict[str, Any]) -> tuple[str, ...]:
    items = "" if task["n"] is None else f"{task['n']:,}"
    # a sub-dataset with all items is the task itself
    parts = [f"{part} {n:,}" for part, n in task["subsets"].items() if n != task["n"]]
    return task["name"], items, task["metric"], task["protocol"], ", ".join(parts)


def _describe_suite(suite: Suite) -> dict[str, Any]:
    tasks = []
    for task in (*suite.tasks, *suite.on_request):
        tasks.append(
            {
                "name": task.name,
                "protocol": task.protocol,
                "metric": task.metric.name,
                "n": getattr(task, "n", None),
                "data": list(getattr(task, "data", ())),
                "subsets": getattr(task, "subsets", {}),
                # scored only if its protocol is named
                "on_request": task in suite.on_request,
            }
        )
    facts: dict[str, Any] = {
        "name": suite.name,
        "title": suite.title,
        "description": suite.description,
        "docs": suite.docs,
        "average": list(suite.average) if suite.average else None,
        "tasks": tasks,
    }
    if suite.parts:
        facts["averages"] = {
            protocol: {"tasks": list(part.tasks), "holds": part.holds}
            for protocol, part in suite.parts.items()
        }
    return facts
