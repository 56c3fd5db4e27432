"""Runs -> one file with hashes: records, predictions, curves, and checkpoints where they are small."""

from __future__ import annotations

import contextlib
import glob
import os
import secrets
import shutil
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from bench.base.errors import BenchError, DataDamaged
from bench.base.files import HAS_LOCKS, file_sha256, is_free, lock
from bench.runs.arrays import read_arrays
from bench.runs.intact import CURVE
from bench.runs.record import AVERAGE, RunRecord
from bench.runs.store import RECORD, RunsFolder, read_record
from bench.verify.findings import cell
from bench.verify.submit.check import Work, check_run, examine_run, uncomputable
from bench.verify.submit.unpacking import (
    CHECKPOINT_BYTES,
    HEADER,
    Header,
    MiB,
    header_bytes,
    place,
    sender,
    unpack,
)

AUTO, YES, NO = "auto", "yes", "no"
EPOCH = (
    1980,
    1,
    1,
    0,
    0,
    0,
)  # the date of every member: the same runs give the same bytes tomorrow


@dataclass(frozen=True, kw_only=True)
class PackedRun:
    """One run as it was packed."""

    run_id: str
    scores: int
    left_out: tuple[
        str, ...
    ]  # scores that nobody could compute again from what the run keeps: "mteb SomeTask"
    checkpoint: str  # "with its checkpoint", or why without


@dataclass(frozen=True, kw_only=True)
class Packed:
    """The file that was made, its size, and what is in it."""

    file: Path
    bytes: int
    runs: tuple[PackedRun, ...]


def pack(
    folders: Sequence[Path],
    to: Path,
    *,
    by: str | None = None,
    suites: Sequence[str] = (),
    checkpoints: str = AUTO,
) -> Packed:
    """The runs in ``folders`` as the file ``to``, which a board takes: it was read back and checked before it is put in its place.

    ``suites``: scores of these alone. ``checkpoints``: "auto" (those of up to 32 MiB), "yes", "no". Raises BenchError where ``to`` is
    there already, where a run is not finished or its scores do not follow from its predictions, and where it all is too large.
    """
    from bench import __version__

    if to.exists():
        raise BenchError(f"there is a file {to} already", "another name: --to FILE.zip")
    if to.suffix != ".zip":
        raise BenchError(
            f"{to.name} does not end in .zip, as a submission does", f"--to {to.name}.zip"
        )
    try:
        name = sender(by)
    except ValueError as error:
        raise BenchError(f"--by: {error}") from None
    with tempfile.TemporaryDirectory(prefix="bench-submit-") as made:
        stage = Path(made) / "runs"
        work = Work()
        runs = tuple(_staged(folder, stage, suites, checkpoints, work) for folder in folders)
        aside = to.with_name(f".{to.name}.{secrets.token_hex(4)}.tmp")
        try:
            _sweep(to)
            with lock(aside):  # as long as it is held, somebody writes it
                _zip(aside, stage, name, __version__)
                _read_back(aside, to, Path(made) / "again")
                os.replace(aside, to)
        except OSError as error:
            raise BenchError(
                f"cannot write {to}: {error.strerror or error}", "another place: --to FILE.zip"
            ) from None
        finally:
            with contextlib.suppress(OSError):
                aside.unlink(missing_ok=True)
    return Packed(file=to, bytes=to.stat().st_size, runs=runs)


def _sweep(to: Path) -> None:
    """What a process left beside ``to`` that was killed while it wrote."""
    for left in to.parent.glob(f".{glob.escape(to.name)}.*.tmp") if HAS_LOCKS else ():
        with contextlib.suppress(OSError), left.open("rb") as file:
            if is_free(file.fileno()):
                left.unlink()


def _staged(
    folder: Path, stage: Path, suites: Sequence[str], checkpoints: str, work: Work
) -> PackedRun:
    """One run in ``stage`` as it will be packed; checked as its receiver will."""
    record = read_record(folder / RECORD)
    to = stage / record.run_id
    _check_run(record, folder, to)
    chosen = tuple(score for score in record.scores if not suites or score.suite in suites)
    if not chosen:
        of = f" of {', '.join(suites)}" if suites else ""
        raise BenchError(f"{record.run_id} has no score{of}", f"bench runs {record.run_id}")
    _write(replace(record, scores=chosen), record, folder, to)
    words = _checkpoint(folder, to, checkpoints)
    try:
        report = examine_run(to, work=work)
        if left_out := uncomputable(report):
            _write(
                replace(record, scores=tuple(score for score in chosen if score not in left_out)),
                record,
                folder,
                to,
            )
            report = check_run(to)
    except BenchError as error:
        raise DataDamaged(
            f"{record.run_id} would be refused: {error.message}", f"bench verify {record.run_id}"
        ) from None
    assert report.record is not None
    return PackedRun(
        run_id=record.run_id,
        scores=len(report.record.scores),
        left_out=tuple(map(cell, left_out)),
        checkpoint=words,
    )


