"""Gather the runs of a version, from a runs folder and from submissions, and compute every score
again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bench.base.errors import (
    BenchError,
    DataDamaged,
    RecordDamaged,
    UnknownName,
    one_line,
)
from bench.base.hashes import values_sha256
from bench.base.paths import hide_paths
from bench.base.text import plural
from bench.board.publish.submissions import (
    check_submission,
    read_published_files,
    refuse,
    refuse_array_paths,
)
from bench.board.publish.suites import check_suite_names, keep_suites, leave_out_suites
from bench.board.publish.versions import RUNS
from bench.board.verify.scores import check_hash, check_score, check_stored_average
from bench.compare.senders import published_senders, read_sender, submitter_of
from bench.records.names import RECORD, predictions_name
from bench.records.packed import Packed
from bench.records.record import AVERAGE, REDUCED, RunRecord, Score
from bench.records.run import Run
from bench.records.store import RunsFolder, runs_of_version
from bench.score.suites import reduce_predictions

Report = Callable[[str, int, int], None]
"""Takes (activity, steps done, steps in all)."""
LONGEST = 200
"""Characters of an error that are shown."""
NOTHING_LEFT = "all of its scores are of suites that are left out"


@dataclass
class Gathered:
    """Runs of a version with their published files, and a line for each run that is not in it."""

    runs: list[Run] = field(default_factory=list)
    # run id -> who submitted it
    senders: dict[str, str] = field(default_factory=dict)
    # run id -> path below the version -> content of its record, plan and curve
    files: dict[str, dict[str, bytes]] = field(default_factory=dict)
    predictions: Packed = field(default_factory=Packed)
    # lines for the page
    left_out: list[str] = field(default_factory=list)
    # lines on submissions, for the publisher alone
    refused: list[str] = field(default_factory=list)
    # ids of submitted runs
    submitted: set[str] = field(default_factory=set)
    # suites whose scores and predictions are not published
    without: Collection[str] = ()
    # the records of all runs, unchanged from their folders
    whole: list[RunRecord] = field(default_factory=list)

    def leave_out(self, run: Run, why: str) -> None:
        """Note why a run is not in the version.

        The line on a submission is for the publisher, the line on an own run for the page.
        """
        if run.record.run_id in self.submitted:
            self.refused.append(left_out(run.folder, f"refused: {why}"))
        else:
            self.left_out.append(left_out(run.folder, f"cannot be published: {why}"))

    def add_suites_left_out(self) -> None:
        """Note for each suite that is left out how many runs had scores of it.

        Raises BenchError for a name that is no suite.
        """
        check_suite_names("--leave-out", self.without, self.whole)
        for suite in self.without:
            count = sum(any(score.suite == suite for score in run.scores) for run in self.whole)
            runs = plural(count, "run") if count else "no run has any"
            self.left_out.append(f"suite {suite}: scores and predictions, by --leave-out: {runs}")


def gather(
    runs: Path | None,
    submissions: Path | None = None,
    report: Report = lambda activity, done, of: None,
    published: Mapping[str, str | None] = {},
    leave_out: Collection[str] = (),
) -> Gathered:
    """Gather finished runs with scores that follow from their predictions.

    ``runs``: their folder, also of a version (leaderboards/v6/runs). ``submissions``: also the runs
    in this folder. ``published``: run id -> who submitted it, in the last version. ``leave_out``:
    suites to publish no score of.

    Raises BenchError if there are no runs at all, or if a folder cannot be read.
    """
    gathered = Gathered(without=tuple(dict.fromkeys(leave_out)))
    finished = _finished(RunsFolder(runs), gathered)
    if submissions is not None:
        finished += _submitted(submissions, finished, published, gathered)
    gathered.add_suites_left_out()
    for i, run in enumerate(finished):
        report("scoring again and copying predictions", i, len(finished))
        try:
            gathered.files[run.record.run_id] = _read_verified(run, gathered)
            gathered.runs.append(run)
        except BenchError as error:
            gathered.leave_out(run, error.message)
        except Exception as error:  # a record may be wrong in ways that nobody thought of
            gathered.leave_out(run, one_line(error))
    if not gathered.runs:
        place = RunsFolder(runs).path
        why = f"no finished run in {place} can be published"
        raise BenchError(
            "; ".join([why, *gathered.left_out[-1:]]),
            f"bench run ..., or another folder: {runs_of_version(place) or '--runs DIR'}",
        )
    return gathered


def _finished(store: RunsFolder, gathered: Gathered) -> list[Run]:
    """Return the finished runs of a folder that have scores; each other is noted and left out.

    A run that somebody submitted keeps its sender, as ``bench compare`` shows it.
    """
    senders: Mapping[str, str | None] = {}
    if store.path.name == RUNS:
        senders = published_senders(store.path.absolute().parent)
    runs: list[Run] = []
    for run_id in store.ids():
        folder = store.folder(run_id)
        try:
            if folder.is_symlink():
                raise RecordDamaged("a link, not a folder: publish from the folder it leads to")
            record = store.read(run_id)
        except (RecordDamaged, UnknownName) as error:  # or removed since it was listed
            gathered.left_out.append(left_out(folder, f"damaged: {error.message}"))
            continue
        gathered.whole.append(record)
        shown = leave_out_suites(record, gathered.without)
        if record.status == "finished" and shown.scores:
            runs.append(Run(shown, folder))
            sender = senders.get(record.run_id) or read_sender(folder)
            if sender:
                gathered.senders[record.run_id] = sender
            continue
        why = f"{record.status}: {record.error or 'it has no scores'}"
        if store.worked_on_by(record.run_id):
            why = "in work: a process trains or scores it now"
        elif record.scores and not shown.scores:
            why = NOTHING_LEFT
        gathered.left_out.append(left_out(folder, why))
    return runs


def _submitted(
    submissions: Path,
    finished: Sequence[Run],
    published: Mapping[str, str | None],
    gathered: Gathered,
) -> list[Run]:
    """Return the submitted runs that pass the checks; each other is noted and left out, and changes
    nothing else.

    ``published``: run id -> who submitted it, in the last version. A run that is published already
    is skipped. A run is refused if another run has its id or its fingerprint. It is also refused if
    the board has runs under its sender's name: nobody could say whether they are of one person, and
    it would change their rows.
    """
    if not submissions.is_dir():
        raise BenchError(f"the folder {submissions} does not exist", "--submissions DIR")
    # id or fingerprint -> record
    known: dict[str, RunRecord] = {}
    for run in finished:
        known[run.record.run_id] = run.record
        known[run.record.fingerprint] = run.record
    on_board = (*gathered.senders.values(), *published.values())
    taken = {name.casefold() for name in on_board if name}
    runs: list[Run] = []
    for run, name in _checked(submissions, gathered):
        record = run.record
        shown = leave_out_suites(record, gathered.without)
        same = known.get(record.run_id) or known.get(record.fingerprint)
        sender = published.get(record.run_id)
        why = ""
        if not shown.scores:
            why = NOTHING_LEFT
        elif same is not None and same == keep_suites(record, {s.suite for s in same.scores}):
            continue  # suites of it may have been left out when it was published
        elif same is not None:
            why = f"{same.run_id} has the same id or fingerprint"
        elif sender is None and name.casefold() in taken:
            why = (
                f"the leaderboard has runs by {name} already: choose another name, such as {name} 2"
            )
        if why:
            gathered.refused.append(left_out(run.folder, f"refused: {why}"))
            continue
        gathered.submitted.add(record.run_id)
        gathered.senders[record.run_id] = sender or name
        runs.append(Run(shown, run.folder))
    return runs


def _checked(submissions: Path, gathered: Gathered) -> list[tuple[Run, str]]:
    """Return the submitted runs whose files pass the checks, each with its sender; the others are
    noted as refused."""
    checked = []
    for folder in sorted(submissions.glob("[!.]*")):
        try:
            run = Run(check_submission(folder), folder)
            checked.append((run, submitter_of(folder)))
            gathered.whole.append(run.record)
        except BenchError as error:
            gathered.refused.append(left_out(folder, f"refused: {error.message}"))
    return checked


def left_out(folder: Path, why: str) -> str:
    """Return "simcse-builtin-s42-1a2b3c4d: failed: out of memory", on one line, without the
    publisher's folders."""
    text = why.replace(f"{folder}/", "").replace(str(folder), "its folder")
    return f"{folder.name}: {hide_paths(' '.join(text.split()))[:LONGEST]}"


