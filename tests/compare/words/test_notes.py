"""Notes of tables: each is said of the rows for which it is true, and of no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from compared_runs import only, row_named, runs_in, unwritten_runs
from factories import RAW_PROTOCOL, record, sts_scores
from msgspec import structs
from predicted_runs import family

from bench.compare.tables import make_tables
from bench.compare.words.notes import note_lines
from bench.records import RunRecord
from bench.records.record import HowExecuted

FIRST, SECOND = (record("simcse", seed) for seed in (1, 2))
OTHER = record("ct", 1)


def with_origin(one: RunRecord, **fields: Any) -> RunRecord:
    return structs.replace(one, provenance=structs.replace(one.provenance, **fields))


def of_teacher(one: RunRecord, sha256: str) -> RunRecord:
    return with_origin(one, determines={"places": {"teacher": sha256}})


def in_precision(one: RunRecord, precision: str) -> RunRecord:
    return with_origin(one, execution=HowExecuted(scored_in=precision))


def unfinished(one: RunRecord) -> RunRecord:
    """Return the run without a score of its first task."""
    return structs.replace(one, scores=one.scores[1:])


AGAIN = with_origin(
    structs.replace(FIRST, run_id=f"{FIRST.run_id}-again"), created="2027-01-01T00:00:00+00:00"
)
WEIGHTED = record("promcse", 1, scores=sts_scores(protocol="senteval-wmean/1"))

NOTES: dict[str, tuple[list[RunRecord], str]] = {
    "seeds that lack a task": (
        [FIRST, unfinished(SECOND), OTHER],
        "SimCSE: STS12 from 1 of 2 seeds",
    ),
    "older runs": (
        [FIRST, AGAIN, OTHER],
        f"1 run left out, because newer runs have the same seeds: {FIRST.run_id}",
    ),
    "one teacher": (
        [of_teacher(FIRST, "1" * 64), of_teacher(SECOND, "1" * 64), OTHER],
        "± does not include the choice of teacher: SimCSE",
    ),
    "precision": ([FIRST, SECOND, in_precision(OTHER, "bf16")], "scored in bf16: CT"),
    "no start": (
        [record("ct", 1, scores=sts_scores(protocol=RAW_PROTOCOL))],
        "untrained start not scored: CT (bench run ct --budget 0steps --seeds 1 --backbone builtin "
        "--setting unsupervised --suite sts:senteval-all-raw/1 --corpus builtin)",
    ),
    "another protocol": ([FIRST, SECOND, OTHER, WEIGHTED], "under senteval-wmean/1 only: PromCSE"),
}


@pytest.mark.parametrize("kind", NOTES)
def test_a_note_is_said_of_its_data(kind: str) -> None:
    records, note = NOTES[kind]
    table = make_tables(unwritten_runs(*records))[0]
    assert note in note_lines(table)


def test_starts_on_several_backbones_have_no_command_in_common() -> None:
    records = [record("ct", 1), record("ct", 1, backbone="bert-base-uncased")]
    (table,) = make_tables(unwritten_runs(*records), together=True)
    (note,) = [one for one in note_lines(table) if one.startswith("untrained start not scored")]
    assert "bench run" not in note


def test_no_note_is_said_of_rows_that_are_alike() -> None:
    two_teachers = [of_teacher(FIRST, "1" * 64), of_teacher(SECOND, "2" * 64), OTHER]
    lines = note_lines(only(make_tables(unwritten_runs(*two_teachers))))
    said = " ".join(lines)
    for words in ("of 2 seeds", "left out", "does not include", "scored in", "only:"):
        assert words not in said


def test_a_comparison_over_fewer_seeds_gives_their_averages(tmp_path: Path) -> None:
    made = family(tmp_path, {"simcse": 0.5, "ct": 0.5}, seeds=(1, 2, 3, 4))
    made += family(tmp_path, {"promcse": 0.4}, seeds=(2, 3, 4))
    table = only(make_tables(runs_in(tmp_path, made)))
    (line,) = [line for line in note_lines(table) if line.startswith("compared over")]
    base, row = (row_named(table, name).cells[-1] for name in ("simcse", "promcse"))
    assert base is not None and row is not None
    shared = sum(base.values[1:]) / 3
    assert line == (
        f"compared over the 3 seeds that both have, with {shared:.2f} of SimCSE: "
        f"PromCSE {row.mean:.2f}"
    )
