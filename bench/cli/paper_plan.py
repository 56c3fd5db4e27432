"""Lay out the paper's side of ``bench run --paper``: the printed values of the table, the paper's
hyperparameters next to ours, and the rows that are not run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bench.base.grid import Grid, GridColumn, grid
from bench.cli.plan_rows import PlanRow
from bench.papers import (
    PaperPart,
    PrintedHyperparameter,
    ReferenceResult,
    RunTerms,
    find_checkpoint,
    hyperparameters,
    meaning,
    printed_names,
    results,
    rows,
    rows_of_run,
)
from bench.records.record import is_given_by_user
from bench.run.planned import PlannedRun


def with_printed_rows(part: PaperPart, plan: Sequence[PlanRow]) -> list[PlanRow]:
    """Return the rows of a plan with the rows of a printed table that they make again."""
    printed = rows(results(paper=part.paper, table=part.short))
    made = []
    for row in plan:
        run = row.first
        terms = RunTerms(run.method, run.setting, run.backbone.name, run.variant, dict(run.recipe))
        values = run.recipe.values_with_source()
        changed = {key for key in values if is_given_by_user(values[key].source)}
        made.append(replace(row, printed=rows_of_run(printed, terms, changed)))
    return made


def printed_text(planned: PlanRow) -> str:
    """Write the printed value of a run: "81.81", or "alignment 0.160, uniformity -2.401"."""
    shown: list[ReferenceResult] = []
    for row in planned.printed:
        shown += [row.average] if row.average is not None else row.cells
    texts = {cell.task: cell.shown for cell in reversed(shown)}
    if len(texts) == 1:
        return next(iter(texts.values()))
    return ", ".join(f"{task} {text}" for task, text in reversed(texts.items()))


def stand_in_note(plan: Sequence[PlanRow]) -> str:
    """Say which backbone replaces the table's; "" if none does."""
    instead: dict[str, None] = {}
    for row in plan:
        run = row.first
        if find_checkpoint(run.backbone.name) is not None:
            continue
        printed_on = {printed.first.backbone for printed in row.printed}
        if printed_on and printed_on.isdisjoint(printed_names(run.backbone.name)):
            instead[run.backbone.title or run.backbone.name] = None
    if not instead:
        return ""
    return f"{', '.join(instead)} stands in: its scores are not compared with the published ones"


def hyperparameters_of(run: PlannedRun) -> tuple[PrintedHyperparameter, ...]:
    """Return the values that a method's own paper prints for a run's setting and backbone."""
    names = printed_names(run.backbone.name)
    return tuple(
        cell
        for cell in hyperparameters()
        if (cell.paper, cell.setting) == (run.method, run.setting) and cell.backbone in names
    )


def hyperparameter_grid(plan: Sequence[PlanRow]) -> Grid:
    """Lay out the printed hyperparameters of each row next to ours, with the source of ours."""
    lines = []
    for number, row in enumerate(plan, 1):
        values = row.first.recipe.values_with_source()
        for cell in hyperparameters_of(row.first):
            ours = values[cell.key]
            same = "" if ours.value == cell.value else "differs"
            first_source = ours.source.partition("; ")[0]
            where = f"{cell.paper}:{cell.table}"
            text = json.dumps(ours.value)
            lines.append((str(number), cell.key, cell.printed, where, text, same, first_source))
    columns = (
        "",
        "hyperparameter",
        GridColumn("paper", right=True),
        GridColumn("published in", drop=1),
        GridColumn("ours", right=True),
        "",
        GridColumn("ours from", wrap=20, drop=2),
    )
    return grid(columns, lines, title="Hyperparameters: the paper's beside ours")


def rows_left_out(part: PaperPart) -> list[tuple[str, str]]:
    """Return the labels of printed rows that no run of the plan makes again, and why."""
    labels: dict[str, dict[str, None]] = {}
    for row in rows(results(paper=part.paper, table=part.short)):
        first = row.first
        means = meaning(first.method, first.variant, first.setting, first.backbone)
        if means.why_not and not part.short.startswith("README"):
            labels.setdefault(means.why_not, {})[first.label] = None
    return [(", ".join(named), why) for why, named in labels.items()]


def open_questions(part: PaperPart, plan: Sequence[PlanRow]) -> list[str]:
    """Return the points that the paper leaves open in a plan's runs, and how we settle them."""
    found = dict.fromkeys([part.open] if part.open else [])
    for row in plan:
        for printed in row.printed:
            first = printed.first
            means = meaning(first.method, first.variant, first.setting, first.backbone)
            if means.doubt:
                found[means.doubt] = None
    return list(found)


def paper_object(part: PaperPart, planned: PlanRow) -> dict[str, Any]:
    """Return the printed values and hyperparameters of a row's runs, for JSON."""
    run = planned.first
    values = run.recipe.values_with_source()
    printed = []
    for row in planned.printed:
        for cell in row.cells:
            names = {"label": cell.label, "backbone": cell.backbone, "task": cell.task}
            printed.append({**names, "value": cell.value, "std": cell.std, "runs": cell.runs})
    beside = []
    for one in hyperparameters_of(run):
        ours = values[one.key]
        where = {"key": one.key, "table": f"{one.paper}:{one.table}", "printed": one.value}
        beside.append({**where, "ours": ours.value, "source": ours.source})
    return {"table": part.name, "printed": printed, "hyperparameters": beside}
