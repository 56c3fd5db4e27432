"""Writes a version: in a temporary folder first, then renamed to its place. A version that is there never changes.

publish(runs=Path("runs"), out=Path("leaderboards"))
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from bench.base.errors import BenchError
from bench.base.files import lock, write_or_fail, writing
from bench.board.board import PREVIEW, Board
from bench.board.changes import changes_since
from bench.board.content import board
from bench.publish.files import index_files, version_files
from bench.publish.gather import Report, describe, gather, searches
from bench.publish.versions import (
    next_name,
    read_plan,
    refuse_altered,
    seal,
    versions,
)
from bench.runs.packed import NAME, Packed
from bench.runs.store import RunsFolder
from bench.show.figures import figures as draw_figures
from bench.show.figures.drawing import missing_library

if TYPE_CHECKING:
    from bench.data.sets import DataFolder

TITLE = "Sentence embeddings, compared"
TEMPORARY = ".publishing-"  # how the name of a folder begins in which a version is written


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What was made. ``folder`` is None where nothing was new; then ``board`` is what the last version would be again."""

    folder: Path | None
    name: str  # of the new version, or of the last one
    board: Board
    refused: Sequence[str]  # submissions that did not pass the checks


def publish(
    *,
    runs: Path | None = None,
    out: Path = Path("leaderboards"),
    submissions: Path | None = None,
    title: str | None = None,
    note: str | None = None,
    baseline: str | None = None,
    data: DataFolder | None = None,
    preview: bool = False,
    predictions_url: str | None = None,
    report: Report = lambda activity, done, of: None,
) -> Outcome:
    """Publish a version in ``out``, or a preview of one. Raises BenchError where nothing can be published; then nothing is written.

    ``runs``: a runs folder, also that of a version (leaderboards/v3/runs). ``title``, ``note``: None takes those of the last version, ""
    the default or none. ``predictions_url``: where the predictions will be, if not in the version.
    """
    if error := missing_library("bench publish"):
        raise error
    if not (predictions_url or "https://").startswith(("https://", "http://")):
        raise BenchError(f"--predictions-url {predictions_url}: expected https://...")
    with _alone(out):
        refuse_altered(out)
        before = versions(out)
        last, name = before[-1] if before else None, next_name(before)
        url = None if preview else predictions_url
        gathered = gather(runs, submissions, data, report)
        report("comparing", 0, 1)
        made = board(
            gathered.runs,
            version=PREVIEW if preview else name,
            title=(last.title if title is None and last else title) or TITLE,
            note=(last.note if note is None and last else note) or None,
            senders=gathered.senders,
            left_out=gathered.left_out,
            baseline=baseline,
        )
        published, missing = searches(made, RunsFolder(runs), last)
        why = "not published, although runs here have values that it found"
        lines = [f"{name}: {why}" for name in missing]
        made = replace(
            describe(made),
            predictions=url or NAME,
            plan=read_plan(out, name),
            searches=tuple(published),
            left_out=(*made.left_out, *lines),
        )
        old = [] if last is None else last.records()
        records = [run.record for run in made.runs]
        if last is not None:
            made = replace(made, changes=changes_since(last.name, old, records))
        senders = {run_id: made.senders.get(run_id) for run_id in made.records}
        is_news = last is None or (
            (records, senders, made.title, made.note) != (old, last.senders, last.title, last.note)
        )
        folder = out / made.version if preview or is_news else None
        if folder is not None:
            report("drawing figures and pages", 0, 1)
            files = version_files(made, draw_figures(made))
            for run_id in made.records:
                files |= gathered.files[run_id]
            with writing(out, "another folder: --out DIR"):
                out.mkdir(parents=True, exist_ok=True)
                with tempfile.TemporaryDirectory(prefix=TEMPORARY, dir=out) as aside:
                    _write(folder, files, gathered.predictions, url, Path(aside))
        if not preview:
            _write_index(out)
    name = made.version if folder is not None or last is None else last.name
    return Outcome(folder=folder, name=name, board=made, refused=gathered.refused)


@contextlib.contextmanager
def _alone(out: Path) -> Iterator[None]:
    """One process of a user publishes in ``out`` at a time; others wait. What killed ones left there is removed."""
    name = sha256(os.fsencode(f"{Path.home()}\0{out.absolute()}")).hexdigest()[:16]
    with lock(Path(tempfile.gettempdir()) / f"bench-publish-{name}.lock"):
        for leftover in out.glob(f"{TEMPORARY}*"):
            shutil.rmtree(leftover, ignore_errors=True)
        yield


def _write(
    place: Path, files: Mapping[str, bytes], predictions: Packed, url: str | None, aside: Path
) -> None:
    """The version's folder, with a manifest of its files, made in ``aside``. Only a preview takes the place of the one before."""
    version = aside / "version"
    for path, content in files.items():
        (version / path).parent.mkdir(parents=True, exist_ok=True)
        (version / path).write_bytes(content)
    packed = (version if url is None else aside) / NAME
    predictions.write(packed)
    hashes = {path: sha256(content).hexdigest() for path, content in files.items()}
    seal(version, hashes, packed, url)
    if place.name == PREVIEW and place.exists():
        place.rename(aside / "old")
    version.rename(place)
    if url is not None:
        packed.rename(place.parent / f"{place.name}.{NAME}")


def _write_index(out: Path) -> None:
    """What lies beside the versions; also after a process was killed before it did this."""
    for name, content in index_files(versions(out)).items():
        if not (out / name).is_file() or (out / name).read_bytes() != content:
            write_or_fail(out / name, content, hint="another folder: --out DIR")
