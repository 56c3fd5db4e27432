"""``bench references``: the numbers that papers printed, and what does not fit in their tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

import click

from bench.base.errors import BenchError
from bench.base.text import comma_list
from bench.cli.options import json_option, print_json, select_named
from bench.cli.printed_tables import (
    print_audit,
    print_checkpoints,
    print_papers,
    print_printed_tables,
)
from bench.papers import ReferenceResult, meaning, results, split_name
from bench.papers.audit import remarks


@click.command()
@click.argument("name", metavar="[PAPER[:TABLE]|checkpoints]", required=False)
@click.option(
    "--method", help="Only rows of these methods (a,b), as the tables or as bench call them."
)
@click.option("--backbone", help="Only rows of these backbones.")
@click.option(
    "--setting", help="Only rows of these settings: unsupervised, supervised, none, other."
)
@click.option("--task", help="Only these tasks.")
@click.option("--own", is_flag=True, help="Only what a paper ran itself: no copied rows.")
@click.option(
    "--audit",
    is_flag=True,
    help="Audit the tables: averages that do not add up, misquoted cells, best-of-n rows, mixed "
    "protocols.",
)
@click.option(
    "--kind", help="With --audit: only these kinds of remarks (the names before the lists)."
)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="With a table: every source, checkpoint, text form and remark.",
)
@json_option
def references(
    name: str | None,
    method: str | None,
    backbone: str | None,
    setting: str | None,
    task: str | None,
    own: bool,
    audit: bool,
    kind: str | None,
    everything: bool,
    as_json: bool,
) -> None:
    """Print the numbers of papers, and the contradictions in them.

    Without a name: the papers and their tables. With one: the table as published, with remarks.
    ``checkpoints``: the models that authors released, the printed row of each, and how it is scored
    without training (bench reproduce PAPER:TABLE --released).

    \b
    Example:  bench references promcse:1
              bench references promcse:1 --setting supervised --backbone roberta-base
              bench references --audit
              bench references checkpoints
    """
    if name == "checkpoints":
        print_checkpoints(as_json)
        return
    wanted = {
        "method": comma_list(method),
        "backbone": comma_list(backbone),
        "setting": comma_list(setting),
        "task": comma_list(task),
    }
    numbers = choose_printed(name, wanted, own)
    if audit:
        print_audit(numbers, comma_list(kind), as_json)
    elif as_json:
        for number in numbers:
            objects = [{"kind": remark.kind, "text": remark.why} for remark in remarks(number)]
            print_json([{**asdict(number), "remarks": objects}])
    elif name is None and not own and not any(wanted.values()):
        print_papers()
    else:
        print_printed_tables(numbers, everything=everything)


def choose_printed(
    name: str | None, wanted: Mapping[str, tuple[str, ...]], own: bool
) -> list[ReferenceResult]:
    """Return the printed numbers that match.

    ``name``: "PAPER" or "PAPER:TABLE". ``wanted``: field -> its values. ``own``: only those that a
    paper ran itself. Raises UnknownName, with the nearest, for a value that no number has, and
    BenchError if no number is left.
    """
    paper, table = split_name(name) if name else (None, None)
    numbers = list(results(paper=paper, table=table))
    if own:
        numbers = [number for number in numbers if number.own_result]
    for key, values in wanted.items():
        names = [_names(number, key) for number in numbers]
        numbers = select_named(
            numbers, names, key, values, "among these published numbers", "bench references"
        )
    if not numbers:
        raise BenchError(
            "no published number matches all of these conditions", "leave some of the options out"
        )
    return numbers


def _names(number: ReferenceResult, key: str) -> set[str]:
    """Return the names that ``--KEY`` accepts for a number: as printed, and bench's of a method."""
    if key != "method":
        return {str(getattr(number, key))}
    here = meaning(number.method, number.variant, number.setting, number.backbone)
    return {number.method, here.method, here.name}
