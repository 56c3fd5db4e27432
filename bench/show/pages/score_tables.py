"""A table of scores as the main page and a comparison draw it: what stands in each cell. ``parts.html`` draws it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bench.board.judged_tables import answer, values_words
from bench.board.names import link, method_page, run_page
from bench.compare import statements
from bench.compare.costs import encoding_under
from bench.compare.formatting import (
    SEVERAL,
    cells_of,
    has_spread,
    metric_words,
    score,
    setting_words,
    signed_number,
    variant_words,
    with_interval,
)
from bench.compare.statistics.table import BETTER, INCONCLUSIVE, WORSE
from bench.show.pages.engine import minus
from bench.show.tables import lines

if TYPE_CHECKING:
    from bench.board.board import Board, BoardTable, PublishedRun
    from bench.compare.statistics.table import Cell, Footnote, Row, Table

COSTS = {
    "params": "trainable_parameters",
    "train": "train_seconds",
    "tuning": "tuning_seconds",
    "memory": "peak_memory_bytes",
    "encode": "encode_sentences_per_second",
}  # heading -> what it sorts by
LETTERS = {BETTER: "b", WORSE: "w", INCONCLUSIVE: "u", lines.UNTESTED: "n", lines.OUTSIDE: "o"}
"""Verdict against the baseline, or its like -> class of its sign in the style sheet."""
WORDS = {letter: verdict for verdict, letter in LETTERS.items()} | {"o": "outside our interval"}
"""Class of a sign -> what it says, for who does not see it."""
TINT = "shaded"
MOST_LINKS = 2_000
"""Numbers of a page that are links of their own. Beyond, each row has one, and a script makes the others."""
WIDEST = 1150
"""Pixels that a table may take on a wide screen; a wider one scrolls in itself."""


@dataclass(frozen=True, kw_only=True)
class ScoreColumn:
    """One column of scores."""

    name: str  # the task as it is printed
    place: str  # "average", which comes right after the method on a phone; "apart", of another group than the table's own; or empty


@dataclass(frozen=True, kw_only=True)
class ScoreGroup:
    """Columns that were scored alike."""

    words: str  # metric, protocol, text form, how checkpoints were chosen
    span: int  # how many columns
    apart: bool  # it is not the first group


@dataclass(frozen=True, kw_only=True)
class ScoreCell:
    """One number."""

    text: str  # the mean, as printed
    mark: str  # best, second or empty
    spread: str  # what stands after the plus-minus sign; empty where nothing does
    top: bool  # on the column that ranks: its row may be the best
    sign: str  # class of the sign against the baseline, on the column that ranks; may be empty
    title: str  # of a comparison: items, seeds, interval and test in words, shown on pointing; empty where a panel has them


@dataclass(frozen=True, kw_only=True)
class ScoreLine:
    """What stands under a row: what a paper printed; in a comparison also the differences from that and from the baseline."""

    label: str  # what its numbers are
    copied: bool  # the paper quotes somebody else
    anchor: str  # id of the printed table on this page; empty where it is not here
    entries: tuple[
        tuple[str, str], ...
    ]  # number and class of its sign, one per column; empty where there is none


@dataclass(frozen=True, kw_only=True)
class ScoreRow:
    """One method."""

    method: str  # its name
    beside: str  # variant, and whatever else sets the row apart; may be empty
    page: str  # link to the page of the method; in a comparison to the details of its first run
    run: str  # link to the page, or the details, of its first run
    cells: tuple[ScoreCell | None, ...]  # one per column, None where nothing was scored
    costs: tuple[tuple[str, float], ...]  # as printed, and to sort by; -1 where it was not recorded
    family: str  # of methods, as its recipe file says; empty where that is not known
    trains: str  # none, part or all of its parameters; empty where that was not recorded
    seeds: int  # runs behind the row
    footnotes: tuple[int, ...]  # numbers of the table's footnotes that concern it
    lines: tuple[ScoreLine, ...]  # what stands under it


@dataclass(frozen=True, kw_only=True)
class ScoreTable:
    """One comparable set of numbers, and what is shown beside it."""

    anchor: str  # id of its place, the same from version to version
    setting: str  # setting as the records name it
    setting_words: str  # setting in words
    backbone: str  # name of the backbone
    suite: str  # name of the suite
    protocol: str  # how it was scored
    text: str  # form of the sentences; empty where there is only one
    besides: (
        str  # protocol and text form, where another table has the same setting, backbone and suite
    )
    groups: tuple[ScoreGroup, ...]  # of columns; the table's own first
    columns: tuple[ScoreColumn, ...]  # of all groups, in one sequence
    average: int | None  # place of the average that comes first on a phone
    linked: int | None  # the only column whose numbers are links; None where all are
    wide: bool  # it scrolls in itself on every screen
    costs: tuple[str, ...]  # headings of the cost columns; empty where nothing was recorded
    marks: bool  # some number is the best of its column
    spreads: bool  # some number has something after a plus-minus sign
    signs: bool  # some number was compared with a baseline, or lies outside an interval
    published: bool  # on a board; False: in a comparison
    rows: tuple[ScoreRow, ...]  # best average first
    finished: tuple[
        ScoreRow, ...
    ]  # other backbones in which nothing was trained here: for scale, not ranked
    selection: str  # how checkpoints were chosen; empty where nothing was trained
    answer: str  # what the table says, in one sentence
    legend: tuple[str, ...]  # what its signs and columns mean, a sentence each
    baseline: str  # what the signs compare with; empty without one
    cost_note: str  # what times and memory are of; may be empty
    notes: tuple[str, ...]  # what a reader must know to read the numbers
    footnotes: tuple[Footnote, ...]  # settings in which rows differ


@dataclass(frozen=True, kw_only=True)
class Published:
    """What a version has besides its tables, and a comparison has not."""

    runs: Mapping[str, PublishedRun]  # by run id
    families: Mapping[str, str]  # of methods, by run id; none where it is not known
    anchors: Mapping[str, str]  # "paper:table" -> id of the printed table on the page


def score_tables(board: Board, families: Mapping[str, str] | None = None) -> tuple[ScoreTable, ...]:
    """The tables of a board, in its order. ``families``: run id -> family of its method."""
    published = Published(
        runs={run.record.run_id: run for run in board.runs},
        families=families or {},
        anchors={
            f"{reference.paper}:{reference.table}": reference.anchor
            for reference in board.references
        },
    )
    same = Counter(_place(table) for table in board.tables)
    linked = (
        sum(len(table.table.rows) * len(table.table.columns) for table in board.tables)
        <= MOST_LINKS
    )
    return tuple(
        score_table(
            table,
            published,
            _finished(table, board, published),
            alone=same[_place(table)] == 1,
            linked=linked,
        )
        for table in board.tables
    )


def _finished(board_table: BoardTable, board: Board, published: Published) -> tuple[ScoreRow, ...]:
    """The best untrained row of each other backbone, scored alike: what a reader needs to judge the numbers of a small one."""
    mine = board_table.table
    names = [*mine.columns, *(other.name for other in board_table.beside)]
    rows = []
    for other, i in board.finished(board_table):
        table, row = other.table, _row(other, i, published)
        cells = dict(
            zip([*table.columns, *(beside.name for beside in other.beside)], row.cells, strict=True)
        )
        costs = _costs(
            _cost_headings(mine, published),
            encoding_under(lines.encode_condition(mine) or None, table.rows[i]),
        )
        beside = " ".join(
            filter(None, (row.beside, table.backbone))
        )  # a table of several backbones has them in its rows
        rows.append(
            replace(row, beside=beside, cells=tuple(cells.get(name) for name in names), costs=costs)
        )
    return tuple(rows)


def _width(table: Table, columns: Sequence[ScoreColumn], costs: Sequence[str]) -> float:
    """About the pixels that a table takes: names at 7.5 a letter, numbers with their signs at least 50, 14 between."""
    names = max((len(f"{row.label} {variant_words(row, table)}") for row in table.rows), default=0)
    scores = sum(
        14 + max(50, 7.5 * len(column.name)) + 18 * (column.place == "apart") for column in columns
    )
    return 7.5 * names + 20 + scores + 75 * len(costs) + 150


def _place(table: BoardTable) -> tuple[str | None, ...]:
    return table.table.setting, table.table.backbone, table.table.suite


def score_table(
    board_table: BoardTable,
    published: Published | None = None,
    finished: tuple[ScoreRow, ...] = (),
    *,
    alone: bool = False,
    linked: bool = True,
) -> ScoreTable:
    """One table. Without ``published`` it is a comparison's, whose links lead to ids of runs on its page.

    ``alone``: no other has its setting, backbone and suite. ``linked``: every number is a link.
    """
    table = board_table.table
    average = lines.average_place(table)
    columns = [
        ScoreColumn(name=name, place="average" if i == average else "")
        for i, name in enumerate(table.columns)
    ]
    groups = [ScoreGroup(words=group_words(table), span=len(columns), apart=False)]
    for other in board_table.beside:
        columns.append(ScoreColumn(name=other.name, place="apart"))
        groups.append(ScoreGroup(words=other.protocol, span=1, apart=True))
    cells = [
        *cells_of(table),
        *(cell for other in board_table.beside for cell in other.cells if cell is not None),
    ]
    cost = _cost_headings(table, published)
    rows = tuple(_row(board_table, i, published) for i in range(len(table.rows)))
    gaps = any(cell is None for row in rows for cell in row.cells)
    return ScoreTable(
        anchor=board_table.anchor,
        setting=table.setting or "",
        setting_words=setting_words(table.setting),
        backbone=table.backbone or SEVERAL,
        suite=table.suite,
        protocol=table.protocol,
        text=table.text or "",
        besides="" if alone else form_words(table),
        groups=tuple(groups),
        columns=tuple(columns),
        average=average,
        linked=None if linked else len(table.columns) - 1,
        wide=_width(table, columns, cost) > WIDEST,
        costs=cost,
        marks=any(cell.mark for cell in cells),
        spreads=has_spread(table),
        signs=any(cell.against and cell.against.verdict for cell in cells)
        or any(sign for row in rows for line in row.lines for _, sign in line.entries),
        published=published is not None,
        baseline=table.baseline or "",
        rows=rows,
        finished=finished,
        selection=" ".join(filter(None, (board_table.selection, values_words(table)))),
        answer=answer([board_table]),
        legend=tuple(statements.legend(table, lines.SIGNS[BETTER], lines.SIGNS[WORSE], TINT))
        if published
        else (
            *["an empty cell was not scored"] * gaps,
            *lines.legend(table, lines.SIGNS, tint=TINT),
        ),
        cost_note=" ".join(
            [
                board_table.cost_note,
                *(f"{words[0].upper()}{words[1:]}." for words in lines.parts_trained(table)),
            ]
        ).strip()
        if cost
        else "",
        notes=table.notes,
        footnotes=table.footnotes,
    )


def group_words(table: Table) -> str:
    return f"{metric_words(table.metric)}; {form_words(table)}"


def form_words(table: Table) -> str:
    """ "senteval-all/1, tokenised" """
    return f"{table.protocol}, {table.text}" if table.text else table.protocol


def _row(board_table: BoardTable, i: int, published: Published | None) -> ScoreRow:
    table, row = board_table.table, board_table.table.rows[i]
    cells = (*row.cells, *(other.cells[i] for other in board_table.beside))
    head = row.cells[-1] if table.head is not None else None
    details = f"#{link(row.runs[0])}"
    return ScoreRow(
        method=row.label,
        beside=variant_words(row, table),
        page=link(method_page(row.method)) if published else details,
        run=link(run_page(row.runs[0])) if published else details,
        family=published.families.get(row.runs[0], "") if published else "",
        trains=_trains(row, published.runs) if published else "",
        cells=tuple(
            None
            if cell is None
            else _cell(cell, row, table, head=cell is head, titled=published is None)
            for cell in cells
        ),
        seeds=table.n(row),
        costs=_costs(_cost_headings(table, published), row),
        footnotes=tuple(number + 1 for number in row.footnotes),
        lines=_lines(row, table, len(board_table.beside), published),
    )


def _cost_headings(table: Table, published: Published | None) -> tuple[str, ...]:
    """Of the columns of cost those that a page has room for: on a board, peak memory is not."""
    return tuple(
        name for name in lines.cost_columns(table) if published is None or name != "memory"
    )


def _costs(headings: Sequence[str], row: Row) -> tuple[tuple[str, float], ...]:
    """What a row took, as printed and to sort by, in these columns."""
    found = []
    for name in headings:
        text, amount = lines.costs(row.cost)[name], getattr(row.cost, COSTS[name], None)
        if (
            name == "train" and row.setting == "none" and amount is None
        ):  # which is no gap in what is known
            text, amount = "none", 0.0
        found.append((text, -1.0 if amount is None else float(amount)))
    return tuple(found)


def _trains(row: Row, runs: Mapping[str, PublishedRun]) -> str:
    cost = runs[row.runs[0]].record.cost
    trained = (
        0
        if row.setting == "none" and cost.trainable_parameters is None
        else cost.trainable_parameters
    )
    if trained == 0:
        return "none"
    if trained is None or cost.total_parameters is None:
        return ""
    return "all" if trained >= cost.total_parameters else "part"


def _cell(cell: Cell, row: Row, table: Table, *, head: bool, titled: bool) -> ScoreCell:
    return ScoreCell(
        text=minus(score(cell.mean, cell.decimals)),
        mark=cell.mark,
        top=head and row.may_be_best,
        spread=lines.spread_text(cell),
        sign=letter(row, table) if head else "",
        title="; ".join(_described(cell, row, table, head=head)) if titled else "",
    )


def _described(cell: Cell, row: Row, table: Table, *, head: bool) -> Iterator[str]:
    """What a number rests on, in words."""
    d = cell.decimals
    yield f"{cell.n:,} items, {len(cell.values)} seed{'s' * (len(cell.values) != 1)}"
    if cell.sd is not None:
        yield f"standard deviation over seeds {score(cell.sd, d)}"
    if cell.spread:
        yield f"{100 * cell.spread.level:g} % interval {score(cell.spread.low, d)} to {score(cell.spread.high, d)} ({cell.spread.covers})"
    if (against := cell.against) is not None:
        yield (
            f"less {table.baseline}: {difference_words(cell)}"
            if against.verdict
            else (f"less {table.baseline}: {signed_number(against.difference, d)}, not tested")
        )
    if head and row.may_be_best:
        yield lines.TOP


def difference_words(cell: Cell) -> str:
    """ "worse, -1.84 [-2.73, -0.95] (98.3 % CI); p 0.0002" """
    against = cell.against
    if against is None or against.ci_level is None or against.p is None:
        return ""
    by = with_interval(against.difference, against.ci_low, against.ci_high, cell.decimals)
    return f"{against.verdict}, {by} ({100 * against.ci_level:.3g} % CI); p {against.p:.2g}"


def letter(row: Row, table: Table) -> str:
    """Class of a row's sign; "" of the baseline, and where nothing was compared."""
    if row.is_baseline or not lines.has_differences(table):
        return ""
    return LETTERS.get(lines.sign_name(row, table) or statements.verdict(row) or "", "")


def _lines(
    row: Row, table: Table, others: int, published: Published | None
) -> tuple[ScoreLine, ...]:
    """The lines that a table has under its row: what papers printed; in a comparison, ours less that too."""
    if published is None:
        return tuple(
            ScoreLine(
                label=line.label,
                copied=False,
                anchor="",
                entries=tuple(
                    (minus(entry.text), LETTERS.get(entry.sign, "")) for entry in line.entries
                ),
            )
            for line in lines.under(row)
        )
    printed = {cell.printed.source for cell in row.cells if cell is not None and cell.printed}
    return tuple(
        ScoreLine(
            label=f"printed: {source.replace(':', ', table ')}",
            copied=source != line.label,
            anchor=published.anchors.get(source, ""),
            entries=(*((entry.text, "") for entry in line.entries), *[("", "")] * others),
        )
        for line in lines.under(row)
        if (source := line.label.removesuffix(", copied")) in printed
    )
