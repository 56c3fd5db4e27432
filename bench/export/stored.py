"""Export a run by name: its model as a folder, here or on the hub, or its scores as a file."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.base.files import write_or_fail
from bench.base.reading import read_plain_file
from bench.export.exported import Exported
from bench.export.model import check_export, write_export
from bench.export.repository import check_repository, upload
from bench.export.results import results_text
from bench.records.record import read_record
from bench.records.run import Run
from bench.records.store import RunsFolder
from bench.run.finished import TrainedRun, find_run, load_finished_run

FOLDERS = ("sentence-transformers", "transformers", "mteb")
Say = Callable[[str], None]


@dataclass(frozen=True)
class Pushed:
    """The address of a model on the hub."""

    url: str
    revision: str


def write_scores(reference: str, to: Path, form: str, store: RunsFolder) -> str:
    """Write the scores of a run into a new file in one of ``FORMATS``, and return the run's id.

    Raises BenchError.
    """
    file = store.record_file(reference)
    scored = Run(read_record(file), file.parent)
    if not to.is_file():
        check_export(scored.record, to)
    text = results_text(scored, form).encode()
    if not holds_exactly(to, text):  # a command that was killed at its very end left it so
        check_export(scored.record, to)
        write_or_fail(to, text, hint="another --to FILE")
    return file.parent.name


def holds_exactly(file: Path, content: bytes) -> bool:
    """Tell whether there is a plain file with exactly these bytes."""
    try:
        return read_plain_file(file, len(content)) == content
    except OSError:
        return False


@dataclass(frozen=True)
class ModelExport:
    """A request to export the model of a run, read from a command or a call."""

    # the run's id, its beginning, or its folder
    run: str
    # one of ``FOLDERS``
    form: str
    store: RunsFolder
    # files that define the run's method
    plugins: Sequence[Path]
    offline: bool
    # gets the run's notes, a line each
    say: Say
    # of a run with adapters: the adapters alone, as peft's files
    unmerged: bool = False


def write_model(wanted: ModelExport, to: Path) -> Exported:
    """Write the model of a run into a new folder.

    Raises BenchError; then nothing is left behind.
    """
    run = find_run(wanted.run, wanted.store, wanted.plugins)
    check_export(run.record, to)
    _say_notes(run, wanted.say)
    method = load_finished_run(run, offline=wanted.offline)
    return write_export(run, method, to, wanted.form, unmerged=wanted.unmerged)


def push_model(
    wanted: ModelExport, name: str, *, private: bool, replace: bool
) -> tuple[Exported, Pushed]:
    """Send the model of a run to the repository ``name`` of the hub.

    ``private``: a new repository is private. ``replace``: other files in it are removed. Raises
    BenchError.
    """
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "export"
        run = find_run(wanted.run, wanted.store, wanted.plugins)
        check_export(run.record, folder)
        check_repository(name, replace=replace, offline=wanted.offline)
        _say_notes(run, wanted.say)
        method = load_finished_run(run, offline=wanted.offline)
        done = write_export(run, method, folder, wanted.form, name, unmerged=wanted.unmerged)
        revision, url = upload(folder, name, done.run_id, private=private)
    return done, Pushed(url, revision)


def describe_export(done: Exported) -> list[str]:
    """Return lines for people: the check that was made, and if loading runs code of the folder."""
    lines = [
        f"{done.run_id} as {done.form}: {done.dimensions} dimensions, loaded again, largest "
        f"difference {done.difference:.1g}"
    ]
    if done.module_files:
        files = ", ".join(done.module_files)
        lines.append(
            f"load it with trust_remote_code=True, which runs {files} of the folder (its README "
            "says why)"
        )
    return lines


def _say_notes(run: TrainedRun, say: Say) -> None:
    for note in run.notes:
        say(f"warning: {note}")
