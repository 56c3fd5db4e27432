"""Write a run's scores in the forms that others read."""

from __future__ import annotations

import json
from typing import Any

from bench.export.every_eval_ever import every_eval_ever
from bench.export.hub_results import hub_results
from bench.records.run import Run

HUB = "eval-results"
EVERY_EVAL_EVER = "every-eval-ever"
FORMATS = (HUB, EVERY_EVAL_EVER)


def results_text(run: Run, form: str) -> str:
    """Return the content of a file in one of ``FORMATS``: JSON, which is YAML too.

    Raises BenchError if no score belongs in it.
    """
    content: Any = hub_results(run.record) if form == HUB else every_eval_ever(run)
    return json.dumps(content, indent=1, allow_nan=False) + "\n"
