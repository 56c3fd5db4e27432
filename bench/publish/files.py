"""What a version and the page of all versions consist of, but for runs, predictions and manifest: data, Markdown, HTML, figures.

Pure functions of the board, and of published versions: nothing here reads a clock or the network.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from bench.base.text import plural, slug
from bench.board.board import PREVIEW, PREVIEW_NOTE, Board, BoardTable
from bench.board.names import link, method_page, run_file, search_file
from bench.board.repeat import repeat
from bench.compare.formatting import SEVERAL, markdown, setting_words
from bench.publish.versions import PLAN, Version
from bench.references import PAPERS, results, tables
from bench.references.audit import remarks
from bench.runs.run import Run
from bench.runs.searches import search_bytes
from bench.show.grid import Cell, Column, Grid, as_csv, as_markdown, grid
from bench.show.pages import board as main_page
from bench.show.pages import method_page as page_of_method
from bench.show.pages import run_page as page_of_run
from bench.show.pages.board import changes_grid
from bench.show.pages.engine import ASSETS, TEMPLATES, render_template
from bench.show.tables.data import as_csv as table_csv
from bench.show.tables.data import table_data
from bench.show.tables.scores import score_grid

if TYPE_CHECKING:
    from bench.publish.gather import Report
    from bench.show.figures.drawing import Figure


def version_files(
    board: Board, figures: Sequence[Figure], report: Report
) -> Iterator[tuple[str, bytes]]:
    """(path below the version's folder, content) of every file."""
    yield "tables.json", as_json(board).encode()
    for name, text in as_csvs(board).items():
        yield f"tables/{name}", text.encode()
    if board.plan is not None:
        yield PLAN, board.plan
    for search in board.searches:
        yield search_file(search.name), search_bytes(search)
    for figure in figures:
        yield f"figures/{figure.name}.svg", figure.svg.encode()
        yield f"figures/{figure.name}.csv", figure.csv.encode()
    yield "README.md", markdown_page(board, figures).encode()
    for name in ASSETS:
        yield f"assets/{name}", (TEMPLATES / name).read_bytes()
    yield "index.html", main_page.render(board, figures).encode()
    for i, run in enumerate(board.runs):
        report("writing pages", i, len(board.runs))
        yield run_file(run.record.run_id, "index.html"), page_of_run.render(board, run).encode()
    for method in board.methods:
        yield method_page(method), page_of_method.render(board, method).encode()


# --- tables.json (schema/board-3.schema.json), and a CSV file of every table ---

SCHEMA = "bench.board/3"


def as_json(board: Board) -> str:
    """Everything that the pages show but the recipes, which are in each run's record. On one line: it is for programs."""
    content = {
        "schema": SCHEMA,
        "version": board.version,
        "date": board.date,
        "title": board.title,
        "note": board.note,
        "answer": board.answer,
        "tables": [_table(table) for table in board.tables],
        "runs": [_run(run, board) for run in board.runs],
        "left_out": list(board.left_out),
        "made": board.made,
        "changes": board.changes
        and {
            "before": board.changes.before,
            "rows": [row._asdict() for row in board.changes.rows],
        },
    }
    return json.dumps(content, allow_nan=False, separators=(",", ":")) + "\n"


def as_csvs(board: Board) -> dict[str, str]:
    """File name -> text: one file for each table of runs, one line per cell; and one for each printed table."""
    files = {f"{table.anchor}.csv": table_csv([table.table]) for table in board.tables}
    printed = {f"printed-{slug(*name)}.csv": _printed_csv(*name) for name in tables()}
    return files | printed


def _table(table: BoardTable) -> dict[str, Any]:
    return {
        "anchor": table.anchor,
        "selection": table.selection,
        "cost_note": table.cost_note,
        "table": table_data(table.table),
    }


def _run(run: Run, board: Board) -> dict[str, Any]:
    record = run.record
    return {
        "run_id": record.run_id,
        "method": record.method,
        "variant": record.variant,
        "setting": record.setting,
        "backbone": record.backbone_name,
        "seed": record.seed,
        "submitted_by": board.senders.get(record.run_id),
        "created": record.provenance.created,
        "command": repeat([record]).command,
        "fingerprint": record.fingerprint,
        "record": run_file(record.run_id, "run.json"),
        "page": run_file(record.run_id, "index.html"),
    }


def _printed_csv(paper: str, table: str) -> str:
    """One line for each printed number."""
    printed = [
        {**asdict(cell), "remarks": "; ".join(remark.why for remark in remarks(cell))}
        for cell in results(paper=paper, table=table)
    ]
    return as_csv(list(printed[0]), (line.values() for line in printed))


# --- README.md ---

prose = partial(markdown, limit=None)  # sentences are shown whole, names are cut
number = partial(Column, right=True)


def markdown_page(board: Board, figures: Sequence[Figure] = ()) -> str:
    """The whole version. Of the pages only the first is linked, for a code host shows their source."""
    changes = changes_grid(board)
    sections: dict[str, Iterable[str]] = {
        "Tables": (_table_section(board, table) for table in board.tables),
        "Figures": map(_figure, figures),
        "What papers printed": [as_markdown(_printed())],
        "How this was made": ["\n".join(_facts(board))],
        "Changed since the version before": [as_markdown(changes)] if changes else (),
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
        **{markdown(search.name): link(search_file(search.name)) for search in board.searches},
        "tables as JSON": "tables.json",
        "all versions": "" if board.alone else "../README.md",
    }
    linked = ", ".join(f"[{text}]({path})" for text, path in links.items() if path)
    counted = f"{plural(len(board.runs), 'run')} of {plural(len(board.methods), 'method')}"
    yield f"{board.date}, {counted}: {linked}"


def _table_section(board: Board, board_table: BoardTable) -> str:
    table = board_table.table
    text = f"{table.text} text" if table.text else ""
    place = (setting_words(table.setting), table.backbone or SEVERAL)
    heading = ", ".join(part for part in (*place, table.suite, table.protocol, text) if part)
    notes = (board_table.selection, board_table.cost_note)
    below = [*(prose(note) for note in notes if note), f"[CSV](tables/{board_table.anchor}.csv)"]
    rows = as_markdown(replace(score_grid(table, board.finished(table)), title=""))
    return f"### {markdown(heading)}\n\n{rows}\n{' '.join(below)}"


def _figure(figure: Figure) -> str:
    of = f" {markdown(figure.paper_figure)}." if figure.paper_figure else ""
    image = f"![{prose(figure.title)}](figures/{figure.name}.svg)"
    caption = f"{prose(figure.caption)}{of} [Data](figures/{figure.name}.csv)"
    return f"**{markdown(figure.title)}**\n\n{image}\n\n{caption}"


def _printed() -> Grid:
    rows = [
        (paper, Cell(text=table, link=f"tables/printed-{slug(paper, table)}.csv"), PAPERS[paper])
        for paper, table in tables()
    ]
    note = "As printed, with what an audit of the tables says of them. No run of this board is in these tables."
    return grid(["paper", "table", "title"], rows, notes=[note])


def _facts(board: Board) -> Iterator[str]:
    for topic, text in board.made.items():
        yield f"- **{topic}.** {prose(text)}"


def _runs(board: Board) -> Grid:
    rows: list[list[Cell | str]] = [
        [
            Cell(text=run.record.run_id, link=link(run_file(run.record.run_id, "run.json"))),
            "any" if run.record.seed is None else str(run.record.seed),
            board.senders.get(run.record.run_id, ""),
        ]
        for run in board.runs
    ]
    note = "The record of a run holds its recipe, its command and every score."
    return grid(["record", number("seed"), "run by"], rows, notes=[note])


# --- the page of all versions ---

ERRATA = "ERRATA.md"
"""What turned out to be wrong with published versions, written by hand beside them."""
HOW_TO_CHECK = """A published version never changes: each has a `MANIFEST.json` with the sha256 of every file, and
`bench publish --check` compares them. `bench verify` with the folder of a version computes every
score again."""
LEGEND = (
    "◆: it may be the best.",
    "±: half of the 95 % interval, where there is one.",
)


def index_files(versions: Sequence[Version]) -> dict[str, bytes]:
    """File name -> content, for what is written beside the versions."""
    newest = versions[-1]
    errata = (newest.folder.parent / ERRATA).is_file()
    table = main_grid(newest)
    page = render_template(
        "versions.html", versions=versions[::-1], table=table, errata=errata, plural=plural
    )
    style = [(TEMPLATES / name).read_bytes() for name in ("board.css", "versions.css")]
    return {
        "README.md": _index_markdown(versions[::-1], table, errata).encode(),
        "index.html": page.encode(),
        "style.css": b"".join(style),
    }


def main_grid(version: Version) -> Grid:
    """The version's first table, its average first."""
    table = version.tables[0]["table"]
    names = [table["columns"][-1], *table["columns"][:-1]]
    title = (table["suite"], table["setting"], table["backbone"])
    return grid(
        ["method", *(Column(str(name), right=True) for name in names)],
        [
            [_name(row, version), *(_cell(row["cells"][name]) for name in names)]
            for row in table["rows"]
        ],
        title=", ".join(str(part) for part in title if part and part != "none"),
        notes=LEGEND,
    )


def _name(row: Mapping[str, Any], version: Version) -> Cell:
    """ "promcse eh temperature=0.1" """
    differs = (f"{key}={value}" for key, value in row["differs"].items())
    text = " ".join(str(part) for part in (row["method"], row["variant"], *differs) if part)
    link = f"{version.name}/{method_page(row['method'])}"
    return Cell(text=text, link=link, tint=bool(row.get("may_be_best")))


def _cell(cell: Mapping[str, Any] | None) -> Cell:
    if cell is None:
        return Cell()
    spread = cell["spread"] and (cell["spread"]["high"] - cell["spread"]["low"]) / 2
    return Cell(number=cell["mean"], decimals=cell["decimals"], spread=spread)


def _index_markdown(versions: Sequence[Version], table: Grid, errata: bool) -> str:
    newest = versions[0]
    parts = [f"# {markdown(newest.title)}"]
    for version in versions:
        runs, methods = (plural(len(version.runs), "run"), plural(len(version.methods), "method"))
        name = f"[{version.name}]({version.name}/README.md)"
        parts += [f"## {name}, {version.date}: {runs} of {methods}", prose(version.answer)]
        parts += [f"> {prose(version.note)}"] if version.note else []
        parts += [as_markdown(table).rstrip("\n")] if version is newest else []
    if errata:
        parts.append(f"Errata, and versions that left the tree: [{ERRATA}]({ERRATA}).")
    return "\n\n".join([*parts, HOW_TO_CHECK]) + "\n"
