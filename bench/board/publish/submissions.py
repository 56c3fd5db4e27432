"""Checks of submitted runs: the files that one may have, and their contents.

A submitted run is a folder ``leaderboards/submissions/ID/``:

    run.json                  the record
    submitted_by.txt          who made it, on one line, as the leaderboard shows it
    predictions/STS12.npz     the model's answers to every item; tasks of mteb: predictions/mteb/...
    plan.toml                 the plan that makes it again; may be missing
    curve.jsonl               the training curve; may be missing

Nothing in it is executed or unpickled. Names and sizes are checked before a file is read, shapes
before anything is computed; the rest is checked as ``bench verify`` checks any run.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bench.base.errors import BenchError, DataDamaged, one_line, printable
from bench.base.findings import DIFFERS, UNCHECKED, Finding
from bench.base.reading import (
    CURVE_BYTES,
    PLAN_BYTES,
    RECORD_BYTES,
    open_plain_file,
    read_plain_file,
)
from bench.board.verify import verify_run
from bench.board.verify.scores import PASS_FILE
from bench.compare.senders import MOST_BYTES, submitter_of
from bench.records.names import CURVE, PLAN, RECORD, predictions_name
from bench.records.paths import refuse_paths
from bench.records.record import AVERAGE, REDUCED, RunRecord, Score
from bench.records.run import Run
from bench.records.store import RunsFolder

MiB = 1 << 20
TOTAL_BYTES, MOST_FILES = 50 * MiB, 1000
NAMES = {
    re.compile(r"run\.json"): 8 * MiB,
    re.compile(r"curve\.jsonl"): 4 * MiB,
    re.compile(r"plan\.toml"): PLAN_BYTES,
    re.compile(r"submitted_by\.txt"): MOST_BYTES,
    re.compile(r"predictions/((mteb|own)/)?[A-Za-z0-9_%~][A-Za-z0-9_.~ @%-]{0,199}\.npz"): 16 * MiB,
}
"""Name below the submission's folder -> bytes at most."""
ARRAY_BYTES, ALL_ARRAY_BYTES = 64 * MiB, 256 * MiB
"""Bytes of the arrays of one predictions file and of all, unpacked; a run of every suite has
some 20 MB. This limits the work, too."""
MOST_SCORES = 1000
MOST_ROWS, MOST_COLUMNS = 500_000, 100
MOST_NAMES = 400
"""Different sub-datasets, folds, classes or clusters: scoring time grows with them."""
PLAIN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Compressions that take no more memory than they unpack to."""


def check_submission(folder: Path) -> RunRecord:
    """Return the record of a run that may be published. Raises BenchError, with the first
    reason, for any other."""
    folder = folder.absolute()
    try:
        check_submitted_files(folder)
        submitter_of(folder)
        run = Run(RunsFolder(folder.parent).read(folder.name), folder)
        read_published_files(run)
        _check_sizes(run)
        refuse(verify_run(folder).findings, unchecked=("score", "average"))
    except BenchError:
        raise
    except Exception as error:  # a stranger's file may be wrong in ways that nobody thought of
        raise DataDamaged(f"it cannot be checked: {one_line(error)}") from None
    return run.record


def read_for_submission(folder: Path, name: str) -> bytes:
    """Return the content of a file of a run's folder. Raises DataDamaged for a link, a pipe, and
    more bytes than a submission may have of it.
    """
    most = next((size for pattern, size in NAMES.items() if pattern.fullmatch(name)), MiB)
    try:
        return read_plain_file(folder / name, most, inside=folder)
    except OSError as error:
        raise DataDamaged(f"{folder / name}: {error.strerror or error}") from None


def refuse(findings: Iterable[Finding], unchecked: Container[str] = ()) -> None:
    """Raise DataDamaged for the first finding that differs, or that could not be checked and has
    one of the kinds ``unchecked``.
    """
    for finding in findings:
        if finding.outcome == DIFFERS or (
            finding.outcome == UNCHECKED and finding.kind in unchecked
        ):
            raise DataDamaged(
                # bench submit takes no suite of a file, which its receiver would not have
                f"{finding.what}: {finding.why.removesuffix(PASS_FILE)}",
                "bench submit RUN --suite NAME leaves other suites out",
            )


def check_submitted_files(folder: Path) -> None:
    """Look at names, kinds and sizes; nothing is read. Raises DataDamaged for a link, a pipe, a
    program, an unknown name, too many bytes."""
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


def read_published_files(run: Run) -> dict[str, bytes]:
    """Return name -> content of the files of a run that are published byte by byte: its record, its
    plan, its curve.

    Raises DataDamaged for an absolute path in them. They are read as they are, so that a path is
    also found in places that a reader of the record would not see.
    """
    files = {}
    for name, limit in ((RECORD, RECORD_BYTES), (PLAN, PLAN_BYTES), (CURVE, CURVE_BYTES)):
        try:
            files[name] = read_plain_file(run.folder / name, limit, inside=run.folder)
        except FileNotFoundError:
            continue  # a method without training has no curve
        except OSError as error:
            raise DataDamaged(f"{name}: {error.strerror or error}") from None
    refuse_paths(_parse_published(files[RECORD], RECORD), RECORD)
    refuse_paths(files.get(PLAN, b"").decode("utf-8", "replace"), PLAN)
    for number, line in enumerate(files.get(CURVE, b"").split(b"\n"), 1):
        if not line.strip():
            continue
        what = f"{CURVE}, line {number}"
        entry = _parse_published(line, what)
        if not isinstance(entry, dict) or not isinstance(entry.get("step"), int | float):
            raise DataDamaged(f"{what}: not an entry of a curve: it has no step")
        refuse_paths(entry, what)
    return files


def refuse_array_paths(score: Score, arrays: Mapping[str, np.ndarray]) -> None:
    """Raise DataDamaged for an absolute path in the names or texts of a score's arrays.

    Labels that are predicted are the data's own words, whatever they look like.
    """
    name = predictions_name(score.task, score.protocol, score.suite)
    for key, values in arrays.items():
        refuse_paths(key, f"the name of an array in {name}")
        if values.dtype.kind == "U" and key not in ("prediction", "gold"):
            for text in np.unique(values).tolist():
                refuse_paths(text, f"{name}: {key}")


def _parse_published(content: bytes, what: str) -> Any:
    """Return the JSON value in UTF-8. Raises DataDamaged for anything else, and for an object that
    gives a field twice: readers differ in which value they take.
    """

    def fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        if len(values) < len(pairs):
            (name, _), *_ = Counter(key for key, _ in pairs).most_common(1)
            raise DataDamaged(f"{what}: the field '{printable(name)[:40]}' has two values")
        return values

    try:
        return json.loads(content.decode("utf-8"), object_pairs_hook=fields)
    except (ValueError, RecursionError) as error:
        raise DataDamaged(f"{what}: not JSON: {one_line(error)}") from None


def _check_sizes(run: Run) -> None:
    """Raise DataDamaged for what is not read or not computed at all."""
    record, total = run.record, 0
    if record.status != "finished" or not 0 < len(record.scores) <= MOST_SCORES:
        raise DataDamaged(
            f"expected a finished run with 1 to {MOST_SCORES:,} scores; "
            f"this one is {record.status}; scores: {len(record.scores):,}"
        )
    for path in sorted((run.folder / "predictions").rglob("*.npz")):
        total += predictions_size(path)
        if total > ALL_ARRAY_BYTES:
            raise DataDamaged(f"its predictions unpack to more than {ALL_ARRAY_BYTES:,} bytes")
    for score in run.scores:
        if score.task != AVERAGE:
            arrays = run.predictions(score.key)
            check_arrays(score, arrays)
            refuse_array_paths(score, arrays)


def predictions_size(path: Path) -> int:
    """Return the unpacked bytes of a predictions file. Raises DataDamaged for one that is too
    large or that takes more memory than it holds."""
    try:
        with open_plain_file(path) as file, zipfile.ZipFile(file) as archive:
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
    """Raise DataDamaged for what should not be computed at all."""
    name = predictions_name(score.task, score.protocol, score.suite)
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
        labels = ["subset", "fold"]
        if score.suite == "clustering":
            labels += ["prediction", "gold"]
        if key in labels and len(np.unique(values)) > MOST_NAMES:
            raise DataDamaged(f"{name}: {key} has more than {MOST_NAMES} different values")
