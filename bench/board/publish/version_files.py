"""The files of a version, but for runs, predictions and manifest: pages, Markdown, data,
figures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from bench.board.addresses import method_page, run_file, search_file
from bench.board.board import Board
from bench.board.figures import Figure
from bench.board.pages.board import render_board
from bench.board.pages.claims import claims_grids
from bench.board.pages.engine import ASSETS, TEMPLATES
from bench.board.pages.gain_sizes import gain_sizes
from bench.board.pages.matrix import shown_matrix
from bench.board.pages.matrix_picture import matrix_pictures
from bench.board.pages.method_page import render_method
from bench.board.pages.run_page import render_run
from bench.board.publish.readme import version_readme
from bench.board.publish.versions import PLAN
from bench.board.repeat import repeat
from bench.compare.forms.data import table_data, tables_csv
from bench.compare.rule import RULE
from bench.records.run import Run

SCHEMA = "bench.board/5"
"""The schema of tables.json: schema/board-5.schema.json."""


def version_files(board: Board, figures: Sequence[Figure]) -> dict[str, bytes]:
    """Return path below the version's folder -> content of each of these files."""
    texts = {"tables.json": board_json(board)}
    for name, text in table_files(board).items():
        texts[f"tables/{name}"] = text
    for figure in figures:
        texts[f"figures/{figure.name}.svg"] = figure.svg
        texts[f"figures/{figure.name}.csv"] = figure.csv
    shown = shown_matrix(board)
    drawn = matrix_pictures(shown) if shown else {}
    claims, sizes = claims_grids(board), gain_sizes(board)
    texts["README.md"] = version_readme(board, figures, claims, sizes)
    texts["index.html"] = render_board(board, figures, claims, sizes)
    for run in board.paged:
        texts[run_file(run.record.run_id, "index.html")] = render_run(board, run)
    for method in board.methods:
        texts[method_page(method)] = render_method(board, method)
    files = {path: text.encode() for path, text in texts.items()}
    for name, picture in drawn.items():
        files[name] = picture
    for name in ASSETS:
        files[f"assets/{name}"] = (TEMPLATES / name).read_bytes()
    for search in board.searches:
        files[search_file(search.name)] = search.encode()
    if board.plan is not None:
        files[PLAN] = board.plan
    return files


def board_json(board: Board) -> str:
    """Write everything that the pages show but the recipes, which records have. On one line: it is
    for programs."""
    addresses = {"address": board.address, "docs": board.docs}
    content = {
        "schema": SCHEMA,
        "version": board.version,
        "date": board.date,
        "title": board.title,
        "note": board.note,
        "answer": board.answer,
        "judged": {
            "rule": RULE,
            "baseline": board.baseline,
            "main_budget": board.main_budget,
        },
        "tables": [
            {
                "anchor": shown.anchor,
                "selection": shown.selection,
                "cost_note": shown.cost_note,
                "table": table_data(shown.table),
            }
            for shown in board.tables
        ],
        "runs": [_run(run, board) for run in board.runs],
        "left_out": list(board.left_out),
        "made": board.made,
        **{name: address for name, address in addresses.items() if address},
        "matrix": msgspec.to_builtins(shown_matrix(board)),
    }
    return json.dumps(content, allow_nan=False, separators=(",", ":")) + "\n"


def table_files(board: Board) -> dict[str, str]:
    """Return file name -> CSV, one file for each table, with one line per cell."""
    return {f"{table.anchor}.csv": tables_csv([table.table]) for table in board.tables}


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
        "command": repeat([run]),
        "fingerprint": record.fingerprint,
        "record": run_file(record.run_id, "run.json"),
        "page": run_file(board.page_of[record.run_id], "index.html"),
    }
