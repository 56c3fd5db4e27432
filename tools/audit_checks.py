"""The checks of the audit: each is a function from all printed rows to remarks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from audit_bounds import (
    LEAST_CELLS,
    TINY,
    coarse,
    impossible_accuracy,
    off_average,
)
from audit_quoted import in_source

from bench.papers import (
    UNKNOWN,
    PrintedRow,
    ReferenceResult,
    format_printed,
    half_unit,
    meaning,
    read_every,
)
from bench.papers.claims import WORDS, claims
from bench.papers.remarks import Remark


def _averages(every: Sequence[PrintedRow]) -> Iterator[Remark]:
    for row in every:
        mean = None if row.average is None else off_average(row)
        if row.average is not None and mean is not None:
            by = row.average.value - mean
            text = (
                f"published {row.average.printed}; the mean of its {len(row.parts)} cells is "
                f"{format_printed(mean)} ({by:+.2f})"
            )
            if coarse(row) and abs(by) <= 0.05 + half_unit(row.average.printed) + TINY:
                text += (
                    "; each of its cells ends in 0, and rounding them to one decimal "
                    "explains the difference"
                )
            yield make_remark("average", row.average, text)


def _counts(every: Sequence[PrintedRow]) -> Iterator[Remark]:
    for row in every:
        for cell in row.parts:
            reach = impossible_accuracy(cell, row)
            if reach is not None:
                items, repeats, near = reach
                tested = f"{items:,} items"
                if repeats > 1:
                    tested += f" in {repeats} runs"
                but = "" if cell.runs else ": not the score of one run"
                nearest = " or ".join(dict.fromkeys(map(format_printed, near)))
                yield make_remark(
                    "impossible",
                    cell,
                    f"published {cell.printed}; right answers among {tested} give {nearest}{but}",
                )


def _printed_elsewhere(every: Sequence[PrintedRow]) -> Iterator[Remark]:
    """Yield different numbers that rows print for one run of the harness (method, variant, setting,
    backbone, task, protocol).
    """
    groups: dict[tuple[object, ...], list[ReferenceResult]] = {}
    for row in every:
        for cell in row.cells:
            means = meaning(cell.method, cell.variant, cell.setting)
            groups.setdefault(
                (
                    _run_name(cell),
                    tuple(means.set.items()),
                    cell.setting,
                    cell.backbone,
                    cell.task,
                    cell.metric,
                    cell.protocol,
                ),
                [],
            ).append(cell)
    for cells in groups.values():
        for cell in cells:
            others: dict[float, list[ReferenceResult]] = {}
            for other in cells:
                if other.value != cell.value:
                    others.setdefault(other.value, []).append(other)
            text = f"published {cell.printed}{_kind(cell)}"
            for value, same in others.items():
                places = dict.fromkeys(f"{other.paper} table {other.table}" for other in same)
                text += (
                    f"; {', '.join(places)}: {format_printed(value, cell.metric)}{_kind(same[0])}"
                )
            if others:
                yield make_remark("differs", cell, text)


def _kind(cell: ReferenceResult) -> str:
    """Say how a number came about, as far as it is said: " (copied)", " (own, best of 4 seeds)", "
    (rerun)".
    """
    ours = (cell.method, meaning(cell.method, cell.variant, cell.setting).method)
    if not cell.own_result:
        origin = "copied"
    elif cell.paper in ours:
        origin = "own"
    else:
        origin = "rerun"
    return f" ({', '.join(word for word in (origin, cell.runs) if word)})"


def _same_numbers(every: Sequence[PrintedRow]) -> Iterator[Remark]:
    """Remark on rows of different methods with the same cells, apart from the average.

    A README's rows of released checkpoints do not count.
    """
    groups: dict[tuple[object, ...], list[PrintedRow]] = {}
    for row in every:
        cells = tuple((cell.task, cell.value) for cell in row.parts)
        if len(cells) >= LEAST_CELLS and not row.first.variant.startswith("checkpoint"):
            groups.setdefault((row.first.metric, row.first.backbone, cells), []).append(row)
    for alike in groups.values():
        for row in alike:
            for other in alike:
                if _run_name(row.first) != _run_name(other.first):
                    yield make_remark("same", row.first, _same_text(row, other), row=True)


def _run_name(cell: ReferenceResult) -> tuple[str, str]:
    """Return method and variant by their names here, or by the table's names for others."""
    means = meaning(cell.method, cell.variant, cell.setting)
    return (means.method, means.variant) if means.method else (cell.method, cell.variant)


def _same_text(row: PrintedRow, other: PrintedRow) -> str:
    here = row.first.runs or "not said of what"
    there = other.first.runs or "not said of what"
    text = f"the same {len(row.parts)} cells as {name_cell(other.first)}"
    if here != there:
        text += f", there {there}, here {here}"
    if row.average and other.average and row.average.value != other.average.value:
        text += f"; the published average is {row.average.printed} here"
        text += f" and {other.average.printed} there"
    return text


def _quotations(every: Sequence[PrintedRow]) -> Iterator[Remark]:
    for cell in chain.from_iterable(row.cells for row in every):
        there = in_source(cell) if cell.source else None
        if not there:
            continue
        table, value = there
        if value != cell.value:
            yield make_remark(
                "quoted",
                cell,
                f"published {cell.printed}; {cell.source}, table {table}: {format_printed(value)}",
            )


