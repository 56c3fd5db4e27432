"""The legend of a judged table: what its signs and columns mean, with its own numbers."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from bench.base.grid import BEST_SIGN, MAY_BE_BEST
from bench.base.text import list_names
from bench.compare.costs import COSTS
from bench.compare.formatting import metric_words
from bench.compare.statistics.table import (
    FOR_COMPARISON,
    FOR_SCALE,
    INCONCLUSIVE,
    NOT_TRAINED,
    Table,
)
from bench.compare.words.finding import NOT_TESTED, best_rows, verdict_of
from bench.compare.words.names import baseline_name, level_words
from bench.records.names import OWN_DATA

RIGHT = (
    "about 94 of 100 tables like this contain no wrong verdict or mark, if rows with few seeds "
    "spread like the others"
)
"""How often all that a table says is true; docs/statistics.md has the simulation behind it, and
worlds in which it is less."""

EQUAL_WITHIN = "equal within"
OWN_INTERVAL = "±"
MEANS = {
    "better, worse": "the interval of the difference excludes zero. It is wider than 95 % if "
    "several rows are compared at once",
    INCONCLUSIVE: 'the data cannot tell, which is not "equal"',
    NOT_TESTED: "fewer than three seeds, no predictions, or those of the baseline",
    NOT_TRAINED: "the row is not above its untrained start (95 % interval of the difference); this "
    "says nothing about its method",
    FOR_COMPARISON: "no question names the row; it has no verdict and no place in the finding",
    FOR_SCALE: "nothing was trained or fitted here, so the row has no verdict",
    MAY_BE_BEST: "no other row is known to be better",
    EQUAL_WITHIN: "the margin within which the row equals the baseline at 5 %, each by itself (two "
    "one-sided tests)",
    OWN_INTERVAL: "95 % interval of a row's own mean, not of a difference",
}
"""Each word and sign of a table, and what it means: terminal, pages and docs say it from here."""
HOW_TO_READ = {
    "the headline": "is computed from the verdicts of one table and holds only there: another "
    "setting, backbone or suite has its own",
    "the difference": "from the baseline is the answer for a row. It has less noise than two "
    "scores, so do not compare scores by eye",
    **MEANS,
    "seeds": "fewer than three do not show the noise of training",
    "single tasks": "are shown, and not tested",
    "the notes": "name rows that were trained or scored unlike the others: such rows answer "
    "another question",
    "every number": "is a link to its run: every seed, its record, the command that repeats it",
}
"""What a reader needs in two minutes, in order. docs/read-a-leaderboard.md has the same table."""


def legend_line(table: Table) -> str:
    """Return the one line above a table on a page, without a full stop."""
    if not table.comparisons:
        return f"{OWN_INTERVAL}: {MEANS[OWN_INTERVAL]}"
    level = level_words(table).strip("[]").replace("CI", "interval")
    with_interval = f", with its {level}" if level else ""
    shaded = f"; shaded: {MAY_BE_BEST}" if best_rows(table) else ""
    return f"Difference from {baseline_name(table)} in points{with_interval}{shaded}"


def legend(table: Table, candidate: str = BEST_SIGN) -> Iterator[str]:
    """Yield a sentence for each thing that the table has, without a full stop.

    ``candidate``: how a form marks a row that may be the best.
    """
    if table.suite == OWN_DATA:
        yield f"{list_names(table.columns)}: {metric_words(table)}"
    if best_rows(table):
        yield f"{candidate}: {MAY_BE_BEST}"
    if any(verdict_of(row) == INCONCLUSIVE for row in table.rows):
        yield f"{INCONCLUSIVE}: {MEANS[INCONCLUSIVE]}"
    if table.has_verdicts:
        yield f"{EQUAL_WITHIN}: {MEANS[EQUAL_WITHIN]}"
    cells = [cell for row in table.rows for cell in row.cells]
    if any(cell is not None and cell.spread for cell in cells):
        yield f"{OWN_INTERVAL}: {MEANS[OWN_INTERVAL]}"
    if table.tested is not None:
        rule = "Holm" if table.has_verdicts else "Hsu"
        count = table.tested.comparisons
        noun = "comparison" if count == 1 else "comparisons"
        yield f"{RIGHT} ({rule}, {count} {noun})"
    effects: list[float] = []
    for against in table.comparisons:
        if against.mde:
            effects.append(against.mde)
    if effects:
        middle = " (median)" if len(effects) > 1 else ""
        size = f"{statistics.median(effects):.1f} points{middle}"
        yield f"the smallest difference this table would usually detect is {size}"
    for word in (NOT_TRAINED, FOR_COMPARISON, FOR_SCALE):
        if any(row.stands == word for row in table.rows):
            yield f"{word}: {MEANS[word]}"
    yield from _columns(table)


def _columns(table: Table) -> Iterator[str]:
    """Explain the columns and lines that options add."""
    cells = [cell for row in table.rows for cell in row.cells]
    printed = [cell.printed for cell in cells if cell is not None and cell.printed]
    costs = [row.cost for row in table.rows if row.cost]
    if printed:
        yield "paper:table: the number published there"
        yield (
            "within: the published number is in our 95 % prediction interval for the mean of as "
            "many runs as the paper had; below, above: ours is"
        )
    if any(row.vector_bytes for row in table.rows):
        yield "bytes: of a vector"
    meanings = []
    for column in COSTS:
        if any(cost.get(column.numbers[0]) is not None for cost in costs):
            meanings.append(f"{column.name}: {column.meaning}")
    if meanings:
        yield f"{'; '.join(meanings)}; means over seeds"
