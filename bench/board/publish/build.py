"""Write a version: in a temporary folder first, then renamed to its place. A version that is there
never changes.

publish_version(Path("runs"), Path("leaderboards"))

What its files contain (data, Markdown, HTML, figures) are pure functions of the board and of
published versions: none of them reads a clock or the network.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from bench.base.errors import BenchError
from bench.base.extras import install_hint
from bench.base.files import write_or_fail, writing
from bench.base.hashes import file_sha256
from bench.base.reading import PLAN_BYTES, read_plain_file
from bench.board.board import PREVIEW, Board, build_board
from bench.board.figures import board_figures
from bench.board.publish.asides import alone_in, folder_beside
from bench.board.publish.described import with_descriptions
from bench.board.publish.gather import Gathered, Report, gather
from bench.board.publish.index import index_files
from bench.board.publish.searches import find_searches
from bench.board.publish.suites import own_data_lines
from bench.board.publish.version_files import version_files
from bench.board.publish.versions import (
    PLANS,
    Version,
    docs_beside,
    refuse_altered,
    versions,
)
from bench.method.budget import canonical_budget
from bench.records.packed import MANIFEST, NAME, Packed
from bench.records.paths import refuse_paths
from bench.records.store import RunsFolder

TITLE = "Sentence embeddings, compared"
TEMPORARY = ".publishing-"
"""The beginning of the name of a folder that a version is written in."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result of publishing.

    Attributes:
        folder: The folder of the version. None if nothing changed since the last version; then
            ``board`` is the last version's again.
        name: Of the new version, or of the last one.
        board: The tables of the version.
        refused: Lines on submissions that did not pass the checks.
        own_data: Lines on own files and suites, if their gold values are in the version.
    """

    folder: Path | None
    name: str
    board: Board
    refused: Sequence[str]
    own_data: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class PublishOptions:
    """The texts of a version, its addresses, and the suites that it leaves out."""

    # heading of the pages; None: the last version's; "" is the default
    title: str | None = None
    # the first thing that readers should know; None: the last version's; "" is none
    note: str | None = None
    # the row that the others are compared with; None: as in the last version; "" is simcse
    baseline: str | None = None
    # the length of training with the tables that come first: "1000steps"; None: as in the last
    # version; "" is the length of most runs
    main_budget: str | None = None
    # write ``out``/preview, which the next preview replaces, and no version
    preview: bool = False
    # the future address of ``out``, for links that other sites show; None: the last version's
    address: str | None = None
    # the address of the documentation, which pages link to
    docs: str | None = None
    # suites whose scores and predictions are not published
    leave_out: Sequence[str] = ()
    # files of methods, which say on the pages what they are
    plugins: Sequence[Path] = ()


DEFAULTS = PublishOptions()


def publish_version(
    runs: Path | None = None,
    out: Path = Path("leaderboards"),
    options: PublishOptions = DEFAULTS,
    *,
    submissions: Path | None = None,
    report: Report = lambda activity, done, of: None,
) -> Outcome:
    """Publish a version in ``out``, or a preview of one. Raises BenchError if that is impossible;
    then nothing is written.

    ``runs``: a runs folder; a version has one, too (leaderboards/v6/runs). ``submissions``:
    a folder of further runs, each checked. ``report`` gets an activity, how many of its things are
    done, and of how many.
    """
    _check_options(options)
    with alone_in(out, TEMPORARY):
        refuse_altered(out)
        before = versions(out)
        last = before[-1] if before else None
        name = "v1" if last is None else f"v{int(last.name[1:]) + 1}"
        options = _settled(options, last, out)
        plan = _read_plan(out / PLANS / f"{name}.md")

        senders = last.senders if last else {}
        gathered = gather(runs, submissions, report, senders, options.leave_out)
        report("comparing", 0, 1)
        made, files = _draw(gathered, name, plan, options, RunsFolder(runs), last, report)
        folder = None
        if options.preview or _is_news(made, last):
            folder = out / made.version
            for run_id in made.records:
                files |= gathered.files[run_id]
            _write_version(folder, files, gathered.predictions)
        if not options.preview:
            _write_index(out)
    return _outcome(made, folder, last, gathered.refused)


def _settled(options: PublishOptions, last: Version | None, out: Path) -> PublishOptions:
    """Return the options with the last version's texts in the place of those that are None."""
    title, note, main_budget = options.title, options.note, options.main_budget
    baseline, address = options.baseline, options.address
    if last is not None:
        title = last.title if title is None else title
        note = last.note if note is None else note
        main_budget = last.main_budget if main_budget is None else main_budget
        if baseline is None and last.judged is not None:
            baseline = last.judged.baseline
        address = last.address if address is None else address
    return replace(
        options,
        title=title or TITLE,
        note=note or None,
        baseline=baseline or None,
        main_budget=canonical_budget(main_budget) if main_budget else "",
        address=address.rstrip("/") + "/" if address else "",
        docs=options.docs or docs_beside(out),
    )


