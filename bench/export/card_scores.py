"""The scores of a model card: each suite's table with an interval a task, and how far other seeds of the same recipe lie apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bench.errors import BenchError
from bench.runs import RunsFolder
from bench.runs.predictions import Run, predicted
from bench.statistics.grouping import AVERAGE
from bench.statistics.summary import DECIMALS, summarise
from bench.tables.words import markdown, metric_words, score

if TYPE_CHECKING:
    from bench.runs import RunRecord, Score
    from bench.trained_run import TrainedRun


def tables(run: TrainedRun) -> list[str]:
    """One Markdown table for each suite, protocol and text form."""
    record, store = run.record, RunsFolder(run.folder.parent)
    seeds = of_all_seeds(record, store)
    made = []
    for key in dict.fromkeys((s.suite, s.protocol, s.text) for s in record.scores):
        scores = [s for s in record.scores if (s.suite, s.protocol, s.text) == key]
        intervals = [_interval((record, run.folder), one) for one in scores]
        spread = [seeds.get((*key, one.task)) for one in scores]
        made.append(_table(scores, intervals, spread))
    return made or ["This run has no scores."]


def _table(scores: Sequence[Score], intervals: Sequence[tuple[float, float] | None], spread: Sequence[str | None]) -> str:
    heading, align = ["task", "score", "items"], [":--", "--:", "--:"]
    if any(intervals):
        heading, align = [*heading, "95 % interval"], [*align, "--:"]
    if any(spread):
        heading, align = [*heading, "all seeds"], [*align, "--:"]
    rows = [heading, align]
    for one, interval, seeds in zip(scores, intervals, spread, strict=True):
        row = [markdown(one.task), score(one.value, DECIMALS.get(one.metric, 2)), f"{one.n:,}"]
        if any(intervals):
            row.append(f"{interval[0]:.2f} to {interval[1]:.2f}" if interval else "")
        if any(spread):
            row.append(seeds or "")
        rows.append(row)
    first = scores[0]
    form = f", {markdown(first.text)} text" if first.text else ""
    metrics = ", ".join(dict.fromkeys(metric_words(one.metric) for one in scores))
    title = f"**{markdown(first.suite)}** ({metrics}; {markdown(first.protocol)}{form})"
    notes = []
    if any(intervals):
        notes.append("Interval: of this one run, for other items; how far other seeds lie apart is not in it.")
    if any(spread):
        notes.append("All seeds: mean ± standard deviation over the runs that differ in nothing but the seed.")
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([title, "", *lines, *(f"\n{note}" for note in notes)])


def _interval(run: Run, one: Score) -> tuple[float, float] | None:
    """Only where the stored predictions are of a kind that has statistics."""
    from bench.statistics.intervals import interval

    if one.task == AVERAGE:
        return None
    try:
        found = interval(predicted([run], one.key))
    except (BenchError, ValueError):
        return None
    return found.low, found.high


def of_all_seeds(record: RunRecord, store: RunsFolder) -> dict[tuple[Any, ...], str]:
    """(suite, protocol, text, task) -> "61.18 ± 0.35 (3)", where more runs of the same row are in the folder."""
    records, _ = store.records()
    alike = [one for one in records if (one.method, one.variant, one.setting, one.backbone)
             == (record.method, record.variant, record.setting, record.backbone)]  # fmt: skip
    if record.run_id not in {one.run_id for one in alike}:
        return {}
    found = {}
    for table in summarise(alike):
        for row in table.rows:
            if record.run_id in row.runs and len(row.runs) > 1:
                for task, cell in zip(table.columns, row.cells, strict=True):
                    if cell is not None and cell.sd is not None:
                        text = f"{score(cell.mean, cell.decimals)} ± {score(cell.sd, cell.decimals)} ({len(cell.values)})"
                        found[table.suite, table.protocol, table.text, task] = text
    return found


def model_index(record: RunRecord) -> list[dict[str, Any]]:
    """The scores as the hub reads them."""
    results = [
        {
            "task": {"type": "sentence-similarity" if one.metric == "spearman" else "feature-extraction"},
            "dataset": {"name": f"{one.task}, {one.protocol}" + (f", {one.text}" if one.text else ""), "type": one.suite},
            "metrics": [{"type": one.metric, "value": round(one.value, 4), "name": one.metric}],
        }
        for one in record.scores
        if one.task != AVERAGE
    ]
    return [{"name": record.run_id, "results": results}] if results else []
