"""What a version and the page of all versions consist of, but for runs, predictions and manifest: data, Markdown, HTML, figures.

Pure functions of the board, and of published versions: nothing here reads a clock or the network.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup

from bench.base.text import markdown, plural, slug
from bench.board.board import PREVIEW, Board, BoardTable
from bench.board.names import link, method_page, run_file, search_file
from bench.board.repeat import repeat
from bench.compare.formatting import SEVERAL, setting_words
from bench.publish.versions import PLAN, Version
from bench.references import PAPERS, results, tables
from bench.references.audit import remarks
from bench.runs.run import Run
from bench.show.grid import TINT, Cell, Column, Grid, as_csv, as_markdown, grid
from bench.show.pages.board import changes_grid
from bench.show.pages.board import render as render_board
from bench.show.pages.engine import ASSETS, TEMPLATES, render_template
from bench.show.pages.method_page import render as render_method
from bench.show.pages.run_page import render as render_run
from bench.show.tables.data import as_csv as table_csv
from bench.show.tables.data import table_data
from bench.show.tables.scores import score_grid

if TYPE_CHECKING:
    from bench.compare.statistics.table import Table
    from bench.show.figures.drawing import Figure


def version_files(board: Board, figures: Sequence[Figure]) -> dict[str, bytes]:
    """Path below the version's folder -> content of every file but runs, predictions and manifest."""
    texts = {
        "tables.json": as_json(board),
        **{f"tables/{name}": text for name, text in as_csvs(board).items()},
        **{f"figures/{figure.name}.svg": figure.svg for figure in figures},
        **{f"figures/{figure.name}.csv": figure.csv for figure in figures},
        "README.md": markdown_page(board, figures),
        "index.html": render_board(board, figures),
        **{
            run_file(run.record.run_id, "index.html"): render_run(board, run) for run in board.paged
        },
        **{method_page(method): render_method(board, method) for method in board.methods},
    }
    files = {path: text.encode() for path, text in texts.items()}
    files |= {f"assets/{name}": (TEMPLATES / name).read_bytes() for name in ASSETS}
    files |= {search_file(one.name): one.encode() for one in board.searches}
    return files if board.plan is None else files | {PLAN: board.plan}


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
        "command": repeat([record]),
        "fingerprint": record.fingerprint,
        "record": run_file(record.run_id, "run.json"),
        "page": run_file(board.page_of[record.run_id], "index.html"),
    }


def _printed_csv(paper: str, table: str) -> str:
    """One line for each printed number."""
    printed = [
        {**asdict(cell), "remarks": "; ".join(remark.why for remark in remarks(cell))}
        for cell in results(paper=paper, table=table)
    ]
    return as_csv(list(printed[0]), (line.values() for line in printed))


# --- Markdown, for code hosts: templates in which every text is escaped ---


@cache
def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(  # noqa: S701 - ``finalize`` escapes, for Markdown
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) else markdown(value, limit=None),
    )
    environment.globals |= {
        "link": lambda path: Markup(link(path)),  # noqa: S704 - quoted
        "search_file": search_file,
        "table": lambda table: Markup(as_markdown(replace(table, title=""))),  # noqa: S704 - escaped
        "counted": counted,
        "slug": slug,
        "place": place,
    }
    return environment


def counted(of: Board | Version) -> str:
    """ "12 runs of 4 methods" """
    return f"{plural(len(of.runs), 'run')} of {plural(len(of.methods), 'method')}"


def place(table: Table) -> str:
    """ "unsupervised, bert-base-uncased" """
    return f"{setting_words(table.setting)}, {table.backbone or SEVERAL}"


def markdown_page(board: Board, figures: Sequence[Figure] = ()) -> str:
    """README.md: the whole version. Of the pages only the first is linked, for a code host shows their source."""
    return (
        _templates()
        .get_template("version.md")
        .render(
            board=board,
            preview=PREVIEW,
            score_grid=score_grid,
            figures=figures,
            changes=changes_grid(board),
            printed=[(paper, number, PAPERS[paper]) for paper, number in tables()],
        )
    )


# --- the page of all versions ---

ERRATA = "ERRATA.md"
"""What turned out to be wrong with published versions, written by hand beside them."""


def index_files(versions: Sequence[Version]) -> dict[str, bytes]:
    """File name -> content, for what is written beside the versions."""
    newest = versions[-1]
    errata = (newest.folder.parent / ERRATA).is_file()
    facts = {"versions": versions[::-1], "errata": errata}
    table = main_grid(newest)
    page = render_template("versions.html", **facts, table=table, plural=plural)
    style = [(TEMPLATES / name).read_bytes() for name in ("board.css", "versions.css")]
    return {
        "README.md": _templates().get_template("versions.md").render(**facts, main=table).encode(),
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
        notes=["◆: it may be the best.", "±: half of the 95 % interval, where there is one."],
    )


def _name(row: Mapping[str, Any], version: Version) -> Cell:
    """ "promcse eh temperature=0.1" """
    differs = (f"{key}={value}" for key, value in row["differs"].items())
    text = " ".join(str(part) for part in (row["method"], row["variant"], *differs) if part)
    link = f"{version.name}/{method_page(row['method'])}"
    return Cell(text=text, link=link, sign=TINT if row.get("may_be_best") else "")


def _cell(cell: Mapping[str, Any] | None) -> Cell:
    if cell is None:
        return Cell()
    spread = cell["spread"] and (cell["spread"]["high"] - cell["spread"]["low"]) / 2
    return Cell(number=cell["mean"], decimals=cell["decimals"], spread=spread)
