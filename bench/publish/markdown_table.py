"""A board's table as Markdown: one line a row, with its grade, and each seed linked to the record behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.pages.addresses import link, method_page, run_file
from bench.publish.board import PublishedRun
from bench.publish.grades import weakest
from bench.statistics.table import Cell, Row, Table
from bench.tables.lines import COSTS, SIGNS, Line, costs, has_costs, legend, sign_name, under
from bench.tables.words import has_ranks, markdown, rank_words, score, spread, variant_words

SEEDS = 10  # of a row that are linked; the list of runs has all


def table(shown: Table, runs: Mapping[str, PublishedRun], *, pages: bool) -> str:
    """The table, then what its signs mean and what a reader must know. ``pages``: method names lead to their pages."""
    before = [*(["rank"] if has_ranks(shown) else []), "method"]
    after = [*(COSTS if has_costs(shown) else ()), "records by seed", "grade"]
    heading = [*before, *shown.columns, *after]
    aligned = [":--" if name in ("method", *after[-2:]) else "--:" for name in heading]
    lines = [line([markdown(name) for name in heading]), line(aligned)]
    for row in shown.rows:
        lines.append(line(_cells(row, shown, runs, pages)))
        lines += [_printed(one, len(before) - 1, len(after)) for one in under(row, shown) if not one.label.startswith("less ")]
    notes = [f"<sup>{i}</sup> {markdown(note, limit=None)}" for i, note in enumerate(shown.footnotes, 1)]
    notes += [markdown(note, limit=None) for note in (*shown.notes, *legend(shown, SIGNS))]
    notes += ["**best**, <u>second</u>"] if len(shown.rows) > 2 else ["**best**"] if len(shown.rows) > 1 else []
    return "\n".join([*lines, "", *(f"- {note}" for note in notes)])


def line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cells(row: Row, shown: Table, runs: Mapping[str, PublishedRun], pages: bool) -> list[str]:
    beside = variant_words(row, shown)
    name = f"[{markdown(row.method)}]({link(method_page(row.method))})" if pages else markdown(row.method)
    marks = "".join(f"<sup>{number + 1}</sup>" for number in row.footnotes)
    first = [rank_words(row)] if has_ranks(shown) else []
    return [
        *first, name + (f" ({markdown(beside)})" if beside else "") + (" *baseline*" if row.is_baseline else "") + marks,
        *(_number(cell, primary=task == shown.head) for task, cell in zip(shown.columns, row.cells, strict=True)),
        *(costs(row.cost) if has_costs(shown) else ()), _records(row, runs),
        markdown(weakest(runs[run].grade for run in row.runs)),
    ]  # fmt: skip


def _number(cell: Cell | None, *, primary: bool) -> str:
    """ "**76.25** ± 0.31 ▲" """
    if cell is None:
        return ""
    mean = {"best": "**{}**", "second": "<u>{}</u>", "": "{}"}[cell.mark].format(score(cell.mean, cell.decimals))
    value = spread(cell)
    sign = sign_name(cell, primary=primary)
    return mean + ("" if value is None else f" ± {score(value, cell.decimals)}") + (f" {SIGNS[sign]}" if sign else "")


def _records(row: Row, runs: Mapping[str, PublishedRun]) -> str:
    links = [
        f"[{'any' if seed is None else seed}]({link(run_file(run, 'run.json'), version=runs[run].held_by)})"
        for run, seed in list(zip(row.runs, row.seeds, strict=True))[:SEEDS]
    ]
    return " ".join(links) + (f" and {len(row.runs) - SEEDS} more" if len(row.runs) > SEEDS else "")


def _printed(one: Line, before: int, after: int) -> str:
    """A paper's numbers under the row that they belong to."""
    entries = [entry.text + (" " + markdown(SIGNS[entry.sign]) if entry.sign else "") for entry in one.entries]
    return line([*[""] * before, f"*{markdown(one.label)}*", *entries, *[""] * after])
