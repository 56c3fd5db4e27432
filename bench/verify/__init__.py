"""Is a record true? Every score again from stored predictions, every hash again from the files; without torch and without the model.

from bench.verify import runs_below, verify_run

for place in runs_below(Path("leaderboards/v3")):
    print(verify_run(place).differences)
"""

from __future__ import annotations

from bench.verify.findings import AGREES, DIFFERS, UNCHECKED, Finding, RunReport
from bench.verify.identity import check_manifest, fetch_predictions, runs_below, verify_run

__all__ = [
    "AGREES",
    "DIFFERS",
    "UNCHECKED",
    "Finding",
    "RunReport",
    "check_manifest",
    "fetch_predictions",
    "runs_below",
    "verify_run",
]
