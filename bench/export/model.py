"""Export the model of a run as a folder that other people's tools load.

The folder is written in a temporary place, loaded again by the tool that it is for, and moved to
its place only if that tool gives the method's own vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from bench.backbones.adapters import plain_copy
from bench.backbones.bidirectional import was_switched
from bench.base.errors import BenchError, NotAModel
from bench.base.reading import SETTINGS_BYTES, read_plain_file
from bench.export.adapter import base_for_adapter, check_unmerged
from bench.export.aside import is_empty, there_already, write_aside
from bench.export.card import Exported, write_card
from bench.export.code import check_code, remove_code_names
from bench.export.st_folder import write_st
from bench.export.vectors import compare_vectors
from bench.method import Method, Portable
from bench.records.damage import AGAIN
from bench.records.names import RECORD
from bench.records.paths import refuse_paths
from bench.records.record import RunRecord
from bench.records.store import RunsFolder
from bench.run.finished import find_run, load_finished_run


def write_model(
    reference: str,
    to: Path,
    *,
    store: RunsFolder,
    plugins: Sequence[Path],
    offline: bool,
    say: Callable[[str], None],
    unmerged: bool = False,
) -> Exported:
    """Write the model of a run into a new folder.

    ``reference``: the run's id, its beginning, or its folder. ``plugins``: files that define the
    run's method. ``say`` gets the run's notes, a line each. ``unmerged``: of a run with adapters,
    write only the adapters, as peft's files; else they are merged into the weights, in float32. The
    same export, if it is there already, is not changed. Raises BenchError if the format cannot
    represent the method, if a file cannot be written, or if the folder does not give the method's
    vectors; then nothing is left behind.
    """
    run = find_run(reference, store, plugins)
    check_export(run.record, to)
    if unmerged:
        check_unmerged(run)
    for note in run.notes:
        say(f"warning: {note}")
    method = load_finished_run(run, offline=offline)
    with write_aside(to) as aside:
        parts = parts_of(method)
        if parts.encoder is not None and not unmerged:
            parts = replace(parts, encoder=plain_copy(parts.encoder))
        base = base_for_adapter(run) if unmerged else ""
        own = write_st(parts, aside, base)
        remove_code_names(aside)
        check_code(aside, own)
        difference, dimensions = compare_vectors(method, aside)
        exported = Exported(
            run_id=run.record.run_id,
            difference=difference,
            dimensions=dimensions,
            module_files=tuple(file.name for file in own),
            bidirectional=was_switched(parts.encoder),
            base=run.record.backbone_name if unmerged else "",
        )
        readme = write_card(run, exported, to.name)
        refuse_paths(readme, "README.md")
        (aside / "README.md").write_text(readme, encoding="utf-8")
    return exported


def parts_of(method: Method) -> Portable:
    """Return the parts of an export. Raises BenchError, with what to do instead, if a method cannot
    travel.
    """
    try:
        return method.portable()
    except BenchError as error:
        hint = "in Python bench.load_run(RUN).encode gives its vectors"
        raise BenchError(error.message, error.hint or hint) from None


def describe_export(done: Exported) -> list[str]:
    """Return lines for people: the check that was made, and if loading runs code of the folder."""
    lines = [
        f"{done.run_id}: {done.dimensions} dimensions, loaded again by sentence-transformers, "
        f"largest difference {done.difference:.1g}"
    ]
    if done.module_files:
        files = ", ".join(done.module_files)
        lines.append(
            f"load it with trust_remote_code=True, which runs {files} of the folder (its README "
            "says why)"
        )
    return lines


def check_export(record: RunRecord, to: Path) -> None:
    """Raise BenchError if a run cannot be exported to ``to``.

    ``to`` may be an empty folder or an earlier export of this run. The run has to be finished,
    because its scores belong in the model card (NotAModel), and its record must hold no absolute
    path.
    """
    if to.is_symlink():
        raise there_already(to)
    if to.exists() and not is_empty(to) and not is_export_of(record, to):
        raise there_already(to)
    if record.status != "finished":
        raise NotAModel(f"{record.run_id} is not finished (status {record.status})", AGAIN)
    refuse_paths(record.to_json(), RECORD)


def is_export_of(record: RunRecord, to: Path) -> bool:
    """Tell whether the folder has a model card of this run.

    An earlier export may have been killed after it had moved the folder to its place.
    """
    try:
        text = read_plain_file(to / "README.md", SETTINGS_BYTES).decode("utf-8", "replace")
    except OSError:
        return False
    return record.fingerprint in text
