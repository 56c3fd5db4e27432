"""What the printed tables say about themselves: computed from the cells, never typed.

Every check is a function from rows to remarks. A remark belongs to a cell, or to a whole row where ``task`` is empty; pages and
``bench references --audit`` show the same ones.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from bench.base.errors import BenchError
from bench.base.findings import DIFFERS, Finding
from bench.references import (
    HERE,
    UNKNOWN,
    WEIGHTED,
    ReferenceResult,
    Row,
    line_of,
    meaning,
    read_rows,
    read_scores,
    results,
    rows,
)

KINDS = {
    "average": "averages that do not follow from their own cells",
    "impossible": "accuracies that no number of right answers gives",
    "differs": "numbers that are printed differently elsewhere",
    "same": "the same numbers under another method's name",
    "claim": "claims in a paper's text that its numbers do not support",
    "quoted": "quoted cells that differ from their source",
    "best": "the best of several runs, next to numbers that are not",
    "protocol": "cells whose protocol, text or training text differs from their neighbours'",
    "copied": "rows that are copied from another paper",
}


@dataclass(frozen=True, kw_only=True)
class Remark(Finding):
    """Something that a reader of one printed cell, or row, should know: ``kind`` is a key of KINDS, ``what`` the place of the print,
    ``why`` the remark."""

    cell: ReferenceResult
    """The printed cell, or the first of the row."""
    task: str
    """"" for the whole row."""


@cache
def audit() -> tuple[Remark, ...]:
    """Every remark, kind after kind, in the papers' order. ``copied`` rows are among them."""
    every = rows()
    return tuple(remark for check in CHECKS for remark in check(every))


def remarks(result: ReferenceResult) -> tuple[Remark, ...]:
    """What the audit says of a printed cell, or of the whole row that it stands in."""
    return tuple(
        remark
        for remark in _by_row().get((*line_of(result), result.metric), ())
        if remark.task in ("", result.task)
    )


@cache
def _by_row() -> dict[tuple[str, ...], list[Remark]]:
    groups: dict[tuple[str, ...], list[Remark]] = {}
    for remark in audit():
        groups.setdefault((*line_of(remark.cell), remark.cell.metric), []).append(remark)
    return groups


ROW = ("paper", "table", "label", "setting", "method", "backbone", "variant", "metric")
"""The fields that name a row: those of ``line_of``, and the metric."""


def _remark(kind: str, cell: ReferenceResult, text: str, *, row: bool = False) -> Remark:
    return Remark(kind, place(cell), DIFFERS, text, cell=cell, task="" if row else cell.task)


def as_data(remark: Remark) -> dict[str, str]:
    """As JSON: the row's names, the task, the text."""
    return {
        "kind": remark.kind,
        **{name: getattr(remark.cell, name) for name in ROW},
        "task": remark.task,
        "text": remark.why,
    }


def place(cell: ReferenceResult) -> str:
    """Where a cell is printed: "dcpcse table 1 (DCPCSE-BERT-base)"."""
    return f"{cell.paper} table {cell.table} ({cell.label})"


def show(value: float, metric: str = "") -> str:
    """A value with as many decimals as the metric's tables print."""
    return f"{value:.{DECIMALS.get(metric, 2)}f}"


DECIMALS = {
    "spearman-bootstrap": 1,
    "spearman-dev": 1,
    "accuracy-dev": 1,
    "alignment": 3,
    "uniformity": 3,
}  # as printed; 2 for all others


# --- a row by itself ---


def _averages(every: Sequence[Row]) -> Iterator[Remark]:
    for row in every:
        if row.average is not None and (mean := off_average(row)) is not None:
            by = row.average.value - mean
            text = f"printed {row.average.printed}; the mean of its {len(row.parts)} cells is {show(mean)} ({by:+.2f})"
            if coarse(row) and abs(by) <= 0.05 + half_unit(row.average.printed) + TINY:
                text += "; each of its cells ends in 0, and rounding them to one decimal explains the difference"
            yield _remark("average", row.average, text)


def _counts(every: Sequence[Row]) -> Iterator[Remark]:
    for row in every:
        for cell in row.parts:
            if (reach := unreachable(cell, row)) is not None:
                items, repeats, near = reach
                of = f"{items:,} items" + (f" in {repeats} runs" if repeats > 1 else "")
                but = "" if cell.runs else ": not the score of one run"
                nearest = " or ".join(dict.fromkeys(map(show, near)))
                yield _remark(
                    "impossible",
                    cell,
                    f"printed {cell.printed}; right answers among {of} give {nearest}{but}",
                )


