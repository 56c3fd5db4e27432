"""The papers' claims, each held against the two rows that test it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from compared_runs import runs_in
from made_runs import made_runs
from predicted_runs import family, sts_run
from scipy import stats

from bench.compare.claims import JudgedClaim, judge_claims
from bench.compare.tables import make_tables
from bench.records import RunRecord

NOISES = {"simcse": 0.5, "promcse": 0.8, "conpvp": 0.5}


def judged(tmp_path: Path, seeds: tuple[int, ...]) -> dict[str, JudgedClaim]:
    return judged_of(tmp_path, family(tmp_path, NOISES, seeds=seeds))


def judged_of(tmp_path: Path, records: list[RunRecord]) -> dict[str, JudgedClaim]:
    runs = runs_in(tmp_path, records)
    found = judge_claims(make_tables(runs), {run.record.run_id: run for run in runs})
    return {f"{one.claim.paper} {one.claim.says}": one for one in found}


def test_a_claim_has_the_verdict_of_the_table_that_compares_its_rows(tmp_path: Path) -> None:
    one = judged(tmp_path, (1, 2, 3))["promcse 2.2 points above SimCSE-BERT-base"]
    assert one.row is not None and one.row.cells[-1] is not None
    against = one.row.cells[-1].against
    assert against is not None and against.verdict == "worse"
    assert (one.difference, one.low, one.high, one.verdict) == (
        against.difference,
        against.ci_low,
        against.ci_high,
        "worse",
    )


def test_a_claim_without_its_rows_says_so(tmp_path: Path) -> None:
    found = judged(tmp_path, (1, 2, 3))
    other = found["conpvp 1.41 points above ConPVP w/o c-"]
    assert (other.difference, other.verdict) == (None, "")
    assert other.why_not == "no row conpvp+no-negative-prototypes on STS (Avg.), unsupervised"
    hinge = found["promcse EH improves STS consistently"]
    assert hinge.why_not == "no rows promcse+eh and promcse on STS (Avg.), supervised"
    mural = found["promcse 74.0 is above MURAL's 73.9"]
    assert "MURAL is trained on images" in mural.why_not


def test_rows_that_share_no_table_test_no_claim(tmp_path: Path) -> None:
    records = family(tmp_path, {"simcse": 0.5, "ct": 0.5}, seeds=(1, 2, 3))
    records += family(tmp_path, {"conpvp": 0.5}, backbone="bert-base-uncased")
    one = judged_of(tmp_path, records)["conpvp 2.60 points above SimCSE"]
    assert (one.difference, one.why_not) == (None, "no table has both conpvp and simcse")


def test_two_seeds_are_too_few(tmp_path: Path) -> None:
    one = judged(tmp_path, (1, 2))["promcse 2.2 points above SimCSE-BERT-base"]
    assert (one.difference, one.why_not) == (None, "fewer than three seeds")


def test_a_pair_without_the_tables_baseline_is_tested_by_itself(tmp_path: Path) -> None:
    """The baseline is another row than the claim's: 95 %, from the table's own statistics."""
    runs = runs_in(tmp_path, family(tmp_path, NOISES, seeds=(1, 2, 3)))
    by_id = {run.record.run_id: run for run in runs}
    (with_base,) = make_tables(runs, baseline="conpvp")
    (one,) = [
        one
        for one in judge_claims([with_base], by_id)
        if (one.claim.paper, one.claim.says) == ("promcse", "2.2 points above SimCSE-BERT-base")
    ]
    (usual,) = make_tables(runs)
    cell = next(row for row in usual.rows if row.name == "promcse").cells[-1]
    assert cell is not None and cell.against is not None and cell.against.se is not None
    df = cell.against.df or np.inf
    half = float(stats.t.ppf(0.975, df)) * cell.against.se
    assert (one.difference, one.low) == pytest.approx(
        (cell.against.difference, cell.against.difference - half), abs=0.005
    )
    assert one.verdict == "worse"


@pytest.mark.parametrize("planned", ["promcse", "conpvp"])
def test_a_row_that_has_not_learned_tests_no_claim(tmp_path: Path, planned: str) -> None:
    """PromCSE lies at the backbone's own [CLS]; also if it stands for comparison alone."""
    records = family(tmp_path, NOISES, seeds=(1, 2, 3))
    records.append(sts_run(tmp_path, "cls", None, 0.8, setting="none"))
    plan = f'[question]\nbaseline = "simcse"\nrows = ["{planned}"]\n'
    (tmp_path / records[0].run_id / "plan.toml").write_text(plan, encoding="utf-8")
    one = judged_of(tmp_path, records)["promcse 2.2 points above SimCSE-BERT-base"]
    assert one.difference is not None and one.difference < 0
    assert (one.low, one.verdict) == (None, "")
    assert one.why_not == "a row is not above its untrained start"


@pytest.mark.parametrize(
    ("noise", "verdict"), [(0.9, "better"), (0.1, "worse"), (0.51, "inconclusive")]
)
def test_where_lower_is_better_the_lower_row_is_better(
    tmp_path: Path, noise: float, verdict: str
) -> None:
    records = made_runs(tmp_path, {"simcse": 0.5, "focal-infonce": noise}, suites=("geometry",))
    one = judged_of(tmp_path, records)[
        "focal-infonce Focal-InfoNCE improves the uniformity of SimCSE"
    ]
    assert one.verdict == verdict and one.difference is not None
    assert (one.difference < 0) == (verdict != "worse")
