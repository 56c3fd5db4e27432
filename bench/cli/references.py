"""``bench references [PAPER[:TABLE]]``: what the papers printed, and what their tables say about themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from bench.cli.filters import json_text
from bench.cli.options import comma_list, json_option
from bench.cli.references_import import WithImport

if TYPE_CHECKING:
    from bench.references import ReferenceResult


@click.command(cls=WithImport)
@click.argument("name", metavar="[PAPER[:TABLE]]", required=False)
@click.option("--method", help="Only rows of these methods (a,b), as the tables or as bench call them.")
@click.option("--backbone", help="Only rows of these backbones.")
@click.option("--setting", help="Only rows of these settings: unsupervised, supervised, other.")
@click.option("--task", help="Only these tasks.")
@click.option("--own", is_flag=True, help="Only what a paper ran itself: no copied rows.")
@click.option(
    "--audit", is_flag=True, help="What does not fit: averages, quotations, best-of-n, protocols; computed from the cells."
)
@click.option("--kind", help="With --audit: only these kinds of remarks (the words before each list).")
@json_option
def references(
    name: str | None, method: str | None, backbone: str | None, setting: str | None, task: str | None, own: bool, audit: bool,
    kind: str | None, as_json: bool,
) -> None:  # fmt: skip
    """What papers printed, as data; never mixed up with runs.

    Without a name: the papers and their tables. With one: the table as it is printed, with remarks.

    \b
    Example:  bench references promcse:1
              bench references promcse:1 --setting supervised --backbone roberta-base
              bench references --audit
    """
    from bench.references.rows import split_name

    paper, table = split_name(name) if name else (None, None)
    wanted = {
        "method": comma_list(method),
        "backbone": comma_list(backbone),
        "setting": comma_list(setting),
        "task": comma_list(task),
    }
    found = chosen(paper, table, wanted, own)
    if audit:
        _audit(found, comma_list(kind), as_json)
    elif as_json:
        _print_json(found)
    elif name is None and not own and not any(wanted.values()):
        from bench.cli.printed_table import show_overview

        show_overview()
    else:
        from bench.cli.printed_table import show_tables

        show_tables(found)


def chosen(paper: str | None, table: str | None, wanted: dict[str, tuple[str, ...]], own: bool) -> list[ReferenceResult]:
    """The printed numbers that fit; UnknownName, with the nearest, for a name that no number has."""
    from bench.errors import BenchError, UnknownName
    from bench.references import results
    from bench.references.ours import meaning

    def names(r: ReferenceResult, key: str) -> set[str]:
        return {str(getattr(r, key))} | ({meaning(r.method, r.variant).method} if key == "method" else set())

    found = [r for r in results(paper=paper) if table in (None, r.table)]
    for key, values in wanted.items():
        have = {name for r in found for name in names(r, key) if name}
        for value in values:
            if value not in have:
                raise UnknownName(key, value, have, "among these printed numbers", "bench references")
        found = [r for r in found if not values or names(r, key) & set(values)]
    found = [r for r in found if r.own_result or not own]
    if not found:
        raise BenchError("no printed number fits all of that", "bench references, with fewer conditions")
    return found


def _print_json(found: Sequence[ReferenceResult]) -> None:
    from dataclasses import asdict

    from bench.references.audit import remarks

    for r in found:
        told = [{"kind": remark.kind, "text": remark.text} for remark in remarks(r)]
        click.echo(json_text({**asdict(r), "remarks": told}))


def _audit(found: Sequence[ReferenceResult], kinds: Sequence[str], as_json: bool) -> None:
    from dataclasses import asdict

    from bench.cli.printed_table import show_audit
    from bench.errors import UnknownName
    from bench.references.audit import KINDS, remarks

    for kind in kinds:
        if kind not in KINDS:
            raise UnknownName("kind", kind, KINDS, "of remark")
    every = dict.fromkeys(remark for r in found for remark in remarks(r) if not kinds or remark.kind in kinds)
    if as_json:
        for remark in every:
            click.echo(json_text(asdict(remark)))
    else:
        show_audit(list(every), found)
