"""Everything about one run, as facts (a name and a text) and Grids: what ``bench runs RUN`` prints and the page of a run shows; and what
verify found of runs and versions.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench.base.text import duration, size, value_text
from bench.compare.formatting import score, setting_words
from bench.compare.statistics.table import DECIMALS
from bench.data.overlap import overlaps_of
from bench.records.record import RunRecord, Score, dev_words, is_given_by_user
from bench.records.store import read_curve, series
from bench.show.grid import Column, Grid, grid
from bench.verify.findings import KINDS, RunReport
from bench.verify.scores import UNCHECKED

NARROWEST = 24  # characters of a column of text that can still be read
Facts = list[tuple[str, str]]


def facts_grid(title: str, facts: Facts) -> Grid:
    return grid(("", Column("", wrap=NARROWEST)), facts, title=title)


def what(record: RunRecord) -> str:
    """ "promcse with eh, supervised, roberta-large, seed 42" """
    if record.model_name:
        return f"{record.model_name}, {setting_words(record.setting)}"
    method = f"{record.method} with {record.variant}" if record.variant else record.method
    seed = "any seed" if record.seed is None else f"seed {record.seed}"
    return f"{method}, {setting_words(record.setting)}, {record.backbone_name}, {seed}"


# --- scores ---


def by_form(record: RunRecord) -> dict[tuple[str, str, str | None], list[Score]]:
    """(suite, protocol, text form) -> the scores of its tasks, in the record's order."""
    forms: dict[tuple[str, str, str | None], list[Score]] = {}
    for result in record.scores:
        forms.setdefault((result.suite, result.protocol, result.text), []).append(result)
    return forms


def score_grids(record: RunRecord) -> list[Grid]:
    """One for each suite, protocol and text form; the sub-datasets of a task stand indented below it."""
    return [
        grid(
            [
                "task",
                *(
                    Column(name, right=True)
                    for name in ("score", "sd", "n", "mean", "wmean", "Pearson")
                ),
            ],
            [row for result in scores for row in _score_rows(result)],
            title=f"{suite}: {', '.join(dict.fromkeys(result.metric for result in scores))}, "
            f"{protocol}{f' ({text})' if text else ''}",
        )
        for (suite, protocol, text), scores in by_form(record).items()
    ]


def _score_rows(result: Score) -> Iterable[tuple[str, ...]]:
    detail, places = result.detail, DECIMALS.get(result.metric, 2)
    pearson, subsets = detail.get("pearson"), detail.get("subsets")
    overall = pearson.get("all") if isinstance(pearson, Mapping) else pearson
    yield (
        result.task,
        score(result.value, places),
        "" if result.std is None else score(result.std, places),
        str(result.n),
        *(_number(value) for value in (detail.get("mean"), detail.get("wmean"), overall)),
    )
    parts = {
        "all pairs at once": detail.get("pooled"),
        **(subsets if isinstance(subsets, Mapping) else {}),
        "all splits (as mteb)": detail.get("all_splits"),
    }
    for name, part in parts.items():
        if isinstance(part, Mapping):
            value = _number(part.get(result.metric, part.get("spearman")))
            yield (
                f"  {name}",
                value,
                "",
                str(part["n"]) if isinstance(part.get("n"), int) else "",
                "",
                "",
                _number(part.get("pearson")),
            )


# --- recipe, training, cost, provenance, files ---


def recipe(record: RunRecord) -> Grid:
    """Every value with its source; those that the command set come first."""
    return grid(
        ("value of", "is", Column("from", wrap=NARROWEST)),
        [
            (key, value_text(value.value), "; ".join(filter(None, (value.source, value.note))))
            for key, value in sorted(
                record.recipe.items(),
                key=lambda item: (not is_given_by_user(item[1].source), item[0]),
            )
        ],
        title="recipe",
    )


def model(record: RunRecord) -> str:
    """What is recorded of a finished encoder: "kind folder, dimension 384, normalised yes, pooling mean"; "" of all others."""
    return _fact("model", record.provenance.backbone.model)[1]


def training(record: RunRecord, folder: Path | None = None) -> Facts:
    """Steps, the checkpoint, and where the curves in ``folder`` begin and end; none for what is not trained."""
    facts: Facts = []
    if (done := record.training) is not None:
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
        if points := series(curve, key):
            facts.append(
                (key.replace("_", " "), f"{score(points[0][1])} to {score(points[-1][1])}")
            )
    return [(name, text) for name, text in facts if text]


