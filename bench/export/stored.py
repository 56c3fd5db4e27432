"""Export a run by name: its model as a folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.export.exported import Exported
from bench.export.model import check_export, write_export
from bench.records.store import RunsFolder
from bench.run.finished import TrainedRun, find_run, load_finished_run

FORMS = ("sentence-transformers", "mteb")
Say = Callable[[str], None]


@dataclass(frozen=True)
class ModelExport:
    """A request to export the model of a run, read from a command or a call."""

    # the run's id, its beginning, or its folder
    run: str
    # one of ``FORMS``
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
