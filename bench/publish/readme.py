"""A version as Markdown that ordinary forges render: the same tables, with links to the records behind them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from bench.base.text import plural
from bench.board.board import PREVIEW, PREVIEW_NOTE, Board
from bench.board.names import link, run_file, search_file
from bench.board.reference_tables import ReferenceCell, ReferenceRow, ReferenceTable
from bench.compare.formatting import SEVERAL, markdown, score, setting_words
from bench.show.grid import Cell, Column, as_markdown, grid
from bench.show.tables.scores import score_grid

if TYPE_CHECKING:
    from bench.board.changes import Changes
    from bench.show.figures.drawing import Figure


prose = partial(markdown, limit=None)  # sentences are shown whole, names are cut


def markdown_page(board: Board, figures: Sequence[Figure] = (), *, pages: bool = True) -> str:
    """The whole version. ``pages``: HTML pages lie beside it; only the first of them is linked, for a code host shows their source."""
    parts = [*_head(board, pages), *_tables(board)]
    if figures:
        parts += ["## Figures", *(_figure(figure) for figure in figures)]
    if board.references:
        parts += [
            "## What papers printed",
            "As printed, with what an audit of the tables says of them. No run of this board is among "
            "these rows, and none of them is ranked above.",
            *(_printed(reference) for reference in board.references),
        ]
    parts += ["## How this was made", "\n".join(_facts(board)), "## Runs", _runs(board)]
    if board.changes is not None and board.changes.rows:
        parts += [f"## Changed since {markdown(board.changes.before)}", _changes(board.changes)]
    if board.left_out:
        parts += ["## Left out", "\n".join(f"- {prose(line)}" for line in board.left_out)]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _head(board: Board, pages: bool) -> Iterator[str]:
    yield f"# {markdown(board.title)}: {markdown(board.version)}"
    yield f"**{prose(board.answer)}**"
    if board.version == PREVIEW:
        yield PREVIEW_NOTE
    if board.note:
        yield f"> {prose(board.note)}"
    runs, methods = len(board.runs), len(board.methods)
    links = [
        *(["[page, for a browser](index.html)"] if pages else []),
        *(["[plan](plan.md)"] if board.plan is not None else []),
        *(
            f"[{markdown(search.name)}]({link(search_file(search.name, 'json'))})"
            for search in board.searches
        ),
        "[tables as JSON](tables.json)",
        *([] if board.alone else ["[all versions](../README.md)"]),
    ]
    yield f"{board.date}, {plural(runs, 'run')} of {plural(methods, 'method')}: {', '.join(links)}"


def _tables(board: Board) -> Iterator[str]:
    """Under a heading for each setting and backbone."""
    last: tuple[str | None, str | None] | None = None
    for board_table in board.tables:
        place = (board_table.table.setting, board_table.table.backbone)
        if place != last:
            yield f"## {markdown(setting_words(place[0]))}, {markdown(place[1] or SEVERAL)}"
        last = place
        form = f" on {board_table.table.text} text" if board_table.table.text else ""
        yield f"### {markdown(f'{board_table.table.suite}, {board_table.table.protocol}{form}')}"
        scale = [(other.table, i) for other, i in board.finished(board_table)]
        yield as_markdown(replace(score_grid(board_table.table, scale), title=""))
        told = " ".join(
            prose(text) for text in (board_table.selection, board_table.cost_note) if text
        )
        yield f"{told}{' ' if told else ''}[CSV](tables/{board_table.anchor}.csv)"


def _figure(figure: Figure) -> str:
    of = f" {markdown(figure.paper_figure)}." if figure.paper_figure else ""
    image = f"![{prose(figure.title)}](figures/{figure.name}.svg)"
    return f"**{markdown(figure.title)}**\n\n{image}\n\n{prose(figure.caption)}{of} [Data](figures/{figure.name}.csv)"


def _printed(printed: ReferenceTable) -> str:
    """Folded, for there are hundreds of rows; letters lead to the remarks below."""
    remarks: dict[str, int] = {}
    rows: list[tuple[Cell | str, ...]] = []
    for row in printed.rows:
        label = row.label + (f" (from {row.source})" if row.source else "")
        cells = [_cell(cell, remarks) for cell in row.cells]
        rows.append(
            (Cell(text=label, marks=_marks(row, remarks)), row.backbone, row.setting, *cells)
        )
    names = ["row", "backbone", "setting"]
    columns: list[Column | str] = [*names, *(Column(task, right=True) for task in printed.tasks)]
    path = f"tables/{printed.anchor}.csv"
    rows_words = plural(len(printed.rows), "row")
    return _folded(
        f"{markdown(printed.paper)}, table {markdown(printed.table)}: {rows_words}",
        f"{markdown(printed.title)}. [CSV]({link(path)})",
        as_markdown(grid(columns, rows, footnotes=list(remarks))),
    )


def _folded(summary: str, text: str, table: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{text}\n\n{table}\n</details>"


def _cell(cell: ReferenceCell | None, remarks: dict[str, int]) -> Cell:
    if cell is None:
        return Cell()
    half = "" if cell.std is None else f" ± {cell.std:g}"
    return Cell(text=cell.text + half, marks=_marks(cell, remarks))


def _marks(entry: ReferenceRow | ReferenceCell, remarks: dict[str, int]) -> tuple[int, ...]:
    """Numbers of the remarks on a cell or row; those not met before are added. That a row is copied stands in its name."""
    texts = [
        f"{remark.title}: {remark.text}" for remark in entry.remarks if remark.kind != "copied"
    ]
    return tuple(remarks.setdefault(text, len(remarks) + 1) for text in texts)


def _facts(board: Board) -> Iterator[str]:
    for fact in board.made:
        command = f" `{fact.command}`" if fact.command else ""
        yield f"- **{markdown(fact.topic)}.** {prose(fact.text)}{command}"


def _changes(changes: Changes) -> str:
    heading: list[Column | str] = [
        "row",
        "suite",
        Column(changes.before, right=True),
        Column("now", right=True),
        "what differs",
    ]
    rows = []
    for row in changes.rows:
        means = ["" if mean is None else score(mean) for mean in (row.before, row.now)]
        place = f"{row.method} ({row.setting}, {row.backbone})"
        rows.append((place, f"{row.suite} {row.task}", *means, row.differs))
    return as_markdown(grid(heading, rows))


def _runs(board: Board) -> str:
    """Every run with its record, by method; folded."""
    rows = []
    for run in board.runs:
        run_id = run.record.run_id
        own_page = board.page_of[run_id] == run_id
        record = link(run_file(run_id, "run.json"))
        scores = link(run_file(run_id, "scores.csv")) if own_page else ""
        rows.append(
            (
                run_id,
                "any" if run.record.seed is None else str(run.record.seed),
                run.submitted_by or "",
                Cell(text="record", link=record),
                Cell(text="CSV" if own_page else "", link=scores),
            )
        )
    columns = ("run", Column("seed", right=True), "run by", "record", "scores")
    return _folded(
        f"{plural(len(board.runs), 'run')} and their records",
        "The record of a run holds its recipe, its command and every score.",
        as_markdown(grid(columns, rows)),
    )
