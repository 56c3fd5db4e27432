"""Check that a record is true: compute every score again from stored predictions, and every hash
again from the files, without torch and without the model.

from bench.board.verify import runs_below, verify_run

for folder in runs_below(Path("leaderboards/v6")):
    print(verify_run(folder).differences)

``bench.board.verify.scores`` checks scores, ``bench.board.verify.runs`` the rest of a run,
``bench.board.verify.versions`` the files of a version, ``bench.board.verify.tables`` its tables.
"""

from __future__ import annotations

from bench.board.verify.runs import verify_run
from bench.board.verify.versions import check_manifest, runs_below

__all__ = ["check_manifest", "runs_below", "verify_run"]
