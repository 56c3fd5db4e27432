"""One table or figure of ``bench papers``: as printed, with the remarks that matter below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from bench.base.grid import Grid, GridCell, GridColumn, GridRow, grid, indented
from bench.base.text import list_names
from bench.cli.paper_lists import Shown
from bench.method.plugins import discover
from bench.method.recipe_files import read_recipes
from bench.papers import (
    BY_MTEB,
    PaperPart,
    PrintedHyperparameter,
    PrintedRow,
    ReferenceResult,
    papers,
    printed_hyperparameters,
    printed_points,
    released_for,
    results,
    rows,
    scored_from,
)
from bench.papers.remarks import remarks

STD = "±: over the draws of CxC-STS, over seeds elsewhere"
MATTER = ("average", "impossible", "same", "claim", "quoted", "best", "protocol")
"""Kinds of remarks that a reader of the table should see."""
PLACES_READ = {
    "README": "read from a README",
    "model card": "read from model cards",
    "result files": "read from result files",
    "picture": "read from a picture by eye",
    "conversion": "read from a conversion of the paper by a third party",
    "transcription": "read from a transcription by a third party",
    "issue": "read from an issue of the repository",
}
"""``read`` of a printed number -> its words."""


def show_part(part: PaperPart) -> Shown:
    """Return a table or figure as printed."""
    numbers = results(paper=part.paper, table=part.short)
    if numbers:
        return _show_scores(part, numbers)
    title = f"{part.name}: {part.shows}. {papers()[part.paper].citation}"
    cells = printed_hyperparameters(part)
    if cells:
        return Shown([_hyperparameter_grid(cells, title)], _hyperparameter_objects(cells))
    if part.words:
        columns = [GridColumn(name, wrap=20) for name in part.words[0]]
        lines = [list(row.values()) for row in part.words]
        return Shown([grid(columns, lines, title=title)], part.words)
    return _show_figure(part, title)


def _show_figure(part: PaperPart, title: str) -> Shown:
    """Return the points of a figure that a source gives, and how it is drawn again."""
    points = [point for point in printed_points() if (point.paper, point.part) == _place(part)]
    lines = [(p.panel, p.key, f"{p.x:g}", f"{p.y:g}", p.read) for p in points]
    columns = (
        "score",
        "at",
        GridColumn("", right=True),
        GridColumn("published", right=True),
        GridColumn("read from", wrap=20),
    )
    notes = [part.why] if part.why else []
    if part.open:
        notes.append(f"open: {part.open}")
    if part.command:
        notes.append(f"run again: {part.command}; drawn: bench publish --preview")
    objects = [{**asdict(part), "command": part.command}, *map(asdict, points)]
    return Shown([grid(columns if lines else [""], lines, title=title, notes=notes)], objects)


def _place(part: PaperPart) -> tuple[str, str]:
    return part.paper, part.part


def _show_scores(part: PaperPart, numbers: Sequence[ReferenceResult]) -> Shown:
    """Return a table of scores, by setting and backbone."""
    groups: dict[str, list[PrintedRow]] = {}
    for row in rows(numbers, by_metric=False):
        groups.setdefault(_heading(row.first), []).append(row)
    lead = f"{part.name}. {papers()[part.paper].citation}{_places_read(numbers)}"
    notes = [
        f"numbers that other papers give differently: bench papers {part.name} --remarks "
        "--kind differs",
        "every source, text form and remark: --json",
    ]
    if part.command:
        notes.append(f"run again: {part.command} --dry-run")
    made = [
        grid([""], [], title=lead),
        *(_scores_grid(heading, group) for heading, group in groups.items()),
        grid([""], [], notes=notes),
    ]
    objects = []
    for number in numbers:
        told = [{"kind": remark.kind, "text": remark.text} for remark in remarks(number)]
        objects.append({**asdict(number), "remarks": told})
    return Shown(made, objects)


def _heading(cell: ReferenceResult) -> str:
    """Return the heading of a row's part of its table: setting and backbone.

    Models that mteb scored each have a backbone of their own; they share one part.
    """
    if cell.metric == BY_MTEB:
        return "ready-made encoders" if cell.setting == "none" else cell.setting
    return ", ".join(filter(None, (cell.setting, cell.backbone)))


def _places_read(numbers: Sequence[ReferenceResult]) -> str:
    """Return the source of a table's text, in brackets; "" for the paper, or if not known."""
    places = dict.fromkeys(PLACES_READ[number.read] for number in numbers if number.read)
    return f" ({'; '.join(places)})" if places else ""


