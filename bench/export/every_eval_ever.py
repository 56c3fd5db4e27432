"""Scores as the JSON of Every Eval Ever: https://github.com/evaleval/every_eval_ever"""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

from bench.compare.statistics.table import Spread
from bench.export.cells import scored_cells
from bench.records.names import data_key
from bench.records.record import RunRecord, Score
from bench.records.run import Run
from bench.score.metrics.metric import Metric
from bench.score.suites import find_metric

SCHEMA_VERSION = "0.3.0"
"""The version of eval.schema.json in github.com/evaleval/every_eval_ever."""


def every_eval_ever(run: Run) -> dict[str, Any]:
    """Return all scores with their intervals over items, by schema 0.3.0.

    The same record gives the same bytes.
    """
    record = run.record
    created = record.provenance.created
    spreads = {}
    for table, task, cell in scored_cells(run):
        spreads[table.suite, task, table.protocol] = cell.spread
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
    """Return the entry of one score."""
    metric = find_metric(score.suite, score.metric)
    low, high = _range_of(metric)
    key = data_key(score.task, score.protocol, score.suite)
    facts = {
        "protocol": score.protocol,
        "sha256 of the data": record.provenance.data.get(key),
    }
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
            "lower_is_better": not metric.higher_is_better,
            "score_type": "continuous",
            "min_score": low,
            "max_score": high,
        },
        "score_details": {"score": score.value, "uncertainty": uncertainty},
    }


def _range_of(metric: Metric) -> tuple[float | None, float | None]:
    """Return the least and the greatest value of a metric; None for an end that is not known."""
    low, high = metric.bounds
    return (low if math.isfinite(low) else None, high if math.isfinite(high) else None)
