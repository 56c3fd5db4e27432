"""The legend under a judged table: at most four lines with the table's own numbers."""

from __future__ import annotations

import statistics

from bench.compare.answer import describe_untested, ranked_rows
from bench.compare.formatting import row_name
from bench.compare.statistics.table import Table

INTERVAL = (
    "95 % CI of a row's own mean, over other items and seeds (one seed: items only, "
    "unless two other rows have several; no predictions: seeds only)"
)

RIGHT = "right in about 94 of 100 such tables, if rows of few seeds spread like the others"
"""How often all that a table says is true; docs/statistics.md has the simulation behind it, and
worlds in which it is less."""


def sign_legend(table: Table, better: str, worse: str, tint: str) -> list[str]:
    """At most four lines, and one of untested rows; only lines about numbers that the table has.
    ``better``, ``worse``, ``tint``: how a form marks them.
    """
    lines = []
    base = table.baseline if table.has_verdicts else None
    if table.tested is not None:
        over = table.tested.comparisons
        if base is not None:
            lines.append(
                f"{better} better, {worse} worse than {base}; no sign: inconclusive, which is "
                'not "equal"; -: not tested'
            )
        if base is not None:
            lines.append(
                f"{tint}: may be the best; signs and {tint} together are {RIGHT} "
                f"(Bonferroni-Holm over {over})"
            )
        else:
            lines.append(f"{tint}: may be the best; {RIGHT} (Hsu over {over})")
    cells = [cell for row in table.rows for cell in row.cells]
    if any(cell is not None and cell.spread for cell in cells):
        by = "; compare rows by the difference, not by ±" if base is not None else ""
        lines.append(f"±: {INTERVAL}{by}")
    if table.tested is not None and base is not None:
        lines.append(
            f"difference from {base} with its {100 * table.tested.ci_level:.3g} % CI, which "
            "excludes zero exactly where there is a sign"
        )
    for text in (_spread(table), describe_untested(table).rstrip(".")):
        if text:
            lines.append(text)
    return lines


def _spread(table: Table) -> str:
    """Return "SD over seeds: median 0.67, 0.07 (flow) to 3.21 (promcse); n = 6 to 10"."""
    ranked = ranked_rows(table)
    known = sorted((cell.sd, row_name(row, table)) for row, cell in ranked if cell.sd is not None)
    if not known:
        return ""
    (low, first), (high, last) = known[0], known[-1]
    counts = [len(cell.values) for _, cell in ranked if cell.sd is not None]
    n = " to ".join(map(str, sorted({min(counts), max(counts)})))
    middle = statistics.median(sd for sd, _ in known)
    between = f", {low:.2f} ({first}) to {high:.2f} ({last})" if len(known) > 1 else ""
    return f"SD over seeds: median {middle:.2f}{between}; n = {n}"
