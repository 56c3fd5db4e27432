"""The page of one run: what it scored, how it was trained, what it cost, where it comes from, and how to repeat it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from textwrap import dedent
from typing import TYPE_CHECKING, Any

from msgspec import structs, to_builtins

from bench.board.names import link, method_page, run_file, run_page
from bench.board.repeat import repeat, without_folders
from bench.compare import statements
from bench.compare.formatting import (
    Block,
    blocks,
    metric_words,
    score,
    setting_words,
    spans,
)
from bench.compare.statistics.table import AVERAGE, INCONCLUSIVE, Cell
from bench.run.descriptions import MethodDescription, method_description
from bench.runs.packed import NAME, has_predictions
from bench.runs.record import Code, RunRecord
from bench.runs.run import Run
from bench.show.pages.cosines import Cosines, cosines
from bench.show.pages.curves import Curve, curves
from bench.show.pages.engine import render as rendered
from bench.show.pages.engine import value_words
from bench.show.tables import report
from bench.show.tables.lines import spread_text
from bench.show.tables.report import Section

if TYPE_CHECKING:
    from bench.board.board import Board, PublishedRun, TableRow


# --- how a method works, in its own words: a paragraph for a run's page, all of it for the method's ---


Spans = tuple[tuple[str, bool], ...]
"""(text, is code) of each stretch."""


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A paragraph, a list or lines as they stand."""

    kind: str  # "paragraph", "list" or "lines"
    items: tuple[Spans, ...]  # one, but for a list
    text: str  # of lines, with their blanks; empty for the others


@dataclass(frozen=True, kw_only=True)
class MethodText:
    """What a method says of itself."""

    summary: Spans  # one line; may be empty
    paper: str  # citation; may be empty
    trains: Spans  # which parameters train; may be empty
    short: tuple[Piece, ...]  # its first paragraph, with the list or the equation that follows
    whole: tuple[Piece, ...]  # all of it


@cache
def how(method: str, package: str | None) -> MethodText | None:
    """None where no method of this name is installed, or where the run was made with another package's."""
    said = source(method, package)
    if said is None:
        return None
    told = list(blocks(said.about))
    if len(told) > 1 and _is_title(told[0], said.paper):
        told = told[1:]
    second = next(
        (i for i, block in enumerate(told) if i and block.first and block.kind == "paragraph"),
        len(told),
    )
    return MethodText(
        summary=_sentence(said.summary),
        paper=said.paper,
        trains=_sentence(said.trains),
        short=_pieces(told[:second]),
        whole=_pieces(told),
    )


def source(method: str, package: str | None) -> MethodDescription | None:
    """What the installed method says, if it is the one that the run was made with, as far as the record tells."""
    found = method_description(method)
    return found if found is not None and package in (None, found.package) else None


def _sentence(text: str) -> Spans:
    return spans(f"{text[:1].upper()}{text[1:].rstrip('.')}.") if text else ()


def _is_title(block: Block, paper: str) -> bool:
    """The first line is the paper's title and authors, which the citation says too."""
    words, cited = (set(re.findall(r"\w{4,}", text.lower())) for text in (block.text, paper))
    return bool(paper) and block.kind == "paragraph" and len(words & cited) > len(words) / 2


def _pieces(told: list[Block]) -> tuple[Piece, ...]:
    made: list[Piece] = []
    for block in told:
        if block.kind == "lines":
            made.append(Piece(kind="lines", items=(), text=dedent(block.text)))
        elif block.kind == "item" and made and made[-1].kind == "list":
            made[-1] = Piece(kind="list", items=(*made[-1].items, spans(block.text)), text="")
        else:
            made.append(
                Piece(
                    kind="list" if block.kind == "item" else "paragraph",
                    items=(spans(block.text),),
                    text="",
                )
            )
    return tuple(made)


# --- the page ---


UP = 2  # folders between a run's page and its version


