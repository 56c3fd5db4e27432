"""Scores and averages again, from stored predictions; and whether the gold values beside them are the data's, which bench knows by hash."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.base.errors import BenchError, DataMissing
from bench.base.files import values_sha256
from bench.runs.arrays import read_arrays
from bench.runs.packed import elsewhere_of
from bench.runs.record import AVERAGE, REDUCED, RunRecord, Score
from bench.runs.store import RunsFolder, predictions_name
from bench.score.suites import average, suite, suite_names
from bench.score.suites.from_predictions import GIVEN, rescore
from bench.verify.findings import AGREES, DIFFERS, UNCHECKED, Finding, cell

if TYPE_CHECKING:
    import numpy as np


# --- what bench knows of every data set that it scores without having it: hashes of its gold values and of its files ---


SCHEMA = "bench.given/1"


@dataclass(frozen=True)
class KnownHashes:
    """``given``: suite/task -> array -> hash of its values; suite/task@form where a text form has others. ``data``: suite/task -> text form -> sha256, as records name data."""

    given: Mapping[str, Mapping[str, str]]
    data: Mapping[str, Mapping[str, str]]
    dev: Mapping[str, str]
    """Sets on which checkpoints are selected, and their sha256."""

    def given_of(self, suite: str, task: str, form: str | None) -> Mapping[str, str] | None:
        """Hashes of what no model changes; None for a task that is not known."""
        return self.given.get(f"{suite}/{task}@{form}", self.given.get(f"{suite}/{task}"))


@functools.cache
def known_hashes() -> KnownHashes:
    """From ``given.json``, which ``python tools/make_given.py DATA`` writes."""
    content = json.loads(
        (resources.files("bench.verify") / "given.json").read_text(encoding="utf-8")
    )
    assert content["schema"] == SCHEMA
    return KnownHashes(content["given"], content["data"], content["dev"])


# --- what one run keeps for its scores, and every score from that ---


NO_SUITE = "the suite {} is not here: --plugin FILE gives it"
ABSOLUTE, RELATIVE = (
    1e-6,
    1e-9,
)  # other libraries of linear algebra add in another order; a millionth of a point is no difference
BESIDE = {
    "transfer": ("classes", "dev", "fits", "folds"),
    "transfer-quick": ("classes",),
    "fewshot": ("classes", "fits", "shots"),
    "geometry": ("set", "split", "zero_vectors"),
    "mteb": (
        "dataset",
        "mteb_version",
        "predictions",
        "results",
        "scores",
        "source",
        "subtasks",
        "superseded_by",
        "type",
    ),
}
"""Parts of a detail that say how a task was scored, and that do not follow from predictions. No page prints them."""


HELD_BYTES = 1 << 26
"""Of a run's arrays that are held while it is checked; a run of every suite has some 20 MB. What is beyond is read again."""


class StoredArrays:
    """What lies in one run's folder for the scores of its record; each file is read once."""

    def __init__(self, record: RunRecord, folder: Path) -> None:
        self.scores = [score for score in record.scores if score.task != AVERAGE]
        self.folder = RunsFolder(folder.parent).folder(folder.name)
        self._read: dict[Path, dict[str, np.ndarray] | BenchError] = {}
        self._held = 0

    def path(self, score: Score) -> Path:
        return self.folder / predictions_name(score.task, score.text, score.suite)

    def arrays(self, score: Score) -> dict[str, np.ndarray] | BenchError:
        path = self.path(score)
        if path in self._read:  # two protocols may score one file
            return self._read[path]
        found: dict[str, np.ndarray] | BenchError
        try:
            found = read_arrays(path)
        except DataMissing as error:
            why = f"{self.folder.name} has no predictions of {score.task}: {path}"
            found = DataMissing(why, error.hint)
        except BenchError as error:
            found = error
        self._held += 0 if isinstance(found, BenchError) else sum(a.nbytes for a in found.values())
        if self._held <= HELD_BYTES:
            self._read[path] = found
        return found


