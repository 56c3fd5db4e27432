"""A version as Markdown that ordinary forges render: the same tables, with links to the records behind them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from bench.base.text import plural
from bench.board.board import PREVIEW, PREVIEW_NOTE, Board, BoardTable
from bench.board.names import link, run_file, search_file
from bench.compare.formatting import SEVERAL, markdown, score, setting_words
from bench.show.grid import Cell, Column, Grid, as_markdown, grid
from bench.show.pages.board import overviews
from bench.show.tables.scores import score_grid

if TYPE_CHECKING:
    from bench.board.changes import Changes
    from bench.show.figures.drawing import Figure


prose = partial(markdown, limit=None)  # sentences are shown whole, names are cut
number = partial(Column, right=True)


def markdown_page(board: Board, figures: Sequence[Figure] = ()) -> str:
    """The whole version. Of the pages only the first is linked, for a code host shows their source."""
    sections: dict[str, Iterable[str]] = {
        "Tables": (_table(board, table) for table in board.tables),
        "All suites": map(_overview, overviews(board)),
        "Figures": map(_figure, figures),
        "What papers printed": [as_markdown(_printed(board))] if board.references else (),
        "How this was made": ["\n".join(_facts(board))],
        "Changed since the version before": _changes(board.changes),
        "Runs": [as_markdown(_runs(board))],
        "Left out": ["\n".join(f"- {prose(line)}" for line in board.left_out)],
    }
    parts = [*_head(board)]
    for heading, texts in sections.items():
        body = [text for text in texts if text]
        parts += [f"## {heading}", *body] if body else []
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _head(board: Board) -> Iterator[str]:
    yield f"# {markdown(board.title)}: {markdown(board.version)}"
    yield f"**{prose(board.answer)}**"
    if board.version == PREVIEW:
        yield PREVIEW_NOTE
    if board.note:
        yield f"> {prose(board.note)}"
    links = {
        "page, for a browser": "index.html",
        "plan": "" if board.plan is None else "plan.md",
        **{
            markdown(search.name): link(search_file(search.name, "json"))
            for search in board.searches
        },
        "tables as JSON": "tables.json",
        "all versions": "" if board.alone else "../README.md",
    }
    linked = ", ".join(f"[{text}]({path})" for text, path in links.items() if path)
    counted = f"{plural(len(board.runs), 'run')} of {plural(len(board.methods), 'method')}"
    yield f"{board.date}, {counted}: {linked}"


def _table(board: Board, board_table: BoardTable) -> str:
    table = board_table.table
    text = f"{table.text} text" if table.text else ""
    place = (setting_words(table.setting), table.backbone or SEVERAL)
    heading = ", ".join(part for part in (*place, table.suite, table.protocol, text) if part)
    scale = [(other.table, i) for other, i in board.finished(board_table)]
    notes = (board_table.selection, board_table.cost_note)
    below = [*(prose(note) for note in notes if note), f"[CSV](tables/{board_table.anchor}.csv)"]
    rows = as_markdown(replace(score_grid(table, scale), title=""))
    return f"### {markdown(heading)}\n\n{rows}\n{' '.join(below)}"


def _overview(suites: tuple[BoardTable, Grid]) -> str:
    """The average of each suite."""
    first, averages = suites
    place = f"{setting_words(first.table.setting)}, {first.table.backbone or SEVERAL}"
    return f"### {markdown(place)}\n\n{as_markdown(averages)}"


def _figure(figure: Figure) -> str:
    of = f" {markdown(figure.paper_figure)}." if figure.paper_figure else ""
    image = f"![{prose(figure.title)}](figures/{figure.name}.svg)"
    caption = f"{prose(figure.caption)}{of} [Data](figures/{figure.name}.csv)"
    return f"**{markdown(figure.title)}**\n\n{image}\n\n{caption}"


def _printed(board: Board) -> Grid:
    rows: list[list[Cell | str]] = [
        [
            printed.paper,
            Cell(text=printed.table, link=f"tables/{printed.anchor}.csv"),
            printed.title,
            f"{len(printed.rows):,}",
        ]
        for printed in board.references
    ]
    note = "As printed, with what an audit of the tables says of them. No run of this board is in these tables."
    return grid(["paper", "table", "title", number("rows")], rows, notes=[note])


def _facts(board: Board) -> Iterator[str]:
    for fact in board.made:
        command = f" `{fact.command}`" if fact.command else ""
        yield f"- **{markdown(fact.topic)}.** {prose(fact.text)}{command}"


def _changes(changes: Changes | None) -> Iterator[str]:
    if changes is None or not changes.rows:
        return
    rows = [
        [
            f"{row.method} ({row.setting}, {row.backbone})",
            f"{row.suite} {row.task}",
            *("" if mean is None else score(mean) for mean in (row.before, row.now)),
            row.differs,
        ]
        for row in changes.rows
    ]
    columns: list[Column | str] = [
        "row",
        "suite",
        number(changes.before),
        number("now"),
        "what differs",
    ]
    yield as_markdown(grid(columns, rows))


def _runs(board: Board) -> Grid:
    paged = {run.record.run_id for run in board.paged}
    rows = [
        [
            Cell(text=run_id, link=link(run_file(run_id, "run.json"))),
            "any" if run.record.seed is None else str(run.record.seed),
            run.submitted_by or "",
            Cell(text="CSV", link=link(run_file(run_id, "scores.csv"))) if run_id in paged else "",
        ]
        for run in board.runs
        for run_id in [run.record.run_id]
    ]
    note = "The record of a run holds its recipe, its command and every score."
    return grid(["record", number("seed"), "run by", "scores"], rows, notes=[note])
