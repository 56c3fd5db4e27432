"""The first screen of ``bench compare``: one judged table with a verdict in words for each row.

The columns of tasks come last, and are the first to go if a terminal is narrow.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence

from bench.base.grid import MAY_BE_BEST, SIGNS, Grid, GridCell, GridColumn, GridRow, grid
from bench.base.text import list_names
from bench.compare.answer import NAMES, comparison_of, name_column, ranked_rows, verdict_of
from bench.compare.formatting import (
    SEVERAL,
    budget_words,
    command_name,
    score,
    setting_words,
    spread,
    text_words,
    with_interval,
)
from bench.compare.forms.legend import RIGHT
from bench.compare.forms.row_notes import RowNote, letters_of
from bench.compare.statistics.table import BETTER, INCONCLUSIVE, WORSE, Row, Table
from bench.records.record import RunRecord

NOT_TESTED = "not tested"
MOST_UNTRAINED = 12


def verdict_grid(table: Table, notes: Sequence[RowNote], title: str) -> Grid:
    """Lay out the table, a verdict in words in each row. ``notes``: on its rows."""
    tasks = [name for name in table.columns if name != table.head]
    level = f" [{100 * table.tested.ci_level:.3g} % CI]" if table.tested else ""
    columns = [
        GridColumn("method", wrap=16),
        GridColumn("n", right=True),
        GridColumn(table.head or "", right=True),
        GridColumn("±", right=True),
        GridColumn(f"vs {table.baseline}{level}", right=True),
        GridColumn("verdict"),
        GridColumn(""),
        *(GridColumn(name, right=True, drop=1) for name in tasks),
    ]
    rows = []
    for number, row in enumerate(table.rows):
        cells = _row_cells(row, table, letters_of(number, notes))
        for name, cell in zip(table.columns, row.cells, strict=True):
            if name not in tasks:
                continue
            if cell is None:
                cells.append(GridCell())
            else:
                cells.append(GridCell(number=cell.mean, decimals=cell.decimals))
        rows.append(GridRow(tuple(cells)))
    return grid(columns, rows, title=title, whole="--format csv")


def _row_cells(row: Row, table: Table, letters: str) -> list[GridCell]:
    """Return the cells of a row, but for its tasks."""
    head = row.cells[-1]
    mean, half = GridCell(), GridCell()
    if head is not None:
        emphasis = "best" if head.mark == "best" else ""
        mean = GridCell(number=head.mean, decimals=head.decimals, emphasis=emphasis)
        half = GridCell(number=spread(head), decimals=head.decimals, emphasis="dim")
    return [
        GridCell(text=command_name(row, table), sign=MAY_BE_BEST if row.may_be_best else ""),
        GridCell(text=str(table.n(row)), emphasis="dim"),
        mean,
        half,
        GridCell(text=_difference(row)),
        GridCell(text=_verdict_words(row)),
        GridCell(text=letters, emphasis="dim"),
    ]


def _verdict_words(row: Row) -> str:
    """Write "▼ worse", "baseline" or "not tested"; "" for an inconclusive row."""
    if row.is_baseline:
        return "baseline"
    verdict = verdict_of(row)
    if verdict in (BETTER, WORSE):
        return f"{SIGNS[verdict]} {verdict}"
    return NOT_TESTED if row.untested and row.cells[-1] is not None else ""


def _difference(row: Row) -> str:
    """Write a row's difference from the baseline with its interval; "" if it has none."""
    against, cell = comparison_of(row), row.cells[-1]
    if against is None or cell is None or against.ci_low is None:
        return ""
    return with_interval(against.difference, against.ci_low, against.ci_high, cell.decimals)


def table_title(table: Table, records: Mapping[str, RunRecord]) -> str:
    """Write "STS, unsupervised, built-in backbone, 100 steps, 2 to 10 seeds".

    ``records``: by run id. The number of steps is the most frequent one among trained runs.
    """
    fewest, most = table.seeds
    seeds = f"{fewest} to {most} seeds"
    if fewest == most:
        seeds = "1 seed" if most == 1 else f"{most} seeds"
    backbone = "built-in backbone" if table.backbone == "builtin" else table.backbone or SEVERAL
    words = [
        _suite_name(table),
        table.sender and f"submitted by {table.sender}",
        setting_words(table.setting),
        backbone,
        budget_words(table.length) or usual_steps(table, records),
        seeds,
    ]
    return ", ".join(word for word in words if word)


