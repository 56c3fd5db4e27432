"""A run as files that other people's tools load: ``export`` writes a folder, :mod:`.hub` puts it on the hub.

The folder is written aside, loaded again by the tool that it is for, and moved to its place only when that tool gives the
method's own vectors.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bench.base.errors import BenchError, NotAModel, RunFailed, one_line
from bench.export import card, mteb_folder, st_folder, transformers_folder
from bench.export.exported import Exported
from bench.runs.intact import AGAIN

if TYPE_CHECKING:
    from bench.method import Method
    from bench.run.plan import TrainedRun
    from bench.runs.record import RunRecord


TOLERANCE = 1e-5
"""How far a vector may move by batch and padding, and how far an export's may lie from the method's."""
SENTENCES = (
    "A man is playing a guitar .",
    "Yes",
    "",
    " two blanks  before a word ",
    'He said "wait" , and left!',
    "NASA's probe (2021)?",
    "Zwölf Boxkämpfer jagen Viktor über den Sylter Deich – naïve café 你好 🙂",
    "a [MASK] and a </s> in the text",
    "Prices rose by 3.5 % in March , the bank said , although most forecasts had been higher : 'much' higher . "
    * 3,
    "A sentence that is longer than any of these models reads , so that it is cut . " * 60,
)


def check_export(record: RunRecord, to: Path) -> None:
    """Raises BenchError where something is in the way of what is written, NotAModel where the run is not finished: its scores belong
    in the model card."""
    if to.is_symlink() or (to.exists() and not (to.is_dir() and not any(to.iterdir()))):
        raise BenchError(
            f"--to {to} exists already; nothing was written",
            "name a new folder, or remove that one first",
        )
    if record.status != "finished":
        raise NotAModel(
            f"{record.run_id} is not finished (status {record.status})",
            AGAIN,
        )


def export(run: TrainedRun, method: Method, to: Path, form: str, place: str = "") -> Exported:
    """Write a finished run, whose method is loaded, to a new folder for one of these tools. ``place``: from where the README loads
    it, if it will not be this folder.

    Raises BenchError with the reason where the format has no place for what the method does, where a file cannot be written,
    or where the written folder does not give the method's vectors; then nothing is left behind.
    """
    check_export(run.record, to)
    with write_aside(to) as aside:
        files: list[str] = []
        if form == "transformers":
            transformers_folder.write(method.portable(), aside, method.name)
        else:
            files = st_folder.write(method.portable(), aside)
        difference, dimensions = compare_vectors(method, aside, form)
        exported = Exported(form, run.record.run_id, difference, dimensions, tuple(files))
        if form == "mteb":
            mteb_folder.write(run, exported, aside)
            mteb_folder.write_results(run.record, run.folder, aside)
        (aside / "README.md").write_text(
            card.text(run, exported, aside, place or to.name), encoding="utf-8"
        )
    return exported


@contextlib.contextmanager
def write_aside(to: Path) -> Iterator[Path]:
    """A folder beside ``to`` that takes its place at the end, and is gone after any error."""
    from safetensors import SafetensorError

    target = to.absolute()
    aside = target.parent / f".{target.name}.{secrets.token_hex(6)}.tmp"
    try:
        aside.mkdir(parents=True)
        yield aside
        if target.is_dir():
            target.rmdir()  # it is empty, else the system refuses
        os.replace(aside, target)
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise BenchError(
            f"{to} cannot be written: {reason}", "free disk space, or another --to"
        ) from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)


# --- what an export gives, against what the method gives: the written folder is loaded by the tool that it is for ---


def compare_vectors(method: Method, folder: Path, form: str) -> tuple[float, int]:
    """The largest difference of a vector's entry, relative to the vector's largest where that is above 1; and the dimensions.

    Raises RunFailed where it is above 1e-5, or above twice what the method's own vectors move when each sentence is encoded
    alone: whitening's do by more than 1e-5, for it stretches the directions in which vectors hardly differ, rounding included.
    """
    mine = method.encode(list(SENTENCES))
    alone = np.concatenate([method.encode([sentence]) for sentence in SENTENCES])
    allowed = max(TOLERANCE, 2 * relative(mine, alone))
    module = transformers_folder if form == "transformers" else st_folder
    try:
        theirs = module.vectors(folder, SENTENCES)
    except Exception as error:  # whatever the tool raises
        raise RunFailed(
            f"the export as {form} cannot be loaded: {one_line(error)}", "please report it"
        ) from None
    if mine.shape != theirs.shape:
        raise RunFailed(
            f"the export as {form} gives vectors of shape {theirs.shape}, the method {mine.shape}"
        )
    difference = relative(mine, theirs)
    if not difference <= allowed:
        raise RunFailed(
            f"the export as {form} gives other vectors than {method.name}: they differ by {difference:.1g}, "
            f"allowed are {allowed:.1g}; nothing was written",
            "this is a fault of bench or of the method's portable(): please report it",
        )
    return difference, int(mine.shape[1])


def relative(mine: np.ndarray, theirs: np.ndarray) -> float:
    """max |a - b| / max(1, max |a|), row by row. NaN counts as infinite."""
    scale = np.maximum(1.0, np.abs(mine).max(axis=1, keepdims=True))
    difference = float((np.abs(mine.astype(np.float64) - theirs) / scale).max())
    return difference if np.isfinite(difference) else float("inf")
