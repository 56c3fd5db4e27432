"""A run as files that other people's tools load: ``export`` writes a folder, ``upload`` puts it on the hub.

The folder is written in a temporary place, loaded again by the tool that it is for, and moved to its place only if that tool gives
the method's own vectors.
"""

from __future__ import annotations

import contextlib
import glob
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bench.base.errors import BenchError, NotAModel, RunFailed, one_line
from bench.base.files import has_same_files, is_free, lock, share_files
from bench.base.reading import SETTINGS_BYTES, open_plain_file, read_plain_file
from bench.data.fetching import offline_now
from bench.export import card, folders, results
from bench.export.code import check_code, remove_code_names
from bench.export.results import Exported
from bench.method import Method
from bench.records.damage import AGAIN
from bench.records.names import RECORD
from bench.records.paths import refuse_paths
from bench.records.record import RunRecord
from bench.run.finished import TrainedRun

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
    """Raises BenchError if the target is anything but an empty folder or an export of this run, or if the record holds an absolute path;
    NotAModel if the run is not finished: its scores belong in the model card."""
    if to.is_symlink() or (to.exists() and not (is_empty(to) or is_export_of(record, to))):
        raise there_already(to)
    if record.status != "finished":
        raise NotAModel(
            f"{record.run_id} is not finished (status {record.status})",
            AGAIN,
        )
    refuse_paths(record.to_json(), RECORD)


def there_already(to: Path) -> BenchError:
    """The error for a target that holds something else."""
    return BenchError(
        f"--to {to} exists already; nothing was written",
        "name a new folder, or remove that one first",
    )


def is_empty(to: Path) -> bool:
    return to.is_dir() and not any(to.iterdir())


def is_export_of(record: RunRecord, to: Path) -> bool:
    """Say if the folder has a model card of this run: an earlier export may have been killed after it had put the folder there."""
    try:
        text = read_plain_file(to / "README.md", SETTINGS_BYTES).decode("utf-8", "replace")
    except OSError:
        return False
    return record.fingerprint in text


def export(run: TrainedRun, method: Method, to: Path, form: str, place: str = "") -> Exported:
    """Write a finished run, whose method is loaded, to a new folder for one of these tools. ``place``: from where the README loads
    it, if it will not be this folder. The very same export, if it is there already, stays as it is.

    Raises BenchError with the reason where the format has no place for what the method does, where a file cannot be written,
    or where the written folder does not give the method's vectors; then nothing is left behind.
    """
    check_export(run.record, to)
    with write_aside(to) as aside:
        parts = method.portable()
        own: list[Path] = []
        if form == "transformers":
            folders.write_transformers(parts, aside, method.name)
        else:
            own = folders.write_st(parts, aside)
        remove_code_names(aside)
        check_code(aside, own)
        files = [file.name for file in own]
        difference, dimensions = compare_vectors(method, aside, form)
        exported = Exported(form, run.record.run_id, difference, dimensions, tuple(files))
        if form == "mteb":
            results.write_mteb_model(run, exported, aside)
            results.write_mteb_results(run.record, run.folder, aside)
        (aside / "README.md").write_text(
            card.text(run, exported, aside, place or to.name), encoding="utf-8"
        )
        refuse_written_paths(aside)
    return exported


def refuse_written_paths(folder: Path) -> None:
    """Raises DataDamaged for an absolute path in what an export says of the run: its card, and the files of results."""
    said = [folder / "README.md", folder / results.FILE, *sorted(folder.glob("results/**/*.json*"))]
    for file in said:
        if file.is_file():
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                refuse_paths(line, f"{file.relative_to(folder).as_posix()}, line {number}")


@contextlib.contextmanager
def write_aside(to: Path) -> Iterator[Path]:
    """A folder next to ``to`` that takes its place at the end, and is removed after any error.

    Raises BenchError if it cannot be written, or if ``to`` then holds other files; with the same files it stays as it is.
    """
    from safetensors import SafetensorError

    target = to.absolute()
    aside = target.parent / f".{target.name}.{secrets.token_hex(6)}.tmp"
    with contextlib.ExitStack() as held:
        held.callback(shutil.rmtree, aside, ignore_errors=True)
        try:
            aside.mkdir(parents=True)
            held.enter_context(lock(aside / OWNED))
            _remove_leftovers(target, aside)
            yield aside
            share_files(aside)
            (aside / OWNED).unlink()
            if has_same_files(aside, target):
                return
            if target.is_dir() and not is_empty(target):
                raise there_already(to)
            if target.is_dir():
                target.rmdir()
            os.replace(aside, target)
        except (OSError, SafetensorError) as error:
            reason = getattr(error, "strerror", None) or " ".join(str(error).split())
            raise BenchError(
                f"{to} cannot be written: {reason}", "free disk space, or another --to"
            ) from None


