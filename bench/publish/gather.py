"""Which runs a version has: those of a runs folder and those that others submitted, after every score was computed again; and what is left
out.

A submitted run is a folder ``leaderboards/submissions/ID/``:

    run.json                  the record
    submitted_by.txt          who made it, on one line, as the board shows it
    predictions/STS12.npz     what the model said of every item; predictions/mteb/... for tasks of mteb
    curve.jsonl               the training curve; may be missing

Nothing in it is executed or unpickled. Names and sizes are checked before a file is read, shapes before anything is computed; the rest is
what ``bench verify`` checks of any run.
"""

from __future__ import annotations

import contextlib
import inspect
import re
import zipfile
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from bench.base.errors import (
    BenchError,
    DataDamaged,
    DataMissing,
    RecordDamaged,
    UnknownName,
    one_line,
    printable,
)
from bench.base.files import values_sha256
from bench.base.reading import CURVE_BYTES, RECORD_BYTES, read_plain_file
from bench.board.board import Board, MethodDescription
from bench.compare.senders import LONGEST_NAME, SENDER_FILE
from bench.data.sets import DataFolder
from bench.publish.versions import RUNS, Version, read_version
from bench.run.plugins import Plugin, discover
from bench.run.recipes import RecipeFile
from bench.run.recipes import read as read_recipes
from bench.runs.arrays import Packed
from bench.runs.record import AVERAGE, REDUCED, RunRecord, Score
from bench.runs.searches import SUMMARY, Search, read_search, search_of
from bench.runs.store import CURVE, RECORD, Run, RunsFolder, predictions_name, read_record
from bench.score.suites import reduce_predictions
from bench.verify import verify_run
from bench.verify.scores import DIFFERS, UNCHECKED, Finding, check_average, check_hash, check_score

Report = Callable[[str, int, int], None]
"""(what is being done, steps done, steps in all)"""
LONGEST = 200  # characters of an error that are shown


@dataclass
class Gathered:
    """Runs of a version with what is published of them, and one line for each that is not in it."""

    runs: list[Run] = field(default_factory=list)
    senders: dict[str, str] = field(default_factory=dict)  # run id -> who submitted it
    files: dict[str, dict[str, bytes]] = field(default_factory=dict)
    """Run id -> path below the version -> content of its record and curve."""
    predictions: Packed = field(default_factory=Packed)
    left_out: list[str] = field(default_factory=list)  # for the page
    refused: list[str] = field(default_factory=list)  # submissions, for the publisher alone


def gather(
    runs: Path | None,
    submissions: Path | None = None,
    data: DataFolder | None = None,
    report: Report = lambda activity, done, of: None,
) -> Gathered:
    """All finished runs in the folder ``runs``, which may be that of a version (leaderboards/v4/runs), and those in ``submissions``, whose
    scores follow from their predictions.

    Raises BenchError where there are none at all, or where a folder cannot be read.
    """
    gathered = Gathered()
    finished = _finished(RunsFolder(runs), gathered)
    if submissions is not None:
        finished += _submitted(submissions, data, finished, gathered)
    for i, run in enumerate(finished):
        report("scoring again and copying predictions", i, len(finished))
        try:
            gathered.files[run.record.run_id] = _read_verified(run, gathered.predictions)
            gathered.runs.append(run)
        except (DataMissing, DataDamaged) as error:
            gathered.left_out.append(left_out(run.folder, f"cannot be published: {error.message}"))
    if not gathered.runs:
        why = f"no finished run in {RunsFolder(runs).path} can be published"
        raise BenchError(
            "; ".join([why, *gathered.left_out[-1:]]),
            "bench run ..., or another folder: --runs DIR",
        )
    return gathered


def _finished(store: RunsFolder, gathered: Gathered) -> list[Run]:
    above = store.path.absolute().parent
    is_version = store.path.name == RUNS and (above / "tables.json").is_file()
    senders = read_version(above).senders if is_version else {}
    runs = []
    for folder in map(store.folder, store.ids()):
        try:
            record = store.read(folder.name)
        except (RecordDamaged, UnknownName) as error:  # or removed since it was listed
            gathered.left_out.append(left_out(folder, f"damaged: {error.message}"))
            continue
        if record.status == "finished" and record.scores:
            runs.append(Run(record, folder))
            gathered.senders |= {record.run_id: by} if (by := senders.get(record.run_id)) else {}
        else:
            why = f"{record.status}: {record.error or 'it has no scores'}"
            if store.worked_on_by(record.run_id):
                why = "in work: a process trains or scores it now"
            gathered.left_out.append(left_out(folder, why))
    return runs


