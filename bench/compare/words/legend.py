"""The legend of a judged table: what its signs and columns mean, with its own numbers."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from bench.base.text import list_names
from bench.compare.formatting import metric_words
from bench.compare.statistics.table import (
    FOR_COMPARISON,
    FOR_SCALE,
    INCONCLUSIVE,
    NOT_TRAINED,
    Table,
)
from bench.compare.words.finding import best_rows, verdict_of
from bench.compare.words.names import baseline_name
from bench.records.names import OWN_DATA

MAY_BE_BEST = "may be the best"
RIGHT = (
    "in about 94 of 100 tables like this all verdicts and marks are right, if rows of few seeds "
    "spread like the others"
)
"""How often all that a table says is true; docs/statistics.md has the simulation behind it, and
worlds in which it is less."""

STANDS_FOR = {
    NOT_TRAINED: "the 95 % interval of the row minus its untrained start does not lie above zero",
    FOR_COMPARISON: "no question names the row; it has no verdict and no place in the finding",
    FOR_SCALE: "nothing was trained or fitted here; the row has no verdict",
}
"""What a row stands for that is not judged."""


def legend(table: Table, candidate: str = "◆") -> Iterator[str]:
    """Yield a sentence for each thing that the table has, without a full stop.

    ``candidate``: how a form marks a row that may be the best.
    """
    if table.suite == OWN_DATA:
        yield f"{list_names(table.columns)}: {metric_words(table)}"
    if best_rows(table):
        yield f"{candidate}: {MAY_BE_BEST}"
    if any(verdict_of(row) == INCONCLUSIVE for row in table.rows):
        yield 'inconclusive: the data cannot tell, which is not "equal"'
    if table.has_verdicts:
        yield (
            f"equal within: the margin within which the row equals {baseline_name(table)} at 5 %, "
            "each by itself (two one-sided tests)"
        )
    cells = [cell for row in table.rows for cell in row.cells]
    if any(cell is not None and cell.spread for cell in cells):
        compare = "; compare rows by the difference" if table.comparisons else ""
        yield f"±: 95 % interval of a row's own mean{compare}"
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
    for word, meaning in STANDS_FOR.items():
        if any(row.stands == word for row in table.rows):
            yield f"{word}: {meaning}"
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
    if costs:
        yield "params: trained, and their share of the model; train: training time; memory: peak, in bytes; means over seeds"
    if any(cost.tuning_seconds is not None for cost in costs):
        yield "tuning: search time / number of trials, once for all seeds"
