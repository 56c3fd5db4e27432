"""Writes a version: in a temporary folder first, then renamed to its place. A version that is there
never changes.

publish(runs=Path("runs"), out=Path("leaderboards"))

What its files contain (data, Markdown, HTML, figures) are pure functions of the board and of
published versions: none of them reads a clock or the network.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

from bench.base.errors import BenchError
from bench.base.files import write_or_fail, writing
from bench.base.reading import read_plain_file
from bench.board.board import PREVIEW, Board, build_board
from bench.board.changes import Changes, changes_since
from bench.data.sets import DataFolder
from bench.publish.asides import alone_in, folder_beside
from bench.publish.described import with_descriptions
from bench.publish.gather import Gathered, Report, gather
from bench.publish.index import index_files
from bench.publish.searches import find_searches
from bench.publish.spoilers import find_spoilers
from bench.publish.suites import own_data_lines
from bench.publish.version_files import version_files
from bench.publish.versions import PLANS, Version, refuse_altered, seal, versions
from bench.records.packed import NAME, Packed
from bench.records.paths import refuse_paths
from bench.records.run import Run
from bench.records.store import RunsFolder
from bench.show.figures import board_figures, missing_library
from bench.show.tables.data import table_data

TITLE = "Sentence embeddings, compared"
PLAN_BYTES = 1 << 20
TEMPORARY = ".publishing-"
"""The beginning of the name of a folder that a version is written in."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result of publishing."""

    # None if nothing changed since the last version; then ``board`` is that of the last version
    # again
    folder: Path | None
    # of the new version, or of the last one
    name: str
    board: Board
    # lines on submissions that did not pass the checks
    refused: Sequence[str]
    # lines on own files and suites, if their gold values are in the version
    own_data: Sequence[str] = ()


def publish_version(
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
    address: str | None = None,
    docs: str | None = None,
    leave_out: Sequence[str] = (),
    plugins: Sequence[Path] = (),
    report: Report = lambda activity, done, of: None,
) -> Outcome:
    """Publish a version in ``out``, or a preview of one. Raises BenchError if that is impossible;
    then nothing is written.

    ``runs``: a runs folder, also that of a version (leaderboards/v4/runs). ``title``, ``note``:
    None keeps the last version's, "" takes the default or none. ``predictions_url``: the future
    address of the predictions, if not in the version. ``address``: the future address of ``out``,
    for links that other sites show. ``docs``: the address of the documentation, which pages link
    to. ``leave_out``: suites to publish neither scores nor predictions of. ``plugins``: files of
    methods, which say on the pages what they are.
    """
    _check_options(predictions_url, title, note, baseline)
    _check_addresses(address, docs)
    with alone_in(out, TEMPORARY):
        refuse_altered(out)
        before = versions(out)
        last = before[-1] if before else None
        name = f"v{int(last.name[1:]) + 1 if last else 1}"
        url = None if preview else predictions_url
        texts = _Texts(
            version=PREVIEW if preview else name,
            title=(last.title if title is None and last else title) or TITLE,
            note=(last.note if note is None and last else note) or None,
            baseline=baseline,
            predictions=url or NAME,
            address=address.rstrip("/") + "/" if address else "",
            docs=docs or "",
            plan=_read_plan(out / PLANS / f"{name}.md"),
            plugins=plugins,
        )

        def collect(spoilers: Mapping[str, str]) -> Gathered:
            published = last.senders if last else {}
            return gather(runs, submissions, data, report, published, spoilers, leave_out)

        gathered, made, files = _draw_all(collect, texts, RunsFolder(runs), last, report)
        folder = out / made.version if preview or _is_news(made, last) else None
        if folder is not None:
            for run_id in made.records:
                files |= gathered.files[run_id]
            _write_version(folder, files, gathered.predictions, url)
        if not preview:
            _write_index(out)
    own = [record for run_id, record in made.records.items() if run_id not in made.senders]
    return Outcome(
        folder=folder,
        name=made.version if folder is not None or last is None else last.name,
        board=made,
        refused=gathered.refused,
        own_data=own_data_lines(own) if folder is not None else (),
    )


def _check_options(
    predictions_url: str | None, title: str | None, note: str | None, baseline: str | None
) -> None:
    """Raise BenchError for a missing library, a bad address, and a text that gives a folder
    away."""
    missing = missing_library("bench publish")
    if missing is not None:
        raise missing
    if predictions_url and not predictions_url.startswith(("https://", "http://")):
        raise BenchError(f"--predictions-url {predictions_url}: expected https://...")
    for option, text in (("--title", title), ("--note", note), ("--baseline", baseline)):
        refuse_paths(text, option)


def _check_addresses(address: str | None, docs: str | None) -> None:
    """Raise BenchError for anything but the address of a folder or a page on the web."""
    for option, text in (("--address", address), ("--docs", docs)):
        if not text:
            continue
        try:
            parts = urlsplit(text)
            known = parts.scheme in ("https", "http") and bool(parts.hostname)
        except ValueError:
            known = False
        if not known or parts.query or parts.fragment or not text.isascii() or " " in text:
            raise BenchError(
                f"{option} {text}: expected the address of a folder on the web",
                f"{option} https://example.org/leaderboards",
            )


