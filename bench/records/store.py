"""The folder that holds runs: ``RUNS/<run-id>/`` with ``run.json``, ``predictions/``,
``checkpoint/``, ``curve.jsonl``.

A file is written completely or not at all: next to its place, synced, then renamed over it. A large
file is hashed once: its hash is cached under its path, size and times, and it is read again if one
of them changed.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
from filelock import FileLock, Timeout

from bench.base.errors import (
    BenchError,
    OtherSchema,
    RecordDamaged,
    RunLocked,
    UnknownName,
)
from bench.base.files import ELSEWHERE, as_utf8, write_or_fail
from bench.base.locks import is_free
from bench.base.reading import (
    open_plain_file,
    refuse_links,
)
from bench.base.text import list_names, looks_like_a_run
from bench.records.names import LOCK, RECORD, predictions_name
from bench.records.record import RUN_ID, RunRecord, read_record

_RUN_ID = re.compile(RUN_ID)


def default_runs() -> Path:
    """Return $BENCH_RUNS, or ``runs`` in the working directory."""
    return Path(os.environ.get("BENCH_RUNS") or "runs")


def runs_of_version(folder: Path | str) -> str:
    """Return ``--runs leaderboards/v6/runs`` for the folder of a version, "" for any other."""
    runs = os.path.join(folder, "runs")
    return shlex.join(["--runs", runs]) if os.path.isdir(runs) else ""


class RunsFolder:
    """Reads and writes run records. ``path`` need not exist; it is created by the first write."""

    def __init__(self, path: Path | str | None = None) -> None:
        self.path = Path(path) if path is not None else default_runs()

    def folder(self, run_id: str) -> Path:
        """Return the run's folder. Raises BenchError for an id that could lead out of the runs
        folder.
        """
        if not _RUN_ID.search(run_id):
            raise BenchError(
                f"'{run_id}' is not a run id: use letters, digits and . _ + @ = - only"
            )
        return self.path / run_id

    # --- records ---

    def write(self, record: RunRecord) -> Path:
        """Write ``run.json`` whole or not at all and return its path.

        Raises RecordDamaged for a record that could not be read back, and BenchError for a text in
        it that is not UTF-8.
        """
        try:
            content = record.to_json()
            RunRecord.from_json(content)  # names the first field that does not fit
            text = json.dumps(content, indent=1, allow_nan=False)
        except (ValueError, RecordDamaged) as error:
            why = error.message if isinstance(error, RecordDamaged) else str(error)
            raise RecordDamaged(f"the record of {record.run_id} cannot be written: {why}") from None
        as_utf8(json.dumps(content, ensure_ascii=False))
        path = self.folder(record.run_id) / RECORD
        write_or_fail(path, text.encode() + b"\n")
        return path

    def read(self, run_id: str) -> RunRecord:
        """Return the record of a run.

        Raises UnknownName if there is none, RecordDamaged if it does not fit the schema.
        """
        folder = self.folder(run_id)
        file = f"{folder}{os.sep}{RECORD}"  # a third of the time of a path, for many runs
        try:
            record = read_record(file, folder)
        except RecordDamaged:
            if not os.path.isfile(file):
                raise self.unknown(run_id) from None
            raise
        if record.run_id != run_id:
            raise RecordDamaged(
                f"{file}: run_id is '{record.run_id}', not the folder's name", "rename the folder"
            )
        return record

    def get(self, run_id: str, fingerprint: str | None = None) -> RunRecord | None:
        """Return the record of a run; None if it is missing, damaged, or has another fingerprint.

        Reads no other run. Raises OtherSchema for a record that another version of bench wrote: it
        is never replaced.
        """
        try:
            record = read_record(self.folder(run_id) / RECORD)
        except OtherSchema:
            raise
        except RecordDamaged:
            return None
        if record.run_id != run_id or fingerprint not in (None, record.fingerprint):
            return None
        return record

    def unknown(self, name: str) -> UnknownName:
        """Return the error for a name that is no run's."""
        ids = self.ids()
        hint = "--runs DIR, if they are in another folder; bench run METHOD creates them"
        version = runs_of_version(name)
        if version:
            hint = version
        elif ids:
            where = "" if self.path == Path("runs") else f" --runs {self.path}"
            hint = f"bench runs{where} lists them"
        if _may_be_a_model(name):
            hint += "; bench evaluate MODEL makes a run of a model"
        return UnknownName("run", name, ids, f"in {self.path}", hint, begins=True)

    def ids(self) -> list[str]:
        """Return the runs that have a record, sorted by name. Raises BenchError if ``path`` is not
        a folder.
        """
        try:
            names = os.listdir(self.path)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise BenchError(
                f"{self.path} is not a readable runs folder: {error.strerror}",
                "--runs DIR, or BENCH_RUNS",
            ) from None
        return sorted(
            name
            for name in names
            if _RUN_ID.search(name) and os.path.isfile(os.path.join(self.path, name, RECORD))
        )

    def records(self) -> tuple[list[RunRecord], list[RecordDamaged]]:
        """Return all records, and one error for each that cannot be read."""
        records: list[RunRecord] = []
        damaged: list[RecordDamaged] = []
        for run_id in self.ids():
            try:
                records.append(self.read(run_id))
            except RecordDamaged as error:
                damaged.append(error)
            except UnknownName:  # removed since it was listed
                continue
        return records, damaged

    def record_files(self, reference: str) -> list[Path]:
        """Return the records' files for an id, the beginning of ids, a path, or the name of an
        evaluated model. Raises UnknownName if there is none.
        """
        ids = [] if os.sep in reference or not reference else self.ids()
        names = [name for name in ids if name.startswith(reference)]
        if reference not in names and (path := _by_path(reference)) is not None:
            return [path]
        if reference in names:
            names = [reference]
        elif not names:
            evaluated = self.records()[0] if reference else []
            names = [record.run_id for record in evaluated if record.evaluated_as == reference]
        if not names:
            raise self.unknown(reference)
        return [self.folder(name) / RECORD for name in names]

    def record_file(self, reference: str) -> Path:
        """Return the record's file for ``reference``. Raises BenchError if there are several."""
        if len(files := self.record_files(reference)) > 1:
            names = list_names(file.parent.name for file in files)
            raise BenchError(
                f"'{reference}' means {len(files)} runs: {names}", "write more of the id"
            )
        return files[0]

    # --- one process on one run ---

    @contextlib.contextmanager
    def lock(
        self, run_id: str, wait_seconds: float = 0.0, say: Callable[[str], None] = lambda line: None
    ) -> Iterator[None]:
        """Hold the run for this process.

        Raises RunLocked, naming the owner, if it is not free in time.

        The kernel's lock on ``RUN/.lock`` decides, on this machine and between machines that share
        the folder; it is released when its holder dies, however it dies. The file's content,
        HOST:PID, only names the holder. ``say`` gets one line if this process has to wait.
        """
        path = self.folder(run_id) / LOCK
        refuse_links(path.parent)
        held = FileLock(path, poll_interval=0.1)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                held.acquire(timeout=0)
            except Timeout:
                owner = self.worked_on_by(run_id) or "another process"
                if wait_seconds:
                    say(f"{run_id} is locked by {owner}; waiting")
                held.acquire(timeout=wait_seconds)
        except Timeout:
            raise RunLocked(
                f"{run_id} is locked by {owner}", "wait for it or stop it, then run this again"
            ) from None
        except (OSError, NotImplementedError) as error:  # a file system without locks, among others
            raise BenchError(
                f"cannot write {path}: {getattr(error, 'strerror', None) or error}", ELSEWHERE
            ) from None
        try:
            with contextlib.suppress(OSError):  # a full disk: the name is a courtesy
                path.write_text(f"{socket.gethostname()}:{os.getpid()}")
            # of a process that was killed while it wrote
            for partial in path.parent.rglob(".*.tmp"):
                with contextlib.suppress(OSError):
                    partial.unlink()
            yield
        finally:
            with contextlib.suppress(OSError):
                os.truncate(path, 0)
            held.release()

    def worked_on_by(self, run_id: str) -> str | None:
        """Return the process that holds the run now, as HOST:PID; None if it is free."""
        try:
            with open_plain_file(self.folder(run_id) / LOCK) as handle:
                holder = handle.read(200).decode("utf-8", "replace").strip()
                # a killed process leaves its name, so the lock is tried; without a name it is not,
                # so that no process is disturbed
                return holder if holder and not is_free(handle.fileno()) else None
        except OSError:
            return None

    # --- predictions ---

    def predictions_path(self, run_id: str, task: str, protocol: str, suite: str = "") -> Path:
        """Return ``predictions/STS12.npz``; ``predictions/STS12@raw.npz`` for a protocol of raw
        texts.

        The tasks of a suite that others named have a separate folder:
        ``predictions/mteb/STS12.npz``.
        """
        return self.folder(run_id) / predictions_name(task, protocol, suite)

    def write_predictions(
        self,
        run_id: str,
        task: str,
        protocol: str,
        arrays: Mapping[str, np.ndarray],
        suite: str = "",
    ) -> Path:
        """Write "prediction", "gold", "subset", ... with one row per item, in the data's order.

        Arrays of a second set of items share a prefix ("all_splits_prediction", "all_splits_gold").
        Raises ValueError if the three named first differ in length, or an array holds Python
        objects.
        """
        if any(np.asarray(array).dtype.hasobject for array in arrays.values()):
            raise ValueError(
                f"predictions of {task}: an array holds Python objects; unicode and numbers only"
            )
        rows = {key: len(arrays[key]) for key in ("gold", "prediction", "subset") if key in arrays}
        if len(set(rows.values())) > 1:
            raise ValueError(f"predictions of {task}: rows differ: {rows}")
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **dict(arrays))  # type: ignore[arg-type]
        path = self.predictions_path(run_id, task, protocol, suite)
        write_or_fail(path, buffer.getvalue())
        return path


def _may_be_a_model(name: str) -> bool:
    """Return True for a folder of a model, and for a name that a hub could have."""
    if name == "builtin" or (Path(name) / "config.json").is_file():
        return True
    return name.count("/") == 1 and not Path(name).parent.is_dir() and not looks_like_a_run(name)


def _by_path(reference: str) -> Path | None:
    """Return the record's file when ``reference`` is a path to it or to its folder."""
    path = Path(reference)
    with contextlib.suppress(OSError, ValueError):  # a name too long, or with a zero byte
        return next((file for file in (path, path / RECORD) if file.is_file()), None)
    return None