def _scores_grid(title: str, part: Sequence[PrintedRow]) -> Grid:
    """Lay out rows of one setting and backbone as printed, and the remarks on them."""
    tasks = list(dict.fromkeys(cell.task for row in part for cell in row.cells))
    lines = []
    for row in part:
        cells = {cell.task: GridCell(text=cell.shown) for cell in row.cells}
        numbers = [cells.get(task, GridCell()) for task in tasks]
        lines.append([GridCell(text=row.first.label), *numbers])
    columns = [GridColumn("", wrap=16)]
    columns += [GridColumn(task, right=True, wrap=6) for task in tasks]
    return grid(columns, lines, title=title, notes=list(_notes(part)))


def _notes(part: Sequence[PrintedRow]) -> Iterator[str]:
    """Yield which rows are copied and from whom, which have a released checkpoint, of how many runs
    they are, and the remarks that matter."""
    told: dict[str, dict[str, None]] = {}
    for row in part:
        for note in _row_notes(row):
            told.setdefault(note, {})[row.first.label] = None
    for note, labels in told.items():
        yield f"{note}: {list_names(labels, len(labels))}"
    if any(cell.std is not None for row in part for cell in row.cells):
        yield STD
    yield from dict.fromkeys(line for row in part for line in _remark_lines(row))


def _row_notes(row: PrintedRow) -> Iterator[str]:
    for cell in row.cells:
        if not cell.own_result:
            yield f"copied from {cell.source or 'another paper'}"
        if cell.runs and cell.own_result:
            yield cell.runs
        if scored_from(cell) is not None:
            yield "the paper scored a released checkpoint"
        elif released_for(cell) is not None:
            yield "checkpoint released (bench papers checkpoints)"


def _remark_lines(row: PrintedRow) -> Iterator[str]:
    """Yield "LABEL, TASK: text" for each remark on the row, or a cell of it, that matters."""
    for cell in row.cells:
        for remark in remarks(cell):
            parts = remark.text.split("; ")
            if remark.kind == "protocol":
                parts = [part for part in parts if not part.startswith("text form")]
            if parts and remark.kind in MATTER:
                place = ", ".join(filter(None, (row.first.label, remark.task)))
                yield f"{place}: {'; '.join(parts)}"


def _hyperparameter_grid(cells: Sequence[PrintedHyperparameter], title: str) -> Grid:
    """Lay out printed hyperparameters, with our recipe's values below each row."""
    keys = list(dict.fromkeys(cell.key for cell in cells))
    lines: list[GridRow | list[str]] = []
    groups: dict[tuple[str, str], dict[str, str]] = {}
    for cell in cells:
        groups.setdefault((cell.setting, cell.backbone), {})[cell.key] = cell.printed
    for (setting, backbone), printed in groups.items():
        ours = our_values(cells[0].paper, setting, backbone)
        lines.append([f"{setting}, {backbone}", *(printed.get(key, "") for key in keys)])
        here = [f"{ours[key]}" if key in printed else "" for key in keys]
        lines.append(indented([GridCell(text="ours", emphasis="dim"), *here]))
    columns = [GridColumn("", wrap=20), *(GridColumn(key, right=True, wrap=8) for key in keys)]
    notes = [f"our recipe, each value with its source: bench methods {cells[0].paper} --all"]
    return grid(columns, lines, title=title, notes=notes)


def our_values(method: str, setting: str, backbone: str) -> dict[str, Any]:
    """Return the values of our recipe of a paper's own method."""
    plugin = discover()[method]
    for recipe in read_recipes(plugin.folder, plugin.name).recipes:
        if (recipe.setting, recipe.backbone, recipe.variant) == (setting, backbone, ""):
            return {key: value.value for key, value in recipe.values.items()}
    return {}


def _hyperparameter_objects(cells: Sequence[PrintedHyperparameter]) -> list[dict[str, Any]]:
    """Return an object per cell, with our value."""
    made = []
    for cell in cells:
        ours = our_values(cell.paper, cell.setting, cell.backbone).get(cell.key)
        made.append({**asdict(cell), "value": cell.value, "ours": ours})
    return made