def _read_verified(run: Run, gathered: Gathered) -> dict[str, bytes]:
    """Compute every score of a run again; return path below the version -> content of its files.

    They are its record, its plan and its curve. The parts of its predictions that scores need are added to
    ``gathered.predictions``. No checkpoint and no vectors are published.

    Raises DataMissing if a score has no predictions; DataDamaged if they are not the recorded ones,
    if a score does not follow from them, or the record changed on disk in the meantime.
    """
    published = read_published_files(run)
    folder = f"{RUNS}/{run.record.run_id}"
    stored: dict[str, Mapping[str, np.ndarray]] = {}
    for score in run.scores:
        if score.task == AVERAGE:
            refuse([check_stored_average(score, run.record)])
            continue
        arrays = run.predictions(score.key)
        refuse_array_paths(score, arrays)
        refuse([check_hash(score, arrays), *check_score(score, arrays)])
        path = f"{folder}/{predictions_name(score.task, score.protocol, score.suite)}"
        stored[path] = _reduced(score, arrays)
    on_disk = json.loads(published.pop(RECORD))
    there = RunRecord.from_json(on_disk)
    if leave_out_suites(there, gathered.without) != run.record:
        raise DataDamaged(f"{run.folder / RECORD}: it changed while the version was made")
    for path, values in stored.items():
        gathered.predictions.add(path, values)
    content = run.record.to_json()
    if there == run.record:
        # as it is on disk: without the fields that later versions added
        content = on_disk
    files = {f"{folder}/{name}": data for name, data in published.items()}
    files[f"{folder}/{RECORD}"] = record_text(content).encode()
    return files


def record_text(content: Mapping[str, Any]) -> str:
    """Return the JSON of a record with a line for each field, recipe value and score.

    Indented to the last value, the records would be a fifth of a version.
    """
    fields = [f"{json.dumps(name)}: {_lines(value)}" for name, value in content.items()]
    return "{\n " + ",\n ".join(fields) + "\n}\n"


def _lines(value: Any) -> str:
    """Return JSON with a line for each entry of an object or an array."""
    if isinstance(value, dict) and value:
        entries = [f"{json.dumps(key)}: {_line(entry)}" for key, entry in value.items()]
        return "{\n  " + ",\n  ".join(entries) + "\n }"
    if isinstance(value, list) and value:
        return "[\n  " + ",\n  ".join(map(_line, value)) + "\n ]"
    return _line(value)


def _line(value: Any) -> str:
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


def _reduced(score: Score, arrays: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """Reduce predictions to the part that the score needs, if the record has the hash of the
    result.

    For a rank correlation that is ranks in 16 bits.
    """
    if score.reduced_sha256 is None or REDUCED in arrays:
        return arrays
    reduced = reduce_predictions(score.key, arrays)
    if reduced is None or values_sha256(reduced) != score.reduced_sha256:
        return arrays
    return reduced
