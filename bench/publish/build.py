"""Writes a version: in a temporary folder first, then renamed to its place. A version that is there never changes.

publish(runs=Path("runs"), out=Path("leaderboards"))

What its files contain (data, Markdown, HTML, figures) are pure functions of the board and of published versions: none of them
reads a clock or the network.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from bench.base.errors import BenchError
from bench.base.files import write_or_fail, writing
from bench.base.reading import read_plain_file
from bench.base.text import markdown, plural, slug
from bench.board.addresses import link, method_page, run_file, search_file
from bench.board.board import PREVIEW, Board, build_board
from bench.board.changes import Changes, changes_since
from bench.board.repeat import repeat
from bench.compare.formatting import SEVERAL, setting_words
from bench.compare.statistics.table import Table
from bench.data.sets import DataFolder
from bench.publish.asides import alone_in, folder_beside
from bench.publish.gather import Gathered, Report, describe, gather, searches
from bench.publish.spoilers import find_spoilers
from bench.publish.suites import own_data_lines
from bench.publish.versions import (
    PLAN,
    PLANS,
    Version,
    refuse_altered,
    seal,
    versions,
)
from bench.records.arrays import NAME, Packed
from bench.records.paths import refuse_paths
from bench.records.store import Run, RunsFolder
from bench.references import PAPERS, results, tables
from bench.references.audit import remarks
from bench.show.figures import Figure, board_figures, missing_library
from bench.show.grid import MAY_BE_BEST, Cell, Column, Grid, csv_lines, grid
from bench.show.markup import as_markdown
from bench.show.pages.board import changes_grid, render_board
from bench.show.pages.engine import ASSETS, TEMPLATES, render_template
from bench.show.pages.method_page import render_method
from bench.show.pages.run_page import render_run
from bench.show.tables.data import table_data
from bench.show.tables.data import tables_csv as table_csv
from bench.show.tables.scores import score_grid

TITLE = "Sentence embeddings, compared"
PLAN_BYTES = 1 << 20
TEMPORARY = ".publishing-"  # how the name of a folder begins in which a version is written


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What was made. ``folder`` is None where nothing was new; then ``board`` is what the last version would be again."""

    folder: Path | None
    name: str  # of the new version, or of the last one
    board: Board
    refused: Sequence[str]  # submissions that did not pass the checks
    own_data: Sequence[str] = ()  # lines on own files and suites, if their gold values are in it


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
    leave_out: Sequence[str] = (),
    plugins: Sequence[Path] = (),
    report: Report = lambda activity, done, of: None,
) -> Outcome:
    """Publish a version in ``out``, or a preview of one. Raises BenchError where nothing can be published; then nothing is written.

    ``runs``: a runs folder, also that of a version (leaderboards/v4/runs). ``title``, ``note``: None takes those of the last version, ""
    the default or none. ``predictions_url``: where the predictions will be, if not in the version. ``leave_out``: suites of which
    neither scores nor predictions are published. ``plugins``: files of methods, which say on the pages what they are.
    """
    if error := missing_library("bench publish"):
        raise error
    if not (predictions_url or "https://").startswith(("https://", "http://")):
        raise BenchError(f"--predictions-url {predictions_url}: expected https://...")
    for option, text in (("--title", title), ("--note", note), ("--baseline", baseline)):
        refuse_paths(text, option)
    with alone_in(out, TEMPORARY):
        refuse_altered(out)
        before = versions(out)
        last = before[-1] if before else None
        name = f"v{int(last.name[1:]) + 1 if last else 1}"
        url = None if preview else predictions_url
        known = last.senders if last else {}
        gathered = gather(runs, submissions, data, report, known, leave_out=leave_out)
        report("comparing", 0, 1)
        texts = _Texts(
            version=PREVIEW if preview else name,
            title=(last.title if title is None and last else title) or TITLE,
            note=(last.note if note is None and last else note) or None,
            baseline=baseline,
            predictions=url or NAME,
            plan=_read_plan(out / PLANS / f"{name}.md"),
            plugins=plugins,
        )
        try:
            made, files = _draw(gathered, texts, RunsFolder(runs), last, report)
        except BenchError:
            raise
        except Exception:
            spoilers = _find_spoilers(gathered, replace(texts, baseline=None))
            if not spoilers or _is_ours(spoilers, gathered):
                raise
            gathered = gather(runs, submissions, data, report, known, spoilers, leave_out)
            made, files = _draw(gathered, texts, RunsFolder(runs), last, report)
        old = [] if last is None else last.records()
        records = [run.record for run in made.runs]
        senders = {run_id: made.senders.get(run_id) for run_id in made.records}
        is_news = last is None or (
            (records, senders, made.title, made.note) != (old, last.senders, last.title, last.note)
        )
        folder = out / made.version if preview or is_news else None
        if folder is not None:
            for run_id in made.records:
                files |= gathered.files[run_id]
            with (
                folder_beside(out, TEMPORARY, "another folder: --out DIR") as aside,
                writing(out, "another folder: --out DIR"),
            ):
                _write(folder, files, gathered.predictions, url, aside)
        if not preview:
            _write_index(out)
    name = made.version if folder is not None or last is None else last.name
    own = [record for run_id, record in made.records.items() if run_id not in made.senders]
    return Outcome(
        folder=folder,
        name=name,
        board=made,
        refused=gathered.refused,
        own_data=own_data_lines(own) if folder is not None else (),
    )


