"""A table of scores: its columns, rows and cells, and what is known of how sure its numbers are.
Every form of output draws these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from bench.base.text import with_variant
from bench.compare.statistics.rows import Differs

AVERAGE = "Avg."

# as the papers print them; tasks of other suites keep the order of their record
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "sts": ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")
}

ALPHA = 0.05

BETTER = "better"
WORSE = "worse"
INCONCLUSIVE = "inconclusive"

FOR_COMPARISON = "for comparison"
"""A row that no question names."""
NOT_TRAINED = "not trained"
"""A trained row that is not above its untrained start."""
FOR_SCALE = "for scale"
"""A row that nothing here trained or fitted."""

FEWEST_SEEDS = 3
"""Of a row in which something is random, and of such a baseline: with fewer, a row that spreads
more than the others is called better or worse far too often (docs/statistics.md)."""

FEW_SEEDS = "fewer than three seeds"


@dataclass(frozen=True, kw_only=True)
class Spread:
    """The 95 % interval of a cell's mean."""

    low: float
    high: float
    # what the interval covers: "items and seeds", "items" or "seeds"
    covers: str
    se: float
    level: float = 0.95


@dataclass(frozen=True, kw_only=True)
class Against:
    """A cell minus the baseline's cell. Only the column that ranks is tested; elsewhere there is
    only the difference."""

    difference: float
    # the seeds that both have, if they were compared seed by seed
    paired_seeds: int | None = None
    # the averages that were subtracted: of these seeds, else of all
    mean: float | None = None
    baseline_mean: float | None = None
    se: float | None = None
    # None: infinite
    df: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    # the level at which the interval excludes zero if there is a verdict
    ci_level: float | None = None
    # two-sided, for this comparison alone
    p: float | None = None
    # BETTER, WORSE or INCONCLUSIVE; None: not tested
    verdict: str | None = None
    # the smallest difference found with 80 % power (minimal detectable effect)
    mde: float | None = None
    # the margin within which the row equals the baseline at 5 %, for this comparison alone
    equal_within: float | None = None


@dataclass(frozen=True, kw_only=True)
class Start:
    """A trained row minus its untrained start, on the column that ranks."""

    # the start's name, as tables write it
    row: str
    difference: float
    ci_low: float
    ci_high: float
    # of this comparison alone
    ci_level: float


@dataclass(frozen=True, kw_only=True)
class Printed:
    """The value that a paper printed for a cell."""

    value: float
    std: float | None
    # "promcse:1": paper and table
    source: str
    # False: the paper quotes somebody else
    own: bool
    # ours minus the paper's
    difference: float
    # ours is within, below or above the 95 % prediction interval (bench.compare.consistency); or
    # not tested
    verdict: str
    # half of that interval's width
    half: float | None = None
    # the reason why it is not tested
    reason: str = ""
    note: str = ""


def most_seeds(rows: Iterable[Row]) -> dict[tuple[str, str], int]:
    """Return (name, setting) -> the most runs that one of the rows of that name and setting has."""
    most: dict[tuple[str, str], int] = {}
    for row in rows:
        place = (row.name, row.setting)
        most[place] = max(len(row.runs), most.get(place, 0))
    return most


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One method on one task."""

    # over seeds
    mean: float
    # over seeds, divided by n - 1; None with one seed
    sd: float | None
    # one per run, in the order of the row's runs
    values: tuple[float, ...]
    # the seeds of these runs
    seeds: tuple[int | None, ...] = ()
    # items scored
    n: int
    # "best", "second" or ""
    mark: str = ""
    # the decimals that are printed; a mark compares the rounded means
    decimals: int = 2
    spread: Spread | None = None
    against: Against | None = None
    printed: Printed | None = None
    # what the task measures besides its metric, by name; means over seeds
    beside: Mapping[str, float] = field(default_factory=dict)

    @property
    def rounded(self) -> float:
        """The mean as shown."""
        return round(self.mean, self.decimals)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One method as configured. ``cells`` belong to the table's columns; None: not scored."""

    method: str
    variant: str
    setting: str
    backbone: str
    # differences from rows of the same name: (recipe key, value)
    differs: Differs
    # run ids, by seed
    runs: tuple[str, ...]
    seeds: tuple[int | None, ...]
    cells: tuple[Cell | None, ...]
    # False: nothing here trained or fitted it
    is_fitted: bool = True
    is_baseline: bool = False
    # NOT_TRAINED, FOR_COMPARISON or FOR_SCALE for a row that is not judged; ""
    stands: str = ""
    # True: runs of a method that trains, which ended before the first step
    is_start: bool = False
    # None: it was not scored, or the row was not trained
    start: Start | None = None
    # by the head column; only such rows are shaded or marked
    may_be_best: bool = False
    # the reason why it takes no part in the tests; "" if it does
    untested: str = ""
    # numbers by name (bench.compare.costs); None if no cost was asked for
    cost: Mapping[str, Any] | None = None
    # what differs in it from the other rows and matters, in words
    notes: tuple[str, ...] = ()
    # values in which rows of the table differ, by name
    trained_with: Mapping[str, str] = field(default_factory=dict)
    # the commands that show runs of other code of its method; "" if there are none
    other_code: str = ""
    # ids of runs that are left out, because newer ones have their seeds
    older: tuple[str, ...] = ()
    # the source of its values: "paper", "recipe", "tuned: 12 trials"; "" if nothing is trained
    values: str = ""
    # the name of an evaluated object or of vectors, or of any ready-made encoder in a table of
    # them, which is shown as the method
    model: str = ""
    # bytes of a vector, in a table of which some row has smaller ones than its encoder gives
    vector_bytes: int | None = None

    @property
    def label(self) -> str:
        """Return the first words of the row."""
        return self.model or self.method

    @property
    def name(self) -> str:
        return with_variant(self.label, self.variant)

    @property
    def is_asked_about(self) -> bool:
        """True for a row that is judged, or would be if it were above its untrained start."""
        return self.stands in ("", NOT_TRAINED)

    @property
    def is_at_start(self) -> bool:
        """True for a trained row that is not above its untrained start."""
        return self.start is not None and self.start.ci_low <= 0


