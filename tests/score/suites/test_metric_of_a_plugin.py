"""A metric that a suite of others brings as one object: in tables, pages, intervals, verify and
export.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import bench
from factories import record
from msgspec.structs import replace

from bench.base.hashes import values_sha256
from bench.records import RunsFolder, Score
from bench.records.names import data_key

PAGE = Path(__file__).resolve().parents[3] / "docs" / "add-a-suite.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
N = 300


def block_with(text: str) -> str:
    (block,) = [block for block in BLOCKS if text in block]
    return block


def odd_with_a_metric(*changes: tuple[str, str]) -> str:
    """The page's suite with the page's metric, changed as the page says."""
    code = block_with('name="odd"')
    definition = block_with("WRONG = Metric(")
    for old, new in (
        ("TASK = Task(", f"{definition}\n\nTASK = Task("),
        ('metric="accuracy"', "metric=WRONG"),
        ("TaskScore(100 * float(right_N.mean())", "TaskScore(100 - 100 * float(right_N.mean())"),
        *changes,
    ):
        assert old in code
        code = code.replace(old, new)
    return code


pytestmark = pytest.mark.usefixtures("no_other_suites")


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    file = tmp_path / "odd_wrong.py"
    file.write_text(odd_with_a_metric(), encoding="utf-8")
    return file


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Three seeds of a method that is right in 4 of 5 items, and of one that is right in half."""
    random, store = np.random.default_rng(3), RunsFolder(tmp_path / "runs")
    gold_N = random.integers(0, 4, size=N)
    for method, right in (("good", 0.8), ("bad", 0.5)):
        for seed in (1, 2, 3):
            said_N = np.where(random.random(N) < right, gold_N, (gold_N + 1) % 4)
            arrays = {"prediction": said_N, "gold": gold_N, "subset": np.full(N, "Odd")}
            score = Score(
                suite="odd",
                task="Odd",
                protocol="odd-cosine/1",
                metric="share-wrong",
                value=100 - 100 * float((said_N == gold_N).mean()),
                n=N,
                predictions_sha256=values_sha256(arrays),
            )
            run = f"{method}-tiny-s{seed}-{'0' * 8}"
            made = record(method, seed, backbone="tiny", setting="none", scores=(score,))
            data = {data_key("Odd", "odd-cosine/1", "odd"): "0" * 64}
            provenance = replace(made.provenance, data=data)
            store.write(replace(made, run_id=run, fingerprint="0" * 64, provenance=provenance))
            store.write_predictions(run, "Odd", "odd-cosine/1", arrays, "odd")
    return store.path


def compared(runs: Path, *words: str | Path) -> dict[str, dict[str, Any]]:
    """The cells of the table, by method."""
    done = bench("compare", "--runs", runs, "--format", "json", *words)
    assert done.exit_code == 0, done.stderr
    (table,) = json.loads(done.stdout)["tables"]
    return {row["method"]: row["cells"]["Odd"] for row in table["rows"]}


def test_tables_print_mark_and_bound_it_as_the_object_says(runs: Path, plugin: Path) -> None:
    cells = compared(runs, "--plugin", plugin)
    assert cells["good"]["mean"] < cells["bad"]["mean"]
    assert (cells["good"]["mark"], cells["bad"]["mark"]) == ("best", "")
    for cell in cells.values():
        share = cell["mean"] / 100
        assert cell["decimals"] == 1
        half = (cell["spread"]["high"] - cell["spread"]["low"]) / 2
        # three seeds of independent answers: at least the binomial interval of one mean over 3 N
        assert half > 1.96 * 100 * (share * (1 - share) / (3 * N)) ** 0.5
        assert half < 30
    done = bench("compare", "--runs", runs, "--plugin", plugin)
    assert "lower is better: Odd" in done.stdout
    assert f"{cells['good']['mean']:.1f}" in done.stdout
    assert f"{cells['good']['mean']:.2f}" not in done.stdout


@pytest.mark.nightly
def test_pages_have_its_label_and_sort_it_from_below(
    runs: Path, plugin: Path, tmp_path: Path
) -> None:
    out = tmp_path / "boards"
    done = bench("publish", "--preview", "--runs", runs, "--out", out, "--plugin", plugin)
    assert done.exit_code == 0, done.stderr
    page = (out / "preview" / "index.html").read_text(encoding="utf-8")
    assert "wrong answers in %" in page
    (head,) = re.findall(r'<th [^>]*data-task="Odd"[^>]*>', page)
    assert "data-lower" in head


def test_a_metric_without_intervals_is_the_reason_why_nothing_was_tested(
    runs: Path, plugin: Path
) -> None:
    words = ("compare", "--runs", runs, "--baseline", "bad")
    plugin.write_text(odd_with_a_metric(("    influence=move_wrong,\n", "")), encoding="utf-8")
    done = bench(*words, "--plugin", plugin)
    assert done.exit_code == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "share-wrong has no interval over items" in said
    said = " ".join(bench(*words).stdout.split())
    assert "not tested: share-wrong is computed by the suite" in said
    assert "which is not known here: add --plugin FILE" in said