@dataclass(frozen=True, kw_only=True)
class _Texts:
    """What a version is called and says, besides its runs."""

    version: str
    title: str
    note: str | None
    baseline: str | None
    predictions: str
    plan: bytes | None
    plugins: Sequence[Path]


def _draw(
    gathered: Gathered, texts: _Texts, store: RunsFolder, last: Version | None, report: Report
) -> tuple[Board, dict[str, bytes]]:
    """The board of the gathered runs, and every file of its version but those of the runs."""
    made = build_board(
        gathered.runs,
        version=texts.version,
        title=texts.title,
        note=texts.note,
        senders=gathered.senders,
        left_out=gathered.left_out,
        baseline=texts.baseline,
    )
    published, missing = searches(made, store, last)
    lines = [f"{name}: this search is not published, {why}" for name, why in missing.items()]
    made = replace(
        describe(made, texts.plugins),
        changes=None if last is None else _changes(made, last),
        predictions=texts.predictions,
        plan=texts.plan,
        searches=tuple(published),
        left_out=(*made.left_out, *lines),
    )
    report("drawing figures and pages", 0, 1)
    return made, version_files(made, board_figures(made))


def _changes(made: Board, last: Version) -> Changes:
    """From the last version to this one."""
    old = last.records()
    return changes_since(
        last.name,
        [shown["table"] for shown in last.tables],
        [table_data(shown.table) for shown in made.tables],
        {record.run_id: record for record in (*old, *(run.record for run in made.runs))},
    )


def _is_ours(spoilers: Mapping[str, str], gathered: Gathered) -> bool:
    """Say if every run fails in the same way, so that the fault is that of bench and not of a record."""
    alike = len(set(spoilers.values())) == 1
    return alike and len(spoilers) == len(gathered.runs) >= 3


def _find_spoilers(gathered: Gathered, texts: _Texts) -> dict[str, str]:
    """Run id -> why it cannot be drawn, of the runs that keep the version from being drawn."""

    def draw(runs: Sequence[Run]) -> object:
        made = build_board(
            runs,
            version=texts.version,
            title=texts.title,
            note=texts.note,
            senders=gathered.senders,
        )
        return version_files(describe(made, texts.plugins), board_figures(made))

    submitted = [run for run in gathered.runs if run.record.run_id in gathered.submitted]
    return find_spoilers(gathered.runs, submitted, draw)


def _read_plan(file: Path) -> bytes | None:
    """What was to be found out, as it was written before the runs; None without a file. Raises BenchError for one that gives a folder away."""
    try:
        content = read_plain_file(file, PLAN_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise BenchError(f"{file}: {error.strerror or error}", "write a plain file") from None
    for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
        refuse_paths(line, f"{file}, line {number}")
    return content


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
        try:
            there = read_plain_file(out / name, len(content))
        except OSError:  # nothing, a link, or a longer file
            there = None
        if there != content:
            write_or_fail(out / name, content, hint="another folder: --out DIR")


# --- what a version consists of, except runs, predictions and manifest ---


def version_files(board: Board, figures: Sequence[Figure]) -> dict[str, bytes]:
    """Path below the version's folder -> content of every file but runs, predictions and manifest."""
    texts = {
        "tables.json": as_json(board),
        **{f"tables/{name}": text for name, text in as_csvs(board).items()},
        **{f"figures/{figure.name}.svg": figure.svg for figure in figures},
        **{f"figures/{figure.name}.csv": figure.csv for figure in figures},
        "README.md": markdown_page(board, figures),
        "index.html": render_board(board, figures),
        **{
            run_file(run.record.run_id, "index.html"): render_run(board, run) for run in board.paged
        },
        **{method_page(method): render_method(board, method) for method in board.methods},
    }
    return {
        **{path: text.encode() for path, text in texts.items()},
        **{f"assets/{name}": (TEMPLATES / name).read_bytes() for name in ASSETS},
        **{search_file(one.name): one.encode() for one in board.searches},
        **({} if board.plan is None else {PLAN: board.plan}),
    }


# --- tables.json (schema/board-3.schema.json), and a CSV file of every table ---

SCHEMA = "bench.board/3"


def as_json(board: Board) -> str:
    """Everything that the pages show but the recipes, which are in each run's record. On one line: it is for programs."""
    content = {
        "schema": SCHEMA,
        "version": board.version,
        "date": board.date,
        "title": board.title,
        "note": board.note,
        "answer": board.answer,
        "tables": [
            {
                "anchor": shown.anchor,
                "selection": shown.selection,
                "cost_note": shown.cost_note,
                "table": table_data(shown.table),
            }
            for shown in board.tables
        ],
        "runs": [_run(run, board) for run in board.runs],
        "left_out": list(board.left_out),
        "made": board.made,
        "changes": board.changes
        and {
            "before": board.changes.before,
            "rows": [row._asdict() for row in board.changes.rows],
        },
    }
    return json.dumps(content, allow_nan=False, separators=(",", ":")) + "\n"


def as_csvs(board: Board) -> dict[str, str]:
    """File name -> text: one file for each table of runs, one line per cell; and one for each printed table."""
    return {f"{table.anchor}.csv": table_csv([table.table]) for table in board.tables} | {
        f"printed-{slug(*name)}.csv": _printed_csv(*name) for name in tables()
    }


def _run(run: Run, board: Board) -> dict[str, Any]:
    record = run.record
    return {
        "run_id": record.run_id,
        "method": record.method,
        "variant": record.variant,
        "setting": record.setting,
        "backbone": record.backbone_name,
        "seed": record.seed,
        "submitted_by": board.senders.get(record.run_id),
        "created": record.provenance.created,
        "command": repeat([record]),
        "fingerprint": record.fingerprint,
        "record": run_file(record.run_id, "run.json"),
        "page": run_file(board.page_of[record.run_id], "index.html"),
    }


def _printed_csv(paper: str, table: str) -> str:
    """One line for each printed number."""
    printed = [
        {**asdict(cell), "remarks": "; ".join(remark.why for remark in remarks(cell))}
        for cell in results(paper=paper, table=table)
    ]
    return csv_lines(list(printed[0]), (line.values() for line in printed))


# --- Markdown, for code hosts: templates in which every text is escaped ---


@cache
def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(  # noqa: S701 - ``finalize`` escapes, for Markdown
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) else markdown(value, limit=None),
    )
    environment.globals |= {
        "link": lambda path: Markup(link(path)),  # noqa: S704 - quoted
        "search_file": search_file,
        "table": lambda table: Markup(as_markdown(replace(table, title=""))),  # noqa: S704 - escaped
        "counted": counted,
        "slug": slug,
        "place": place,
    }
    return environment


