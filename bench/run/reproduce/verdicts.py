"""Ours beside the print, cell by cell: is it the same method that gave both numbers?

The items are the paper's own, so only seeds vary. Two questions are asked of a row, each over all its cells (Holm):

* *different*: is the printed value one that new seeds of ours would hardly give? A prediction interval: it has the error of our mean
  and that of the print, a mean of k runs (or the best of k).
* *equivalent*: does the mean of our method lie within the margin of the printed value? Two one-sided tests (Schuirmann 1987).

Neither is *inconclusive*. The variance over seeds is borrowed across the methods of the table (``bench.compare.statistics.seed_variance``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from pathlib import Path
from statistics import variance
from typing import TYPE_CHECKING

from bench.compare.statistics.lenders import adjust_p_values, lenders, quantile_of, two_one_sided
from bench.compare.statistics.table import DECIMALS
from bench.data.sets import STS_TASKS
from bench.references import AVERAGE, UNKNOWN, WEIGHTED, WHOLE, ReferenceResult, Row
from bench.references.audit import remarks
from bench.references.ours import DEV, SUITES
from bench.run.reproduce.wanted import WantedRun
from bench.score.metrics.correlation import spearman

if TYPE_CHECKING:
    from bench.runs import RunRecord, Score


Run = tuple["RunRecord", Path]
"""A record, and the folder of its run."""

MARGIN, ALPHA = 0.5, 0.05
CAREFUL = 0.04
"""Level of *different*: that variances are borrowed from few methods costs up to another 1 in 100 (simulated in the tests)."""
POWER = 0.8  # with which the seeds that a note names would settle a cell, if the difference is the one that was found
MOST_SEEDS = 200
EQUIVALENT, DIFFERENT, INCONCLUSIVE = "equivalent", "different", "inconclusive"
VERDICTS = {
    EQUIVALENT: "the mean of our seeds lies within the margin of the printed value",
    DIFFERENT: "new seeds of ours would hardly give the printed value",
    INCONCLUSIVE: "these seeds cannot tell",
    "not comparable": "other conditions than the paper's",
    "not scored": "no run of ours has this cell",
}


@dataclass(frozen=True, kw_only=True)
class Reproduced:
    """One printed cell and what became of it. Differences are ours less the print."""

    printed: ReferenceResult
    mean: float | None = None  # over seeds
    low: float | None = (
        None  # where a printed value of this kind would lie 95 times in 100, were it of our method
    )
    high: float | None = None
    sd: float | None = (
        None  # over seeds, borrowed across the table's methods; 0.0 where nothing is random
    )
    freedom: float | None = None  # its degrees of freedom; None where nothing is random
    difference: float | None = None
    verdict: str  # a key of VERDICTS
    p_different: float | None = None  # adjusted over the cells of the row
    p_equivalent: float | None = None
    seeds_needed: int | None = (
        None  # in all, to settle what is inconclusive; None: no number would, or nothing is known
    )
    seeds: tuple[int | None, ...] = ()
    runs: tuple[str, ...] = ()
    protocol: str | None = None  # of ours
    text: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def decimals(self) -> int:
        return DECIMALS.get(self.printed.metric, 2)


def judge_cells(
    listed: Sequence[tuple[WantedRun, Sequence[Run]]], text: str, margin: float = MARGIN
) -> list[list[Reproduced]]:
    """Every printed cell of each run's rows, in their order. With each wanted run its finished ones, one per seed, possibly none.

    ``margin``: in points; a tenth of it where numbers are printed with three decimals (alignment, uniformity).
    """
    spread = _spreads([[_of(cell, ours, text) for cell in _cells(run)] for run, ours in listed])
    return [
        _judged(
            [
                _cell(cell, run, scored, seen)
                for cell, scored, seen in zip(_cells(run), *spread[i], strict=True)
            ],
            margin,
        )
        for i, (run, _) in enumerate(listed)
    ]


def _cells(run: WantedRun) -> list[ReferenceResult]:
    return [cell for row in run.rows for cell in row.cells]


Scored = list[tuple[Run, "Score"]]
Spread = tuple[float, float] | None
"""Standard deviation over seeds and its degrees of freedom (infinite where nothing is random); None where nothing is known of it."""


def _of(cell: ReferenceResult, ours: Sequence[Run], text: str) -> Scored:
    return [(our, score) for our in ours if (score := score_of(our[0], cell, text)) is not None]


def _spreads(table: Sequence[Sequence[Scored]]) -> list[tuple[Sequence[Scored], list[Spread]]]:
    """Of each run's cells; runs that were scored on one task lend each other their variance."""
    own: dict[
        tuple[object, ...], dict[int, tuple[float, int]]
    ] = {}  # a score's key -> run -> variance and degrees of freedom
    for i, cells in enumerate(table):
        for scored in cells:
            if scored and scored[0][0][0].seed is not None:
                values = [score.value for _, score in scored]
                own.setdefault(_key(scored), {})[i] = (
                    (variance(values) if len(values) > 1 else 0.0),
                    len(values) - 1,
                )
    lend = lenders({key: list(runs.values()) for key, runs in own.items()})

    def spread(i: int, scored: Scored) -> Spread:
        if not scored:
            return None
        if scored[0][0][0].seed is None:
            return 0.0, math.inf
        squared, freedom = lend[_key(scored)].posterior(*own[_key(scored)][i])
        return (math.sqrt(squared), freedom) if freedom > 0 else None

    return [(cells, [spread(i, scored) for scored in cells]) for i, cells in enumerate(table)]