def _best_of(every: Sequence[PrintedRow]) -> Iterator[Remark]:
    for row in every:
        if not row.first.runs.startswith("best"):
            continue
        # how many runs a row is of -> labels of rows of the same table that are no best ones
        others: dict[str, list[str]] = {}
        for other in _neighbours(row, every):
            first = other.first
            if first.backbone == row.first.backbone and not first.runs.startswith("best"):
                others.setdefault(first.runs or "not said what", []).append(first.label)
        parts = []
        for runs, labels in others.items():
            parts.append(f"{', '.join(dict.fromkeys(labels))}: {runs}")
        if parts:
            text = f"{row.first.runs}; beside it {'; '.join(parts)}"
            yield make_remark("best", row.first, text, row=True)


def _other_conditions(every: Sequence[PrintedRow]) -> Iterator[Remark]:
    for row in every:
        others = [other.first for other in _neighbours(row, every)]
        parts = []
        for name, words in (("protocol", "protocol"), ("text", "text form")):
            mine = getattr(row.first, name)
            ((usual, _),) = Counter(
                getattr(cell, name) for cell in (row.first, *others)
            ).most_common(1)
            if mine != usual:
                said = "not known" if mine in ("", UNKNOWN) else mine
                parts.append(f"{words} {said}, its neighbours' is {usual}")
            elif mine == UNKNOWN and name == "protocol":
                parts.append("protocol not published, for the whole table")
        if row.first.corpus:
            parts.append(f"trained on {row.first.corpus}")
        if parts:
            yield make_remark("protocol", row.first, "; ".join(parts), row=True)


def _neighbours(row: PrintedRow, every: Sequence[PrintedRow]) -> list[PrintedRow]:
    """Return the other rows of the same table and metric."""
    table = (row.first.paper, row.first.table, row.first.metric)
    found = []
    for other in every:
        first = other.first
        if other is not row and (first.paper, first.table, first.metric) == table:
            found.append(other)
    return found


def _claims(every: Sequence[PrintedRow]) -> Iterator[Remark]:
    """Yield claims of a text (``claims.tsv``) that the two printed cells do not bear out, rounding
    apart."""
    known = set(chain.from_iterable(row.cells for row in every))
    for claim in claims():
        printed = claim.printed
        if printed is None or printed.cell not in known:
            continue
        if claim.holds(printed.value, printed.rounding):
            continue
        cell, less = printed.cell, printed.less
        above = f"{claim.claimed} above"
        if claim.claimed in WORDS:
            above = f"{cell.task} {claim.claimed} than"
        yield make_remark(
            "claim",
            cell,
            f"{claim.place} claims {above} {less.label}; the published {cell.printed} and "
            f"{less.printed} give {format_printed(printed.value, cell.metric)}",
        )


def _prompt_shares(every: Sequence[PrintedRow]) -> Iterator[Remark]:
    """Yield shares of trained parameters that a text claims (``trained.tsv``), if the prompt that
    the paper describes has another share."""
    claims = {
        (row["paper"], row["table"], row["setting"], row["label"]): row
        for row in read_every("trained.tsv")
    }
    for row in every:
        cell = row.first
        claim = claims.get((cell.paper, cell.table, cell.setting, cell.label))
        if claim is None:
            continue
        share = prompt_share(cell.backbone, int(claim["prompt_length"]))
        if abs(share - float(claim["claimed"])) > half_unit(claim["claimed"]):
            text = (
                f"{claim['place']} claims around {claim['claimed']} % trained parameters; a prompt "
                f"of {claim['prompt_length']} vectors in each layer has {share:.3f} %"
            )
            yield make_remark("claim", cell, text, row=True)


SIZES = {  # layers, width, parameters without the heads of pretraining
    "bert-base-uncased": (12, 768, 109_482_240),
    "bert-large-uncased": (24, 1024, 335_141_888),
    "roberta-base": (12, 768, 124_645_632),
    "roberta-large": (24, 1024, 355_359_744),
}


def prompt_share(backbone: str, prompt_length: int) -> float:
    """Return what a prompt has in percent of its backbone's parameters, as DCPCSE describes one: a
    vector of the model's width for every layer and position. The authors' code trains more.
    """
    layers, width, parameters = SIZES[backbone]
    return 100 * layers * prompt_length * width / parameters


def make_remark(kind: str, cell: ReferenceResult, text: str, *, row: bool = False) -> Remark:
    """Make a remark on a cell, or on the whole row that it is the first cell of."""
    names = ("paper", "table", "label", "setting", "method", "backbone", "variant", "metric")
    place = {name: getattr(cell, name) for name in names}
    return Remark(kind=kind, task="" if row else cell.task, text=text, **place)


def name_cell(cell: ReferenceResult) -> str:
    """Name the place of a cell: "dcpcse table 1 (DCPCSE-BERT-base)"."""
    return f"{cell.paper} table {cell.table} ({cell.label})"


CHECKS: tuple[Callable[[Sequence[PrintedRow]], Iterator[Remark]], ...] = (
    _averages,
    _counts,
    _printed_elsewhere,
    _same_numbers,
    _claims,
    _prompt_shares,
    _quotations,
    _best_of,
    _other_conditions,
)