def _draw_all(
    collect: Callable[[Mapping[str, str]], Gathered],
    texts: _Texts,
    store: RunsFolder,
    last: Version | None,
    report: Report,
) -> tuple[Gathered, Board, dict[str, bytes]]:
    """Gather the runs and draw them; runs that keep the others from being drawn are left out.

    ``collect``: gathers the runs, given run id -> why for those that are to be left out.
    """
    gathered = collect({})
    report("comparing", 0, 1)
    try:
        return gathered, *_draw(gathered, texts, store, last, report)
    except BenchError:
        raise
    except Exception:  # a record may be wrong in ways that nobody thought of
        spoilers = _find_spoilers(gathered, replace(texts, baseline=None))
        if not spoilers or _is_ours(spoilers, gathered):
            raise
    gathered = collect(spoilers)
    return gathered, *_draw(gathered, texts, store, last, report)


def _is_news(made: Board, last: Version | None) -> bool:
    """Say if runs, senders, title or note differ from the last version."""
    if last is None:
        return True
    records = [run.record for run in made.runs]
    senders = {run_id: made.senders.get(run_id) for run_id in made.records}
    return (records, senders, made.title, made.note) != (
        last.records(),
        last.senders,
        last.title,
        last.note,
    )


@dataclass(frozen=True, kw_only=True)
class _Texts:
    """The name and the texts of a version, besides its runs."""

    version: str
    title: str
    note: str | None
    baseline: str | None
    predictions: str
    address: str
    docs: str
    plan: bytes | None
    plugins: Sequence[Path]


def _draw(
    gathered: Gathered, texts: _Texts, store: RunsFolder, last: Version | None, report: Report
) -> tuple[Board, dict[str, bytes]]:
    """Make the board of the gathered runs, and every file of its version except the runs' files."""
    made = build_board(
        gathered.runs,
        version=texts.version,
        title=texts.title,
        note=texts.note,
        senders=gathered.senders,
        left_out=gathered.left_out,
        baseline=texts.baseline,
    )
    published, missing = find_searches(made, store, last)
    lines = [f"{name}: this search is not published, {why}" for name, why in missing.items()]
    made = replace(
        with_descriptions(made, texts.plugins),
        changes=None if last is None else _changes(made, last),
        predictions=texts.predictions,
        address=texts.address,
        docs=texts.docs,
        has_card=bool(texts.address),
        plan=texts.plan,
        searches=tuple(published),
        left_out=(*made.left_out, *lines),
    )
    report("drawing figures and pages", 0, 1)
    return made, version_files(made, board_figures(made))


def _changes(made: Board, last: Version) -> Changes:
    """Compare this version with the last one."""
    records = {record.run_id: record for record in last.records()}
    return changes_since(
        last.name,
        [shown["table"] for shown in last.tables],
        [table_data(shown.table) for shown in made.tables],
        {**records, **made.records},
    )


def _is_ours(spoilers: Mapping[str, str], gathered: Gathered) -> bool:
    """Say if every run fails in the same way, so that the fault is in bench and not in a record."""
    alike = len(set(spoilers.values())) == 1
    return alike and len(spoilers) == len(gathered.runs) >= 3


def _find_spoilers(gathered: Gathered, texts: _Texts) -> dict[str, str]:
    """Return run id -> why it cannot be drawn, for the runs that keep the version from being
    drawn."""

    def draw(runs: Sequence[Run]) -> object:
        made = build_board(
            runs,
            version=texts.version,
            title=texts.title,
            note=texts.note,
            senders=gathered.senders,
        )
        return version_files(with_descriptions(made, texts.plugins), board_figures(made))

    submitted = [run for run in gathered.runs if run.record.run_id in gathered.submitted]
    return find_spoilers(gathered.runs, submitted, draw)


def _read_plan(file: Path) -> bytes | None:
    """Return the plan that was written before the runs; None if there is none.

    Raises BenchError for a plan that gives a folder away.
    """
    try:
        content = read_plain_file(file, PLAN_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise BenchError(f"{file}: {error.strerror or error}", "write a plain file") from None
    for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
        refuse_paths(line, f"{file}, line {number}")
    return content


def _write_version(
    place: Path, files: Mapping[str, bytes], predictions: Packed, url: str | None
) -> None:
    """Write the version's folder, with a manifest of its files, next to its place, then rename it.

    Only a preview takes the place of the one before.
    """
    out = place.parent
    with (
        folder_beside(out, TEMPORARY, "another folder: --out DIR") as aside,
        writing(out, "another folder: --out DIR"),
    ):
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
            packed.rename(out / f"{place.name}.{NAME}")


def _write_index(out: Path) -> None:
    """Write the files next to the versions; also those that a killed process left unwritten."""
    for name, content in index_files(versions(out)).items():
        try:
            there = read_plain_file(out / name, len(content))
        except OSError:  # nothing, a link, or a longer file
            there = None
        if there != content:
            write_or_fail(out / name, content, hint="another folder: --out DIR")
