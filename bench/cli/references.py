"""``bench references [PAPER[:TABLE]]``: what the papers printed, and what their tables say about themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import click

from bench.base.errors import BenchError, UnknownName
from bench.base.text import list_names, plural
from bench.cli.columns import print_grid, say
from bench.cli.options import comma_list, json_option, json_text
from bench.references import (
    PAPERS,
    ReferenceResult,
    Row,
    results,
    rows,
    split_name,
    tables,
)
from bench.references.audit import KINDS, Remark, as_data, remarks
from bench.references.audit import show as decimals
from bench.references.checkpoints import Checkpoint, checkpoints, released_for, scored_from
from bench.references.ours import meaning
from bench.show.grid import Cell, Column, Grid, grid

# --- ``bench references checkpoints``: what authors released ---


@click.command("checkpoints")
@json_option
def checkpoints_(as_json: bool) -> None:
    """Models that authors released: the printed row that each is, and the command that scores it without any training.

    Scored by the method and recipe values shown; bench reproduce PAPER:TABLE --released does so for a whole table.

    \b
    Example:  bench references checkpoints
              bench evaluate princeton-nlp/unsup-simcse-bert-base-uncased --allow-pickle
    """
    if as_json:
        for checkpoint in checkpoints():
            click.echo(json_text({**asdict(checkpoint), "printed": checkpoint.printed}))
        return
    rows = [
        (
            checkpoint.hub,
            f"{checkpoint.paper}:{checkpoint.table}",
            checkpoint.printed,
            how_scored(checkpoint),
            ", ".join(checkpoint.scored_in),
            checkpoint.note,
        )
        for checkpoint in checkpoints()
    ]
    columns = [Column("hub"), Column("table"), Column("Avg."), Column("scored by", wrap=20)]
    also = [Column("also scored in", wrap=10, drop=2), Column("note", wrap=20, drop=1)]
    print_grid(grid([*columns, *also], rows, whole="--json"))


def how_scored(checkpoint: Checkpoint) -> str:
    """ "stored-prefix pooling=mlp, a prefix of 10"."""
    values = " ".join(f"{key}={value}" for key, value in checkpoint.set.items())
    prefix = f", a prefix of {checkpoint.prefix}" if checkpoint.prefix else ""
    return f"{checkpoint.ours} {values}{prefix}"


class WithCheckpoints(click.Command):
    """The command ``bench references [NAME]``, which also takes ``bench references checkpoints``: @click.command(cls=WithCheckpoints)."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        if args[:1] == ["checkpoints"]:
            return checkpoints_.make_context(f"{info_name} checkpoints", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command(cls=WithCheckpoints)
@click.argument("name", metavar="[PAPER[:TABLE]]", required=False)
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
    "--kind", help="With --audit: only these kinds of remarks (the words before each list)."
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
    """What papers printed, as data; never mixed up with runs.

    Without a name: the papers and their tables. With one: the table as it is printed, with remarks.

    \b
    Example:  bench references promcse:1
              bench references promcse:1 --setting supervised --backbone roberta-base
              bench references --audit
    """
    paper, table = split_name(name) if name else (None, None)
    fields = {"method": method, "backbone": backbone, "setting": setting, "task": task}
    wanted = {field: comma_list(text) for field, text in fields.items()}
    numbers = choose_printed(paper, table, wanted, own)
    if audit:
        _audit(numbers, comma_list(kind), as_json)
    elif as_json:
        for number in numbers:
            found = [{"kind": remark.kind, "text": remark.why} for remark in remarks(number)]
            click.echo(json_text({**asdict(number), "remarks": found}))
    elif name is None and not own and not any(wanted.values()):
        show_overview()
    else:
        show_tables(numbers)


def choose_printed(
    paper: str | None, table: str | None, wanted: dict[str, tuple[str, ...]], own: bool
) -> list[ReferenceResult]:
    """The printed numbers that fit; UnknownName, with the nearest, for a name that no number has."""

    def names(r: ReferenceResult, key: str) -> set[str]:
        means = meaning(r.method, r.variant, r.setting, r.backbone)
        return {str(getattr(r, key))} | ({means.method, means.name} if key == "method" else set())

    numbers = [r for r in results(paper=paper) if table in (None, r.table)]
    for key, values in wanted.items():
        have = {name for r in numbers for name in names(r, key) if name}
        for value in values:
            if value not in have:
                raise UnknownName(
                    key, value, have, "among these printed numbers", "bench references"
                )
        numbers = [r for r in numbers if not values or names(r, key) & set(values)]
    numbers = [r for r in numbers if r.own_result or not own]
    if not numbers:
        raise BenchError(
            "no printed number fits all of that", "bench references, with fewer conditions"
        )
    return numbers


# --- the papers, a table with its footnotes, the audit ---


def show_overview() -> None:
    """The papers, and a line for each of their tables."""
    for paper, title in PAPERS.items():
        lines = []
        for table in (t for p, t in tables() if p == paper):
            numbers = [r for r in results(paper=paper) if r.table == table]
            count = len(rows(numbers, by_metric=False))
            metrics = ", ".join(dict.fromkeys(r.metric for r in numbers))
            settings = ", ".join(dict.fromkeys(r.setting for r in numbers))
            lines.append((f"{paper}:{table}", str(count), metrics, settings))
        texts = [Column("metric", wrap=12), Column("settings", wrap=12)]
        columns: list[Column | str] = ["table", Column("rows", right=True), *texts]
        print_grid(grid(columns, lines, title=f"{paper}: {title}"))
        click.echo()
    click.echo("one of them: bench references PAPER:TABLE; all remarks: bench references --audit")


def show_tables(numbers: Sequence[ReferenceResult]) -> None:
    """Every table that the numbers belong to, with the rows and columns that were chosen."""
    groups: dict[tuple[str, str], list[ReferenceResult]] = {}
    for number in numbers:
        groups.setdefault((number.paper, number.table), []).append(number)
    for (paper, table), group in groups.items():
        say(f"table {table} of {PAPERS[paper]}", hang=2)
        for title, part in _parts(rows(group, by_metric=False)):
            click.echo()
            print_grid(_grid(title, part))
        click.echo()
    click.echo("numbers that are printed differently elsewhere: --audit --kind differs")


def _parts(lines: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """The table in the parts that papers rule off: by setting, and by backbone where labels do not tell them apart."""
    parts: dict[str, list[Row]] = {}
    for row in lines:
        labels = [other.first.label for other in lines if other.first.setting == row.first.setting]
        backbone = f", {row.first.backbone}" if len(set(labels)) < len(labels) else ""
        parts.setdefault(row.first.setting + backbone, []).append(row)
    return list(parts.items())


def _grid(title: str, part: Sequence[Row]) -> Grid:
    """A part of the table as it is printed; footnotes are the audit's remarks and what is recorded of a row."""
    footnotes: dict[str, int] = {}

    def marks(texts: Iterable[str]) -> tuple[int, ...]:
        return tuple({footnotes.setdefault(text, len(footnotes) + 1): None for text in texts})

    tasks = list(dict.fromkeys(cell.task for row in part for cell in row.cells))
    columns = [Column(t, right=True, drop=int(t != "Avg."), lead=t == "Avg.") for t in tasks]
    lines = []
    for row in part:
        cells = {cell.task: cell for cell in row.cells}
        line = [Cell(text=row.first.label, marks=marks(_row_notes(row)))]
        for task in tasks:
            if (cell := cells.get(task)) is None:
                line.append(Cell())
                continue
            spread = "" if cell.std is None else f" ± {decimals(cell.std, cell.metric)}"
            notes = (r.why for r in remarks(cell) if r.task and r.kind != "differs")
            line.append(Cell(text=cell.printed + spread, marks=marks(notes)))
        lines.append(line)
    spreads = ["±: over the draws of CxC-STS, over seeds elsewhere"]
    return grid(
        [Column("row", wrap=24), *columns],
        lines,
        title=title,
        footnotes=list(footnotes),
        notes=spreads if any(cell.std is not None for row in part for cell in row.cells) else [],
        whole="--json",
    )


COMPUTED = ("copied", "text: ", "same ", "best Avg.", "abstract and text claim")
"""How recorded notes begin that the audit computes, too."""


def _row_notes(row: Row) -> Iterator[str]:
    """The audit's remarks on the whole row, what is recorded of it, and its released checkpoint."""
    for cell in row.cells:
        yield from (r.why for r in remarks(cell) if not r.task)
        yield from (
            note for note in cell.note.split("; ") if note and not note.startswith(COMPUTED)
        )
        if (checkpoint := released_for(cell)) is not None:
            scored = "the paper scored a released checkpoint" if scored_from(cell) else "released"
            yield f"{scored}: {checkpoint.hub}"


LONG = ("differs", "copied")  # kinds with hundreds of remarks


def _audit(numbers: Sequence[ReferenceResult], kinds: Sequence[str], as_json: bool) -> None:
    """Kind after kind, a line for each remark."""
    for kind in kinds:
        if kind not in KINDS:
            raise UnknownName("kind", kind, KINDS, "of remark")
    every = dict.fromkeys(remark for number in numbers for remark in remarks(number))
    chosen = [remark for remark in every if not kinds or remark.kind in kinds]
    if as_json:
        for remark in chosen:
            click.echo(json_text(as_data(remark)))
        return
    listed = [remark for remark in chosen if kinds or remark.kind not in LONG]
    for kind, title in KINDS.items():
        table = _audit_grid([r for r in listed if r.kind == kind], f"{kind}: {title}")
        if table.rows:
            print_grid(table)
            click.echo()
    click.echo(f"{plural(len(numbers), 'printed number')}, {plural(len(listed), 'remark')}")
    if not kinds:
        click.echo(f"longer lists, only by name: --kind {','.join(LONG)}")


def _audit_grid(listed: Sequence[Remark], title: str) -> Grid:
    """A line for each remark; cells of one row with the same remark share it."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for remark in listed:
        cell = remark.cell
        names = (f"{cell.paper}:{cell.table}", cell.setting, cell.label, cell.backbone)
        groups.setdefault((*names, remark.why), []).append(remark.task)
    lines = [
        (*row, list_names(filter(None, dict.fromkeys(tasks)), 1), why)
        for (*row, why), tasks in groups.items()
    ]
    columns = [Column("row", wrap=16), Column("backbone", drop=1), Column("cell", wrap=8)]
    return grid(
        ["table", Column("setting", drop=2), *columns, Column("remark", wrap=24)],
        lines,
        title=title,
        whole="--json",
    )
