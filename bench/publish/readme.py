"""A version as Markdown that ordinary forges render: the same tables, with links to the records behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from bench.board.board import PREVIEW, PREVIEW_NOTE, Board, PublishedRun
from bench.board.content import Overview, SuiteRow, overviews
from bench.board.names import link, run_file, search_file
from bench.board.reference_tables import ReferenceCell, ReferenceRow, ReferenceTable
from bench.compare.formatting import (
    SEVERAL,
    cells_of,
    markdown,
    score,
    setting_words,
    variant_words,
)
from bench.compare.statistics.table import Row, Table
from bench.show.tables.lines import (
    SIGNS,
    TOP,
    cost_columns,
    cost_texts,
    difference_heading,
    difference_text,
    has_differences,
    legend,
    sign_at,
    top_sign,
    under,
)
from bench.show.tables.markdown import footnote_table, number

if TYPE_CHECKING:
    from bench.board.changes import Changes
    from bench.show.figures.drawing import Figure


prose = partial(markdown, limit=None)  # sentences are shown whole, names are cut


def markdown_page(board: Board, figures: Sequence[Figure] = (), *, pages: bool = True) -> str:
    """The whole version. ``pages``: HTML pages lie beside it; only the first of them is linked, for a code host shows their source."""
    parts = [*_head(board, pages), *_tables(board)]
    if found := overviews(board.tables):
        parts += ["## All suites", *(_overview(overview) for overview in found)]
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
    yield f"{board.date}, {runs:,} run{'s' * (runs != 1)} of {methods} method{'s' * (methods != 1)}: {', '.join(links)}"


def _tables(board: Board) -> Iterator[str]:
    """Under a heading for each setting and backbone."""
    runs = {run.record.run_id: run for run in board.runs}
    last: tuple[str | None, str | None] | None = None
    for board_table in board.tables:
        place = (board_table.table.setting, board_table.table.backbone)
        if place != last:
            yield f"## {markdown(setting_words(place[0]))}, {markdown(place[1] or SEVERAL)}"
        last = place
        form = f" on {board_table.table.text} text" if board_table.table.text else ""
        yield f"### {markdown(f'{board_table.table.suite}, {board_table.table.protocol}{form}')}"
        yield table(
            board_table.table, runs, [(other.table, i) for other, i in board.finished(board_table)]
        )
        told = " ".join(
            prose(text) for text in (board_table.selection, board_table.cost_note) if text
        )
        yield f"{told}{' ' if told else ''}[CSV](tables/{board_table.anchor}.csv)"


def _overview(overview: Overview) -> str:
    """The averages alone: what code hosts render."""
    heading = ["method", *(suite.table.suite for suite in overview.suites)]
    lines = [
        line([markdown(name) for name in heading]),
        line([":--", *("--:" for _ in overview.suites)]),
    ]
    for (method, beside), standings in zip(overview.names, overview.standings, strict=True):
        lines.append(line([_method_words(method, beside), *map(_standing, standings)]))
    words = f"The average in each suite; {SIGNS[TOP]}: may be the best. There is no total: suites have no common scale."
    more = f" {overview.left_out} more rows are in the tables." if overview.left_out else ""
    return "\n".join(
        [
            f"### {markdown(setting_words(overview.setting))}, {markdown(overview.backbone or '')}",
            "",
            *lines,
            "",
            words + more,
        ]
    )


def _standing(standing: SuiteRow | None) -> str:
    """ "◆ 76.25" """
    if standing is None or (average := standing.row.cells[-1]) is None:
        return ""
    mark = SIGNS.get(top_sign(standing.row), "")
    return f"{mark} {score(average.mean, average.decimals)}".strip()


def _figure(figure: Figure) -> str:
    of = f" {markdown(figure.paper_figure)}." if figure.paper_figure else ""
    image = f"![{prose(figure.title)}](figures/{figure.name}.svg)"
    return f"**{markdown(figure.title)}**\n\n{image}\n\n{prose(figure.caption)}{of} [Data](figures/{figure.name}.csv)"


def _printed(printed: ReferenceTable) -> str:
    """Folded, for there are hundreds of rows; letters lead to the remarks below."""
    remarks: dict[str, int] = {}
    lines = [
        line(["row", "backbone", "setting", *printed.tasks]),
        line([":--", ":--", ":--", *("--:" for _ in printed.tasks)]),
    ]
    for row in printed.rows:
        label = (
            markdown(row.label)
            + (f" (from {markdown(row.source)})" if row.source else "")
            + _marks(row, remarks)
        )
        lines.append(
            line(
                [
                    label,
                    markdown(row.backbone),
                    markdown(row.setting),
                    *(_cell(cell, remarks) for cell in row.cells),
                ]
            )
        )
    summary = (
        f"{markdown(printed.paper)}, table {markdown(printed.table)}: {len(printed.rows)} rows"
    )
    notes = [f"- <sup>{number}</sup> {prose(text)}" for text, number in remarks.items()]
    path = f"tables/{printed.anchor}.csv"
    return "\n".join(
        [
            f"<details><summary>{summary}</summary>",
            "",
            markdown(printed.title) + f". [CSV]({link(path)})",
            "",
            *lines,
            "",
            *notes,
            "",
            "</details>",
        ]
    )


def _cell(cell: ReferenceCell | None, remarks: dict[str, int]) -> str:
    if cell is None:
        return ""
    return cell.text + ("" if cell.std is None else f" ± {cell.std:g}") + _marks(cell, remarks)


def _marks(entry: ReferenceRow | ReferenceCell, remarks: dict[str, int]) -> str:
    """Numbers of the remarks on a cell or row; those not met before are added. That a row is copied stands in its name."""
    texts = [
        f"{remark.title}: {remark.text}" for remark in entry.remarks if remark.kind != "copied"
    ]
    numbers = [str(remarks.setdefault(text, len(remarks) + 1)) for text in texts]
    return f"<sup>{', '.join(numbers)}</sup>" if numbers else ""


def _facts(board: Board) -> Iterator[str]:
    for fact in board.made:
        command = f" `{fact.command}`" if fact.command else ""
        yield f"- **{markdown(fact.topic)}.** {prose(fact.text)}{command}"


def _changes(changes: Changes) -> str:
    names = ["row", "suite", changes.before, "now", "what differs"]
    lines = [line(names), line([":--", ":--", "--:", "--:", ":--"])]
    for row in changes.rows:
        place = f"{row.method} ({row.setting}, {row.backbone})"
        means = ["" if mean is None else score(mean) for mean in (row.before, row.now)]
        suite = f"{row.suite} {row.task}"
        lines.append(line([*map(markdown, (place, suite)), *means, prose(row.differs)]))
    return "\n".join(lines)


def _runs(board: Board) -> str:
    """Every run with its record, by method; folded."""
    lines = [
        line(["run", "seed", "run by", "record", "scores"]),
        line([":--", "--:", ":--", ":--", ":--"]),
    ]
    for run in board.runs:
        run_id = run.record.run_id
        seed = "any" if run.record.seed is None else str(run.record.seed)
        scores = (
            f"[CSV]({link(run_file(run_id, 'scores.csv'))})"
            if board.page_of[run_id] == run_id
            else ""
        )
        lines.append(
            line(
                [
                    markdown(run_id),
                    seed,
                    markdown(run.submitted_by or ""),
                    f"[record]({link(run_file(run_id, 'run.json'))})",
                    scores,
                ]
            )
        )
    words = "The record of a run holds its recipe, its command and every score."
    return "\n".join(
        [
            f"<details><summary>{len(board.runs):,} runs and their records</summary>",
            "",
            words,
            "",
            *lines,
            "",
            "</details>",
        ]
    )


# --- A board's table as Markdown: one line a row, each seed linked to the record behind it ---

SEEDS = 10  # of a row that are linked; the list of runs has all


def table(
    shown: Table, runs: Mapping[str, PublishedRun], finished: Sequence[tuple[Table, int]] = ()
) -> str:
    """The table, then what its signs mean and what a reader must know. ``finished``: tables and the row of each that stands last, for scale."""
    before = [*([""] if shown.tested else []), "method"]
    differences = [difference_heading(shown)] if has_differences(shown) else []
    after = [*differences, *cost_columns(shown), "records by seed", "values"]
    heading = [*before, *shown.columns, *after]
    aligned = [":--" if name in ("method", *after[-2:]) else "--:" for name in heading]
    lines = [line([markdown(name) for name in heading]), line(aligned)]
    for row in shown.rows:
        lines.append(line(_cells(row, shown, runs)))
        for printed in under(row):
            if not printed.label.startswith("less "):
                texts = [
                    entry.text + (" " + markdown(SIGNS[entry.sign]) if entry.sign else "")
                    for entry in printed.entries
                ]
                lines.append(
                    line(
                        [
                            *[""] * (len(before) - 1),
                            f"*{markdown(printed.label)}*",
                            *texts,
                            *[""] * len(after),
                        ]
                    )
                )
    for other, i in finished:
        lines.append(line(_finished_cells(other, other.rows[i], shown, runs)))
    notes = [prose(note) for note in (*shown.notes, *legend(shown, SIGNS))]
    if finished:
        notes.append("*for scale*: nothing trained here, another backbone; not ranked")
    if any(cell.mark for cell in cells_of(shown)):
        notes.append("**highest**, *second*" if len(shown.rows) > 2 else "**highest**")
    return "\n".join([*lines, "", *footnote_table(shown), *(f"- {note}" for note in notes)])


def line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _method_words(method: str, beside: str) -> str:
    """ "promcse (eh)" """
    return markdown(method) + (f" ({markdown(beside)})" if beside else "")


def _cells(row: Row, shown: Table, runs: Mapping[str, PublishedRun]) -> list[str]:
    marks = "".join(f"<sup>{number + 1}</sup>" for number in row.footnotes)
    return [
        *([SIGNS.get(top_sign(row), "")] if shown.tested else []),
        _method_words(row.label, variant_words(row, shown))
        + (" *baseline*" if row.is_baseline else "")
        + marks,
        *(number(cell, SIGNS.get(sign_at(row, shown, i), "")) for i, cell in enumerate(row.cells)),
        *([difference_text(row)] if has_differences(shown) else []),
        *cost_texts(row, shown),
        *_records(row, runs),
    ]


def _finished_cells(
    other: Table, row: Row, shown: Table, runs: Mapping[str, PublishedRun]
) -> list[str]:
    """A row of another backbone's table, under the headings of ``shown``."""
    beside = " ".join(filter(None, (variant_words(row, other), other.backbone)))
    return [
        *([""] if shown.tested else []),
        f"{markdown(row.label)} ({markdown(beside)}) *for scale*",
        *(number(cell and replace(cell, mark="")) for cell in row.cells),
        *([""] if has_differences(shown) else []),
        *([""] * len(cost_columns(shown))),
        *_records(row, runs),
    ]


def _records(row: Row, runs: Mapping[str, PublishedRun]) -> tuple[str, str]:
    """The last cells of a row: its records, linked, and where its values come from."""
    links = [
        f"[{'any' if seed is None else seed}]({link(run_file(run, 'run.json'))})"
        for run, seed in list(zip(row.runs, row.seeds, strict=True))[:SEEDS]
    ]
    linked = " ".join(links) + (
        f" and {len(row.runs) - SEEDS} more" if len(row.runs) > SEEDS else ""
    )
    return linked, row.values
