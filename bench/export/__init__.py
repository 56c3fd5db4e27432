"""A run as files that other people's tools load: ``export`` writes a folder, ``push`` puts it on the hub.

The folder is written aside, loaded again by the tool that it is for, and moved to its place only when that tool gives the
method's own vectors.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.base.errors import BenchError, NotAModel, UnknownName
from bench.runs.intact import again

if TYPE_CHECKING:
    from bench.method import Method
    from bench.run.trained_run import TrainedRun

FORMATS = {
    "sentence-transformers": "SentenceTransformer(DIR) loads it",
    "transformers": "AutoModel.from_pretrained(DIR) loads it; the README shows how the vector is taken from its states",
    "mteb": "a sentence-transformers folder with mteb_model.py, which mteb evaluates, and the run's scores as mteb's result files",
    "onnx": "model.onnx from token ids to vectors, and tokenizer.json; needs the packages of the extra `onnx`",
}


@dataclass(frozen=True)
class Exported:
    """What was written: where, of which run, and the largest difference from the method's own vectors, relative to their size."""

    folder: Path
    form: str
    run_id: str
    difference: float
    dimensions: int
    module_files: tuple[str, ...] = ()  # source files that travel; who loads the folder has to allow them


def check_form(form: str) -> None:
    """Raises UnknownName for a format that there is not, BenchError where the packages for it are not installed."""
    if form not in FORMATS:
        raise UnknownName("format", form, FORMATS, hint="bench export --help")
    if form == "onnx":
        from bench.export.onnx_graph import check_packages

        check_packages()


def check_place(to: Path) -> None:
    """Raises BenchError where something is in the way of a new folder."""
    if to.is_dir() and not any(to.iterdir()):
        return
    if to.exists() or to.is_symlink():
        kind = "is a folder with files in it" if to.is_dir() else "is there already and is no folder"
        raise BenchError(f"--to {to} {kind}; nothing was written", "name a new folder, or remove that one first")
    parent = next(one for one in to.absolute().parents if one.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise BenchError(f"--to {to}: no folder can be made in {parent}", "name a folder in a place where you may write")


def check_finished(run: TrainedRun) -> None:
    """Raises NotAModel where a run is not finished: its scores belong in the model card."""
    if run.record.status != "finished":
        raise NotAModel(f"{run.record.run_id} is not finished (status {run.record.status})", again(run.record, run.folder))


def export(run: TrainedRun, method: Method, to: Path, form: str) -> Exported:
    """Write a finished run, whose method is loaded, to a new folder in one of FORMATS.

    Raises BenchError with the reason where the format has no place for what the method does, where a file cannot be written,
    or where the written folder does not give the method's vectors; then nothing is left behind.
    """
    from bench.export import card, check, mteb_file, mteb_results, onnx_graph, st_folder, transformers_folder

    check_form(form)
    check_place(to)
    check_finished(run)
    with written_aside(to) as aside:
        if form == "onnx":
            files = onnx_graph.write(method, aside)
        elif form == "transformers":
            files = transformers_folder.write(method.portable(), aside, method.name)
        else:
            files = st_folder.write(method.portable(), aside)
        difference, dimensions = check.compare(method, aside, form)
        exported = Exported(to, form, run.record.run_id, difference, dimensions, tuple(files))
        if form == "mteb":
            mteb_file.write(run, exported, aside)
            mteb_results.write(run.record, run.folder, aside)
        (aside / "README.md").write_text(card.text(run, exported, aside), encoding="utf-8")
    return exported


@contextlib.contextmanager
def written_aside(to: Path) -> Iterator[Path]:
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
        raise BenchError(f"{to} cannot be written: {reason}", "free disk space, or another --to") from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)