def _outcome(
    made: Board, folder: Path | None, last: Version | None, refused: Sequence[str]
) -> Outcome:
    """Return the result; ``folder`` is None if nothing was written."""
    if folder is None:
        name = made.version if last is None else last.name
        return Outcome(folder=None, name=name, board=made, refused=refused)
    own = [record for run_id, record in made.records.items() if run_id not in made.senders]
    return Outcome(
        folder=folder,
        name=made.version,
        board=made,
        refused=refused,
        own_data=own_data_lines(own),
    )


def _check_options(options: PublishOptions) -> None:
    """Raise BenchError for a missing library, a bad address, and a text that gives a folder
    away."""
    if find_spec("matplotlib") is None:
        raise BenchError(
            "bench publish draws figures with matplotlib, which is not installed",
            install_hint("publish"),
        )
    refuse_paths(options.title, "--title")
    refuse_paths(options.note, "--note")
    refuse_paths(options.baseline, "--baseline")
    _check_address("--address", options.address)
    _check_address("--docs", options.docs)


def _check_address(option: str, text: str | None) -> None:
    """Raise BenchError for anything but the address of a folder or a page on the web."""
    if not text:
        return
    try:
        parts = urlsplit(text)
        is_web = parts.scheme in ("https", "http") and bool(parts.hostname)
    except ValueError:
        is_web = False
    if not is_web or parts.query or parts.fragment or not text.isascii() or " " in text:
        raise BenchError(
            f"{option} {text}: expected the address of a folder on the web",
            f"{option} https://example.org/leaderboards",
        )


def _is_news(made: Board, last: Version | None) -> bool:
    """Say if runs, senders, title, note, baseline or main budget differ from the last version."""
    if last is None:
        return True
    records = [run.record for run in made.runs]
    senders = {run_id: made.senders.get(run_id) for run_id in made.records}
    first = made.tables[0].table
    return (records, senders, made.title, made.note, first.baseline, first.budget) != (
        last.records(),
        last.senders,
        last.title,
        last.note,
        last.baseline,
        last.main_budget,
    )


def _draw(
    gathered: Gathered,
    name: str,
    plan: bytes | None,
    options: PublishOptions,
    store: RunsFolder,
    last: Version | None,
    report: Report,
) -> tuple[Board, dict[str, bytes]]:
    """Make the board of the gathered runs, and every file of its version except the runs' files."""
    made = build_board(
        gathered.runs,
        version=PREVIEW if options.preview else name,
        title=options.title or "",
        note=options.note,
        senders=gathered.senders,
        baseline=options.baseline,
        main_budget=options.main_budget or "",
    )
    published, missing = find_searches(made, store, last)
    lines = [f"{search}: this search is not published, {why}" for search, why in missing.items()]
    made = replace(
        with_descriptions(made, options.plugins),
        alone=last is None and options.preview,
        address=options.address or "",
        docs=options.docs or "",
        plan=plan,
        searches=tuple(published),
        left_out=(*gathered.left_out, *made.left_out, *lines),
    )
    report("drawing figures and pages", 0, 1)
    return made, version_files(made, board_figures(made))


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


def _write_version(place: Path, files: Mapping[str, bytes], predictions: Packed) -> None:
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
        predictions.write(version / NAME)
        hashes = {path: sha256(content).hexdigest() for path, content in files.items()}
        hashes[NAME] = file_sha256(version / NAME)
        manifest = json.dumps({"files": dict(sorted(hashes.items()))}, indent=1)
        (version / MANIFEST).write_text(manifest + "\n", encoding="utf-8")
        if place.name == PREVIEW and place.exists():
            place.rename(aside / "old")
        version.rename(place)


def _write_index(out: Path) -> None:
    """Write the files next to the versions; also those that a killed process left unwritten."""
    for name, content in index_files(versions(out)).items():
        try:
            there = read_plain_file(out / name, len(content))
        except OSError:  # nothing, a link, or a longer file
            there = None
        if there != content:
            write_or_fail(out / name, content, hint="another folder: --out DIR")