# --- a row and other rows ---


def _printed_elsewhere(every: Sequence[Row]) -> Iterator[Remark]:
    """Different numbers that rows print for one run of the harness (method, variant, setting, backbone, task, protocol)."""
    groups: dict[tuple[object, ...], list[ReferenceResult]] = {}
    for row in every:
        for cell in row.cells:
            means = meaning(cell.method, cell.variant, cell.setting)
            groups.setdefault(
                (
                    _run_name(cell),
                    tuple(means.set.items()),
                    means.on,
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
            text = f"printed {cell.printed}{_kind(cell)}"
            for value, same in others.items():
                places = dict.fromkeys(f"{other.paper} table {other.table}" for other in same)
                text += f"; {', '.join(places)}: {show(value, cell.metric)}{_kind(same[0])}"
            if others:
                yield _remark("differs", cell, text)


def _kind(cell: ReferenceResult) -> str:
    """How a number came about, as far as it is said: " (copied)", " (own, best of 4 seeds)", " (rerun)"."""
    ours = (cell.method, meaning(cell.method, cell.variant, cell.setting).method)
    origin = ("own" if cell.paper in ours else "rerun") if cell.own_result else "copied"
    return f" ({', '.join(word for word in (origin, cell.runs) if word)})"


LEAST_CELLS = 3  # that must agree before two rows count as the same numbers


def _same_numbers(every: Sequence[Row]) -> Iterator[Remark]:
    """Rows of different methods whose cells all agree, apart from the average. A README's rows of released checkpoints do not count."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in every:
        cells = tuple((cell.task, cell.value) for cell in row.parts)
        if len(cells) >= LEAST_CELLS and not row.first.variant.startswith("checkpoint"):
            groups.setdefault((row.first.metric, row.first.backbone, cells), []).append(row)
    for alike in groups.values():
        for row in alike:
            for other in alike:
                if _run_name(row.first) != _run_name(other.first):
                    yield _remark("same", row.first, _same_text(row, other), row=True)


def _run_name(cell: ReferenceResult) -> tuple[str, str]:
    """Method and variant as they are called here, or as the tables call them if there is no such method here."""
    means = meaning(cell.method, cell.variant, cell.setting)
    return (means.method, means.variant) if means.method else (cell.method, cell.variant)


def _same_text(row: Row, other: Row) -> str:
    here, there = row.first.runs or "not said of what", other.first.runs or "not said of what"
    text = f"the same {len(row.parts)} cells as {place(other.first)}" + (
        f", there {there}, here {here}" if here != there else ""
    )
    if row.average and other.average and row.average.value != other.average.value:
        text += (
            f"; the average is printed {row.average.printed} here and {other.average.printed} there"
        )
    return text


def _quotations(every: Sequence[Row]) -> Iterator[Remark]:
    for cell in (cell for row in every for cell in row.cells):
        if cell.source and (there := in_source(cell)) and there[1] != cell.value:
            yield _remark(
                "quoted",
                cell,
                f"printed {cell.printed}; {cell.source}, table {there[0]}: {show(there[1])}",
            )


def _best_of(every: Sequence[Row]) -> Iterator[Remark]:
    for row in every:
        if row.first.runs.startswith("best"):
            beside: dict[str, list[str]] = {}
            for other in _neighbours(row, every):
                if other.first.backbone == row.first.backbone and not other.first.runs.startswith(
                    "best"
                ):
                    beside.setdefault(other.first.runs or "not said what", []).append(
                        other.first.label
                    )
            if beside:
                neighbours = "; ".join(
                    f"{', '.join(dict.fromkeys(labels))}: {runs}" for runs, labels in beside.items()
                )
                yield _remark(
                    "best", row.first, f"{row.first.runs}; beside it {neighbours}", row=True
                )


def _other_conditions(every: Sequence[Row]) -> Iterator[Remark]:
    for row in every:
        others = [other.first for other in _neighbours(row, every)]
        parts = []
        for name, words in (("protocol", "protocol"), ("text", "text form")):
            mine = getattr(row.first, name)
            ((usual, _),) = Counter(
                getattr(cell, name) for cell in (row.first, *others)
            ).most_common(1)
            if mine != usual:
                parts.append(
                    f"{words} {'not known' if mine == UNKNOWN else mine}, its neighbours' is {usual}"
                )
            elif mine == UNKNOWN and name == "protocol":
                parts.append("protocol not published, for the whole table")
        if row.first.corpus:
            parts.append(f"trained on {row.first.corpus}")
        if parts:
            yield _remark("protocol", row.first, "; ".join(parts), row=True)


def _neighbours(row: Row, every: Sequence[Row]) -> list[Row]:
    """The other rows of the same table and metric."""
    mine = row.first
    return [
        other
        for other in every
        if other is not row
        and (other.first.paper, other.first.table, other.first.metric)
        == (mine.paper, mine.table, mine.metric)
    ]


def _copied(every: Sequence[Row]) -> Iterator[Remark]:
    return (
        _remark("copied", row.first, f"copied from {row.first.source}", row=True)
        for row in every
        if row.first.source
    )


def _claims(every: Sequence[Row]) -> Iterator[Remark]:
    """Gains that a text claims (``claims.tsv``), if the two printed cells differ by more or less than rounding explains."""
    printed = {
        cell: place for place, cell in enumerate(cell for row in every for cell in row.cells)
    }
    for claim in sorted(
        (claim for claim in claimed_gains() if claim.cell in printed),
        key=lambda claim: printed[claim.cell],
    ):
        if abs(claim.gain - float(claim.claimed)) > claim.rounding + TINY:
            cell, less = claim.cell, claim.less
            yield _remark(
                "claim",
                cell,
                f"{claim.place} claims {claim.claimed} above {less.label}; the printed {cell.printed} and {less.printed} give {show(claim.gain, cell.metric)}",
            )


def _trained_shares(every: Sequence[Row]) -> Iterator[Remark]:
    """Shares of trained parameters that a text claims (``trained.tsv``), if the authors' code trains a larger share."""
    claims = {
        (row["paper"], row["table"], row["setting"], row["label"]): row
        for row in read_rows(TRAINED)
    }
    for row in every:
        cell = row.first
        if (claim := claims.get((cell.paper, cell.table, cell.setting, cell.label))) is None:
            continue
        prompt, head, lm_head = trained_shares(
            cell.backbone, int(claim["prompt_length"]), lm_head=bool(claim["lm_head"])
        )
        if prompt + head + lm_head > float(claim["claimed"]) + half_unit(claim["claimed"]):
            text = (
                f"{claim['place']} claims around {claim['claimed']} % trained parameters; the prompt has {prompt:.2f} %"
                f", prompt and head (the authors' code trains both) {prompt + head:.2f} %"
            )
            more = f", with the LM head {prompt + head + lm_head:.0f} %" if lm_head else ""
            yield _remark("claim", cell, text + more, row=True)


CHECKS: tuple[Callable[[Sequence[Row]], Iterator[Remark]], ...] = (
    _averages,
    _counts,
    _printed_elsewhere,
    _same_numbers,
    _claims,
    _trained_shares,
    _quotations,
    _best_of,
    _other_conditions,
    _copied,
)


# --- what the numbers of one printed row must fulfil, whatever they measure ---

ITEMS = {"TREC": 500, "SST-2": 1821, "MRPC": 1725}
"""Test items of the accuracy tasks with one test set; the others are averages over folds."""
TINY = 1e-9


def half_unit(printed: str) -> float:
    """Half a unit of the last printed decimal: what rounding may have changed."""
    return 0.5 * 10.0 ** -len(printed.partition(".")[2])


def coarse(row: Row) -> bool:
    """Are a row's cells printed with two decimals and all end in 0? Then they were rounded to one before."""
    return len(row.parts) >= LEAST_CELLS and all(
        half_unit(cell.printed) < 0.05 and cell.printed.endswith("0") for cell in row.parts
    )


def off_average(row: Row) -> float | None:
    """The mean of a row's cells, where the printed average cannot be it: where rounding of the cells and of the average as they
    are printed does not explain the difference. None where it can, and where there is no average.
    """
    if row.average is None or len(row.parts) < 2:
        return None
    mean = math.fsum(cell.value for cell in row.parts) / len(row.parts)
    rounding = half_unit(row.average.printed) + math.fsum(
        half_unit(cell.printed) for cell in row.parts
    ) / len(row.parts)
    return mean if abs(row.average.value - mean) > rounding + TINY else None


def unreachable(cell: ReferenceResult, row: Row) -> tuple[int, int, tuple[float, float]] | None:
    """(items, runs, nearest values below and above), where no number of right answers gives the printed accuracy.

    Of n items in k runs the mean is a multiple of 100 / (n k). The print rounds it once; of several runs each may have been
    rounded before. None where it can be reached, or where the task has no single test set.
    """
    items = ITEMS.get(cell.task)
    if cell.metric != "accuracy" or items is None:
        return None
    unit = 0.05 if coarse(row) else half_unit(cell.printed)
    step = 100 / (items * cell.repeats)
    below = math.floor(cell.value / step + TINY) * step
    near = (below, below + step)
    return (
        (items, cell.repeats, near)
        if min(abs(cell.value - v) for v in near) > (unit if cell.repeats == 1 else 2 * unit) + TINY
        else None
    )


# --- what the papers' texts claim: ``claims.tsv``, a gain a line, with the two cells whose difference it is; ``trained.tsv`` ---

CLAIMS, TRAINED, SOURCES_FILE = (HERE / f"{name}.tsv" for name in ("claims", "trained", "sources"))


@dataclass(frozen=True)
class ClaimedGain:
    """A gain that a paper's text claims, and the two printed cells whose difference it is."""

    place: str  # "section 6"; "text" where no more is recorded
    claimed: str  # as it is printed: "1.21"
    cell: ReferenceResult
    less: ReferenceResult

    @property
    def gain(self) -> float:
        """What the cells give."""
        return self.cell.value - self.less.value

    @property
    def rounding(self) -> float:
        """What rounding of the claim and of both cells explains."""
        return math.fsum(map(half_unit, ((self.claimed, self.cell.printed, self.less.printed))))


@cache
def claimed_gains() -> tuple[ClaimedGain, ...]:
    """Every gain that is recorded, true or not. Raises BenchError, naming the file, for a cell that is not printed."""
    return tuple(
        ClaimedGain(
            row["place"],
            row["claimed"],
            _printed_cell(row, row["table"], row["label"]),
            _printed_cell(row, row["less_table"], row["less_label"]),
        )
        for row in read_rows(CLAIMS)
    )


def _printed_cell(row: dict[str, str], table: str, label: str) -> ReferenceResult:
    for cell in results(
        paper=row["paper"], setting=row["setting"], backbone=row["backbone"], task=row["task"]
    ):
        if (cell.table, cell.label) == (table, label):
            return cell
    raise BenchError(
        f"{CLAIMS}: {row['paper']} table {table} has no cell {row['task']} of '{label}', {row['setting']}, {row['backbone']}"
    )


SIZES = {  # layers, width, vocabulary, parameters without the heads of pretraining
    "bert-base-uncased": (12, 768, 30_522, 109_482_240),
    "bert-large-uncased": (24, 1024, 30_522, 335_141_888),
    "roberta-base": (12, 768, 50_265, 124_645_632),
    "roberta-large": (24, 1024, 50_265, 355_359_744),
}


def trained_shares(
    backbone: str, prompt_length: int, *, lm_head: bool
) -> tuple[float, float, float]:
    """(prompt, head, LM head) in percent of the backbone's parameters: DCPCSE's prompt is a key and a value of every layer and position,
    its head a linear layer, its LM head a linear layer, a norm, and a decoder with a bias that shares nothing with the embeddings.
    """
    layers, width, vocabulary, parameters = SIZES[backbone]
    linear = width * (width + 1)
    lm = (linear + 2 * width + vocabulary * (width + 1)) if lm_head else 0
    return (
        100 * (2 * layers * prompt_length * width) / parameters,
        100 * linear / parameters,
        100 * lm / parameters,
    )


# --- what the quoted papers print themselves: those whose tables are here, and ``sources.tsv``, one row a line, for another's ---

KEY = ("source", "metric", "setting", "method", "backbone", "variant")


def in_source(cell: ReferenceResult) -> tuple[str, float] | None:
    """(table, value) of a copied cell in the paper that it was copied from; None if that table is not here."""
    return _cells().get((*(getattr(cell, name) for name in KEY), cell.task))


SOURCES = {
    "Gao et al. 2021": "simcse",
    "Liu et al. 2023": "rankcse",
    "Wu et al. 2022 (PCL)": "pcl",
}  # the papers whose own tables are here, as others name them


@cache
def _cells() -> dict[tuple[str, ...], tuple[str, float]]:
    return {
        (source, *(getattr(cell, name) for name in KEY[1:]), cell.task): (cell.table, cell.value)
        for source, paper in SOURCES.items()
        for cell in reversed(results(paper=paper))  # of two rows the first stands
        if cell.protocol != WEIGHTED
    } | {
        (*(row[name] for name in KEY), task): (row["table"], value)
        for row in read_rows(SOURCES_FILE)
        for task, _, value, _ in read_scores(row, SOURCES_FILE)
    }