def usual_steps(table: Table, records: Mapping[str, RunRecord]) -> str:
    """Write "100 steps", if more than half of the trained runs have that many; else ""."""
    counts: Counter[int] = Counter()
    for row in table.rows:
        for run in row.runs:
            record = records.get(run)
            if record is not None and record.training is not None and row.setting != "none":
                counts[record.training.steps] += 1
    if not counts:
        return ""
    steps, runs = counts.most_common(1)[0]
    return f"{steps:,} steps" if 2 * runs > counts.total() and steps else ""


def _suite_name(table: Table) -> str:
    """Write "STS", or "STS (raw texts)"."""
    return NAMES.get(table.suite, table.suite) + text_words(table.protocol)


def verdict_legend(table: Table) -> list[str]:
    """Explain the signs that the table has, a paragraph each."""
    verdicts = {verdict_of(row) for row in table.rows}
    signs = []
    if any(row.may_be_best for row in table.rows):
        signs.append(f"{SIGNS[MAY_BE_BEST]} {MAY_BE_BEST}")
    signs += [f"{SIGNS[name]} {name}" for name in (BETTER, WORSE) if name in verdicts]
    if INCONCLUSIVE in verdicts:
        signs.append('blank: inconclusive (not "equal")')
    lines = ["   ".join(signs)] if signs else []
    if any(cell is not None and cell.spread for row in table.rows for cell in row.cells[-1:]):
        lines.append("±: 95 % interval of the mean. Compare rows by the difference, not by ±.")
    if table.tested is not None:
        comparisons = table.tested.comparisons
        noun = "comparison" if comparisons == 1 else "comparisons"
        lines.append(f"All marks together are {RIGHT} (Holm, {comparisons} {noun}).")
    effects = []
    for row, _ in ranked_rows(table):
        against = comparison_of(row)
        if against is not None and against.mde:
            effects.append(against.mde)
    if effects:
        middle = " (median)" if len(effects) > 1 else ""
        lines.append(
            "The smallest difference this table would usually detect is "
            f"{statistics.median(effects):.1f} points{middle}."
        )
    return lines


def untrained_line(table: Table) -> str:
    """Name the rows in which no encoder was trained; "" if there is none, or nothing else."""
    names = [command_name(row, table) for row in table.rows if row.setting == "none"]
    if not names or len(names) == len(table.rows):
        return ""
    return f"encoder not trained: {list_names(names, MOST_UNTRAINED)}"


def table_names(tables: Sequence[Table], first: Table) -> list[str]:
    """Name tables by suite and by what sets them apart from ``first``: "STS, supervised".

    Two that would have one name are told apart by their protocol.
    """
    names = [briefest_name(table, first) for table in tables]
    named = []
    for table, name in zip(tables, names, strict=True):
        is_alone = names.count(name) == 1 and name != briefest_name(first, first)
        named.append(name if is_alone else f"{name} ({table.protocol})")
    return named


def briefest_name(table: Table, first: Table) -> str:
    """Return suite, setting, backbone and budget, the last three if they differ from ``first``."""
    words = [_suite_name(table)]
    if table.sender:
        words.append(f"submitted by {table.sender}")
    if table.setting != first.setting:
        is_finished = table.setting == "none" and table.backbone is None
        words.append("finished encoders" if is_finished else setting_words(table.setting))
    if table.backbone is not None and table.backbone != first.backbone:
        words.append(table.backbone)
    if table.length:
        words.append(budget_words(table.length))
    if table.chosen_on:
        words.append(f"chosen on {table.chosen_on}")
    return ", ".join(words)


def best_words(table: Table) -> str:
    """Write "cosent 68.67" for the rows that may be the best; "" if nothing was tested."""
    best = []
    for row, cell in ranked_rows(table):
        if row.may_be_best:
            best.append(f"{command_name(row, table)} {score(cell.mean, cell.decimals)}")
    return list_names(best, 3)


def untested_words(table: Table) -> str:
    """Say why a table has no verdicts: "fewer than three seeds", "no column that ranks"."""
    if not ranked_rows(table):
        return "no column that ranks"
    reasons = list(dict.fromkeys(row.untested for row in table.rows if row.untested))
    return "; ".join(reasons) or f"one row, {name_column(table)}"
