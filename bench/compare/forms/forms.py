"""Score tables as text: Markdown, LaTeX, CSV and JSON."""

from __future__ import annotations

from collections.abc import Sequence

from bench.base.markup import as_markdown, latex_document
from bench.compare.forms.data import tables_csv, tables_json
from bench.compare.forms.scores import score_grid
from bench.compare.statistics.table import Table


def format_tables(tables: Sequence[Table], form: str) -> str:
    """Write the tables as text: md, latex, csv or json; ends with a newline."""
    if form == "csv":
        return tables_csv(tables)
    if form == "json":
        return tables_json(tables)
    grids = [score_grid(table) for table in tables]
    return latex_document(grids) if form == "latex" else "\n".join(map(as_markdown, grids))
