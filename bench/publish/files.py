"""All files of a version but its manifest and what is copied of the runs: pages, figures, data. Pure functions of the board."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from bench.figures.figure import Figure
from bench.pages import addresses
from bench.pages.engine import TEMPLATES
from bench.publish.board import Board

FORMATS = ("html", "md")
ASSETS = ("board.css", "board.js", "panel.js", "pages.css", "pages.js")  # small and hand-written; the pages link to nothing else


def version_files(
    board: Board, figures: Sequence[Figure], formats: Sequence[str] = FORMATS, report: Callable[[str, int, int], None] | None = None
) -> Iterator[tuple[str, bytes]]:  # fmt: skip
    """(path below the version's folder, content) of every file; the data of every table is there in any format."""
    from bench.publish import badge, data, readme
    from bench.tables.run_csv import scores_csv

    yield "tables.json", data.as_json(board).encode()
    for name, text in data.as_csvs(board).items():
        if f"tables/{name}" not in board.older:
            yield f"tables/{name}", text.encode()
    if board.changes is not None and (board.changes.verdicts or board.changes.scores):
        yield "tables/changes.csv", data.changes_csv(board.changes).encode()
    yield "badge.svg", badge.badge(board).encode()
    for figure in figures:
        yield f"figures/{figure.name}.svg", figure.svg.encode()
        yield f"figures/{figure.name}.csv", figure.csv.encode()
    for run in board.runs:
        yield addresses.run_file(run.record.run_id, "scores.csv"), scores_csv(run.record).encode()
    if "md" in formats:
        yield "README.md", readme.markdown_page(board, figures, pages="html" in formats).encode()
    if "html" in formats:
        yield from _pages(board, figures, report or (lambda what, done, of: None))


def _pages(board: Board, figures: Sequence[Figure], report: Callable[[str, int, int], None]) -> Iterator[tuple[str, bytes]]:
    from bench.pages import board as main_page
    from bench.pages import engine, method_page, run_page

    for name in ASSETS:
        yield f"assets/{name}", (TEMPLATES / name).read_bytes()
    yield "index.html", main_page.render(board, figures).encode()
    if board.changes is not None and (board.changes.verdicts or board.changes.scores):
        yield "changes.html", engine.render("changes.html", board=board, changes=board.changes, up=0).encode()
    for i, run in enumerate(board.runs):
        report("writing pages", i, len(board.runs))
        yield addresses.run_page(run.record.run_id), run_page.render(board, run).encode()
    for method in board.methods:
        yield addresses.method_page(method), method_page.render(board, method).encode()