def namesake_key(row: Row) -> tuple[object, ...]:
    """Return what rows of one name share."""
    return row.name, row.setting, row.backbone, row.is_start


STANDING = ("", NOT_TRAINED, FOR_COMPARISON, FOR_SCALE)
"""What rows stand for, in the order of a table."""


def by_standing(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Put the rows that are judged first, and keep the order otherwise."""
    return tuple(sorted(rows, key=lambda row: STANDING.index(row.stands)))


@dataclass(frozen=True, kw_only=True)
class Tested:
    """The one family of tests of a table: the head column of the rows that could be tested."""

    # the number of tested rows, with the baseline
    rows: int
    # comparisons with the baseline; without one, of each row with the best
    comparisons: int
    # the level of the intervals of differences
    ci_level: float
    alpha: float = ALPHA


@dataclass(frozen=True, kw_only=True)
class Table:
    """One comparable set of numbers. ``columns`` end with the average if the suite has one."""

    # None: several, each row names its own
    setting: str | None
    backbone: str | None
    suite: str
    protocol: str
    metric: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    baseline: str | None = None
    # None: nothing was tested
    tested: Tested | None = None
    # the question of the plan that its family answers, as the plan has it
    question: str = ""
    # True if the rows of its question stand in another table, too
    is_further: bool = False
    # how long its rows were trained, if most runs have another budget
    budget: str = ""
    # the budget of its rows, if the trained runs of its backbone have several; else ""
    length: str = ""
    # the training text of its rows, if most runs of its setting, backbone and budget have another
    text: str = ""
    # the name of its training text, if the runs of its setting and backbone have several; else ""
    trained_on: str = ""
    # who submitted all of its runs; "" for the publisher's own
    sender: str = ""
    # columns in which lower is better
    falling: tuple[str, ...] = ()

    @property
    def head(self) -> str | None:
        """The column that ranks: the average, or the only task; where more is better."""
        *others, last = self.columns
        ranks = (last == AVERAGE or not others) and last not in self.falling
        return last if ranks else None

    @cached_property
    def namesakes(self) -> Mapping[tuple[object, ...], Sequence[Row]]:
        """Rows by what they share in ``namesake_key``."""
        rows: dict[tuple[object, ...], list[Row]] = {}
        for row in self.rows:
            rows.setdefault(namesake_key(row), []).append(row)
        return rows

    @cached_property
    def has_verdicts(self) -> bool:
        """Say if a row was judged against the baseline on the column that ranks."""
        return any(against.verdict for against in self.comparisons)

    @cached_property
    def comparisons(self) -> Sequence[Against]:
        """Return the differences from the baseline with an interval, of the column that ranks."""
        cells = [row.cells[-1] for row in self.rows]
        compared = [cell.against for cell in cells if cell is not None and cell.against]
        return [against for against in compared if against.se is not None]

    def n(self, row: Row) -> int:
        """Count the seeds behind the row's value in the column that ranks, if it has one."""
        cell = row.cells[-1] if self.head is not None else None
        return len(row.runs) if cell is None else len(cell.values)
