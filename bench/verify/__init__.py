"""Is a record true? Every score again from stored predictions, every hash again from the files;
without torch and without the model.

from bench.verify import runs_below, verify_run

for folder in runs_below(Path("leaderboards/v4")):
    print(verify_run(folder).differences)

Scores are in ``bench.verify.scores``, the other checks of a run in ``bench.verify.runs``, those of
a version in ``bench.verify.versions``.
"""

from __future__ import annotations

from bench.verify.runs import More, check_folder, verify_run
from bench.verify.versions import (
    check_manifest,
    compare_files,
    fetch_predictions,
    runs_below,
)

__all__ = [
    "More",
    "check_folder",
    "check_manifest",
    "compare_files",
    "fetch_predictions",
    "runs_below",
    "verify_run",
]