def check_scores(
    record: RunRecord, folder: Path, stored: StoredArrays | None = None, *, given: bool = True
) -> Iterator[Finding]:
    """Findings of kinds score, detail, predictions and gold for every task, then average.

    ``stored``: what was read of the run before. ``given``: False where ``check_given`` was called for each score already.
    """
    stored = stored or StoredArrays(record, folder)
    for score in stored.scores:
        arrays = stored.arrays(score)
        if isinstance(arrays, DataMissing) and elsewhere_of(folder) is not None:
            why = "the predictions of this version lie elsewhere and are not here"
            yield Finding("score", cell(score), UNCHECKED, why)
        elif isinstance(arrays, BenchError):
            yield Finding("score", cell(score), DIFFERS, arrays.message)
        else:
            yield _rescored(score, arrays)
            if REDUCED in arrays and score.detail:
                yield Finding(
                    "detail",
                    cell(score),
                    UNCHECKED,
                    "only what the score needs is kept of the predictions",
                )
            if given:
                yield from check_given(score, arrays)
    yield from _averages(record)


def check_given(score: Score, arrays: dict[str, np.ndarray] | BenchError) -> Iterator[Finding]:
    """Whether the arrays are those that were recorded, and their gold values the data's."""
    what = cell(score)
    if isinstance(arrays, BenchError):
        yield Finding("predictions", what, DIFFERS, arrays.message)
        return
    expected = score.sha256_of(arrays)
    if expected is None:
        yield Finding("predictions", what, UNCHECKED, "the record keeps no hash of them")
    elif not _same_hash(expected, arrays):
        yield Finding(
            "predictions", what, DIFFERS, "they are not those that were recorded: another hash"
        )
    else:
        yield Finding("predictions", what, AGREES)
    if arrays:
        yield _gold(score, arrays)


def _same_hash(expected: str, arrays: Mapping[str, np.ndarray]) -> bool:
    try:
        return values_sha256(arrays) == expected
    except ValueError:
        return False


def _rescored(score: Score, arrays: dict[str, np.ndarray]) -> Finding:
    what = cell(score)
    try:
        again = rescore(score.key, arrays, score.metric)
    except BenchError as error:
        return Finding("score", what, DIFFERS, error.message)
    if score.suite not in suite_names():
        return Finding("score", what, UNCHECKED, NO_SUITE.format(score.suite))
    if again is None:
        return Finding(
            "score",
            what,
            UNCHECKED,
            f"{score.metric} of {score.suite} cannot be computed from what it keeps",
        )
    if score.suite != "mteb":  # of mteb's tasks ``rescore`` has asked the metric
        metrics = _metrics(score)
        if not metrics:
            return Finding(
                "score",
                what,
                UNCHECKED,
                f"{score.suite} has no task {score.task} under {score.protocol}",
            )
        if score.metric not in metrics:
            return Finding(
                "score",
                what,
                DIFFERS,
                f"the metric {score.metric} is recorded, {score.suite} has {' or '.join(metrics)}",
            )
    why = ""
    if not close(score.value, again.value):
        why = f"{score.value:.6f} is recorded, its predictions give {again.value:.6f}"
    elif score.n != again.n:
        why = f"{score.n:,} items are recorded, {again.n:,} predictions are there"
    elif score.std is not None and again.std is None:
        why = f"a standard deviation of {score.std} is recorded, the task has none"
    elif again.std is not None and not close(score.std, again.std):
        why = (
            f"a standard deviation of {score.std} is recorded, its predictions give {again.std:.6f}"
        )
    elif REDUCED not in arrays:  # else the score's own arrays; what its detail is of is not kept
        told = {
            key: value
            for key, value in score.detail.items()
            if key not in BESIDE.get(score.suite, ()) or key in again.detail
        }
        why = _first_difference(told, json.loads(json.dumps(again.detail)), "detail") or ""
    return Finding("score", what, DIFFERS if why else AGREES, why)


