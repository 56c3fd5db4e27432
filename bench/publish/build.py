"""Writes a version: aside first, whole, then renamed to its place. A version that is there never changes.

publish(Asked(runs=Path("runs"), out=Path("leaderboards")))
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.base.errors import BenchError, DataDamaged, DataMissing, UnknownName
from bench.base.files import HAS_LOCKS, is_free, lock, write_or_fail
from bench.board import names as addresses
from bench.board.board import PREVIEW, Board, PublishedRun
from bench.board.changes import changes_since, judgements
from bench.board.content import board, with_plan, with_searches
from bench.board.grades import separate_record
from bench.publish import versions as published
from bench.publish.check import refuse_altered
from bench.publish.gather import Gathered, all_but_failing, error_words, gather, left_out, searches
from bench.publish.index import index_files
from bench.publish.signature import (
    Signature,
    fingerprint,
    read_signature,
    sign_manifest,
    signature_files,
)
from bench.publish.stored import Packed, ScoredRuns, leave_run, store_run
from bench.publish.versions import (
    ASIDE,
    ELSEWHERE,
    ERRATA,
    Erratum,
    StagedFolder,
    Version,
    errata_bytes,
    held_files,
    made_erratum,
    read_errata,
)
from bench.runs.arrays import GIVEN
from bench.runs.searches import search_bytes
from bench.runs.store import RunsFolder
from bench.show.figures.drawing import Figure, missing_library
from bench.show.pages.engine import TEMPLATES
from bench.verify.scores import StoredArrays

if TYPE_CHECKING:
    from bench.data.sets import DataFolder

Report = Callable[[str, int, int], None]
"""(what is being done, steps done, steps in all)"""


# --- all files of a version but its manifest and what is copied of the runs: pages, figures, data. Pure functions of the board ---

FORMATS = ("html", "md")
# small and hand-written; the pages link to nothing else
ASSETS = ("board.css", "board.js", "panel.js", "compare.js", "pages.css", "pages.js")


def version_files(
    board: Board, figures: Sequence[Figure], formats: Sequence[str], report: Report
) -> Iterator[tuple[str, bytes]]:
    """(path below the version's folder, content) of every file; the data of every table is there in any format."""
    from bench.publish import data, readme
    from bench.publish.index import badge
    from bench.show.tables.data import scores_csv

    yield "tables.json", data.as_json(board).encode()
    for name, text in data.as_csvs(board).items():
        if f"tables/{name}" not in board.older:
            yield f"tables/{name}", text.encode()
    if board.changes is not None and board.changes.cells:
        yield "tables/changes.csv", data.changes_csv(board.changes).encode()
    yield "badge.svg", badge(board).encode()
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
    from bench.show.pages import engine, method_page, run_page, search_page

    for name in ASSETS:
        yield f"assets/{name}", (TEMPLATES / name).read_bytes()
    yield "index.html", main_page.render(board, figures).encode()
    if board.changes is not None and board.changes.cells:
        yield (
            "changes.html",
            engine.render("changes.html", board=board, changes=board.changes, up=0).encode(),
        )
    for search in board.searches:
        yield addresses.search_file(search.name, "html"), search_page.render(board, search).encode()
    for i, run in enumerate(board.paged):
        report("writing pages", i, len(board.paged))
        yield addresses.run_page(run.record.run_id), run_page.render(board, run).encode()
    for method in board.methods:
        yield addresses.method_page(method), method_page.render(board, method).encode()


# --- a version, from what is asked for to what lies in its place ---

LOCK = ".lock"  # in a folder aside: held as long as its process lives
TITLE = "Sentence embeddings, compared"


@dataclass(frozen=True, kw_only=True)
class PublishOptions:
    """What to publish, and where. ``title``, ``note``, ``baseline``: None takes those of the last version, "" the default or none."""

    runs: Path | None = None
    out: Path = Path("leaderboards")
    submissions: Path | None = None
    keep: bool = False  # also the runs of the last version that are not in the folder
    title: str | None = None
    note: str | None = None
    baseline: str | None = None
    formats: tuple[str, ...] = FORMATS
    statistics: str = "auto"
    data: DataFolder | None = None
    preview: bool = False
    anyway: bool = False  # a version although nothing is new
    reduced: bool = False  # of new runs' predictions only what their scores need


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What was made. ``folder`` is None where nothing was new; then ``board`` is what the last version would be again."""

    folder: Path | None
    name: str  # the new version, or the last one
    board: Board
    refused: tuple[str, ...]  # submissions, or their runs, that were not taken
    told_of_here: tuple[str, ...]  # runs whose command names a folder of this machine


def publish(asked: PublishOptions, report: Report | None = None) -> Outcome:
    """Publish a version, or a preview of one. Raises BenchError where nothing can be published; then nothing is written."""
    report = report or (lambda what, done, of: None)
    if error := missing_library("bench publish"):
        raise error
    published.refuse_strange(asked.out)
    before = published.versions(asked.out)
    refuse_altered(asked.out)
    last = before[-1] if before else None
    asked = _with_last(asked, last)
    folder: Path | None = None
    with _aside(asked.out) as aside:
        kept = last if asked.keep else None
        gathered = gather(
            asked.runs, aside / "sent", submissions=asked.submissions, last=kept, data=asked.data
        )
        manifests = {version.name: held_files(version.folder) for version in before}
        held = {
            (path, sha256): name
            for name, files in manifests.items()
            for path, sha256 in files.items()
        }
        place = StagedFolder(aside / "version", held=held)
        records = _store(gathered, place, manifests, report, reduced=asked.reduced)

        def write(runs: Sequence[PublishedRun]) -> tuple[Board, bool]:
            """The board of these runs, and whether it is news; then its files, in the place of those of another try."""
            place.remove_but((published.RUNS, GIVEN))
            shown = {run.record.run_id: records[run.record.run_id] for run in runs}
            made = _board(asked, runs, gathered.left_out, before, report)
            if news := _is_news(asked, made, shown, last):
                made = replace(made, older=_left_in_older(place, made))
                for path, data in version_files(
                    made, _figures(made, report), asked.formats, report
                ):
                    place.write(path, data)
            return made, news

        def leave(run: PublishedRun, error: Exception) -> None:
            run_id = run.record.run_id
            place.inside(f"{published.RUNS}/{run_id}").remove()
            del records[run_id]
            gathered.left_out.append(
                left_out(run_id, "cannot be shown", error_words(error), run.folder)
            )

        stored = sorted((run for run in gathered.runs if run.record.run_id in records), key=is_sent)
        made, news = all_but_failing(stored, write, leave, is_sent)
        for run_id in {run.record.run_id for run in stored} - {
            run.record.run_id for run in made.runs
        }:
            place.inside(f"{published.RUNS}/{run_id}").remove()  # replaced by a newer run
        gathered.runs = made.runs
        if asked.preview:
            folder = _preview(place, asked.out, aside)
        else:
            if news:
                folder = _seal(place, asked, made, records, last)
            _write_index(asked.out, aside)
    name = made.version if news or last is None else last.name
    return Outcome(
        folder=folder,
        name=name,
        board=made,
        refused=gathered.refused,
        told_of_here=gathered.told_of_here,
    )


def add_erratum(out: Path, version: str, text: str) -> Erratum:
    """Publish what was found out about a version, beside it. Raises BenchError where there is no such version, or nothing is said."""
    published.refuse_strange(out)
    before = published.versions(out)
    names = [older.name for older in before]
    if version not in names:
        raise UnknownName(
            "version", version, names, f"in {out}", "bench publish --check names them"
        )
    refuse_altered(out)
    with _aside(out) as aside:
        known = read_errata(out)
        made = made_erratum(version, text, known)
        write_or_fail(out / ERRATA, errata_bytes([*known, made]), ELSEWHERE, aside)
        _write_index(out, aside)
    return made


def sign(out: Path, key: Path) -> Signature:
    """Sign the newest version, where its signature is missing or of another manifest or key. Raises BenchError where that cannot be done."""
    refuse_altered(out)
    newest = published.versions(out)[-1]
    with _aside(out) as aside:
        if newest.signature is None or (newest.signature.manifest, newest.signature.key) != (
            newest.manifest,
            fingerprint(key),
        ):
            for name, data in zip(
                signature_files(newest.name),
                sign_manifest(newest.name, newest.manifest, key),
                strict=True,
            ):
                write_or_fail(out / name, data, ELSEWHERE, aside)
        _write_index(out, aside)
    made = read_signature(out, newest.name)
    assert made is not None
    return made


def is_sent(run: PublishedRun) -> bool:
    return run.submitted_by is not None


def _is_news(
    asked: PublishOptions, made: Board, records: Mapping[str, str], last: Version | None
) -> bool:
    """Whether a version is to be made: not where the last one was made of the same."""
    if asked.preview or asked.anyway or last is None:
        return True
    return published.content_sha256(made, records, asked.baseline) != last.content


def _seal(
    place: StagedFolder,
    asked: PublishOptions,
    made: Board,
    records: Mapping[str, str],
    last: Version | None,
) -> Path:
    """Written as a version for ever: with its own word and its manifest."""
    before = last.manifest if last else None
    place.write(
        published.VERSION_FILE,
        published.version_bytes(made, records, baseline=asked.baseline, before=before),
    )
    place.seal()
    return _rename(place.folder, asked.out / made.version)


def _store(
    gathered: Gathered,
    version: StagedFolder,
    manifests: Mapping[str, Mapping[str, str]],
    report: Report,
    *,
    reduced: bool,
) -> dict[str, str]:
    """Run id -> sha256 of the record, of the runs that an older version holds or that could be copied, and whose scores follow from their
    predictions; the others are left out, with the reason. What an older version holds is read from there."""
    packed, scored, stored, place = (
        Packed(),
        ScoredRuns(),
        dict[str, str](),
        version.inside(published.RUNS),
    )
    runs = list(gathered.runs)
    for i, run in enumerate(runs):
        report("scoring again and copying predictions", i, len(gathered.runs))
        run_id, arrays = run.record.run_id, None
        try:
            left = leave_run(run.record, run.folder, place.inside(run_id), manifests)
            if left is not None:
                folder = version.folder.parent.parent / left[0] / published.RUNS / run_id
                runs[i], stored[run_id] = replace(run, folder=folder, held_by=left[0]), left[1]
            else:
                arrays = StoredArrays(run.record, run.folder)
                stored[run_id] = store_run(
                    run.record,
                    run.folder,
                    place.inside(run_id),
                    packed,
                    version.inside(GIVEN),
                    arrays,
                    reduced=reduced,
                )
            if run.submitted_by is None:  # a submission was scored when it came in
                scored.check(run.record, runs[i].folder, arrays)
        except (DataMissing, DataDamaged) as error:
            place.inside(run_id).remove()
            stored.pop(run_id, None)
            gathered.left_out.append(
                left_out(run_id, "cannot be published", error.message, run.folder)
            )
    scored.keep()
    gathered.runs = tuple(runs)
    if not stored:
        raise BenchError(
            f"none of these runs can be published: {gathered.left_out[-1]}",
            "bench verify names what is wrong with each",
        )
    return stored


def _left_in_older(place: StagedFolder, made: Board) -> dict[str, str]:
    """Path -> older version, of what papers printed, as far as older versions have the same."""
    from bench.publish.data import as_csvs

    for name, text in as_csvs(replace(made, tables=())).items():
        place.leave(f"tables/{name}", text.encode())
    return {
        name: version for name, (version, _) in place.older.items() if name.startswith("tables/")
    }


def _board(
    asked: PublishOptions,
    runs: Sequence[PublishedRun],
    lines: Sequence[str],
    before: Sequence[Version],
    report: Report,
) -> Board:
    name = published.next_name(before)
    made = board(
        runs,
        version=PREVIEW if asked.preview else name,
        title=asked.title or TITLE,
        note=asked.note,
        left_out=lines,
        baseline=asked.baseline,
        statistics=asked.statistics,
        report=lambda task, done, of: report(f"comparing {task}", done, of),
    )
    last = before[-1] if before else None
    made = with_plan(made, published.read_plan(asked.out, name))
    made = with_searches(made, *searches(made.runs, RunsFolder(asked.runs), last))
    if last is None:
        return made
    from bench.show.tables.data import table_data

    now = judgements({"table": table_data(table.table)} for table in made.tables)
    changes = changes_since(
        last.name,
        [separate_record(run) for run in last.published()],
        [separate_record(run) for run in made.runs],
        published.other_news(last, made),
        judged=(last.judgements(), now),
        statistics=(last.statistics, published.STATISTICS),
        errata=[erratum.words() for erratum in last.errata],
    )
    return replace(made, changes=changes)


def _with_last(asked: PublishOptions, last: Version | None) -> PublishOptions:
    """Title, note and baseline are those of the last version where none was asked for; an empty text asks for none."""
    words: dict[str, Any] = {}
    for key in ("title", "note", "baseline"):
        given = getattr(asked, key)
        words[key] = getattr(last, key, None) if given is None else given or None
    return replace(asked, **words)


def _figures(made: Board, report: Report) -> tuple[Figure, ...]:
    from bench.show.figures import figures

    report("drawing figures", 0, 1)
    return figures(made)


# --- in its place ---


@contextlib.contextmanager
def _aside(out: Path) -> Iterator[Path]:
    """A folder beside the versions, on the same disk, which is gone afterwards; so are those of processes that were killed."""
    with contextlib.ExitStack() as stack:
        try:
            if not out.exists():
                stack.callback(_remove_empty, out)  # only where nothing was published
            out.mkdir(parents=True, exist_ok=True)
            for left in out.glob(f"{ASIDE}*"):
                if left.name.endswith(GONE) or _is_left(left):
                    _remove(left)
            aside = Path(tempfile.mkdtemp(prefix=ASIDE, dir=out))
            stack.callback(_remove, aside)
            stack.enter_context(lock(aside / LOCK))
        except OSError as error:
            raise BenchError(
                f"cannot write in {out}: {error.strerror or error}", ELSEWHERE
            ) from None
        yield aside


GONE = ".gone"


def _remove(aside: Path) -> None:
    """Under another name: what a kill leaves of it, perhaps without its lock, is not taken for one that is just being made."""
    gone = aside if aside.name.endswith(GONE) else aside.with_name(f"{aside.name}{GONE}")
    with contextlib.suppress(OSError):
        aside.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


def _remove_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()


def _is_left(aside: Path) -> bool:
    """Whether the process that made the folder is gone; by its age where that cannot be told, as in the moment before it is locked."""
    try:
        with (aside / LOCK).open("rb") as file:
            if HAS_LOCKS:
                return is_free(file.fileno())
    except OSError:
        pass
    return aside.stat().st_mtime < time.time() - 3600


def _rename(place: Path, to: Path) -> Path:
    try:
        os.rename(place, to)
    except OSError as error:
        if to.exists():
            raise BenchError(
                f"{to} was published by somebody else meanwhile",
                "run it again: the next version is made",
            ) from None
        raise BenchError(
            f"cannot write {to}: {error.strerror or error}; nothing was published", ELSEWHERE
        ) from None
    return to


def _preview(place: StagedFolder, out: Path, aside: Path) -> Path:
    """It takes the last preview's place."""
    to = out / PREVIEW
    if place.older:
        place.seal()  # says where the rest lies
    try:
        if to.exists():
            os.rename(to, aside / "old")
    except OSError as error:
        raise BenchError(f"cannot replace {to}: {error.strerror or error}", ELSEWHERE) from None
    return _rename(place.folder, to)


def _write_index(out: Path, aside: Path) -> None:
    """What lies beside the versions, wherever it is not what it should be; also after a process was killed before it did this. It is
    written in ``aside``, so that a process that is killed leaves nothing but that folder."""
    versions = published.versions(out)
    files = {out / name: data for name, data in index_files(versions).items()}
    stale = [
        path for path, data in files.items() if not path.is_file() or path.read_bytes() != data
    ]
    for i, path in enumerate(stale):
        try:
            write_or_fail(path, files[path], folder=aside)
        except BenchError as error:
            names = ", ".join(file.name for file in stale[i:])
            said = f"{versions[-1].name} is in place and whole; what lies beside it is not up to date ({names}): {error.message}"
            raise BenchError(said, "make room, then bench publish: it writes them") from None
