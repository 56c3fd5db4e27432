"""Export a run by name: its model as a folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from bench.export.exported import Exported
from bench.export.model import check_export, write_export
from bench.records.store import RunsFolder
from bench.run.finished import find_run, load_finished_run

FORMS = ("sentence-transformers", "mteb")
Say = Callable[[str], None]


def write_model(
    reference: str,
    to: Path,
    *,
    form: str,
    store: RunsFolder,
    plugins: Sequence[Path],
    offline: bool,
    say: Say,
    unmerged: bool = False,
) -> Exported:
    """Write the model of a run into a new folder.

    ``reference``: the run's id, its beginning, or its folder. ``form``: one of ``FORMS``.
    ``plugins``: files that define the run's method. ``say`` gets the run's notes, a line each.
    ``unmerged``: of a run with adapters, only the adapters, as peft's files. Raises BenchError;
    then nothing is left behind.
    """
    run = find_run(reference, store, plugins)
    check_export(run.record, to)
    for note in run.notes:
        say(f"warning: {note}")
    method = load_finished_run(run, offline=offline)
    return write_export(run, method, to, form, unmerged=unmerged)


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
