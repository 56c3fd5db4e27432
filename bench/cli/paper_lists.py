"""Lists of ``bench papers``: the papers, a paper's contents and claims, released checkpoints, and
remarks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bench.base.grid import Grid, GridColumn, grid
from bench.base.text import list_names, plural
from bench.papers import (
    Checkpoint,
    PaperPart,
    ReferenceResult,
    contents,
    find_paper,
    papers,
    printed_hyperparameters,
    released_checkpoints,
    results,
    rows,
)
from bench.papers.claims import Claim, claims
from bench.papers.remarks import KINDS, Remark, all_remarks, remarks

LONG = ("differs",)
"""Kinds with hundreds of remarks, which are listed if they are named."""


@dataclass(frozen=True)
class Shown:
    """An answer of ``bench papers``: as tables, and as one object per line of data."""

    grids: Sequence[Grid]
    objects: Sequence[dict[str, Any]]


def show_papers() -> Shown:
    """Return a line per paper."""
    lines = []
    objects = []
    for paper in papers().values():
        numbers = results(paper=paper.name)
        of_paper = [claim for claim in claims() if claim.paper == paper.name]
        lines.append(
            (
                paper.name,
                str(paper.year),
                str(len(numbers)),
                str(len(of_paper) or ""),
                paper.citation,
            )
        )
        counts = {"values": len(numbers), "claims": len(of_paper)}
        objects.append({**asdict(paper), **counts})
    columns = (
        "paper",
        "year",
        GridColumn("values", right=True),
        GridColumn("claims", right=True),
        GridColumn("", wrap=24),
    )
    notes = [
        "values: published scores; claims: of the text, with the comparison that tests each",
        "a paper's tables, figures and claims: bench papers promcse",
        "a table as published: bench papers promcse:1; run again: bench run --paper promcse:1",
    ]
    return Shown([grid(columns, lines, notes=notes)], objects)


def show_contents(name: str) -> Shown:
    """Return a paper's tables and figures, and its claims. Raises UnknownName."""
    paper = find_paper(name)
    parts = [part for part in contents() if part.paper == name]
    lines = []
    objects = []
    for part in parts:
        objects.append({**asdict(part), "name": part.name, "command": part.command})
        shows = f"{part.shows}: {part.why}" if part.why else part.shows
        lines.append((part.name, _size(part), shows, "yes" if part.plan else ""))
    columns = (
        "",
        GridColumn("rows", right=True),
        GridColumn("shows", wrap=24),
        "runs again",
    )
    title = paper.citation
    if paper.arxiv:
        title += f"; https://arxiv.org/abs/{paper.arxiv}"
    again = next((part.command for part in parts if part.command), "")
    with_yes = f"; those with yes: {again} --dry-run" if again else ""
    notes = [f"one of them: bench papers {parts[0].name}{with_yes}"]
    count = sum(remark.paper == name for remark in all_remarks())
    if count:
        notes.append(f"{plural(count, 'remark')} on them: bench papers {name} --remarks")
    made = [grid(columns, lines, title=title, notes=notes)]
    told = [claim for claim in claims() if claim.paper == name]
    if told:
        made.append(_claims_grid(told))
    return Shown(made, objects)


def _size(part: PaperPart) -> str:
    """Return how many rows a table prints; "" for a figure."""
    printed = rows(results(paper=part.paper, table=part.short), by_metric=False)
    hyperparameters = {(cell.setting, cell.backbone) for cell in printed_hyperparameters(part)}
    return str(len(printed) or len(hyperparameters) or len(part.words) or "")


def _claims_grid(told: Sequence[Claim]) -> Grid:
    """Lay out a text's claims, the gains that its cells give, and the rows that test them."""
    lines = []
    for claim in told:
        printed = "" if claim.printed is None else f"{claim.printed.value:+.2f}"
        needs = claim.open
        if claim.needs:
            needs = f"{claim.row} against {claim.baseline} on {claim.suite}"
        lines.append((claim.says, _where(claim), printed, needs))
    columns = (
        GridColumn("claim", wrap=24),
        GridColumn("cells of", wrap=8),
        GridColumn("give", right=True),
        GridColumn("tested by", wrap=16),
    )
    return grid(columns, lines, title="What the text claims")


def _where(claim: Claim) -> str:
    """Return "table 1, bert-base-uncased"."""
    table = claim.table if claim.table.startswith("figure") else f"table {claim.table}"
    return f"{table}, {claim.backbone}"


def show_checkpoints() -> Shown:
    """Return the models that authors released, and how each is scored."""
    objects = []
    lines = []
    for one in released_checkpoints():
        objects.append({**asdict(one), "printed": one.printed})
        table = f"{one.paper}:{one.table}"
        scored_in = ", ".join(one.scored_in)
        lines.append((one.hub, table, one.printed, _scoring(one), scored_in, one.note))
    columns = (
        "hub",  # whole: it is to be copied
        GridColumn("table", drop=3),
        "Avg.",
        GridColumn("scored by", wrap=14),
        GridColumn("also scored in", wrap=10, drop=2),
        GridColumn("note", wrap=14, drop=1),
    )
    notes = ["one of them: bench evaluate HUB --suite sts; those of a README: bench papers"]
    return Shown([grid(columns, lines, notes=notes, whole="--json")], objects)


def _scoring(checkpoint: Checkpoint) -> str:
    """Return the method that scores a checkpoint, with its recipe values and prefix."""
    words = [checkpoint.ours, *(f"{key}={value}" for key, value in checkpoint.set.items())]
    text = " ".join(words)
    if checkpoint.prefix:
        text += f", a prefix of {checkpoint.prefix}"
    return text


def show_remarks(numbers: Sequence[ReferenceResult], kinds: Sequence[str]) -> Shown:
    """Return the remarks on these numbers, kind after kind."""
    shown = kinds or [kind for kind in KINDS if kind not in LONG]
    listed: dict[Remark, None] = {}
    for number in numbers:
        listed |= dict.fromkeys(remarks(number))
    made = []
    for kind in shown:
        of_kind = [remark for remark in listed if remark.kind == kind]
        if of_kind:
            made.append(_remarks_grid(of_kind, f"{kind}: {KINDS[kind]}"))
    notes = [f"{plural(len(numbers), 'published number')}, {plural(len(listed), 'remark')}"]
    if not kinds and any(remark.kind in LONG for remark in listed):
        notes.append(f"not listed, because they are many: --kind {','.join(LONG)}")
    made.append(grid([""], [], notes=notes))
    objects = [asdict(remark) for remark in listed if not kinds or remark.kind in kinds]
    return Shown(made, objects)


def _remarks_grid(listed: Sequence[Remark], title: str) -> Grid:
    """Lay out a line per remark; cells of one row with the same remark share it."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for one in listed:
        row = (f"{one.paper}:{one.table}", one.setting, one.label, one.backbone, one.text)
        groups.setdefault(row, []).append(one.task)
    lines = []
    for (*names, text), tasks in groups.items():
        lines.append((*names, list_names(filter(None, dict.fromkeys(tasks)), 1), text))
    columns = (
        "table",
        GridColumn("setting", drop=2),
        GridColumn("row", wrap=16),
        GridColumn("backbone", drop=1),
        GridColumn("cell", wrap=8),
        GridColumn("remark", wrap=32),
    )
    return grid(columns, lines, title=title, whole="--json")
