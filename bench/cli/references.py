"""``bench references [PAPER[:TABLE]]``: what the papers printed, and what their tables say about themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict

import click

from bench.base.errors import BenchError
from bench.base.text import list_names, plural
from bench.cli.options import (
    check_known_names,
    json_option,
    print_facts,
    print_grid,
    print_json,
    say,
    select_named,
)
from bench.references import (
    PAPERS,
    ReferenceResult,
    Row,
    checkpoints,
    meaning,
    released_for,
    results,
    rows,
    scored_from,
    split_name,
    tables,
)
from bench.references.audit import KINDS, Remark, as_data, remarks, show
from bench.session.values import comma_list
from bench.show.grid import Cell, Column, Grid, grid


@click.command()
@click.argument("name", metavar="[PAPER[:TABLE]|checkpoints]", required=False)
@click.option(
    "--method", help="Only rows of these methods (a,b), as the tables or as bench call them."
)
@click.option("--backbone", help="Only rows of these backbones.")
@click.option("--setting", help="Only rows of these settings: unsupervised, supervised, other.")
@click.option("--task", help="Only these tasks.")
@click.option("--own", is_flag=True, help="Only what a paper ran itself: no copied rows.")
@click.option(
    "--audit",
    is_flag=True,
    help="What does not fit: averages, quotations, best-of-n, protocols; computed from the cells.",
)
@click.option(
    "--kind", help="With --audit: only these kinds of remarks (the names before the lists)."
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
    as_json: bool,
) -> None:
    """What papers printed, as data.

    Without a name: the papers and their tables. With one: the table as printed, with remarks. ``checkpoints``: the models that
    authors released, the printed row of each, and how it is scored without training (bench reproduce PAPER:TABLE --released).

    \b
    Example:  bench references promcse:1
              bench references promcse:1 --setting supervised --backbone roberta-base
              bench references --audit
              bench references checkpoints
    """
    if name == "checkpoints":
        _show_checkpoints(as_json)
        return
    wanted = {
        "method": comma_list(method),
        "backbone": comma_list(backbone),
        "setting": comma_list(setting),
        "task": comma_list(task),
    }
    numbers = choose_printed(name, wanted, own)
    if audit:
        _audit(numbers, comma_list(kind), as_json)
    elif as_json:
        print_json(
            {
                **asdict(number),
                "remarks": [{"kind": one.kind, "text": one.why} for one in remarks(number)],
            }
            for number in numbers
        )
    elif name is None and not own and not any(wanted.values()):
        show_overview()
    else:
        show_tables(numbers)


def choose_printed(
    name: str | None, wanted: dict[str, tuple[str, ...]], own: bool
) -> list[ReferenceResult]:
    """The printed numbers that match; raises UnknownName, with the nearest, for a name that no number has."""
    paper, table = split_name(name) if name else (None, None)
    numbers = [one for one in results(paper=paper, table=table) if one.own_result or not own]
    for key, values in wanted.items():
        numbers = select_named(
            numbers,
            [_names(number, key) for number in numbers],
            key,
            values,
            "among these printed numbers",
            "bench references",
        )
    if not numbers:
        raise BenchError(
            "no printed number matches all of these conditions", "leave some of the options out"
        )
    return numbers


def _names(number: ReferenceResult, key: str) -> set[str]:
    """The names that ``--KEY`` accepts for a number: as printed, and for a method also as bench calls it."""
    if key != "method":
        return {str(getattr(number, key))}
    here = meaning(number.method, number.variant, number.setting, number.backbone)
    return {number.method, here.method, here.name}


# --- the papers, the checkpoints, a table with its footnotes, the audit ---


def _show_checkpoints(as_json: bool) -> None:
    if as_json:
        print_json({**asdict(one), "printed": one.printed} for one in checkpoints())
    else:
        print_grid(
            grid(
                [
                    "hub",
                    "table",
                    "Avg.",
                    Column("scored by", wrap=20),
                    Column("also scored in", wrap=10, drop=2),
                    Column("note", wrap=20, drop=1),
                ],
                [
                    (
                        one.hub,
                        f"{one.paper}:{one.table}",
                        one.printed,
                        " ".join([one.ours, *(f"{key}={value}" for key, value in one.set.items())])
                        + (f", a prefix of {one.prefix}" if one.prefix else ""),
                        ", ".join(one.scored_in),
                        one.note,
                    )
                    for one in checkpoints()
                ],
                whole="--json",
            )
        )


def show_overview() -> None:
    """The papers, and a line for each of their tables."""
    lines = [
        (
            f"{paper}:{table}",
            str(len(rows(numbers, by_metric=False))),
            ", ".join(dict.fromkeys(number.metric for number in numbers)),
            ", ".join(dict.fromkeys(number.setting for number in numbers)),
        )
        for paper, table in tables()
        for numbers in [results(paper=paper, table=table)]
    ]
    print_facts(PAPERS.items())
    click.echo()
    print_grid(
        grid(
            [
                "table",
                Column("rows", right=True),
                Column("metric", wrap=12),
                Column("settings", wrap=12),
            ],
            lines,
            notes=[
                "one table: bench references PAPER:TABLE; all remarks: bench references --audit"
            ],
        )
    )


def show_tables(numbers: Sequence[ReferenceResult]) -> None:
    """Every table that the numbers belong to, with the rows and columns that were chosen, by setting and backbone."""
    parts: dict[tuple[str, str], dict[str, list[Row]]] = {}
    for row in rows(numbers, by_metric=False):
        name = ", ".join(filter(None, (row.first.setting, row.first.backbone)))
        parts.setdefault((row.first.paper, row.first.table), {}).setdefault(name, []).append(row)
    for (paper, table), by_name in parts.items():
        say(f"table {table} of {PAPERS[paper]}", hang=2)
        for name, part in by_name.items():
            print_grid(_grid(name, part), blank=True)
        click.echo()
    click.echo(
        "±: over the draws of CxC-STS, over seeds elsewhere\n"
        "numbers that other papers print differently: --audit --kind differs"
    )


def _grid(title: str, part: Sequence[Row]) -> Grid:
    """A part of the table as printed; its footnotes are the audit's remarks and the notes on its rows."""
    footnotes: dict[str, int] = {}

    def marks(texts: Iterable[str]) -> tuple[int, ...]:
        return tuple({footnotes.setdefault(text, len(footnotes) + 1): None for text in texts})

    def printed(cell: ReferenceResult) -> Cell:
        spread = "" if cell.std is None else f" ± {show(cell.std, cell.metric)}"
        notes = (r.why for r in remarks(cell) if r.task and r.kind != "differs")
        return Cell(text=cell.printed + spread, marks=marks(notes))

    tasks = list(dict.fromkeys(cell.task for row in part for cell in row.cells))
    lines = []
    for row in part:
        name = Cell(text=row.first.label, marks=marks(_row_notes(row)))
        cells = {cell.task: printed(cell) for cell in row.cells}
        lines.append([name, *(cells.get(task, Cell()) for task in tasks)])
    return grid(
        [
            Column("row", wrap=24),
            *(Column(t, right=True, drop=int(t != "Avg."), lead=t == "Avg.") for t in tasks),
        ],
        lines,
        title=title,
        footnotes=list(footnotes),
        whole="--json",
    )