def _key(scored: Scored) -> tuple[object, ...]:
    return (*scored[0][1].key, scored[0][1].metric)


def _cell(cell: ReferenceResult, run: WantedRun, scored: Scored, spread: Spread) -> Reproduced:
    """Without a verdict of its own yet, but for what is not compared."""
    notes = tuple(
        remark.text for remark in remarks(cell) if remark.kind not in ("differs", "same", "copied")
    )
    if not scored:
        return Reproduced(printed=cell, verdict="not scored", notes=notes)
    mean = math.fsum(score.value for _, score in scored) / len(scored)
    places = DECIMALS.get(cell.metric, 2)
    comparable = run.compares_with(cell) and cell.protocol != UNKNOWN
    if spread is None:
        spread = printed_spread(cell)
    if spread is None and comparable:
        notes += (
            "one seed says nothing of other seeds: --seeds with two at least, or more methods of the table",
        )
    return Reproduced(
        printed=cell,
        mean=mean,
        sd=spread[0] if spread else None,
        freedom=spread[1] if spread and math.isfinite(spread[1]) else None,
        difference=round(round(mean, places) - cell.value, places),
        verdict=INCONCLUSIVE if comparable else "not comparable",
        seeds=tuple(one[0].seed for one, _ in scored),
        runs=tuple(one[0].run_id for one, _ in scored),
        protocol=scored[0][1].protocol,
        text=scored[0][1].text,
        notes=notes,
    )


@dataclass(frozen=True)
class Errors:
    """Of a cell: how far the print lies from where its method's mean is expected, and its variance and degrees of freedom."""

    shift: float  # of the print's expectation from the method's mean: above 0 where it is the best of several
    print_variance: float
    own_variance: float  # of our mean
    freedom: float  # of the difference
    own_freedom: float

    @property
    def difference(self) -> float:
        return math.sqrt(self.print_variance + self.own_variance)


def _errors(cell: Reproduced, seeds: int) -> Errors:
    """Were there so many seeds of ours. Raises ValueError where nothing is known of seeds."""
    if cell.sd is None:
        raise ValueError("nothing is known of seeds")
    freedom = math.inf if cell.freedom is None else cell.freedom + max(0, seeds - len(cell.seeds))
    count, best = printed_runs(cell.printed)
    own, given = cell.sd**2 / seeds, printed_spread(cell.printed)
    if given is not None:
        of_print = given[0] ** 2 / count
        parts = [(of_print, given[1]), (own, freedom)]
        uncertain = sum(part**2 / df for part, df in parts if part > 0)
        return Errors(
            0.0,
            of_print,
            own,
            (of_print + own) ** 2 / uncertain if uncertain > 0 else math.inf,
            freedom,
        )
    mean, variance = best_of(count) if best else (0.0, 1 / count)
    return Errors(mean * cell.sd, variance * cell.sd**2, own, freedom, freedom)


# --- The verdicts of a row ---


def _judged(cells: Sequence[Reproduced], margin: float) -> list[Reproduced]:
    """With verdicts, each label's cells as a family of their own."""
    rows: dict[tuple[object, ...], list[int]] = {}
    for i, cell in enumerate(cells):
        if cell.verdict == INCONCLUSIVE and cell.sd is not None:
            rows.setdefault(
                (
                    cell.printed.label,
                    cell.printed.backbone,
                    cell.printed.own_result,
                    cell.printed.setting,
                ),
                [],
            ).append(i)
    made = list(cells)
    for places in rows.values():
        for i, cell in zip(places, _row([cells[i] for i in places], margin), strict=True):
            made[i] = cell
    return made


def _row(cells: Sequence[Reproduced], margin: float) -> list[Reproduced]:
    different, equivalent = [], []
    for cell in cells:
        errors, off, half = _errors(cell, len(cell.seeds)), _off(cell), _half_unit(cell)
        different.append(
            _two_sided(max(0.0, abs(off + errors.shift) - half), errors.difference, errors.freedom)
        )
        equivalent.append(
            two_one_sided(
                abs(off) + half,
                math.sqrt(errors.own_variance),
                errors.own_freedom,
                _margin(cell, margin),
            )
        )
    return [
        _with_verdict(one, float(d), float(e), len(cells), margin)
        for one, d, e in zip(
            cells, adjust_p_values(different), adjust_p_values(equivalent), strict=True
        )
    ]


