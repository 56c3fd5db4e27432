"""What the panel of a number shows, as data beside the tables: values by seed, intervals, commands, files.

Everything is an index, a number or a short text, because a page of a thousand runs has ten thousand numbers.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bench.pages.addresses import link
from bench.pages.score_tables import compared_words, letter
from bench.runs.predictions import predictions_file
from bench.statistics.grouping import AVERAGE
from bench.statistics.table import LOWER_IS_BETTER
from bench.tables.words import visible

if TYPE_CHECKING:
    from bench.publish.board import Board, BoardTable, PublishedRun
    from bench.statistics.table import Cell, Row, Table

MOST_TESTS = 4_000
"""Comparisons whose intervals are on the page. Beyond, other baselines than the first have their verdicts alone, then all."""


def board_data(board: Board) -> str:
    """The data as JSON that may stand in a script element: no ``<``, no ``&``."""
    own = sum(len(one.table.rows) * len(one.table.columns) for one in board.tables)
    all_of_them = sum(len(one.table.rows) * len(one.table.columns) * (1 + len(one.baselines)) for one in board.tables)
    whole = 2 if all_of_them <= MOST_TESTS else int(own <= MOST_TESTS)
    commands = {command: i for i, command in enumerate(dict.fromkeys(run.record.provenance.command or "" for run in board.runs))}
    places = {run.record.run_id: i for i, run in enumerate(board.runs)}
    by_id = {run.record.run_id: run for run in board.runs}
    by_anchor = {one.anchor: one for one in board.tables}
    content = {
        "commands": [visible(command, limit=None) for command in commands],
        "runs": [_run(run, commands) for run in board.runs],
        "tables": {one.anchor: _table(one, places, by_id, by_anchor, whole=whole) for one in board.tables},
    }  # fmt: skip
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.translate({ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"})


def _run(run: PublishedRun, commands: Mapping[str, int]) -> list[Any]:
    """[folder of the run's page as a link, seed or null, place of its command, has a curve, grade], and where its files lie if they lie
    in an older version."""
    record, path = run.record, f"runs/{run.record.run_id}"
    curve = int((run.folder / "curve.jsonl").is_file())
    held = [link(path, version=run.held_by)] if run.held_by is not None else []
    return [link(path), record.seed, commands[record.provenance.command or ""], curve, run.grade, *held]


def _table(
    one: BoardTable, places: Mapping[str, int], by_id: Mapping[str, PublishedRun], by_anchor: Mapping[str, BoardTable], *, whole: int
) -> dict[str, Any]:  # fmt: skip
    table = one.table
    columns = [_column(table, j, [row.cells[j] for row in table.rows], by_id) for j in range(len(table.columns))]
    cells = [list(row.cells) for row in table.rows]
    for other in one.beside:
        own = by_anchor[other.anchor].table
        j = own.columns.index(other.name) if other.name in own.columns else 0
        columns.append(_column(own, j, other.cells, by_id))
        for row, cell in zip(cells, other.cells, strict=True):
            row.append(cell)
    ns = [column["n"] for column in columns]
    covers = list(dict.fromkeys(_covers(cell) for row in cells for cell in row if cell is not None and cell.spread))
    judged: dict[str, tuple[Table, Mapping[str, Table]]] = {}
    if table.baseline:
        judged[table.baseline] = table, {other.anchor: by_anchor[other.anchor].table for other in one.beside}
    for name, found in one.baselines.items():
        judged[name] = found, {other.anchor: by_anchor[other.anchor].baselines.get(name, found) for other in one.beside}
    return {
        "columns": columns,
        "covers": covers,
        "rows": [
            [[places[run] for run in row.runs], [_cell(cell, n, covers) for cell, n in zip(values, ns, strict=True)]]
            for row, values in zip(table.rows, cells, strict=True)
        ],
        "baselines": [
            [visible(name), _judged(found, others, one, whole=whole > (name != table.baseline))] for name, (found, others) in judged.items()
        ],
    }  # fmt: skip


def _column(table: Table, j: int, cells: Sequence[Cell | None], by_id: Mapping[str, PublishedRun]) -> dict[str, Any]:
    task = table.columns[j]
    found = [cell for cell in cells if cell is not None]
    first = next((row for row in table.rows if row.cells[j] is not None), None)
    file = _file(table, task, first, by_id) if first is not None and task != AVERAGE else ""
    return {
        "task": visible(task), "how": visible(f"{table.protocol}, {table.text}" if table.text else table.protocol),
        "n": Counter(cell.n for cell in found).most_common(1)[0][0] if found else 0,
        "d": found[0].decimals if found else 2, "file": file,
        "low": int(table.metric in LOWER_IS_BETTER or task in LOWER_IS_BETTER),
    }  # fmt: skip


def _file(table: Table, task: str, row: Row, by_id: Mapping[str, PublishedRun]) -> str:
    """Where the predictions of a task lie below a run's folder, as a link; "" where none are kept."""
    for run in row.runs:
        one = by_id[run]
        for score in one.record.scores:
            if score.suite == table.suite and score.task == task and score.protocol == table.protocol:
                if table.text and score.text not in (table.text, None) and not (score.text or "").startswith("other-"):
                    continue
                path = predictions_file(one.folder.parent / run, score.key).relative_to(one.folder.parent / run)
                return link(path.as_posix()) if (one.folder / path).is_file() else ""
    return ""


def _covers(cell: Cell) -> str:
    return f"{100 * cell.spread.level:g} % interval over {cell.spread.covers}" if cell.spread else ""


def _cell(cell: Cell | None, n: int, covers: Sequence[str]) -> Any:
    """[values by seed, low, high, printed or 0, items or 0, what the interval covers]; 0 where nothing was scored.

    Zeros at the end are left out: items are those of the column, the interval covers the first of ``covers``.
    """
    if cell is None:
        return 0
    d, paper = cell.decimals, cell.printed
    low, high = (round(cell.spread.low, d), round(cell.spread.high, d)) if cell.spread else (0, 0)
    printed = [paper.value, visible(paper.source.replace(":", ", table ")), int(paper.own), paper.std or 0] if paper else 0
    found = [[round(value, d) for value in cell.values], low, high, printed, 0 if cell.n == n else cell.n,
             covers.index(_covers(cell)) if cell.spread else 0]  # fmt: skip
    while found[-1] == 0:
        found.pop()
    return found


def _judged(table: Table, others: Mapping[str, Table], one: BoardTable, *, whole: bool) -> dict[str, Any]:
    """Of a baseline: its row, how the others were compared with it, and each verdict."""
    base = next((i for i, row in enumerate(table.rows) if row.is_baseline), None)
    by_runs = {anchor: {row.runs[0]: row for row in found.rows if row.runs} for anchor, found in others.items()}
    rows = []
    for row in table.rows:
        cells: list[Cell | None] = list(row.cells)
        for other in one.beside:
            own = others[other.anchor]
            found = by_runs[other.anchor].get(row.runs[0])
            j = own.columns.index(other.name) if other.name in own.columns else None
            cells.append(None if found is None or j is None or own.suite != other.suite else found.cells[j])
        letters = [letter(cell, primary=table.head is not None and j == len(row.cells) - 1) for j, cell in enumerate(cells)]
        rows.append(
            [_against(cell, sign) for cell, sign in zip(cells, letters, strict=True)]
            if whole
            else "".join(sign or "-" for sign in letters)
        )
    return {"row": base, "how": compared_words(table), "rows": rows}


def _against(cell: Cell | None, sign: str) -> Any:
    """[letter of the verdict, low, high, adjusted p, chance of a new run in per cent]; 0 where nothing was tested."""
    if cell is None or cell.against is None or not sign:
        return 0
    one, found = cell.against, list[Any]([sign])
    if one.low is not None and one.high is not None:
        found += [round(one.low, cell.decimals), round(one.high, cell.decimals), float(f"{one.p_adjusted or 0:.2g}")]
        found += [] if one.chance is None else [round(100 * one.chance)]
    return found
