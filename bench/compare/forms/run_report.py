"""Everything about one run, as facts (a name and a text) and grids: ``bench runs RUN`` and the page
of a run show them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from bench.base.grid import Grid, GridColumn, GridRow, grid, indented
from bench.base.text import format_bytes, format_duration, value_text
from bench.compare.formatting import score
from bench.compare.statistics.rows import by_protocol
from bench.compare.words.names import setting_words
from bench.data.overlap import overlaps_of
from bench.records.curve import curve_series, read_curve
from bench.records.record import RunRecord, Score, is_given_by_user
from bench.records.selection import dev_words
from bench.score.suites import find_metric

NARROWEST = 24
"""Characters of a column of text that can still be read."""
Facts = list[tuple[str, str]]
"""Names and texts."""


def facts_grid(title: str, facts: Facts) -> Grid:
    return grid(("", GridColumn("", wrap=NARROWEST)), facts, title=title)


def run_in_words(record: RunRecord) -> str:
    """Return "promcse with eh, supervised, roberta-large, seed 42"."""
    if record.model_name:
        return f"{record.model_name}, {setting_words(record.setting)}"
    method = f"{record.method} with {record.variant}" if record.variant else record.method
    seed = "any seed" if record.seed is None else f"seed {record.seed}"
    return f"{method}, {setting_words(record.setting)}, {record.backbone_name}, {seed}"


def score_grids(record: RunRecord) -> list[Grid]:
    """Make a grid for each suite and protocol; the sub-datasets of a task are indented below it."""
    names = ("score", "sd", "n", "mean", "wmean", "Pearson")
    columns: list[GridColumn | str] = ["task", *(GridColumn(name, right=True) for name in names)]
    grids = []
    for (suite, protocol), scores in by_protocol(record).items():
        metrics = ", ".join(dict.fromkeys(result.metric for result in scores.values()))
        rows = [row for result in scores.values() for row in _score_rows(result)]
        grids.append(grid(columns, rows, title=f"{suite}: {metrics}, {protocol}"))
    return grids


def _score_rows(result: Score) -> Iterable[GridRow]:
    """Yield the row of a score, then the rows of its parts, indented."""
    detail = result.detail
    places = find_metric(result.suite, result.metric).decimals
    pearson = detail.get("pearson")
    overall = pearson.get("all") if isinstance(pearson, Mapping) else pearson
    cells = [
        result.task,
        score(result.value, places),
        "" if result.std is None else score(result.std, places),
        str(result.n),
    ]
    cells += [_number(value) for value in (detail.get("mean"), detail.get("wmean"), overall)]
    yield indented(cells, levels=0)
    for name, number in result.beside.items():
        yield indented([name, _number(number), *[""] * 5])
    parts = {"all pairs at once": detail.get("pooled")}
    subsets = detail.get("subsets")
    if isinstance(subsets, Mapping):
        parts |= subsets
    parts["all splits (as mteb)"] = detail.get("all_splits")
    for name, part in parts.items():
        if isinstance(part, Mapping):
            value = _number(part.get(result.metric, part.get("spearman")))
            n = str(part["n"]) if isinstance(part.get("n"), int) else ""
            yield indented([name, value, "", n, "", "", _number(part.get("pearson"))])


def recipe_with_sources(record: RunRecord) -> Grid:
    """List every value with its source; those that the command set come first."""
    values = sorted(
        record.recipe.items(), key=lambda item: (not is_given_by_user(item[1].source), item[0])
    )
    rows = []
    for key, value in values:
        sources = [text for text in (value.source, value.note) if text]
        rows.append((key, value_text(value.value), "; ".join(sources)))
    return grid(("value of", "is", GridColumn("from", wrap=NARROWEST)), rows, title="recipe")


def encoder_facts(record: RunRecord) -> str:
    """Return "kind folder, dimension 384, normalised yes, pooling mean" of a ready-made encoder, ""
    for others."""
    return _fact("model", record.provenance.backbone.model)[1]


def training_facts(record: RunRecord, folder: Path | None = None) -> Facts:
    """Return text, steps, the checkpoint, and the ends of the curves in ``folder``; none if nothing
    was trained."""
    facts: Facts = [("trained on", record.provenance.corpus.name or "")]
    done = record.training
    if done is not None:
        rows = "" if done.sentences is None else f", {done.sentences:,} sentences"
        facts.append(("steps", f"{done.steps:,}{rows}"))
        if done.dev_score is None:
            facts.append(("kept", "the last step"))
        else:
            step = "?" if done.best_step is None else f"{done.best_step:,}"
            best = f"step {step}: {done.dev_task or 'dev'} {score(done.dev_score)}"
            facts += [("kept", best), ("chosen on", dev_words(record))]
    curve = [] if folder is None else read_curve(folder)
    for key in ("loss", "dev_score"):
        points = curve_series(curve, key)
        if points:
            ends = f"{score(points[0][1])} to {score(points[-1][1])}"
            facts.append((key.replace("_", " "), ends))
    return [(name, text) for name, text in facts if text]


def cost_facts(record: RunRecord) -> Facts:
    """Return the costs of the run."""
    return _facts(msgspec.to_builtins(record.cost))


def provenance_facts(record: RunRecord) -> Facts:
    """Return the origin of the run; nested facts are on one line."""
    made = msgspec.to_builtins(record.provenance) | {"command": None}
    corpus = {key: value for key, value in made.get("corpus", {}).items() if key != "overlap"}
    return [("fingerprint", record.fingerprint), *_facts(made | {"corpus": corpus})]


def _facts(values: Mapping[str, Any]) -> Facts:
    """Return a name and a text for each field that was recorded."""
    facts = []
    for key, value in values.items():
        if value is None:
            continue
        name, text = _fact(key, value)
        if text:
            facts.append((name, text))
    return facts


def _fact(key: str, value: Any) -> tuple[str, str]:
    """Return ("train time", "13m32s"), ("plugin", "package sentence-bench, sha256 0123456789ab").

    The name of a field says its unit.
    """
    name = key.replace("_", " ")
    if isinstance(value, Mapping):
        return name, ", ".join(" ".join(fact) for fact in _facts(value))
    if isinstance(value, str) and re.fullmatch("[0-9a-f]{40}|[0-9a-f]{64}", value):
        return name, value[:12]
    if isinstance(value, bool):
        return name, "yes" if value else "no"
    if key.endswith("_bytes"):
        return name.removesuffix(" bytes"), format_bytes(value)
    if key.endswith("_seconds"):
        return name.replace(" seconds", " time"), format_duration(value)
    digits = "," if isinstance(value, int) else ",.6g"
    return name, f"{value:{digits}}" if isinstance(value, int | float) else value_text(value)


def _number(value: Any) -> str:
    return score(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def overlap_grid(overlap: Any) -> Grid:
    """List the sentences of evaluation sets that a run's corpus has, too, by task.

    ``overlap``: a record's ``provenance.corpus.overlap``, which may be anything. Tasks without any
    such sentence are named in one last row; there are no rows if nothing was recorded.
    """
    rows = []
    clean: dict[str, None] = {}
    for counts in overlaps_of(overlap):
        shared = counts.exact + counts.near
        if shared == 0:
            clean[counts.task] = None
        elif 0 < shared <= counts.sentences:
            form = f" ({counts.text})" if counts.text else ""
            numbers = [f"{count:,}" for count in (counts.sentences, counts.exact, counts.near)]
            share = f"{100 * shared / counts.sentences:.1f}"
            name = f"{counts.suite}: {counts.task}{form}"
            rows.append((name, *numbers, share, f"{counts.rows:,}"))
    if clean:
        rows.append(("none of " + ", ".join(clean), *[""] * 5))
    names = ("sentences", "the same", "nearly", "%", "rows of the corpus")
    return grid(
        ["task", *(GridColumn(name, right=True) for name in names)],
        rows,
        title="sentences of the evaluation sets that stand in the corpus",
    )