def _submitted(
    submissions: Path, data: DataFolder | None, finished: Sequence[Run], gathered: Gathered
) -> list[Run]:
    """One that is published already is skipped; one with the id or the fingerprint of another run is refused."""
    if not submissions.is_dir():
        raise BenchError(f"the folder {submissions} does not exist", "--submissions DIR")
    runs: list[Run] = []
    known = {
        name: run.record for run in finished for name in (run.record.run_id, run.record.fingerprint)
    }
    for folder in sorted(submissions.glob("[!.]*")):
        try:
            record = check_submission(folder, data)
            names = (record.run_id, record.fingerprint)
            same = [known[name] for name in names if name in known]
            if not same:
                gathered.senders[record.run_id] = sender_of(folder)
                runs.append(Run(record, folder))
                known |= dict.fromkeys(names, record)
            elif same[0] != record:
                raise BenchError(f"{same[0].run_id} has the same id or fingerprint")
        except BenchError as error:
            gathered.refused.append(left_out(folder, f"refused: {error.message}"))
    return runs


def left_out(folder: Path, why: str) -> str:
    """ "simcse-builtin-s42-1a2b3c4d: failed: out of memory", on one line and without the publisher's own folders."""
    text = why.replace(f"{folder}/", "").replace(str(folder), "its folder")
    return f"{folder.name}: {' '.join(text.split())[:LONGEST]}"


# --- what is published of a run: its record, its curve, its predictions; no checkpoint and no vectors ---


def _read_verified(run: Run, predictions: Packed) -> dict[str, bytes]:
    """Path below the version -> content of the run's record and curve, after every score was computed again. What the scores need of its
    predictions is added to ``predictions``.

    Raises DataMissing where a score has no predictions; DataDamaged where they are not those that were recorded, where a score does
    not follow from them, and where the record in the folder is another one by now.
    """
    folder = f"{RUNS}/{run.record.run_id}"
    stored: dict[str, Mapping[str, np.ndarray]] = {}
    for score in run.scores:
        if score.task == AVERAGE:
            refuse([check_average(score, run.record)])
            continue
        arrays = run.predictions(score.key)
        refuse([check_hash(score, arrays), *check_score(score, arrays)])
        path = f"{folder}/{predictions_name(score.task, score.text, score.suite)}"
        stored[path] = _reduced(score, arrays)
    if read_record(run.folder / RECORD) != run.record:
        raise DataDamaged(f"{run.folder / RECORD}: it changed while the version was made")
    for path, values in stored.items():
        predictions.add(path, values)
    files: dict[str, bytes] = {}
    for name, limit in ((RECORD, RECORD_BYTES), (CURVE, CURVE_BYTES)):
        try:
            files[f"{folder}/{name}"] = read_plain_file(run.folder / name, limit)
        except FileNotFoundError:  # a method without training has no curve
            continue
        except OSError as error:
            raise DataDamaged(f"{run.folder / name}: {error.strerror or error}") from None
    return files


