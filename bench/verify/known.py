"""What bench knows of every data set that it scores without having it: hashes of its gold values and of its files."""

from __future__ import annotations

import functools
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.runs.record import RunRecord

SCHEMA = "bench.given/1"


@dataclass(frozen=True)
class Known:
    """``given``: suite/task -> array -> hash of its values; suite/task@form where a text form has others. ``data``: suite/task -> text form -> sha256, as records name data."""

    given: Mapping[str, Mapping[str, str]]
    data: Mapping[str, Mapping[str, str]]
    dev: Mapping[str, str]
    """Sets on which checkpoints are selected, and their sha256."""
    dev_pairs: Mapping[str, Mapping[str, int]]
    """Of STS-B dev: sets of the suite sts, with blanks between -> pairs of it that those, and no other, have as test pairs."""

    def given_of(self, suite: str, task: str, form: str | None) -> Mapping[str, str] | None:
        """Hashes of what no model changes; None for a task that is not known."""
        return self.given.get(f"{suite}/{task}@{form}", self.given.get(f"{suite}/{task}"))


@functools.cache
def known() -> Known:
    """From ``given.json``, which ``python -m bench.verify.make_given DATA`` writes."""
    content = json.loads((resources.files("bench.verify") / "given.json").read_text(encoding="utf-8"))
    assert content["schema"] == SCHEMA
    return Known(content["given"], content["data"], content["dev"], content["dev_pairs"])


STSB_DEV, CLEAN_DEV = "STS-B dev", "sts-dev-clean"


def dev_test_pairs(name: str, sha256: str | None, tasks: Collection[str]) -> tuple[int, int] | None:
    """(pairs of a selection set that are test pairs of one of these sets of the suite sts, pairs); None where it is not known.

    A pair is told by its letters and digits, whichever sentence comes first.
    """
    shas = {sha: what.partition(",")[0] for what, sha in known().dev.items()}
    if sha256 is None or shas.get(sha256) != name or name not in known().dev_pairs:
        return None
    counts = known().dev_pairs[name]
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