@dataclass(frozen=True, kw_only=True)
class RecipeRow:
    """One hyperparameter."""

    key: str  # its name
    value: str  # what the run had
    source: str  # where the value is from
    note: str  # what another source says; may be empty


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One line of the provenance."""

    name: str  # what it is
    text: str  # in short: a hash by its first twelve digits
    whole: str  # in full, where that is longer


@dataclass(frozen=True, kw_only=True)
class File:
    """Something to download."""

    name: str  # below the run's folder
    link: str  # relative, percent-quoted
    what: str  # what it holds; empty for one of many of a kind


@dataclass(frozen=True, kw_only=True)
class Sibling:
    """Another run of the same row: it differs in the seed."""

    name: str  # its seed
    link: str  # of its page, or of its record where it has none


@dataclass(frozen=True, kw_only=True)
class RunPage:
    """Everything about one run."""

    run_id: str  # id of the run
    method: str  # name of the method
    variant: str  # its variant; may be empty
    where: str  # setting, backbone and seed in words
    version: str  # of the leaderboard
    alone: bool  # a preview where nothing is published: there is no page of all versions
    board: str  # link to the main page
    method_link: str  # link to the method's page
    siblings: tuple[Sibling, ...]  # runs with other seeds
    seeds: tuple[
        Section, ...
    ]  # the scores of every run that this page tells of; none where each has its own page
    submitted_by: str | None  # who sent it; None for an own run
    heads: tuple[Head, ...]  # one number per suite
    how: MethodText | None  # how the method works; None where its source is not installed
    command: str  # what repeats it
    needs: str  # what that cannot fetch; may be empty
    typed: str | None  # the command as its author typed it; None where it was not recorded
    files: tuple[File, ...]  # record, scores, curve
    scores: tuple[ScoreTable, ...]  # one per suite, protocol and text form
    sides: tuple[Section, ...]  # text forms and domains side by side
    curves: tuple[Curve, ...]  # loss and dev score over steps; empty without a curve
    training: (
        Section  # steps, and which checkpoint was kept; without rows where nothing was trained
    )
    cosines: Cosines | None  # cosines by gold level; None without predictions
    by_hand: tuple[RecipeRow, ...]  # recipe values that the command set
    recipe: tuple[RecipeRow, ...]  # the others, by name
    cost: Section  # what it took
    overlap: Section  # evaluation sentences in the corpus; without rows where that was not counted
    provenance: tuple[
        tuple[str, tuple[Fact, ...]], ...
    ]  # (what they are of, facts), groups without any left out


def render(board: Board, run: PublishedRun) -> str:
    """The page ``runs/<run-id>/index.html`` as HTML, a function of the board, the run's curve and its predictions."""
    return rendered("run.html", page=page(board, run), up=UP)


def page(board: Board, run: PublishedRun) -> RunPage:
    """What the page holds."""
    record, known = run.record, board.by_run.get(run.record.run_id, ())
    plugin, again = record.provenance.plugin, repeat([record])
    rows = [
        RecipeRow(
            key=key, value=value_words(value.value), source=value.source, note=value.note or ""
        )
        for key, value in sorted(record.recipe.items())
    ]
    return RunPage(
        run_id=record.run_id,
        method=record.method,
        variant=record.variant,
        where=_where(record),
        version=board.version,
        alone=board.alone,
        board=link("index.html", UP),
        method_link=link(method_page(record.method), UP),
        siblings=_siblings(board, record, known),
        seeds=_seeds(board, record, known),
        submitted_by=run.submitted_by,
        heads=heads(record, known),
        how=how(record.method, package_of(plugin)),
        command=again.command,
        needs=again.needs,
        typed=without_folders(record.provenance.command or "") or None,
        files=_files(run),
        scores=score_tables(record, known),
        sides=tuple(report.shift_sections(record)),
        curves=curves(record, run.folder),
        training=report.training(record, None),
        cosines=cosines(Run(record, run.folder)),
        by_hand=tuple(row for row in rows if row.source.startswith("--set")),
        recipe=tuple(row for row in rows if not row.source.startswith("--set")),
        cost=report.cost(record),
        overlap=report.overlap_section(record),
        provenance=_provenance(record),
    )


def package_of(plugin: Code) -> str | None:
    """Whose code a run ran; None where its record does not say so."""
    return plugin.package


def _where(record: RunRecord) -> str:
    seed = "the same for every seed" if record.seed is None else f"seed {record.seed}"
    return f"{setting_words(record.setting)}, {record.backbone_name}, {seed}"


def _siblings(board: Board, record: RunRecord, known: Sequence[TableRow]) -> tuple[Sibling, ...]:
    seeds: dict[str, Any] = {}
    for place in known:
        seeds |= dict(zip(place.row.runs, place.row.seeds, strict=True))
    seeds.pop(record.run_id, None)
    return tuple(
        Sibling(
            name="any" if seed is None else str(seed),
            link=link(run_page(run), UP)
            if board.page_of[run] == run
            else link(run_file(run, "run.json"), UP),
        )
        for run, seed in seeds.items()
    )


