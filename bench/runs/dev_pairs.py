"""How many of the pairs on which a checkpoint was chosen are test pairs of what is scored; told from hashes alone, without the data."""

from __future__ import annotations

import functools
import json
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bench.runs.record import RunRecord

STSB_DEV, CLEAN_DEV = "STS-B dev", "sts-dev-clean"


def dev_test_pairs(name: str, sha256: str | None, tasks: Collection[str]) -> tuple[int, int] | None:
    """(pairs of a selection set that are test pairs of one of these sets of the suite sts, pairs); None where it is not known.

    A pair is told by its letters and digits, whichever sentence comes first.
    """
    content = _given()
    shas = {sha: what.partition(",")[0] for what, sha in content["dev"].items()}
    if sha256 is None or shas.get(sha256) != name or name not in content["dev_pairs"]:
        return None
    counts = content["dev_pairs"][name]
    return sum(n for sets, n in counts.items() if set(sets.split()) & set(tasks)), sum(counts.values())


def dev_words(record: RunRecord) -> str:
    """How many of the pairs on which a checkpoint was chosen are scored test pairs, in words; "" where none was chosen, or no set of the
    suite sts was scored."""
    done = record.training
    tasks = {score.task for score in record.scores if score.suite == "sts"}
    if done is None or done.dev_score is None or not tasks:
        return ""
    sha256 = (record.provenance.determines or {}).get("dev")
    found = dev_test_pairs(done.dev_task or "", sha256 if isinstance(sha256, str) else None, tasks)
    if found is None:
        return f"how many pairs of {done.dev_task or 'the selection set'} are test pairs of the scored sets is not known"
    scored, pairs = found
    if not scored:
        return f"none of the {pairs:,} pairs of {done.dev_task} is a test pair of the scored sets"
    return f"{scored:,} of the {pairs:,} pairs of {done.dev_task} are test pairs of the scored sets"


@functools.cache
def _given() -> dict[str, Any]:
    """Its "dev" and "dev_pairs": of a selection set, sets of the suite sts with blanks between -> pairs that those, and no other, test.

    Read by its path: the package that it lies in takes numpy to import.
    """
    return dict(json.loads((Path(__file__).parents[1] / "verify" / "given.json").read_bytes()))
