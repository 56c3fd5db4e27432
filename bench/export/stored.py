"""The export of a run that is named: its model as a folder, here or on the hub, or its scores as a file."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.base.files import write_or_fail
from bench.base.reading import read_plain_file
from bench.export import check_export, check_repository, export, results, upload
from bench.export.results import Exported
from bench.records.run import Run
from bench.records.store import RunsFolder, read_record
from bench.run.finished import TrainedRun, find_run, load_finished_run

FOLDERS = ("sentence-transformers", "transformers", "mteb")
Say = Callable[[str], None]


@dataclass(frozen=True)
class Pushed:
    """Where a model is on the hub."""

    url: str
    revision: str


def write_scores(reference: str, to: Path, form: str, store: RunsFolder) -> str:
    """Write the scores of a run into a new file, in one of ``results.FORMATS``; returns the run's id. Raises BenchError."""
    file = store.record_file(reference)
    scored = Run(read_record(file), file.parent)
    if not to.is_file():
        check_export(scored.record, to)
    text = results.results_text(scored, form).encode()
    if not holds_exactly(to, text):  # a command that was killed at its very end left it so
        check_export(scored.record, to)
        write_or_fail(to, text, hint="another --to FILE")
    return file.parent.name


def holds_exactly(file: Path, content: bytes) -> bool:
    """Say if a plain file of these very bytes is there."""
    try:
        return read_plain_file(file, len(content)) == content
    except OSError:
        return False


def write_model(
    reference: str,
    to: Path,
    form: str,
    store: RunsFolder,
    *,
    plugins: Sequence[Path],
    offline: bool,
    say: Say,
) -> Exported:
    """Write the model of a run into a new folder, in one of ``FOLDERS``; ``say`` gets the run's notes. Raises BenchError; then nothing is
    left behind."""
    run = find_run(reference, store, plugins)
    check_export(run.record, to)
    _say_notes(run, say)
    return export(run, load_finished_run(run, offline=offline), to, form)


def push_model(
    reference: str,
    name: str,
    form: str,
    store: RunsFolder,
    *,
    plugins: Sequence[Path],
    offline: bool,
    private: bool,
    replace: bool,
    say: Say,
) -> tuple[Exported, Pushed]:
    """Send the model of a run to a repository of the hub; ``say`` gets the run's notes. ``private``: a new repository is; ``replace``:
    what it holds is replaced. Raises BenchError."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "export"
        run = find_run(reference, store, plugins)
        check_export(run.record, folder)
        check_repository(name, replace=replace, offline=offline)
        _say_notes(run, say)
        done = export(run, load_finished_run(run, offline=offline), folder, form, name)
        revision, url = upload(folder, name, done.run_id, private=private)
    return done, Pushed(url, revision)


def describe_export(done: Exported) -> list[str]:
    """Return what a person should know of an export: that it was loaded again, and whether loading it runs code of its folder."""
    lines = [
        f"{done.run_id} as {done.form}: {done.dimensions} dimensions, loaded again, largest difference {done.difference:.1g}"
    ]
    if done.module_files:
        files = ", ".join(done.module_files)
        lines.append(
            f"load it with trust_remote_code=True, which runs {files} of the folder (its README says why)"
        )
    return lines


def _say_notes(run: TrainedRun, say: Say) -> None:
    for note in run.notes:
        say(f"warning: {note}")