def _seeds(board: Board, record: RunRecord, known: Sequence[TableRow]) -> tuple[Section, ...]:
    """A table for each table of the board, a column for each run."""
    shared = [
        place
        for place in known
        if any(board.page_of[run] == record.run_id != run for run in place.row.runs)
    ]
    return tuple(
        Section(
            f"{place.of.table.suite}, {place.of.table.protocol}",
            ("task", *("any seed" if seed is None else f"seed {seed}" for seed in place.row.seeds)),
            tuple(
                (task, *(score(value, cell.decimals) for value in cell.values))
                for task, cell in zip(place.of.table.columns, place.row.cells, strict=True)
                if cell is not None
            ),
            tuple(range(1, len(place.row.seeds) + 1)),
        )
        for place in shared
    )


def _files(run: PublishedRun) -> tuple[File, ...]:
    files = {"run.json": "the record", "scores.csv": "all scores, sub-datasets too"}
    if (run.folder / "curve.jsonl").is_file():
        files["curve.jsonl"] = "the training curve"
    listed = [File(name=name, link=link(name), what=what) for name, what in files.items()]
    if has_predictions(run.folder):
        listed.append(File(name=NAME, link=link(NAME, UP), what="predictions of all runs"))
    return tuple(listed)


def _provenance(record: RunRecord) -> tuple[tuple[str, tuple[Fact, ...]], ...]:
    from_where = record.provenance
    made = {
        "created": from_where.created,
        "bench": from_where.bench_version,
        "fingerprint": record.fingerprint,
    }
    git, changed = from_where.git, "uncommitted changes" if from_where.git.dirty else None
    groups: list[tuple[str, Mapping[str, Any]]] = [
        ("this run", made),
        ("commit", {"": git.commit, "with": changed}),
        ("method's code", to_builtins(from_where.plugin)),
        ("backbone", to_builtins(from_where.backbone)),
        (
            "corpus",
            to_builtins(structs.replace(from_where.corpus, overlap={})),
        ),
        ("machine", from_where.platform),
        ("packages", from_where.packages),
        ("checkpoint", record.checkpoint or {}),
        ("data", from_where.data),
        ("also determined by", from_where.determines or {}),
        ("executed with", to_builtins(from_where.execution)),
    ]
    told = []
    for title, group in groups:
        if facts := tuple(
            _fact(key, value) for key, value in group.items() if value not in (None, "", {}, [])
        ):
            told.append((title, facts))
    return tuple(told)


def _fact(name: str, value: Any) -> Fact:
    whole = report.plain_value(value)
    hashed = re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", whole)
    return Fact(
        name=name, text=f"{whole[:12]}…" if hashed else whole, whole=whole if hashed else ""
    )


# --- The scores of one run: what it has itself, what the row of all its seeds has, and what a paper printed ---


@dataclass(frozen=True, kw_only=True)
class Head:
    """The number of a suite that ranks."""

    suite: str  # name of the suite, with its text form where it is not the usual one
    what: str  # Avg., or the only task
    value: str  # this run's score
    around: str  # mean and interval over the seeds of its row, or its own interval; empty where there is none
    verdict: str  # its row's, against the baseline of the table; empty where it has none
    anchor: str  # id of the table on the main page; empty where it is in none


@dataclass(frozen=True, kw_only=True)
class ScoreTable:
    """All tasks of one suite, protocol and text form."""

    suite: str  # name of the suite
    metric: str  # what the numbers are, in words
    protocol: str  # how it was scored, and of which text form
    section: Section  # rows of text; a row whose first cell begins with blanks is a sub-dataset
    anchor: str  # id of the table on the main page; empty where it is in none
    sources: tuple[str, ...]  # where the papers' numbers were printed


def heads(record: RunRecord, places: Sequence[TableRow]) -> tuple[Head, ...]:
    """In the order of the record's suites."""
    made = []
    for (suite, protocol, text), scores in report.by_form(record).items():
        head = report.ranking_score(scores)
        if head is None:
            continue
        place = _place(places, suite, protocol, text)
        cell = None if place is None else _cell(place, head.task)
        form = "" if text in (None, "tokenised", "sccl") else f" ({text})"
        verdict = ""
        if place is not None and place.of.table.head == head.task:
            parts = [_compared(place), "may be the best" * place.row.may_be_best]
            verdict = ", ".join(filter(None, parts))
        made.append(
            Head(
                suite=suite + form,
                what=head.task if head.task == AVERAGE else f"{head.task}, {protocol}",
                value=score(head.value, cell.decimals if cell else 2),
                around="" if cell is None else _around(cell),
                verdict=verdict,
                anchor="" if place is None else place.of.anchor,
            )
        )
    return tuple(made)