COMPUTED = ("copied", "text: ", "same ", "best Avg.", "abstract and text claim")
"""How the recorded notes begin that the audit computes as well."""


def _row_notes(row: Row) -> Iterator[str]:
    """The audit's remarks on the whole row, the notes on it, and its released checkpoint."""
    for cell in row.cells:
        yield from (r.why for r in remarks(cell) if not r.task)
        yield from (n for n in cell.note.split("; ") if n and not n.startswith(COMPUTED))
        if (checkpoint := released_for(cell)) is not None:
            scored = "the paper scored a released checkpoint" if scored_from(cell) else "released"
            yield f"{scored}: {checkpoint.hub}"


LONG = ("differs", "copied")  # kinds with hundreds of remarks


def _audit(numbers: Sequence[ReferenceResult], kinds: Sequence[str], as_json: bool) -> None:
    """Kind after kind, a line for each remark."""
    check_known_names("kind", kinds, KINDS, "of remark")
    shown = kinds or (KINDS if as_json else [kind for kind in KINDS if kind not in LONG])
    listed = dict.fromkeys(
        remark for number in numbers for remark in remarks(number) if remark.kind in shown
    )
    if as_json:
        print_json(map(as_data, listed))
        return
    for kind in shown:
        if of_kind := [remark for remark in listed if remark.kind == kind]:
            print_grid(_audit_grid(of_kind, f"{kind}: {KINDS[kind]}"))
            click.echo()
    click.echo(f"{plural(len(numbers), 'printed number')}, {plural(len(listed), 'remark')}")
    if not kinds:
        click.echo(f"not shown, because they are long: --kind {','.join(LONG)}")


def _audit_grid(listed: Sequence[Remark], title: str) -> Grid:
    """A line for each remark; cells of one row with the same remark share it."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for remark in listed:
        cell = remark.cell
        row = (f"{cell.paper}:{cell.table}", cell.setting, cell.label, cell.backbone, remark.why)
        groups.setdefault(row, []).append(remark.task)
    return grid(
        [
            "table",
            Column("setting", drop=2),
            Column("row", wrap=16),
            Column("backbone", drop=1),
            Column("cell", wrap=8),
            Column("remark", wrap=24),
        ],
        [
            (*names, list_names(filter(None, dict.fromkeys(tasks)), 1), why)
            for (*names, why), tasks in groups.items()
        ],
        title=title,
        whole="--json",
    )
