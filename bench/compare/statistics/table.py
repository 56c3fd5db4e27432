"""A table of scores: its columns, rows and cells, and what is known of how sure its numbers are.
Every form of output draws these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from bench.compare.statistics.rows import Differs

if TYPE_CHECKING:
    pass


AVERAGE = "Avg."

# as the papers print them; tasks of other suites keep the order of their record
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "sts": ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")
}

ALPHA = 0.05

BETTER, WORSE, INCONCLUSIVE = "better", "worse", "inconclusive"


@dataclass(frozen=True, kw_only=True)
class Spread:
    """The 95 % interval of a cell's mean."""

    low: float
    high: float
    covers: str  # "items and seeds", "items" or "seeds": what else might have been there
    se: float
    level: float = 0.95


@dataclass(frozen=True, kw_only=True)
class Against:
    """A cell minus the baseline's cell. Only the column that ranks is tested; elsewhere there is
    the difference alone."""

    difference: float
    se: float | None = None
    df: float | None = None  # None: infinite
    ci_low: float | None = None
    ci_high: float | None = None
    ci_level: float | None = (
        None  # that at which the interval leaves zero out where there is a verdict
    )
    p: float | None = None  # of this comparison alone, two-sided
    verdict: str | None = None  # BETTER, WORSE or INCONCLUSIVE; None: not tested
    mde: float | None = (
        None  # the smallest difference found with 80 % power (minimal detectable effect)
    )


@dataclass(frozen=True, kw_only=True)
class Printed:
    """The value that a paper printed for a cell."""

    value: float
    std: float | None
    source: str  # "promcse:1": paper and table
    own: bool  # False: the paper quotes somebody else
    difference: float  # ours minus the paper's
    inside: (
        bool | None
    )  # of the 95 % prediction interval (bench.compare.consistency); None: not tested
    half: float | None = None  # of that interval's width
    reason: str = ""  # why it is not tested
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The cost of a row, each number a mean over its runs; None if not all of them recorded it."""

    trainable_parameters: float | None = None
    trainable_parts: Mapping[str, float] | None = (
        None  # of the same parts in all runs: "prompt" -> how many of them
    )
    train_seconds: float | None = None
    peak_memory_bytes: float | None = None
    tuning_seconds: float | None = (
        None  # of all trials of the search that found the values; None: none did
    )
    tuning_trials: int | None = None


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One method on one task."""

    mean: float  # over seeds
    sd: float | None  # over seeds, divided by n - 1; None with one seed
    values: tuple[float, ...]  # one per run, in the order of the row's runs
    seeds: tuple[int | None, ...] = ()  # of these runs
    n: int  # items scored
    mark: str = ""  # "best", "second" or ""
    decimals: int = 2  # that are printed, and that a mark goes by
    spread: Spread | None = None
    against: Against | None = None
    printed: Printed | None = None

    @property
    def rounded(self) -> float:
        """The mean as it is shown."""
        return round(self.mean, self.decimals)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One method as configured. ``cells`` belong to the table's columns, None where nothing was
    scored."""

    method: str
    variant: str
    setting: str
    backbone: str
    differs: Differs  # what sets it apart from rows of the same name: (recipe key, value)
    runs: tuple[str, ...]  # run ids, by seed
    seeds: tuple[int | None, ...]
    cells: tuple[Cell | None, ...]
    is_baseline: bool = False
    may_be_best: bool = False  # on the head column; the only thing that is shaded or marked
    untested: str = ""  # why it takes no part in the tests; "" where it does
    cost: Cost | None = None  # None: not asked for
    footnotes: tuple[int, ...] = ()  # places in the table's ``footnotes``
    values: str = ""  # where its values come from: "paper", "recipe", "tuned: 12 trials"; "" where nothing is trained
    model: str = ""  # the name of an evaluated object, of vectors or of a server, which stands in the place of a method

    @property
    def label(self) -> str:
        """Return the first words of the row."""
        return self.model or self.method

    @property
    def name(self) -> str:
        return f"{self.label}+{self.variant}" if self.variant else self.label


@dataclass(frozen=True, kw_only=True)
class Tested:
    """The one family of tests of a table: the head column of the rows that could be tested."""

    rows: int  # tested, the baseline among them
    comparisons: int  # with the baseline; without one, of each row with the best
    ci_level: float  # of the intervals of differences
    alpha: float = ALPHA


@dataclass(frozen=True)
class Footnote:
    """A setting in which some rows differ from the others of their table."""

    setting: str
    value: str
    rows: str  # their names, with seeds where not all of a row differ
    most: str = ""  # what most rows have

    def __str__(self) -> str:
        more = f"; {self.most} in most rows" if self.most else ""
        return f"{self.setting}: {self.value} in {self.rows}{more}"


@dataclass(frozen=True, kw_only=True)
class Table:
    """One comparable set of numbers. ``columns`` end with the average where the suite has one."""

    setting: str | None  # None: several, each row names its own
    backbone: str | None
    suite: str
    protocol: str
    text: str | None
    metric: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    baseline: str | None = None
    footnotes: tuple[Footnote, ...] = ()  # differences between its runs; rows point to them
    tested: Tested | None = None  # None: nothing was tested
    chosen_on: str = (
        ""  # the set on which its checkpoints were chosen, where that is no development set
    )
    budget: str = ""  # how long its rows were trained, where most runs have another budget
    sender: str = ""  # who submitted all of its runs; "" for the publisher's own
    together: bool = False  # of all settings and backbones
    falling: tuple[str, ...] = ()  # columns in which lower is better

    @property
    def head(self) -> str | None:
        """The column that ranks: the average, or the only task (where more is better)."""
        single = len(self.columns) == 1 and not self.falling
        return self.columns[-1] if self.columns[-1:] == (AVERAGE,) or single else None

    @property
    def seeds(self) -> tuple[int, int]:
        """Return the smallest and largest number of seeds among rows with randomness (among all
        rows if none has any)."""
        random = [row for row in self.rows if row.seeds != (None,)] or self.rows
        counts = [self.n(row) for row in random]
        return min(counts), max(counts)

    @cached_property
    def kinds_of_values(self) -> Counter[str]:
        """Count trained rows by the source of their values."""
        return Counter(row.values for row in self.rows if row.values and row.setting != "none")

    @cached_property
    def has_verdicts(self) -> bool:
        """Say if a row was compared with the baseline on the column that ranks."""
        cells = [row.cells[-1] for row in self.rows]
        return any(cell and cell.against and cell.against.verdict for cell in cells)

    def n(self, row: Row) -> int:
        """Count the seeds behind the row's value in the column that ranks, if it has one."""
        cell = row.cells[-1] if self.head is not None else None
        return len(row.runs) if cell is None else len(cell.values)
