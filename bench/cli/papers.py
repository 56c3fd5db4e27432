"""``bench papers``: what papers published, as data, and what does not fit in their tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from bench.base.errors import BenchError
from bench.base.grid import Grid, csv_lines
from bench.base.markup import as_markdown
from bench.base.printing import print_grid
from bench.base.text import comma_list
from bench.cli.options import check_known_names, print_json
from bench.cli.paper_lists import (
    Shown,
    show_checkpoints,
    show_contents,
    show_papers,
    show_remarks,
)
from bench.cli.paper_part import show_part
from bench.papers import ReferenceResult, find_paper, find_part, results
from bench.papers.remarks import KINDS

CHECKPOINTS = "checkpoints"


@click.command()
@click.argument("name", metavar="[PAPER[:TABLE]|checkpoints]", required=False)
@click.option(
    "--remarks",
    is_flag=True,
    help="What does not fit: averages that do not add up, misquoted cells, best-of-n rows.",
)
@click.option("--kind", help=f"With --remarks: only these kinds of {', '.join(KINDS)}.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "md", "csv", "json"]),
    default="table",
    show_default=True,
    help="csv and json: a line per published value, with its source and remarks.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
def papers(
    name: str | None,
    remarks: bool,
    kind: str | None,
    form: str,
    as_json: bool,
) -> None:
    """Show what papers published: scores, hyperparameters, figures, claims, and what does not fit.

    Without a name: the papers. PAPER: its tables, figures and claims, and which of them can be run
    again. PAPER:TABLE: the table as published, with remarks. ``checkpoints``: the models that
    authors released, and how each is scored.

    \b
    Example:  bench papers promcse
              bench papers promcse:1
              bench papers promcse:6
              bench papers --remarks --kind average
              bench run --paper promcse:1 --dry-run
    """
    kinds = comma_list(kind)
    check_known_names("kind", kinds, KINDS, "of remark")
    if kinds and not remarks:
        raise BenchError("--kind chooses remarks", f"bench papers --remarks --kind {kind}")
    if name == CHECKPOINTS:
        shown = show_checkpoints()
    elif remarks:
        shown = show_remarks(_numbers_of(name), kinds)
    elif name is None:
        shown = show_papers()
    elif ":" in name:
        shown = show_part(find_part(name))
    else:
        shown = show_contents(name)
    _print_shown(shown, "json" if as_json else form)


def _numbers_of(name: str | None) -> tuple[ReferenceResult, ...]:
    """Return the printed numbers of "PAPER", of "PAPER:TABLE", or all without a name."""
    if name is None:
        return results()
    if ":" in name:
        part = find_part(name)
        return results(paper=part.paper, table=part.short)
    return results(paper=find_paper(name).name)


def _print_shown(shown: Shown, form: str) -> None:
    """Print the tables, or the objects behind them."""
    if form == "json":
        print_json(shown.objects)
    elif form == "csv":
        click.echo(_as_csv(shown.objects), nl=False)
    elif form == "md":
        click.echo("\n".join(map(as_markdown, shown.grids)), nl=False)
    else:
        _print_grids(shown.grids)


def _print_grids(grids: Sequence[Grid]) -> None:
    for number, one in enumerate(grids):
        print_grid(one, blank=number > 0)


def _as_csv(objects: Iterable[Mapping[str, Any]]) -> str:
    """Write a line per object; what is a list is joined by semicolons."""
    listed = list(objects)
    names = list(dict.fromkeys(name for one in listed for name in one))
    rows = [[_csv_value(one.get(name)) for name in names] for one in listed]
    return csv_lines(names, rows)


def _csv_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return " ".join(f"{key}={part}" for key, part in value.items())
    if isinstance(value, list | tuple):
        return "; ".join(map(str, value))
    return value
