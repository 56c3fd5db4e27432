"""``bench papers``: what papers published, as data, and what does not fit in their tables."""

from __future__ import annotations

import click

from bench.base.errors import BenchError
from bench.base.printing import print_grid
from bench.base.text import comma_list
from bench.cli.options import check_known_names, print_json
from bench.cli.paper_lists import (
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
    "--json",
    "as_json",
    is_flag=True,
    help="A line of JSON per published value, with its source and remarks.",
)
def papers(
    name: str | None,
    remarks: bool,
    kind: str | None,
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
    if name == CHECKPOINTS and remarks:
        raise BenchError("remarks are on tables, not on checkpoints", "bench papers --remarks")
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
    if as_json:
        print_json(shown.objects)
        return
    for number, one in enumerate(shown.grids):
        print_grid(one, blank=number > 0)


def _numbers_of(name: str | None) -> tuple[ReferenceResult, ...]:
    """Return the printed numbers of "PAPER", of "PAPER:TABLE", or all without a name."""
    if name is None:
        return results()
    if ":" in name:
        part = find_part(name)
        return results(paper=part.paper, table=part.short)
    return results(paper=find_paper(name).name)
