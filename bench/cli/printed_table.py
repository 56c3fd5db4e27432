"""Lays out what papers printed for a terminal of any width: the papers, a table with its footnotes, the audit."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from bench.cli.columns import print_columns, say, width

if TYPE_CHECKING:
    from rich.table import Table

    from bench.references import ReferenceResult
    from bench.references.audit import Remark
    from bench.references.rows import Row

MARKED = ("average", "spread", "impossible", "same", "quoted", "best", "protocol")
"""Kinds of remarks that get a footnote in a table, the gravest first; copies and what is printed differently elsewhere are a line each below it."""


def show_overview() -> None:
    """The papers, and a line for each of their tables."""
    from bench.references import PAPERS, results
    from bench.references.audit import audit, told
    from bench.references.rows import rows, tables

    for paper, title in PAPERS.items():
        say(f"{paper}: {title}", hang=2)
        lines = []
        for table in (t for p, t in tables() if p == paper):
            found = [r for r in results(paper=paper) if r.table == table]
            every = rows(found, by_metric=False)
            copied = sum(not row.first.own_result for row in every)
            remarks = told(r for r in audit() if (r.paper, r.table) == (paper, table))
            settings = ", ".join(dict.fromkeys(r.setting for r in found))
            metrics = ", ".join(dict.fromkeys(r.metric for r in found))
            lines.append((f"{paper}:{table}", str(len(every)), str(copied), str(remarks), f"{metrics}; {settings}"))
        print_columns(lines, headings=("table", "rows", "copied", "remarks", "what"), indent=2)
        click.echo()
    print_columns([("one of them:", "bench references PAPER:TABLE"), ("what does not fit:", "bench references --audit")])


def show_tables(found: Sequence[ReferenceResult]) -> None:
    """Every table that the numbers belong to, with the rows and columns that were chosen."""
    from bench.references import PAPERS

    for i, key in enumerate(dict.fromkeys((r.paper, r.table) for r in found)):
        if i:
            click.echo()
        say(f"table {key[1]} of {PAPERS[key[0]]}", hang=2)
        _show_table([r for r in found if (r.paper, r.table) == key])


def _show_table(found: Sequence[ReferenceResult]) -> None:
    from bench.references.rows import rows

    lines = rows(found, by_metric=False)
    every = [remark for row in lines for cell in row.cells for remark in _of(cell)]
    texts = dict.fromkeys(remark.text for remark in sorted(every, key=lambda remark: MARKED.index(remark.kind)))
    notes = {text: _letter(i) for i, text in enumerate(texts)}  # what is said -> its letter
    for title, part in _parts(lines):
        click.echo(f"\n{title}")
        _echo(_drawn(part, notes))
    if notes:
        click.echo()
    for text, letter in notes.items():
        say(f"{letter} {text}", hang=len(letter) + 1)
    if any(cell.std is not None for row in lines for cell in row.cells):
        say("± is printed under its number: of the draws of CxC-STS, of the seeds elsewhere")
    _footnotes(lines)
    _elsewhere(lines)
    _copies(lines)


def _parts(lines: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """The table in the parts that papers rule off: by setting, and by backbone where labels do not tell them apart."""
    parts: dict[str, list[Row]] = {}
    for row in lines:
        labels = [other.first.label for other in lines if other.first.setting == row.first.setting]
        backbone = f", {row.first.backbone}" if len(set(labels)) < len(labels) else ""
        parts.setdefault(row.first.setting + backbone, []).append(row)
    return list(parts.items())


def _drawn(part: Sequence[Row], notes: dict[str, str]) -> Table:
    from rich.table import Table
    from rich.text import Text

    tasks = list(dict.fromkeys(cell.task for row in part for cell in row.cells))
    grid = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
    grid.add_column("row", overflow="fold")
    for task in tasks:
        grid.add_column(_heading(task), justify="right", no_wrap=True)
    for row in part:
        cells = {cell.task: cell for cell in row.cells}
        label = row.first.label + _letters([r for cell in row.cells for r in _of(cell) if not r.task], notes)
        shown = [_cell(cells[task], notes) if task in cells else "" for task in tasks]
        grid.add_row(Text(label), *(Text(text) for text in shown))
    return grid


def _short(backbone: str) -> str:
    return backbone.removesuffix("-uncased")


def _heading(task: str) -> str:
    """A long name in two lines: Search / Snippets."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "\n", task) if len(task) > 8 else task


def _cell(cell: ReferenceResult, notes: dict[str, str]) -> str:
    from bench.references.audit import show

    mark = _letters([remark for remark in _of(cell) if remark.task], notes)
    return cell.printed + mark + (f"\n±{show(cell.std, cell.metric)}" if cell.std is not None else "")