def _off(cell: Reproduced) -> float:
    assert cell.mean is not None
    return cell.mean - cell.printed.value


def _half_unit(cell: Reproduced) -> float:
    """A printed value stands for everything that is rounded to it."""
    return 0.5 * 10.0**-cell.decimals


def _margin(cell: Reproduced, margin: float) -> float:
    return margin if cell.decimals == 2 else margin / 10


def _two_sided(off: float, error: float, freedom: float) -> float:
    from scipy.special import ndtr, stdtr

    if error == 0:
        return 1.0 if off <= 0 else 0.0
    return float(2 * (ndtr(-off / error) if math.isinf(freedom) else stdtr(freedom, -off / error)))


def _with_verdict(
    cell: Reproduced, different: float, equivalent: float, cells: int, margin: float
) -> Reproduced:
    errors = _errors(cell, len(cell.seeds))
    half = quantile_of(0.975, errors.freedom) * errors.difference
    assert cell.mean is not None
    verdict = INCONCLUSIVE
    if equivalent < ALPHA:
        verdict = EQUIVALENT
    elif different < CAREFUL:
        verdict = DIFFERENT
    needed = _needed(cell, cells, margin) if verdict == INCONCLUSIVE else None
    count, best = printed_runs(cell.printed)
    notes = cell.notes
    if best:
        notes += (
            f"printed is the best of {count} runs: {errors.shift:.2f} above their mean is expected of luck alone",
        )
    if verdict == INCONCLUSIVE and needed is None:
        what = "one run" if count == 1 else f"the {'best' if best else 'mean'} of {count} runs"
        notes += (
            f"no number of our seeds settles what is left open here: the print is {what}, and varies as far by itself",
        )
    return replace(
        cell,
        low=cell.mean + errors.shift - half,
        high=cell.mean + errors.shift + half,
        verdict=verdict,
        p_different=different,
        p_equivalent=equivalent,
        seeds_needed=needed,
        notes=notes,
    )


def _needed(cell: Reproduced, cells: int, margin: float) -> int | None:
    """The fewest seeds that would make the cell equivalent or different with ``POWER``, were the difference found the true one."""
    off, half = abs(_off(cell)), _half_unit(cell)
    for seeds in range(max(2, len(cell.seeds) + 1), MOST_SEEDS + 1):
        errors = _errors(cell, seeds)
        room = _margin(cell, margin) - off - half
        enough = quantile_of(1 - ALPHA / cells, errors.own_freedom) + quantile_of(
            (1 + POWER) / 2, errors.own_freedom
        )
        if room > enough * math.sqrt(errors.own_variance):
            return seeds
        beyond = abs(_off(cell) + errors.shift) - half
        own = quantile_of(POWER, errors.own_freedom) * math.sqrt(errors.own_variance)
        if beyond > quantile_of(1 - CAREFUL / 2 / cells, errors.freedom) * errors.difference + own:
            return seeds
    return None


def score_of(record: RunRecord, cell: ReferenceResult, text: str) -> Score | None:
    """Our score of a printed cell: of its protocol (of any, where the paper's is not known), in the text form asked for.

    Where the print depends on no form (``text`` is empty), whatever form was scored.
    """
    if cell.metric == DEV:
        return _dev_score(record)
    if cell.protocol == WEIGHTED:
        return _weighted_score(record, cell, text)
    protocol = None if cell.protocol == UNKNOWN else cell.protocol
    fitting = [
        s
        for s in record.scores
        if (s.suite, s.task) == (SUITES[cell.metric], cell.task) and protocol in (None, s.protocol)
    ]
    of_form = [s for s in fitting if text == "any" or s.text in (text, None)]
    return next(iter(of_form or (fitting if not cell.text else [])), None)


def _weighted_score(record: RunRecord, cell: ReferenceResult, text: str) -> Score | None:
    """Spearman's correlation within each sub-dataset, weighted by size, which the score over all pairs carries as a detail; "Avg." is
    the mean over the tasks, and missing where one of them is."""
    from msgspec.structs import replace as with_values

    tasks = STS_TASKS if cell.task == AVERAGE else (cell.task,)
    scores = {
        task: score_of(record, replace(cell, protocol=WHOLE, task=task), text)
        for task in {*tasks, cell.task}
    }
    whole, values = (
        scores[cell.task],
        [score.detail.get("wmean") for task in tasks if (score := scores[task]) is not None],
    )
    known = [float(value) for value in values if isinstance(value, int | float)]
    if whole is None or len(known) < len(tasks):
        return None
    return with_values(
        whole, protocol=WEIGHTED, value=math.fsum(known) / len(known), predictions_sha256=None
    )


