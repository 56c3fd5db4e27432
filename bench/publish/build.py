"""Writes a version: in a temporary folder first, then renamed to its place. A version that is there never changes.

publish(PublishOptions(runs=Path("runs"), out=Path("leaderboards")))
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from bench.base.errors import BenchError, DataDamaged, DataMissing
from bench.base.files import default_cache, write_or_fail
from bench.board import names as addresses
from bench.board.board import PREVIEW, Board
from bench.board.changes import changes_since
from bench.board.content import board, with_plan, with_searches
from bench.publish import data as tables
from bench.publish import readme
from bench.publish import versions as published
from bench.publish.gather import Gathered, gather, left_out, searches
from bench.publish.index import index_files
from bench.publish.stored import ScoredRuns, store_run
from bench.publish.versions import ELSEWHERE, StagedFolder, Version, predictions_entry
from bench.runs.packed import NAME, Packed
from bench.runs.searches import search_bytes
from bench.runs.store import RunsFolder
from bench.show.figures.drawing import Figure, missing_library
from bench.show.pages.engine import ASSETS, TEMPLATES
from bench.show.tables.data import scores_csv

if TYPE_CHECKING:
    from bench.data.sets.folder import DataFolder

Report = Callable[[str, int, int], None]
"""(what is being done, steps done, steps in all)"""

FORMATS = ("html", "md")
TITLE = "Sentence embeddings, compared"
TEMPORARY = ".publishing-"  # how the name of a folder begins in which a version is written


# --- all files of a version but its runs, predictions and manifest: pages, figures, data. Pure functions of the board ---


def version_files(
    board: Board, figures: Sequence[Figure], formats: Sequence[str], report: Report
) -> Iterator[tuple[str, bytes]]:
    """(path below the version's folder, content) of every file; the data of every table is there in any format."""
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
    if "md" in formats:
        yield "README.md", readme.markdown_page(board, figures, pages="html" in formats).encode()
    if "html" in formats:
        yield from _pages(board, figures, report)


def _pages(board: Board, figures: Sequence[Figure], report: Report) -> Iterator[tuple[str, bytes]]:
    from bench.show.pages import board as main_page
    from bench.show.pages import method_page, run_page

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
    formats: tuple[str, ...] = FORMATS
    statistics: str = "auto"
    data: DataFolder | None = None
    preview: bool = False
    predictions_url: str | None = (
        None  # where the file of predictions will be, if not in the version
    )


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What was made. ``folder`` is None where nothing was new; then ``board`` is what the last version would be again."""

    folder: Path | None
    name: str  # the new version, or the last one
    board: Board
    refused: tuple[str, ...]  # submissions that did not pass the checks
    with_local_paths: tuple[str, ...]  # runs whose command names a folder of this machine


def publish(options: PublishOptions, report: Report | None = None) -> Outcome:
    """Publish a version, or a preview of one. Raises BenchError where nothing can be published; then nothing is written."""
    report = report or (lambda what, done, of: None)
    if error := missing_library("bench publish"):
        raise error
    published.refuse_altered(options.out)
    before = published.versions(options.out)
    last = before[-1] if before else None
    options = _with_last(options, last)
    folder = None
    with _temporary(options.out) as temporary:
        gathered = gather(options.runs, options.submissions, options.data)
        place = StagedFolder(temporary / "version")
        url = None if options.preview else options.predictions_url
        packed = _store(gathered, place, url, temporary / NAME, report)
        made = _board(options, gathered, before, report)
        _remove_others(place, made)
        news = options.preview or last is None or _is_news(made, place, last)
        if news:
            figures = _figures(made, report)
            for path, data in version_files(made, figures, options.formats, report):
                place.write(path, data)
            place.seal(None if url is None else predictions_entry(packed, url))
            name = PREVIEW if options.preview else made.version
            folder = _rename(place.folder, options.out / name, temporary / "old")
            if url is not None:
                shutil.move(packed, options.out / f"{name}.{NAME}")
        if not options.preview:
            _write_index(options.out, temporary)
    return Outcome(
        folder=folder,
        name=made.version if news or last is None else last.name,
        board=made,
        refused=tuple(gathered.refused),
        with_local_paths=gathered.with_local_paths,
    )


def _store(
    gathered: Gathered, place: StagedFolder, url: str | None, apart: Path, report: Report
) -> Path:
    """Put the runs whose scores follow from their predictions into ``place``; the others are left out, with the reason.

    The predictions of all go into one file there, or to ``apart`` where they will lie at ``url``; returns its path.
    """
    predictions, scored, stored = Packed(), ScoredRuns(), []
    for i, run in enumerate(gathered.runs):
        report("scoring again and copying predictions", i, len(gathered.runs))
        try:
            store_run(run.record, run.folder, place, predictions, scored)
            stored.append(run)
        except (DataMissing, DataDamaged) as error:
            line = left_out(run.record.run_id, "cannot be published", error.message, run.folder)
            gathered.left_out.append(line)
    scored.keep()
    gathered.runs = stored
    if not stored:
        raise BenchError(
            f"none of these runs can be published: {gathered.left_out[-1]}",
            "bench verify names what is wrong with each",
        )
    path = place.folder / NAME if url is None else apart
    try:
        predictions.write(path)
    except OSError as error:
        why = f"cannot write {NAME}: {error.strerror or error}; nothing was published"
        raise BenchError(why, ELSEWHERE) from None
    if url is None:
        place.hashes[NAME] = sha256(path.read_bytes()).hexdigest()
    return path


def _remove_others(place: StagedFolder, made: Board) -> None:
    """Runs that no table has, because newer runs are in their rows. Their predictions stay in the file: they harm nobody."""
    shown = {run.record.run_id for run in made.runs}
    for name in [name for name in place.hashes if name.startswith(f"{published.RUNS}/")]:
        if name.split("/")[1] not in shown:
            (place.folder / name).unlink()
            del place.hashes[name]


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
    made = with_plan(made, published.read_plan(options.out, name))
    made = with_searches(made, *searches(made.runs, RunsFolder(options.runs), last))
    if last is None:
        return made
    store = RunsFolder(last.folder / published.RUNS)
    old = [store.read(run) for run in last.senders]
    return replace(made, changes=changes_since(last.name, old, [run.record for run in made.runs]))


def _is_news(made: Board, place: StagedFolder, last: Version) -> bool:
    """Whether runs, who ran them, title or note differ from the last version's."""
    records = {
        run.record.run_id: place.hashes[f"{published.RUNS}/{run.record.run_id}/run.json"]
        for run in made.runs
    }
    senders = {run.record.run_id: run.submitted_by for run in made.runs}
    return (records, senders, made.title, made.note) != (
        last.records(),
        last.senders,
        last.title,
        last.note,
    )


def _with_last(options: PublishOptions, last: Version | None) -> PublishOptions:
    """Title and note are those of the last version where none was given; an empty text means none."""
    texts: dict[str, Any] = {}
    for key in ("title", "note"):
        given = getattr(options, key)
        texts[key] = getattr(last, key, None) if given is None else given or None
    return replace(options, **texts)


def _figures(made: Board, report: Report) -> tuple[Figure, ...]:
    from bench.show.figures import figures

    report("drawing figures", 0, 1)
    return figures(made)


@contextlib.contextmanager
def _temporary(out: Path) -> Iterator[Path]:
    """A folder in ``out``, on the same disk, that is removed afterwards; so are those of processes that were killed. One process
    publishes in ``out`` at a time."""
    name = sha256(os.fsencode(out.absolute())).hexdigest()[:16]
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(FileLock(_lock_folder() / f"{name}.lock", timeout=0))
            if not out.exists():
                stack.callback(_remove_empty, out)  # only where nothing was published
            out.mkdir(parents=True, exist_ok=True)
            for left in out.glob(f"{TEMPORARY}*"):
                shutil.rmtree(left, ignore_errors=True)
            temporary = Path(tempfile.mkdtemp(prefix=TEMPORARY, dir=out))
            stack.callback(shutil.rmtree, temporary, ignore_errors=True)
            (temporary / "version").mkdir()
        except Timeout:
            why = f"another process publishes in {out}"
            raise BenchError(why, "wait until it is done") from None
        except OSError as error:
            why = f"cannot write in {out}: {error.strerror or error}"
            raise BenchError(why, ELSEWHERE) from None
        yield temporary


def _lock_folder() -> Path:
    """In the cache; the system's folder for temporary files where the cache cannot be written."""
    folder = default_cache() / "publish"
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    return folder if os.access(folder, os.W_OK) else Path(tempfile.gettempdir())


def _remove_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()


def _rename(folder: Path, to: Path, old: Path) -> Path:
    """Put a version in its place. A preview takes the last one's place, a version nobody's."""
    try:
        if to.name == PREVIEW and to.exists():
            os.rename(to, old)
        os.rename(folder, to)
    except OSError as error:
        why = f"cannot write {to}: {error.strerror or error}; nothing was published"
        raise BenchError(why, ELSEWHERE) from None
    return to


def _write_index(out: Path, temporary: Path) -> None:
    """What lies beside the versions, where it is not up to date; also after a process was killed before it did this."""
    files: Mapping[str, bytes] = index_files(published.versions(out))
    for name, data in files.items():
        if not (out / name).is_file() or (out / name).read_bytes() != data:
            try:
                write_or_fail(out / name, data, folder=temporary)
            except BenchError as error:
                why = f"the version is in place and whole; {name} beside it is not up to date"
                hint = "make room, then bench publish: it writes them"
                raise BenchError(f"{why}: {error.message}", hint) from None
