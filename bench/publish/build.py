"""Writes a version: in a temporary folder first, then renamed to its place. A version that is there never changes.

publish(PublishOptions(runs=Path("runs"), out=Path("leaderboards")))
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
from bench.base.files import default_cache, lock, writing
from bench.board import names as addresses
from bench.board.board import PREVIEW, Board
from bench.board.changes import changes_since
from bench.board.content import board, with_plan, with_searches
from bench.publish import data as tables
from bench.publish import readme
from bench.publish import versions as published
from bench.publish.descriptions import describe
from bench.publish.gather import Gathered, Report, gather, searches
from bench.publish.index import index_files
from bench.publish.versions import Version
from bench.runs.packed import NAME, Packed
from bench.runs.searches import search_bytes
from bench.runs.store import RECORD, RunsFolder
from bench.show.figures import figures as draw_figures
from bench.show.figures.drawing import Figure, missing_library
from bench.show.pages import board as main_page
from bench.show.pages import method_page, run_page
from bench.show.pages.engine import ASSETS, TEMPLATES
from bench.show.tables.data import scores_csv

if TYPE_CHECKING:
    from bench.data.sets.folder import DataFolder

TITLE = "Sentence embeddings, compared"
TEMPORARY = ".publishing-"  # how the name of a folder begins in which a version is written


# --- all files of a version but its runs, predictions and manifest: pages, figures, data. Pure functions of the board ---


def version_files(
    board: Board, figures: Sequence[Figure], report: Report
) -> Iterator[tuple[str, bytes]]:
    """(path below the version's folder, content) of every file."""
    yield "tables.json", tables.as_json(board).encode()
    for name, text in tables.as_csvs(board).items():
        yield f"tables/{name}", text.encode()
    if board.plan is not None:
        yield published.PLAN, board.plan
    for search in board.searches:
        yield addresses.search_file(search.name, "json"), search_bytes(search)
    for figure in figures:
        yield f"figures/{figure.name}.svg", figure.svg.encode()
        yield f"figures/{figure.name}.csv", figure.csv.encode()
    for run in board.paged:
        yield addresses.run_file(run.record.run_id, "scores.csv"), scores_csv(run.record).encode()
    yield "README.md", readme.markdown_page(board, figures).encode()
    for name in ASSETS:
        yield f"assets/{name}", (TEMPLATES / name).read_bytes()
    yield "index.html", main_page.render(board, figures).encode()
    for i, run in enumerate(board.paged):
        report("writing pages", i, len(board.paged))
        yield addresses.run_page(run.record.run_id), run_page.render(board, run).encode()
    for method in board.methods:
        yield addresses.method_page(method), method_page.render(board, method).encode()


# --- a version, from its options to its place ---


@dataclass(frozen=True, kw_only=True)
class PublishOptions:
    """What to publish, and where. ``title``, ``note``: None takes those of the last version, "" the default or none."""

    runs: Path | None = None  # a runs folder, also that of a version: leaderboards/v3/runs
    out: Path = Path("leaderboards")
    submissions: Path | None = None
    title: str | None = None
    note: str | None = None
    baseline: str | None = None
    statistics: str = "auto"
    data: DataFolder | None = None
    preview: bool = False
    predictions_url: str | None = None  # where the predictions will be, if not in the version


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What was made. ``folder`` is None where nothing was new; then ``board`` is what the last version would be again."""

    folder: Path | None
    name: str  # the new version, or the last one
    board: Board
    refused: tuple[str, ...]  # submissions that did not pass the checks


def publish(options: PublishOptions, report: Report | None = None) -> Outcome:
    """Publish a version, or a preview of one. Raises BenchError where nothing can be published; then nothing is written."""
    report = report or (lambda activity, done, of: None)
    if error := missing_library("bench publish"):
        raise error
    if not (options.predictions_url or "https://").startswith(("https://", "http://")):
        raise BenchError(f"--predictions-url {options.predictions_url}: expected https://...")
    with _alone(options.out):
        published.refuse_altered(options.out)
        before = published.versions(options.out)
        last = before[-1] if before else None
        gathered = gather(options.runs, options.submissions, options.data, report)
        made = _board(_with_last(options, last), gathered, before, report)
        shown = {f"{published.RUNS}/{run.record.run_id}" for run in made.runs}
        files = {
            path: data for path, data in gathered.files.items() if str(Path(path).parent) in shown
        }
        folder = None
        if options.preview or last is None or _is_news(made, files, last):
            report("drawing figures", 0, 1)
            files |= version_files(made, draw_figures(made), report)
            name = PREVIEW if options.preview else made.version
            folder = _write(options, name, files, gathered.predictions)
        if not options.preview:
            _write_index(options.out)
    return Outcome(
        folder=folder,
        name=last.name if folder is None and last is not None else made.version,
        board=made,
        refused=tuple(gathered.refused),
    )


def _with_last(options: PublishOptions, last: Version | None) -> PublishOptions:
    """Title and note are those of the last version where there is no option for them; an empty text means none."""
    title = options.title if options.title is not None or last is None else last.content.title
    note = options.note if options.note is not None or last is None else last.content.note
    return replace(options, title=title or TITLE, note=note or None)


def _board(
    options: PublishOptions, gathered: Gathered, before: Sequence[Version], report: Report
) -> Board:
    name, last = published.next_name(before), before[-1] if before else None
    made = board(
        gathered.runs,
        version=PREVIEW if options.preview else name,
        title=options.title or TITLE,
        note=options.note,
        left_out=gathered.left_out,
        baseline=options.baseline,
        statistics=options.statistics,
        report=lambda task, done, of: report(f"comparing {task}", done, of),
    )
    if not options.preview and options.predictions_url is not None:
        made = replace(made, predictions=options.predictions_url)
    made = with_plan(describe(made), published.read_plan(options.out, name))
    made = with_searches(made, *searches(made.runs, RunsFolder(options.runs), last))
    if last is None:
        return made
    store = RunsFolder(last.folder / published.RUNS)
    old = [store.read(run) for run in last.senders]
    return replace(made, changes=changes_since(last.name, old, [run.record for run in made.runs]))


def _is_news(made: Board, files: Mapping[str, bytes], last: Version) -> bool:
    """Whether records, who ran them, title or note differ from the last version's."""
    records = {path: _sha256(data) for path, data in files.items() if path.endswith(RECORD)}
    senders = {run.record.run_id: run.submitted_by for run in made.runs}
    now = (records, senders, made.title, made.note)
    return now != (last.records(), last.senders, last.content.title, last.content.note)


def _sha256(data: bytes) -> str:
    return sha256(data).hexdigest()


@contextlib.contextmanager
def _alone(out: Path) -> Iterator[None]:
    """One process publishes in ``out`` at a time; others wait. What killed ones left there is removed."""
    folder = default_cache() / "publish"
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        folder = Path(tempfile.gettempdir())
    with lock(folder / f"{_sha256(os.fsencode(out.absolute()))[:16]}.lock"):
        for leftover in out.glob(f"{TEMPORARY}*"):
            shutil.rmtree(leftover, ignore_errors=True)
        yield


@contextlib.contextmanager
def _temporary(out: Path) -> Iterator[Path]:
    """A folder in ``out``, on the same disk, that is removed afterwards. Raises BenchError where ``out`` cannot be written."""
    with writing(out, "another folder: --out DIR"):
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=TEMPORARY, dir=out) as folder:
            yield Path(folder)


def _write(
    options: PublishOptions, name: str, files: Mapping[str, bytes], predictions: Packed
) -> Path:
    """The version's folder, with a manifest of its files. A preview takes the last one's place, a version nobody's."""
    url, to = None if options.preview else options.predictions_url, options.out / name
    with _temporary(options.out) as temporary:
        version = temporary / "version"
        for path, data in files.items():
            (version / path).parent.mkdir(parents=True, exist_ok=True)
            (version / path).write_bytes(data)
        packed = (version if url is None else temporary) / NAME
        predictions.write(packed)
        published.seal(version, {path: _sha256(data) for path, data in files.items()}, packed, url)
        if options.preview and to.exists():
            to.rename(temporary / "old")
        version.rename(to)
        if url is not None:
            packed.rename(options.out / f"{name}.{NAME}")
    return to


def _write_index(out: Path) -> None:
    """What lies beside the versions, where it is not up to date; also after a process was killed before it did this."""
    for name, data in index_files(published.versions(out)).items():
        if not (out / name).is_file() or (out / name).read_bytes() != data:
            with _temporary(out) as temporary:
                (temporary / name).write_bytes(data)
                (temporary / name).replace(out / name)