def _metrics(score: Score) -> list[str]:
    """Those that its suite has for such a task; none where the suite has no such task."""
    found = suite(score.suite)
    now = [
        task.metric
        for task in found.tasks
        if (task.name, task.protocol) == (score.task, score.protocol)
    ]
    if (
        score.protocol in found.earlier
        and known_hashes().given_of(score.suite, score.task, score.text) is not None
    ):
        now += [task.metric for task in found.tasks]
    return list(dict.fromkeys(now))


def close(recorded: Any, again: Any) -> bool:
    """Two numbers that are one, but for the last digits of another machine's arithmetic."""
    if not isinstance(recorded, int | float) or not isinstance(again, int | float):
        return False
    return math.isclose(recorded, again, rel_tol=RELATIVE, abs_tol=ABSOLUTE)


def _first_difference(recorded: Any, again: Any, path: str) -> str | None:
    """Where two details differ first. An older record may say less than the predictions give, and none says more."""
    if isinstance(recorded, dict) and isinstance(again, dict):
        if more := [str(key) for key in recorded if key not in again]:
            return f"{path}.{more[0][:60]} is recorded, its predictions do not give it"
        pairs: Any = [
            (f"{path}.{key}", recorded[key], again[key]) for key in again if key in recorded
        ]
    elif isinstance(recorded, list) and isinstance(again, list) and len(recorded) == len(again):
        pairs = [
            (f"{path}[{i}]", a, b) for i, (a, b) in enumerate(zip(recorded, again, strict=True))
        ]
    else:
        same = close(recorded, again) if isinstance(again, float) else recorded == again
        return (
            None
            if same
            else f"{path}: {str(recorded)[:60]} is recorded, its predictions give {str(again)[:60]}"
        )
    return next((odd for where, a, b in pairs if (odd := _first_difference(a, b, where))), None)


def _gold(score: Score, arrays: Mapping[str, np.ndarray]) -> Finding:
    """Gold values, sub-datasets, draws: what has to be the same for every model."""
    what, expected = cell(score), known_hashes().given_of(score.suite, score.task, score.text)
    if expected is None:
        return Finding(
            "gold",
            what,
            UNCHECKED,
            f"bench does not know those of {'mteb' if score.suite == 'mteb' else 'this set'}",
        )
    for name in GIVEN:
        if name.startswith("all_splits") and name not in arrays:
            continue  # kept only where the other splits were there, too
        if (name in expected) != (name in arrays):
            return Finding(
                "gold",
                what,
                DIFFERS,
                f"the array '{name}' is {'missing' if name in expected else 'not one of this set'}",
            )
        if name in expected and not _same_hash(expected[name], {name: arrays[name]}):
            return Finding("gold", what, DIFFERS, f"the array '{name}' is not the data set's")
    return Finding("gold", what, AGREES)


def _averages(record: RunRecord) -> Iterator[Finding]:
    """Each average from the scores that the record holds, each of which is checked by itself."""
    for score in record.scores:
        if score.task != AVERAGE:
            continue
        if score.suite not in suite_names():
            yield Finding("average", cell(score), UNCHECKED, NO_SUITE.format(score.suite))
        else:
            why = _why_not_the_average(score, record)
            yield Finding("average", cell(score), DIFFERS if why else AGREES, why)


def _why_not_the_average(score: Score, record: RunRecord) -> str:
    """What differs; "" where nothing does."""
    alike = [
        other
        for other in record.scores
        if (other.suite, other.protocol) == (score.suite, score.protocol)
    ]
    if (score.text or "").startswith("other-"):  # any other forms are averaged together
        again = average([other for other in alike if (other.text or "").startswith("other-")])
    else:
        again = average([other for other in alike if other.text == score.text])
    if again is None:
        return "the record lacks a task of which it is the average"
    if not close(score.value, again.value) or score.n != again.n:
        return f"{score.value} is recorded, its tasks give {again.value}"
    if score.metric != again.metric:
        return f"the metric {score.metric} is recorded, its tasks give {again.metric} and none"
    if score.std != again.std:
        return f"a standard deviation of {score.std} is recorded, its tasks give {again.metric} and none"
    return _first_difference(dict(score.detail), again.detail, "detail") or ""