def _compared(place: TableRow) -> str:
    """ "worse than simcse", "inconclusive against simcse"; "" where it was not compared."""
    found = statements.verdict(place.row)
    if found is None:
        return ""
    return f"{found} {'against' if found == INCONCLUSIVE else 'than'} {place.of.table.baseline}"


def score_tables(record: RunRecord, places: Sequence[TableRow]) -> tuple[ScoreTable, ...]:
    """One per suite, protocol and text form, in the record's order."""
    made = []
    forms = report.by_form(record).items()
    for ((suite, protocol, text), scores), whole in zip(
        forms, report.score_sections(record), strict=True
    ):
        section = _without_echoes(whole)
        place = _place(places, suite, protocol, text)
        metrics = dict.fromkeys(own_score.metric for own_score in scores)
        made.append(
            ScoreTable(
                suite=suite,
                metric=metric_words(", ".join(metrics)),
                protocol=protocol + (f", {text} text" if text else ""),
                section=section if place is None else _widened(section, place),
                anchor="" if place is None else place.of.anchor,
                sources=() if place is None else _sources(place, section),
            )
        )
    return tuple(made)


def _without_echoes(section: Section) -> Section:
    """Without the rows of a sub-dataset that is the whole task: it would say the same again."""
    kept = []
    task = ""
    for row in section.rows:
        task = task if row[0].startswith(" ") else row[0]
        if row[0] != "  " + task:
            kept.append(row)
    return replace(section, rows=tuple(kept))


def _place(
    places: Sequence[TableRow], suite: str, protocol: str, text: str | None
) -> TableRow | None:
    wanted = (suite, protocol, text)
    return next(
        (
            place
            for place in places
            if (place.of.table.suite, place.of.table.protocol, place.of.table.text) == wanted
        ),
        None,
    )


def _cell(place: TableRow, task: str) -> Cell | None:
    columns = place.of.table.columns
    return place.row.cells[columns.index(task)] if task in columns else None


def _around(cell: Cell) -> str:
    if len(cell.values) > 1:
        return f"{_over_seeds(cell)} over {len(cell.values)} seeds"
    if cell.spread is None:
        return ""
    return f"{score(cell.spread.low, cell.decimals)} to {score(cell.spread.high, cell.decimals)} ({100 * cell.spread.level:g} %)"


def _over_seeds(cell: Cell) -> str:
    if len(cell.values) < 2:
        return ""
    half = spread_text(cell)
    return score(cell.mean, cell.decimals) + (f" ±{half}" if half else "")


def _widened(section: Section, place: TableRow) -> Section:
    """With a column of the row's mean after the score, and one of the paper's number, where there are such."""
    tasks = [row[0] for row in section.rows]
    cells = [None if task.startswith(" ") else _cell(place, task) for task in tasks]
    means = ["" if cell is None else _over_seeds(cell) for cell in cells]
    papers = [
        "" if cell is None or cell.printed is None else score(cell.printed.value, cell.decimals)
        for cell in cells
    ]
    added = [(f"{len(place.row.runs)} seeds", means), ("paper", papers)]
    added = [(heading, column) for heading, column in added if any(column)]
    heading = (*section.heading[:2], *(heading for heading, _ in added), *section.heading[2:])
    rows = tuple(
        (*row[:2], *(column[i] for _, column in added), *row[2:])
        for i, row in enumerate(section.rows)
    )
    return replace(section, heading=heading, rows=rows, numbers=tuple(range(1, len(heading))))


def _sources(place: TableRow, section: Section) -> tuple[str, ...]:
    """ "promcse, table 1", and whether it is a quotation there."""
    cells = [_cell(place, row[0]) for row in section.rows]
    cited: dict[str, None] = {}
    for cell in cells:
        if cell is not None and cell.printed is not None:
            paper, _, table = cell.printed.source.partition(":")
            cited[f"{paper}, table {table}" + ("" if cell.printed.own else " (copied there)")] = (
                None
            )
    return tuple(cited)