def _check_run(record: RunRecord, folder: Path, to: Path) -> None:
    if to.exists():
        raise BenchError(f"{record.run_id} is named twice")
    if record.run_id != folder.name:
        raise BenchError(f"the record in {folder} is of {record.run_id}", "rename the folder")
    if holder := RunsFolder(folder.parent).worked_on_by(folder.name):
        raise BenchError(
            f"{record.run_id} is being worked on by {holder}", "wait until it is finished"
        )
    if record.status != "finished":
        raise BenchError(
            f"{record.run_id} is not finished, but {record.status}", f"bench runs {record.run_id}"
        )


def _write(chosen: RunRecord, record: RunRecord, folder: Path, to: Path) -> None:
    """Record, curve and predictions; the record byte for byte where nothing of it is left out."""
    shutil.rmtree(to / "predictions", ignore_errors=True)
    to.mkdir(parents=True, exist_ok=True)
    if chosen.scores == record.scores:
        shutil.copyfile(folder / RECORD, to / RECORD)
    else:
        RunsFolder(to.parent).write(chosen)
    if (folder / CURVE).is_file():
        shutil.copyfile(folder / CURVE, to / CURVE)
    before, after = RunsFolder(folder.parent), RunsFolder(to.parent)
    for score in chosen.scores:
        path = before.predictions_path(folder.name, score.task, score.text, score.suite)
        if path.is_file() and score.task != AVERAGE:
            after.write_predictions(
                to.name,
                score.task,
                score.text,
                dict(sorted(read_arrays(path).items())),
                score.suite,
            )


def _checkpoint(folder: Path, to: Path, wanted: str) -> str:
    """Copied where it is wanted, small, and nothing but weights, JSON and text. In words."""
    source = folder / "checkpoint"
    files = sorted(path for path in source.rglob("*") if path.is_file())
    size = sum(path.stat().st_size for path in files)
    strange = [
        path.name
        for path in files
        if place(f"runs/{folder.name}/checkpoint/{path.relative_to(source).as_posix()}") is None
    ]
    if wanted == NO or not files:
        return "without a checkpoint"
    why = ""
    if size > CHECKPOINT_BYTES:
        why = f"it has {size / MiB:,.0f} MiB, at most {CHECKPOINT_BYTES // MiB} are taken"
    elif strange:
        why = f"{strange[0]} is neither weights in safetensors nor JSON"
    if why and wanted == YES:
        raise BenchError(
            f"the checkpoint of {folder.name} cannot be sent: {why}",
            "--checkpoints auto leaves it out",
        )
    if why:
        return f"without its checkpoint: {why}"
    for path in files:
        aim = to / "checkpoint" / path.relative_to(source)
        aim.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, aim)
    return (
        f"with its checkpoint ({size / MiB:,.1f} MiB)"
        if size > MiB // 10
        else f"with its checkpoint ({size:,} bytes)"
    )


def _zip(file: Path, stage: Path, by: str | None, bench_version: str) -> None:
    paths = {
        f"runs/{path.relative_to(stage).as_posix()}": path
        for path in sorted(stage.rglob("*"))
        if path.is_file()
    }
    hashes = {name: file_sha256(path) for name, path in sorted(paths.items())}
    with zipfile.ZipFile(file, "w") as archive:
        _add(archive, HEADER, header_bytes(Header(by=by, files=hashes), bench_version))
        for name in hashes:
            _add(archive, name, paths[name].read_bytes())


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    member = zipfile.ZipInfo(name, EPOCH)
    member.create_system, member.external_attr = 3, 0o100644 << 16  # as on Unix, wherever this runs
    member.compress_type = zipfile.ZIP_STORED if name.endswith(".npz") else zipfile.ZIP_DEFLATED
    archive.writestr(member, data)


def _read_back(made: Path, to: Path, aside: Path) -> None:
    """Raises BenchError where its receiver would refuse what was made here: too large, a name that has no place."""
    try:
        unpack(made, aside)
    except DataDamaged as error:
        why = error.message.partition(" is refused: ")[2]
        raise BenchError(
            f"{to.name} would be refused: {why}", "fewer runs at once, or --checkpoints no"
        ) from None