def _of(cell: ReferenceResult) -> list[Remark]:
    from bench.references.audit import remarks

    return [remark for remark in remarks(cell) if remark.kind in MARKED]


def _letters(found: Sequence[Remark], notes: dict[str, str]) -> str:
    """ " a,b": the letters of what is said."""
    marks = [notes[text] for text in dict.fromkeys(remark.text for remark in found)]
    return f" {','.join(marks)}" if marks else ""


def _letter(i: int) -> str:
    """a, b, ... z, aa, ab, ..."""
    return (_letter(i // 26 - 1) if i >= 26 else "") + chr(ord("a") + i % 26)


def _footnotes(lines: Sequence[Row]) -> None:
    """What the package knows of single rows beyond what is computed; a note that all have is said once."""
    told: dict[str, list[str]] = {}
    for row in lines:
        for cell in row.cells:
            parts = [part for part in cell.note.split("; ") if not part.startswith(("copied", "text: ", "same ", "best Avg."))]
            labels = told.setdefault("; ".join(parts), [])
            if row.first.label not in labels:
                labels.append(row.first.label)
    told.pop("", None)
    for text, labels in told.items():
        everywhere = len(labels) == len({row.first.label for row in lines})
        say(f"note: {text}" + ("" if everywhere else f" ({', '.join(labels)})"), hang=6)


def _elsewhere(lines: Sequence[Row]) -> None:
    from bench.references.audit import remarks

    told = []
    for row in lines:
        differing = [cell for cell in row.cells if any(remark.kind == "differs" for remark in remarks(cell))]
        if differing:
            told.append(f"{row.first.label} ({len(differing)} of {len(row.cells)} cells)")
    if told:
        say(f"printed differently elsewhere: {', '.join(dict.fromkeys(told))}; see --audit --kind differs", hang=2)


def _copies(lines: Sequence[Row]) -> None:
    """Whom rows were copied from, in one line."""
    labels: dict[str, dict[str, None]] = {}
    for row in lines:
        if not row.first.own_result:
            labels.setdefault(row.first.source or "elsewhere", {})[row.first.label] = None
    if labels:
        say("copied from " + "; ".join(f"{source}: {', '.join(found)}" for source, found in labels.items()), hang=2)


def show_audit(found: Sequence[Remark], among: Sequence[ReferenceResult]) -> None:
    """Kind after kind: how many, and a line for each; cells of one row that say the same stand in one line."""
    from bench.references.audit import KINDS

    say(f"{len(among):,} printed numbers, {len(found):,} remarks: all computed from the numbers and what is recorded of their rows")
    for kind, title in KINDS.items():
        mine = [remark for remark in found if remark.kind == kind]
        if not mine:
            continue
        click.echo()
        say(f"{kind}: {title} ({len(mine)})", hang=2)
        if kind == "copied":
            _show_copied(mine)
            continue
        for place, task, text in _lines(mine):
            say(f"{place}{', ' if task else ''}{task}: {text}", indent=2, hang=4)
    if not found:
        click.echo("nothing to say of them")


def _lines(mine: Sequence[Remark]) -> list[tuple[str, str, str]]:
    """(where, task, text), one for each row: of several cells the average, or the first, speaks for all and says how many."""
    groups: dict[tuple[str, ...], list[Remark]] = {}
    for remark in mine:
        backbone = _short(remark.backbone)
        where = f"{remark.paper}:{remark.table} {remark.setting}, {remark.label}" + (
            f" ({backbone})" if backbone not in remark.label.lower() else ""
        )
        key = (where, remark.kind, remark.text if remark.kind != "differs" else remark.setting + remark.variant + remark.metric)
        groups.setdefault(key, []).append(remark)
    lines = []
    for (where, *_), same in groups.items():
        spoken = next((remark for remark in same if remark.task == "Avg."), same[0])
        others = len({remark.task for remark in same}) - 1
        lines.append((where, spoken.task + (f" and {others} more" if others else ""), spoken.text))
    return lines


def _show_copied(mine: Sequence[Remark]) -> None:
    from collections import Counter

    from bench.references.audit import checked_rows

    checked = checked_rows()
    counts = Counter(remark.text for remark in mine)
    lines = [
        (text, f"{n} row{'s' * (n > 1)}, {checked[text] or 'none'} of them compared with the source's own table")
        for text, n in counts.most_common()
    ]
    print_columns(lines, indent=2)


def _echo(grid: Table) -> None:
    from rich.console import Console

    drawn = io.StringIO()
    Console(file=drawn, width=width(), highlight=False, markup=False, emoji=False).print(grid)
    click.echo("\n".join(line.rstrip() for line in drawn.getvalue().rstrip("\n").split("\n")))