def counted(of: Board | Version) -> str:
    """ "12 runs of 4 methods" """
    return f"{plural(len(of.runs), 'run')} of {plural(len(of.methods), 'method')}"


def place(table: Table) -> str:
    """ "unsupervised, bert-base-uncased" """
    return ", ".join(
        filter(
            None,
            (
                table.sender and f"submitted by {table.sender}",
                setting_words(table.setting),
                table.backbone or SEVERAL,
                table.budget,
            ),
        )
    )


def markdown_page(board: Board, figures: Sequence[Figure] = ()) -> str:
    """README.md: the whole version. Of the pages only the first is linked, for a code host shows their source."""
    return (
        _templates()
        .get_template("version.md")
        .render(
            board=board,
            preview=PREVIEW,
            score_grid=score_grid,
            figures=figures,
            changes=changes_grid(board),
            printed=[(paper, number, PAPERS[paper]) for paper, number in tables()],
        )
    )


# --- the page of all versions ---

ERRATA = "ERRATA.md"
"""What turned out to be wrong with published versions, written by hand beside them."""


def index_files(versions: Sequence[Version]) -> dict[str, bytes]:
    """File name -> content, for what is written beside the versions."""
    newest = versions[-1]
    facts = {"versions": versions[::-1], "errata": (newest.folder.parent / ERRATA).is_file()}
    table = main_grid(newest)
    return {
        "README.md": _templates().get_template("versions.md").render(**facts, main=table).encode(),
        "index.html": render_template(
            "versions.html", **facts, table=table, plural=plural
        ).encode(),
        "style.css": (TEMPLATES / "board.css").read_bytes()
        + (TEMPLATES / "versions.css").read_bytes(),
    }


def main_grid(version: Version) -> Grid:
    """The version's first table, its average first."""
    table = version.tables[0]["table"]
    names = [table["columns"][-1], *table["columns"][:-1]]
    return grid(
        ["method", *(Column(str(name), right=True) for name in names)],
        [
            [_name(row, version), *(_cell(row["cells"][name]) for name in names)]
            for row in table["rows"]
        ],
        title=", ".join(
            str(part)
            for part in (table["suite"], table["setting"], table["backbone"])
            if part and part != "none"
        ),
        notes=["◆: may be the best.", "±: half-width of the 95 % interval, if there is one."],
    )


def _name(row: Mapping[str, Any], version: Version) -> Cell:
    """ "promcse eh temperature=0.1" """
    differs = (f"{key}={value}" for key, value in row["differs"].items())
    return Cell(
        text=" ".join(str(part) for part in (row["method"], row["variant"], *differs) if part),
        link=f"{version.name}/{method_page(row['method'])}",
        sign=MAY_BE_BEST if row.get("may_be_best") else "",
    )


def _cell(cell: Mapping[str, Any] | None) -> Cell:
    return (
        Cell()
        if cell is None
        else Cell(
            number=cell["mean"],
            decimals=cell["decimals"],
            spread=cell["spread"] and (cell["spread"]["high"] - cell["spread"]["low"]) / 2,
        )
    )
