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

from bench.base.text import plural
from bench.board.board import PREVIEW, Board, BoardTable, PublishedRun
from bench.board.names import link, method_page, run_file, run_page, search_file
from bench.board.reference_tables import ReferenceTable
from bench.board.repeat import repeat
from bench.compare.formatting import SEVERAL, markdown, setting_words
from bench.publish.versions import PLAN, Version
from bench.runs.searches import search_bytes
from bench.show.grid import TINT, Cell, Column, Grid, as_csv, as_markdown, grid
from bench.show.pages.board import changes_grid, overviews
from bench.show.pages.board import render as render_board
from bench.show.pages.engine import ASSETS, TEMPLATES, render
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
        **{run_page(run.record.run_id): render_run(board, run) for run in board.paged},
        **{method_page(method): render_method(board, method) for method in board.methods},
    }
    files = {path: text.encode() for path, text in texts.items()}
    files |= {f"assets/{name}": (TEMPLATES / name).read_bytes() for name in ASSETS}
    files |= {search_file(one.name, "json"): search_bytes(one) for one in board.searches}
    return files if board.plan is None else files | {PLAN: board.plan}


# --- tables.json (schema/board-3.schema.json), and a CSV file of every table ---

SCHEMA = "bench.board/3"
PRINTED = (
    "paper",
    "table",
    "label",
    "method",
    "variant",
    "setting",
    "backbone",
    "task",
    "metric",
    "value",
    "std",
    "own",
    "source",
    "runs",
    "protocol",
    "corpus",
    "ours",
    "remarks",
    "note",
)


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
        "references": [asdict(reference) for reference in board.references],
        "made": [asdict(fact) for fact in board.made],
        "changes": None if board.changes is None else asdict(board.changes),
    }
    return json.dumps(content, allow_nan=False, separators=(",", ":")) + "\n"


def as_csvs(board: Board) -> dict[str, str]:
    """File name -> text: one file for each table of runs, one line per cell; and one for each printed table."""
    files = {f"{table.anchor}.csv": table_csv([table.table]) for table in board.tables}
    return files | {f"{printed.anchor}.csv": _printed_csv(printed) for printed in board.references}


def _table(table: BoardTable) -> dict[str, Any]:
    return {
        "anchor": table.anchor,
        "selection": table.selection,
        "costs_comparable": table.costs_comparable,
        "cost_note": table.cost_note,
        "cost_of": None if table.cost_of is None else asdict(table.cost_of),
        "table": table_data(table.table),
        "beside": [
            {
                "name": other.name,
                "suite": other.suite,
                "protocol": other.protocol,
                "metric": other.metric,
                "anchor": other.anchor,
                "means": [None if cell is None else cell.mean for cell in other.cells],
            }
            for other in table.beside
        ],
    }


def _run(run: PublishedRun, board: Board) -> dict[str, Any]:
    record = run.record
    return {
        "run_id": record.run_id,
        "method": record.method,
        "variant": record.variant,
        "setting": record.setting,
        "backbone": record.backbone_name,
        "seed": record.seed,
        "submitted_by": run.submitted_by,
        "created": record.provenance.created,
        "command": repeat([record]).command,
        "fingerprint": record.fingerprint,
        "record": run_file(record.run_id, "run.json"),
        "page": run_page(board.page_of[record.run_id]),
    }


def _printed_csv(table: ReferenceTable) -> str:
    """One line for each printed number."""
    facts = [
        {**vars(table), **vars(row), **vars(cell), "remarks": (*cell.remarks, *row.remarks)}
        for row in table.rows
        for cell in row.cells
        if cell is not None
    ]
    for line in facts:
        line["remarks"] = "; ".join(remark.text for remark in line["remarks"])
    return as_csv(PRINTED, ([line[name] for name in PRINTED] for line in facts))


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
    facts = {"board": board, "figures": figures, "preview": PREVIEW, "score_grid": score_grid}
    grids = {"overviews": overviews(board), "changes": changes_grid(board)}
    return _templates().get_template("version.md").render(**facts, **grids)


# --- the page of all versions ---

ERRATA = "ERRATA.md"
"""What turned out to be wrong with published versions, written by hand beside them."""


def index_files(versions: Sequence[Version]) -> dict[str, bytes]:
    """File name -> content, for what is written beside the versions."""
    newest = versions[-1]
    errata = (newest.folder.parent / ERRATA).is_file()
    facts = {"versions": versions[::-1], "errata": errata}
    table = main_grid(newest)
    page = render("versions.html", **facts, table=table, plural=plural)
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