OWNED = ".lock"
"""The file that a process holds in the folder that it writes."""


def _remove_leftovers(target: Path, mine: Path) -> None:
    """Remove what killed processes left of their exports to ``target``: the size of a model each."""
    for folder in target.parent.glob(f".{glob.escape(target.name)}.*.tmp"):
        if folder == mine:
            continue
        try:
            with open_plain_file(folder / OWNED) as file:
                unused = is_free(file.fileno())
        except OSError:  # killed before it held the file, or after it had removed it
            unused = time.time() - folder.lstat().st_mtime > 3600
        if unused:
            shutil.rmtree(folder, ignore_errors=True)


# --- what an export gives, against what the method gives: the written folder is loaded by the tool that it is for ---


def compare_vectors(method: Method, folder: Path, form: str) -> tuple[float, int]:
    """The largest difference of a vector's entry, relative to the vector's largest where that is above 1; and the dimensions.

    Raises RunFailed where it is above 1e-5, or above twice what the method's own vectors move when each sentence is encoded
    alone: whitening's do by more than 1e-5, for it stretches the directions in which vectors hardly differ, rounding included.
    """
    mine = method.encode(list(SENTENCES))
    allowed = max(
        TOLERANCE,
        2 * relative(mine, np.concatenate([method.encode([sentence]) for sentence in SENTENCES])),
    )
    vectors = folders.transformers_vectors if form == "transformers" else folders.st_vectors
    try:
        theirs = vectors(folder, SENTENCES)
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
            f"the export as {form} does not give the vectors of {method.name}: they differ by {difference:.1g}, "
            f"more than the allowed {allowed:.1g}; nothing was written",
            "this is a bug in bench or in the method's portable(): please report it",
        )
    return difference, int(mine.shape[1])


def relative(mine: np.ndarray, theirs: np.ndarray) -> float:
    """max |a - b| / max(1, max |a|), row by row. NaN counts as infinite."""
    scale = np.maximum(1.0, np.abs(mine).max(axis=1, keepdims=True))
    difference = float((np.abs(mine.astype(np.float64) - theirs) / scale).max())
    return difference if np.isfinite(difference) else float("inf")


LOGIN = "hf auth login, or HF_TOKEN with a token that has write access; HF_ENDPOINT for another hub"
OURS = {".gitattributes", "README.md"}  # what a new repository may hold already
NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,94}/[A-Za-z0-9][\w.-]{0,94}", re.ASCII)


def check_repository(name: str, *, replace: bool, offline: bool) -> None:
    """Raises BenchError without a valid login, or if the repository holds other files and ``replace`` is not given."""
    from huggingface_hub import HfApi

    if not NAME.fullmatch(name) or "--" in name or ".." in name:
        raise BenchError(
            f"'{name}' is not a repository name", "owner/name: letters, digits, - _ and . only"
        )
    if offline or offline_now():
        raise BenchError(
            "--push needs the hub, and --offline (or HF_HUB_OFFLINE) forbids a connection",
            "bench export RUN --to DIR writes the same files here",
        )
    with _hub_errors(name):
        HfApi().whoami()
        files = set(HfApi().list_repo_files(name)) if HfApi().repo_exists(name) else set()
    if (others := sorted(files - OURS)) and not replace:
        raise BenchError(
            f"{name} already holds {len(others)} files, such as {others[0]}; nothing was uploaded",
            "--replace overwrites them (the hub keeps the older commits); or choose another name",
        )


def upload(folder: Path, name: str, run_id: str, *, private: bool) -> tuple[str, str]:
    """(commit, address). Make the repository if there is none, and put the folder in it in one commit; files that were there and are not in the
    folder are removed by it. Raises RunFailed where the hub refuses or cannot be reached."""
    from huggingface_hub import HfApi

    api = HfApi()
    with _hub_errors(name):
        api.create_repo(name, private=private, exist_ok=True)
        done = api.upload_folder(
            repo_id=name,
            folder_path=folder,
            commit_message=f"bench export {run_id}",
            delete_patterns=["*"],
        )
    return str(done.oid), f"{api.endpoint}/{name}"


@contextlib.contextmanager
def _hub_errors(name: str) -> Iterator[None]:
    """What the hub's client raises becomes one line."""
    try:
        yield
    except Exception as error:
        raise RunFailed(f"{name}: the hub refused it: {one_line(error)[:200]}", LOGIN) from None