def cost(record: RunRecord) -> Facts:
    return _facts(msgspec.to_builtins(record.cost))


def provenance(record: RunRecord) -> Facts:
    """Where the run comes from; what is nested stands on one line."""
    made = msgspec.to_builtins(record.provenance) | {"command": None}
    corpus = {key: value for key, value in made.get("corpus", {}).items() if key != "overlap"}
    return [("fingerprint", record.fingerprint), *_facts(made | {"corpus": corpus})]


def _facts(values: Mapping[str, Any]) -> Facts:
    """A name and a text for each field that was recorded."""
    return [
        fact
        for key, value in values.items()
        if value is not None and (fact := _fact(key, value))[1]
    ]


def _fact(key: str, value: Any) -> tuple[str, str]:
    """("train time", "13m32s"), ("plugin", "package sentence-bench, sha256 0123456789ab"): the name of a field says its unit."""
    name = key.replace("_", " ")
    if isinstance(value, Mapping):
        return name, ", ".join(" ".join(fact) for fact in _facts(value))
    if isinstance(value, str) and re.fullmatch("[0-9a-f]{40}|[0-9a-f]{64}", value):
        return name, value[:12]
    if isinstance(value, bool):
        return name, "yes" if value else "no"
    if key.endswith("_bytes"):
        return name.removesuffix(" bytes"), size(value)
    if key.endswith("_seconds"):
        return name.replace(" seconds", " time"), duration(value)
    digits = "," if isinstance(value, int) else ",.6g"
    return name, f"{value:{digits}}" if isinstance(value, int | float) else value_text(value)


def _number(value: Any) -> str:
    return score(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


# --- sentences of the evaluation sets that stand in a run's corpus ---


def overlap_grid(overlap: Any) -> Grid:
    """Of what a record stores as ``provenance.corpus.overlap``, which may be anything. Tasks without any such sentence are named
    in one last row; no rows where nothing was recorded."""
    counts = overlaps_of(overlap)
    rows = [
        (
            f"{one.suite}: {one.task}{f' ({one.text})' if one.text else ''}",
            *(f"{count:,}" for count in (one.sentences, one.exact, one.near)),
            f"{100 * (one.exact + one.near) / one.sentences:.1f}",
            f"{one.rows:,}",
        )
        for one in counts
        if 0 < one.exact + one.near <= one.sentences
    ]
    if clean := dict.fromkeys(one.task for one in counts if one.exact + one.near == 0):
        rows.append(("none of " + ", ".join(clean), *[""] * 5))
    return grid(
        [
            "task",
            *(
                Column(name, right=True)
                for name in ("sentences", "the same", "nearly", "%", "rows of the corpus")
            ),
        ],
        rows,
        title="sentences of the evaluation sets that stand in the corpus",
    )


# --- what verify found ---


def report_grids(reports: Sequence[RunReport]) -> Iterator[Grid]:
    """How many checks agree in each run; what differs and which scores could not be computed; what else was not checked."""
    yield grid(
        [
            Column("run", wrap=30),
            "result",
            *(Column(kind, right=True, drop=i) for i, kind in enumerate(KINDS, 1)),
        ],
        [
            [report.name, _result(report), *(f"{report.count(kind) or ''}" for kind in KINDS)]
            for report in reports
        ],
    )
    wrong = [
        (report.name, finding.kind, finding.what, finding.why)
        for report in reports
        for finding in [*report.differences, *report.select(UNCHECKED, "score")]
    ]
    if wrong:
        yield grid(
            ["run", "check", Column("of", wrap=16), Column("why", wrap=24)],
            wrong,
            title="Differs, or cannot be computed",
        )
    unchecked = Counter(
        (finding.kind, finding.why)
        for report in reports
        for finding in report.unchecked
        if finding.kind != "score"
    )
    if unchecked:
        yield grid(
            ["check", Column("times", right=True), Column("why", wrap=24)],
            [(kind, f"{count:,}", why) for (kind, why), count in sorted(unchecked.items())],
            title="Not checked",
        )


def _result(report: RunReport) -> str:
    if report.differences:
        return "differs"
    return "agrees" if (report.count() and not report.count("score", UNCHECKED)) else "not checked"
