"""Scores for the hub's model pages: https://huggingface.co/docs/hub/eval-results"""

from __future__ import annotations

import re
from typing import Any

from bench.base.errors import BenchError
from bench.records.record import RunRecord


def hub_results(record: RunRecord) -> list[dict[str, Any]]:
    """Return an entry for each score of the suite mteb.

    The other suites score data under protocols that no data set of the hub has.
    """
    entries = []
    for score in record.scores:
        source = score.detail.get("dataset")
        if score.suite != "mteb" or not isinstance(source, dict) or "path" not in source:
            continue
        dataset = {"id": source["path"], "task_id": score.task}
        if re.fullmatch("[0-9a-f]{40}", str(source.get("revision"))):
            dataset["revision"] = source["revision"]
        version = score.detail.get("mteb_version")
        entries.append(
            {
                "dataset": dataset,
                "value": score.value,
                "date": record.provenance.created,
                "notes": f"{score.metric} x 100, as mteb {version} scores it",
            }
        )
    if not entries:
        raise BenchError(
            f"{record.run_id} has no score on a data set of the hub",
            "bench run ... --suite mteb, or --format every-eval-ever",
        )
    return entries