DEV_SET = "STS-B dev"


def _dev_score(record: RunRecord) -> Score | None:
    """The score of the checkpoint that was kept, on the set that it was chosen by."""
    from bench.runs import Score

    trained = record.training
    if trained is None or trained.dev_score is None or trained.dev_task != DEV_SET:
        return None
    return Score(
        suite=SUITES[DEV],
        task=DEV_SET,
        protocol="stsb-dev/1",
        metric=DEV,
        value=trained.dev_score,
        n=trained.dev_pairs or 1500,
    )


# --- How many runs a printed value is of, and what the paper says of their spread ---


def printed_runs(cell: ReferenceResult) -> tuple[int, bool]:
    """(runs behind a printed value, whether it is the best of them). One where nothing says so; "several" are two at least."""
    said = re.match(r"(mean|best) of (\d+|several)", cell.runs)
    if said is None:
        return 1, False
    return (2 if said[2] == "several" else max(int(said[2]), 1)), said[1] == "best"


def printed_spread(cell: ReferenceResult) -> tuple[float, float] | None:
    """What a paper prints after ±, where that is over its seeds and not over draws of the protocol."""
    count, best = printed_runs(cell)
    return (cell.std, count - 1) if cell.std is not None and count > 1 and not best else None


@cache
def best_of(count: int) -> tuple[float, float]:
    """(mean, variance) of the largest of so many standard normal values."""
    from scipy.integrate import quad
    from scipy.special import ndtr

    def moment(power: int) -> float:
        def density(x: float) -> float:
            return (
                x**power
                * count
                * ndtr(x) ** (count - 1)
                * math.exp(-x * x / 2)
                / math.sqrt(2 * math.pi)
            )

        return float(quad(density, -12, 12)[0])

    mean = moment(1)
    return mean, moment(2) - mean**2


# --- Do the rows of a printed table stand in the same order here? Rank correlations and pairs: numbers in, numbers out ---
# Rows are compared within one setting, printed backbone and task of a table: its average, or each task where it has none. A small
# version on another backbone says nothing about a paper's values; which orders it keeps can still be counted.


FEWEST = 3  # rows of a rank correlation


@dataclass(frozen=True)
class RowPair:
    """A printed row and ours beside it."""

    label: str
    printed: float
    ours: float | None  # None: no finished run of ours has it
    run: str  # what ours is; or why there is none


@dataclass(frozen=True)
class Order:
    """Rows of one table that print the same task, in the paper's order: the best first."""

    paper: str
    table: str
    setting: str
    backbone: str  # as printed
    task: str
    metric: str
    places: tuple[RowPair, ...]

    @property
    def compared(self) -> tuple[RowPair, ...]:
        return tuple(place for place in self.places if place.ours is not None)

    @property
    def pairs(self) -> tuple[int, int]:
        """(pairs of rows in the paper's order, pairs that could be): where both sides tell the two apart and they are not one run."""
        able = [
            (a.printed - b.printed, (a.ours or 0.0) - (b.ours or 0.0))
            for a, b in combinations(self.compared, 2)
            if a.printed != b.printed and a.ours != b.ours
        ]
        return sum((printed > 0) == (ours > 0) for printed, ours in able), len(able)

    @property
    def correlation(self) -> float | None:
        """Spearman's, equal values sharing the mean of their ranks; None for fewer than three rows, or where one side is all equal."""
        if len(self.compared) < FEWEST:
            return None
        try:
            return (
                spearman(
                    [place.printed for place in self.compared],
                    [place.ours or 0.0 for place in self.compared],
                )
                / 100
            )
        except ValueError:
            return None


def orders(
    rows: Sequence[Row],
    ours: Callable[[ReferenceResult, Row], tuple[float | None, str]],
    lower_is_better: Sequence[str],
) -> list[Order]:
    """The orders of printed rows, table by table; ``ours`` gives our value of a printed cell, and what it is or why it is none.

    A group of one row has no order and is left out.
    """
    groups: dict[tuple[str, str, str, str, str, str], list[RowPair]] = {}
    for row in rows:
        for cell in row.cells if row.average is None else (row.average,):
            key = (cell.paper, cell.table, cell.setting, cell.backbone, cell.task, cell.metric)
            groups.setdefault(key, []).append(RowPair(cell.label, cell.value, *ours(cell, row)))
    made = []
    for key, places in groups.items():
        if len(places) > 1:
            places.sort(
                key=lambda place: place.printed if key[5] in lower_is_better else -place.printed
            )  # noqa: B023
            made.append(Order(*key, tuple(places)))
    return made
