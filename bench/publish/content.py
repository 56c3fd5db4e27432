"""One version's board, made from runs and printed results: who is kept, how the tables are judged, what is said of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench.errors import BenchError
from bench.publish.answer import answer
from bench.publish.board import Board, PublishedRun, dating
from bench.publish.grades import apart
from bench.publish.judging import judged_tables
from bench.publish.made import made
from bench.publish.reference_tables import reference_tables
from bench.publish.tables import board_tables

if TYPE_CHECKING:
    from bench.compare.judge import Report
    from bench.publish.changes import Changes


def board(
    runs: Sequence[PublishedRun], *, version: str, title: str, note: str | None = None, left_out: Sequence[str] = (),
    baseline: str | None = None, changes: Changes | None = None, statistics: str = "auto", report: Report | None = None,
) -> Board:  # fmt: skip
    """The board of these runs, whatever their order. ``statistics`` and ``report`` are those of ``judging.judged_tables``.

    Raises BenchError where none of them is finished and has a score, UnknownName for a baseline that no table has.
    """
    kept = tuple(sorted((one for one in runs if one.record.status == "finished"), key=lambda one: one.record.run_id))
    if not any(one.record.scores for one in kept):
        raise BenchError("none of these runs is finished and has a score", "bench run ... --suite sts, then bench publish")
    records = {one.record.run_id: one.record for one in kept}
    judged = judged_tables([(apart(one), one.folder) for one in kept], baseline=baseline, statistics=statistics, report=report)
    tables = board_tables(judged, records)
    return Board(
        version=version, date=max(one.record.provenance.created for one in dating(kept))[:10], title=title, note=note or None,
        answer=answer(tables), runs=kept, left_out=tuple(left_out), tables=tables, references=reference_tables(), changes=changes,
        made=made(kept, tables, left_out, version), methods=tuple(sorted({record.method for record in records.values()})),
    )  # fmt: skip