def _reduced(score: Score, arrays: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """Only what the score needs (ranks in 16 bits, for a rank correlation) where the record has the hash of that, else all."""
    if score.reduced_sha256 is None or REDUCED in arrays:
        return arrays
    reduced = reduce_predictions(score.key, arrays)
    same = reduced is not None and values_sha256(reduced) == score.reduced_sha256
    return reduced if reduced is not None and same else arrays


# --- the searches of recipe values ---


def searches(
    board: Board, store: RunsFolder, last: Version | None
) -> tuple[list[Search], list[str]]:
    """(the searches of recipe values of own runs, the names of those that are not there or that do not fit these runs).

    A search is read from its folder, from the version whose runs these are, or from the last version.
    """
    named: dict[str, list[RunRecord]] = {}
    for run_id, record in board.records.items():
        name = search_of(record).get("name")
        if run_id not in board.senders and isinstance(name, str):
            named.setdefault(name, []).append(record)
    files = [
        *store.path.glob(f"*/{SUMMARY}"),
        *store.path.absolute().parent.glob("searches/*.json"),
        *(list(last.folder.glob("searches/*.json")) if last else []),
    ]
    known: dict[str, Search] = {}
    for file in files:
        with contextlib.suppress(BenchError):
            if (search := read_search(file)) is not None:
                known.setdefault(search.name, search)
    fitting = [
        known[name]
        for name in sorted(named)
        if name in known and all(map(known[name].of, named[name]))
    ]
    return fitting, sorted(named.keys() - {search.name for search in fitting})


# --- what the installed methods say of themselves ---


def describe(board: Board) -> Board:
    """The board with what its methods say of themselves: of those that are installed from where its runs had them, as far as the records say."""
    plugins = discover().plugins
    own = [run.record for run in board.runs if run.record.run_id not in board.senders]
    made_by = {(record.method, record.provenance.plugin.package) for record in own}
    names = {name for name, _ in made_by}
    for run in board.runs:  # a submitted run describes no method of the board's own runs
        if run.record.method not in names:
            made_by.add((run.record.method, run.record.provenance.plugin.package))
    return replace(
        board,
        described={
            name: _described(plugins[name])
            for name, package in made_by
            if name in plugins and package in (None, plugins[name].package)
        },
    )


def _described(plugin: Plugin) -> MethodDescription:
    cls, file = plugin.cls, RecipeFile()
    with contextlib.suppress(BenchError):
        file = read_recipes(plugin.folder, plugin.name)
    return MethodDescription(
        cls=cls,
        about=inspect.cleandoc(cls.__doc__ or plugin.module.__doc__ or ""),
        variants={
            variant: {key: getattr(value, "value", value) for key, value in values.items()}
            for variant, values in {**cls.variants, **file.variants}.items()
        },
        file=file,
    )


# --- what a submitted run may contain, and the checks that it has to pass ---


MiB = 1 << 20
TOTAL_BYTES, MOST_FILES = 50 * MiB, 1000
NAMES = {  # name below the submission's folder -> bytes at most
    re.compile(r"run\.json"): 8 * MiB,
    re.compile(r"curve\.jsonl"): 4 * MiB,
    re.compile(r"submitted_by\.txt"): 1024,
    re.compile(r"predictions/(mteb/)?[A-Za-z0-9_%~][A-Za-z0-9_.~ @%-]{0,199}\.npz"): 16 * MiB,
}
ARRAY_BYTES, ALL_ARRAY_BYTES = 64 * MiB, 256 * MiB
"""Of the arrays of one predictions file and of all, unpacked; a run of every suite has some 20 MB. This limits the work, too."""
MOST_SCORES = 1000
MOST_ROWS, MOST_COLUMNS = 500_000, 100
MOST_NAMES = 400  # different sub-datasets, folds, classes or clusters: scoring time grows with them
PLAIN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # take no more memory than they unpack to


def check_submission(folder: Path, data: DataFolder | None = None) -> RunRecord:
    """The record of a run that may be published. Raises BenchError, with the first reason, for any other."""
    folder = folder.absolute()
    try:
        _check_names(folder)
        sender_of(folder)
        run = Run(RunsFolder(folder.parent).read(folder.name), folder)
        _check_sizes(run)
        refuse(verify_run(folder, data).findings, unchecked=("score", "average"))
    except BenchError:
        raise
    except Exception as error:  # a stranger's file may be wrong in ways that nobody thought of
        raise DataDamaged(f"it cannot be checked: {one_line(error)}") from None
    return run.record


def read_for_submission(folder: Path, name: str) -> bytes:
    """The content of a file of a run's folder. Raises DataDamaged for a link, a pipe, and more bytes than a submission may have of it."""
    most = next((size for pattern, size in NAMES.items() if pattern.fullmatch(name)), MiB)
    try:
        return read_plain_file(folder / name, most, inside=folder)
    except OSError as error:
        raise DataDamaged(f"{folder / name}: {error.strerror or error}") from None


def refuse(findings: Iterable[Finding], unchecked: Container[str] = ()) -> None:
    """Raises DataDamaged for the first that differs, or that could not be checked and is of one of the kinds ``unchecked``."""
    for finding in findings:
        if finding.outcome == DIFFERS or (
            finding.outcome == UNCHECKED and finding.kind in unchecked
        ):
            raise DataDamaged(
                f"{finding.what}: {finding.why}",
                "bench submit RUN --suite NAME leaves other suites out",
            )


def sender_of(folder: Path) -> str:
    """Who submits the run. Raises DataDamaged for anything but a name on one line."""
    try:
        name = " ".join((folder / SENDER_FILE).read_text(encoding="utf-8").split())
    except (OSError, ValueError):
        name = ""
    if not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
        raise DataDamaged(f"{SENDER_FILE} must contain a name of at most {LONGEST_NAME} characters")
    return name


def _check_names(folder: Path) -> None:
    """Each file has a known name and is small enough; nothing is a link, a pipe or a program."""
    if folder.is_symlink() or not folder.is_dir():
        raise DataDamaged("it is not a folder")
    total = 0
    for i, path in enumerate(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        shown = printable(name)[:80]
        if i >= MOST_FILES:
            raise DataDamaged(f"it has more than {MOST_FILES:,} files")
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise DataDamaged(f"'{shown}' is a link or a device, not a file")
        if path.is_dir():
            continue
        most = next((size for pattern, size in NAMES.items() if pattern.fullmatch(name)), None)
        if most is None:
            raise DataDamaged(f"'{shown}' does not belong in a submission")
        total += (size := path.stat().st_size)
        if size > most or total > TOTAL_BYTES:
            raise DataDamaged(
                f"'{shown}' has {size:,} bytes; the limit is "
                f"{most // MiB or 1} MiB, {TOTAL_BYTES // MiB} for all"
            )


def _check_sizes(run: Run) -> None:
    """Raises DataDamaged for what is not read or not computed at all."""
    record, total = run.record, 0
    if record.status != "finished" or not 0 < len(record.scores) <= MOST_SCORES:
        raise DataDamaged(
            f"expected a finished run with 1 to {MOST_SCORES:,} scores; "
            f"this one is {record.status}; scores: {len(record.scores):,}"
        )
    for path in sorted((run.folder / "predictions").rglob("*.npz")):
        total += unpacked_bytes(path)
        if total > ALL_ARRAY_BYTES:
            raise DataDamaged(f"its predictions unpack to more than {ALL_ARRAY_BYTES:,} bytes")
    for score in run.scores:
        if score.task != AVERAGE:
            check_arrays(score, run.predictions(score.key))


def unpacked_bytes(path: Path) -> int:
    """Of a predictions file. Raises DataDamaged for one that is too large or that takes more memory than it holds."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except (OSError, ValueError, RuntimeError, NotImplementedError, zipfile.BadZipFile) as error:
        raise DataDamaged(f"{path.name} is not a predictions file: {one_line(error)}") from None
    size = sum(member.file_size for member in members)
    if size > ARRAY_BYTES or any(member.compress_type not in PLAIN for member in members):
        raise DataDamaged(
            f"{path.name} unpacks to {size:,} bytes: "
            f"the limit is {ARRAY_BYTES:,}, stored or deflated"
        )
    return size


def check_arrays(score: Score, arrays: Mapping[str, np.ndarray]) -> None:
    """Raises DataDamaged for what should not be computed at all."""
    name = predictions_name(score.task, score.text, score.suite)
    if REDUCED in arrays:  # nobody could check the record's details
        raise DataDamaged(f"{name} has only ranks; a submission needs all of the predictions")
    for key, values in arrays.items():
        if values.dtype.kind not in "biufU":
            raise DataDamaged(f"{name}: {key} holds neither numbers nor text")
        rows, columns = (*values.shape, 1, 1)[:2]
        if values.ndim > 2 or rows > MOST_ROWS or columns > MOST_COLUMNS:
            raise DataDamaged(
                f"{name}: {key} has shape {values.shape}; "
                f"the limit is {MOST_ROWS:,} by {MOST_COLUMNS}"
            )
        if key == "prediction" and values.dtype.kind == "f" and not np.isfinite(values).all():
            raise DataDamaged(f"{name}: a prediction is NaN or infinite")
        labels = ("subset", "fold", *(("prediction", "gold") * (score.suite == "clustering")))
        if key in labels and len(np.unique(values)) > MOST_NAMES:
            raise DataDamaged(f"{name}: {key} has more than {MOST_NAMES} different values")
