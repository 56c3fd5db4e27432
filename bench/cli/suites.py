"""``bench suites [NAME]``: what can be scored, and how."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bench.base.errors import BenchError
from bench.base.terminal import warn
from bench.base.text import list_names
from bench.cli.check import run_checks
from bench.cli.options import (
    data_option,
    json_option,
    json_text,
    plugin_option,
    print_facts,
    print_grid,
    print_json,
)
from bench.score.suites import Suite, suite, suite_names, suite_plugin
from bench.show.grid import Column, grid


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
    if check_name:
        run_checks([check_name], data=data, as_json=as_json)
    if name is not None:
        facts = _as_data(suite(name))
        if as_json:
            click.echo(json_text(facts))
        else:
            _show(facts)
        return
    chosen = []
    for suite_name in suite_names():
        try:
            chosen.append(_as_data(suite(suite_name)))
        except BenchError as error:
            warn(f"warning: {error.message}")
    if as_json:
        print_json(chosen)
    else:
        print_grid(
            grid(
                ("suite", Column("tasks", right=True), Column("measures", wrap=24)),
                [(one["name"], str(len(one["tasks"])), one["description"]) for one in chosen],
                notes=["bench suites NAME: everything about one"],
            )
        )


def _show(facts: dict[str, Any]) -> None:
    """Protocol, metric, items and sub-datasets of each task."""
    plugin = suite_plugin(facts["name"])
    average = list_names(facts["average"] or (), 9)
    print_facts(
        [
            (facts["name"], f"{facts['title']}: {facts['description']}"),
            ("average", f"mean of {average}, each rounded to 2 decimals" if average else ""),
            (
                "defined in",
                f"{plugin.package} {plugin.version}" if plugin else f"docs/{facts['docs']}",
            ),
            ("data", f"bench data list {facts['name']}" if facts["tasks"] else ""),
        ]
    )
    if not facts["tasks"]:
        return
    print_grid(
        grid(
            [
                "task",
                Column("items", right=True),
                "metric",
                "protocol",
                Column("sub-datasets", wrap=20),
            ],
            [
                (
                    task["name"],
                    "" if task["n"] is None else f"{task['n']:,}",
                    task["metric"],
                    task["protocol"],
                    ", ".join(
                        f"{part} {n:,}" for part, n in task["subsets"].items() if n != task["n"]
                    ),
                )
                for task in facts["tasks"]
            ],
        ),
        blank=True,
    )


def _as_data(suite: Suite) -> dict[str, Any]:
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
