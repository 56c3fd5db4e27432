"""A run's scores in the forms that others read: the hub's ``.eval_results/*.yaml`` for model pages, and the JSON of Every Eval Ever."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from bench.base.errors import BenchError
from bench.compare.statistics.table import LOWER_IS_BETTER, Cell, Spread, Table
from bench.compare.tables import TableOptions, compare_runs
from bench.runs.record import RunRecord, Score
from bench.runs.store import Run, data_key

HUB, EVERY_EVAL_EVER = "eval-results", "every-eval-ever"
FORMATS = (HUB, EVERY_EVAL_EVER)
SCHEMA_VERSION = "0.3.0"  # of github.com/evaleval/every_eval_ever, eval.schema.json
RANGES = {"spearman": (-100.0, 100.0), "pearson": (-100.0, 100.0), "accuracy": (0.0, 100.0)}
"""Word in the name of a metric -> its least and greatest value."""


def results_text(run: Run, form: str) -> str:
    """The content of a file in one of ``FORMATS``: JSON, which is YAML too. Raises BenchError where no score belongs in it."""
    content = hub_results(run.record) if form == HUB else every_eval_ever(run)
    return json.dumps(content, indent=1, allow_nan=False) + "\n"


def scored_cells(run: Run) -> Iterator[tuple[Table, str, Cell]]:
    """(table, task, cell) of every score of a run, with the interval that ``bench compare`` gives it."""
    for table in compare_runs([run], TableOptions()) if run.scores else ():
        for task, cell in zip(table.columns, table.rows[0].cells, strict=True):
            if cell is not None:
                yield table, task, cell


# --- https://huggingface.co/docs/hub/eval-results ---


def hub_results(record: RunRecord) -> list[dict[str, Any]]:
    """An entry for each score of the suite mteb: the other suites score data under protocols that no data set of the hub has."""
    entries = []
    for score in record.scores:
        source = score.detail.get("dataset")
        if score.suite != "mteb" or not isinstance(source, dict) or "path" not in source:
            continue
        dataset = {"id": source["path"], "task_id": score.task}
        if re.fullmatch("[0-9a-f]{40}", str(source.get("revision"))):
            dataset["revision"] = source["revision"]
        notes = f"{score.metric} x 100, as mteb {score.detail.get('mteb_version')} scores it"
        date = record.provenance.created
        entries.append({"dataset": dataset, "value": score.value, "date": date, "notes": notes})
    if not entries:
        hint = "bench run ... --suite mteb, or --format every-eval-ever"
        raise BenchError(f"{record.run_id} has no score on a data set of the hub", hint)
    return entries


# --- https://github.com/evaleval/every_eval_ever ---


def every_eval_ever(run: Run) -> dict[str, Any]:
    """All scores with their intervals over items, by schema 0.3.0. The same record gives the same bytes."""
    record = run.record
    created = record.provenance.created
    spreads = {
        (t.suite, task, t.protocol, t.text): cell.spread for t, task, cell in scored_cells(run)
    }
    seconds = str(int(datetime.fromisoformat(created).timestamp()))
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"bench/{record.run_id}/{seconds}",
        "evaluation_timestamp": created,
        "retrieved_timestamp": seconds,
        "source_metadata": {
            "source_name": "bench",
            "source_type": "evaluation_run",
            "source_organization_name": "not stated",
            "evaluator_relationship": "other",
            "additional_details": {"fingerprint": record.fingerprint},
        },
        "eval_library": {
            "name": "sentence-bench",
            "version": record.provenance.bench_version or "unknown",
        },
        "model_info": {
            "name": record.label,
            "id": record.evaluated_as or f"bench/{record.run_id}",
            "additional_details": {
                "deployment_type": "self_deployed",
                "model_availability": "unknown",
                "backbone": record.backbone_name,
                "setting": record.setting,
                "seed": str(record.seed),
            },
        },
        "evaluation_results": [
            _result(score, record, spreads.get(score.key)) for score in record.scores
        ],
    }


def _result(score: Score, record: RunRecord, spread: Spread | None) -> dict[str, Any]:
    ranges = (ends for word, ends in RANGES.items() if word in score.metric)
    low, high = next(ranges, (None, None))
    data = record.provenance.data.get(data_key(score.task, score.text, score.suite))
    facts = {"protocol": score.protocol, "text": score.text, "sha256 of the data": data}
    uncertainty: dict[str, Any] = {"num_samples": score.n}
    if spread is not None:
        uncertainty["standard_error"] = {"value": spread.se}
        uncertainty["confidence_interval"] = {
            "lower": spread.low,
            "upper": spread.high,
            "confidence_level": spread.level,
            "method": f"over {spread.covers}",
        }
    return {
        "evaluation_name": f"{score.suite} {score.task}",
        "source_data": {
            "dataset_name": score.task,
            "source_type": "other",
            "additional_details": {key: value for key, value in facts.items() if value},
        },
        "metric_config": {
            "evaluation_description": f"{score.metric}, on the scale that papers print",
            "lower_is_better": score.metric in LOWER_IS_BETTER,
            "score_type": "continuous",
            "min_score": low,
            "max_score": high,
        },
        "score_details": {"score": score.value, "uncertainty": uncertainty},
    }
