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
from bench.base.files import lock, writing
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
    from bench.data.sets.folder import DataFolder

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
    statistics: str = "auto",
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
        made = board(
            gathered.runs,
            version=PREVIEW if preview else name,
            title=(last.title if title is None and last else title) or TITLE,
            note=(last.note if note is None and last else note) or None,
            senders=gathered.senders,
            left_out=gathered.left_out,
            baseline=baseline,
            statistics=statistics,
            report=lambda task, done, of: report(f"comparing {task}", done, of),
        )
        found, missing = searches(made, RunsFolder(runs), last)
        why = "not published, although runs here have values that it found"
        lines = [f"{name}: {why}" for name in missing]
        made = replace(
            describe(made),
            predictions=url or NAME,
            plan=read_plan(out, name),
            searches=tuple(found),
            left_out=(*made.left_out, *lines),
        )
        if last is not None:
            made = replace(
                made,
                changes=changes_since(last.name, last.records(), [run.record for run in made.runs]),
            )
        shown = {f"{RUNS}/{run.record.run_id}" for run in made.runs}
        files = {
            path: content
            for path, content in gathered.files.items()
            if str(Path(path).parent) in shown
        }
        folder = None
        if preview or last is None or _is_news(made, files, last):
            report("drawing figures", 0, 1)
            files |= version_files(made, draw_figures(made), report)
            folder = _write(out / made.version, files, gathered.predictions, url)
        if not preview:
            _write_index(out)
    name = last.name if folder is None and last is not None else made.version
    return Outcome(folder=folder, name=name, board=made, refused=gathered.refused)


def _is_news(made: Board, files: Mapping[str, bytes], last: Version) -> bool:
    """Whether records, who ran them, title or note differ from the last version's."""
    senders = {run: made.senders.get(run) for run in made.records}
    if (senders, made.title, made.note) != (last.senders, last.title, last.note):
        return True
    records = {path: content for path, content in files.items() if path.endswith(RECORD)}
    return any((last.folder / path).read_bytes() != records[path] for path in records)


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


def _write_index(out: Path, aside: Path) -> None:
    """What lies beside the versions; also after a process was killed before it did this."""
    for name, content in index_files(versions(out)).items():
        (aside / name).write_bytes(content)
        (aside / name).replace(out / name)
