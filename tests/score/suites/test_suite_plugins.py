"""Suites that others wrote: found, refused with a reason, checked, and with intervals for a metric
of their own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from commands import bench, error_line
from factories import record
from msgspec.structs import replace
from pages import code_blocks

from bench.compare.jackknife import jackknife
from bench.records import RunsFolder, Score
from bench.records.predictions import Predicted
from bench.score.metrics.correlation import spearman
from bench.score.metrics.metric import SPEARMAN
from bench.score.suites import registry

PAGE = Path(__file__).resolve().parents[3] / "docs" / "add-a-suite.md"
ODD = code_blocks(PAGE, "python")[2]
ROWS = code_blocks(PAGE, "tsv")[2]


pytestmark = pytest.mark.usefixtures("no_other_suites")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "odd.tsv").write_text(ROWS, encoding="utf-8")
    return tmp_path


def written(folder: Path, change: Callable[[str], str] = str) -> Path:
    file = folder / "mine.py"
    file.write_text(change(ODD), encoding="utf-8")
    return file


def replaced(old: str, new: str) -> Callable[[str], str]:
    def change(code: str) -> str:
        assert old in code
        return code.replace(old, new)

    return change


ACCURACY = 'metric="accuracy"'
WRONG: list[tuple[str, str, str]] = [
    ('name="odd"', 'name="sts"', "the suite sts exists already"),
    (ACCURACY, 'metric="acuracy"', "the task Odd has metric='acuracy'; bench knows 'accuracy'"),
    ('name="Odd"', 'name="STS12"', "the suite sts already has a task STS12"),
    ("", "SUITE = undefined", "NameError: name 'undefined' is not defined"),
]


@pytest.mark.parametrize(("old", "new", "message"), WRONG)
def test_a_suite_that_cannot_be_is_one_line(folder: Path, old: str, new: str, message: str) -> None:
    change = replaced(old, new) if old else lambda code: f"{code}\n{new}\n"
    done = bench("suites", "--plugin", written(folder, change))
    assert message in error_line(done) and done.exit_code == 2
    assert registry._from_files == {}


CONSTANT = (
    'check_variety(check_vectors(vectors(self.sentences), self.sentences, "Odd"), '
    'self.sentences, "Odd")'
)
PREDICTED = '"prediction": cosine_N44.sum(axis=2).argmin(axis=1)'
# the text to replace, its replacement, the check that finds the fault, and the report
BROKEN: list[tuple[str, str, str, str]] = [
    ("    n=4,", "    n=5,", "its data is read, twice the same", "n=5, its data has 4 items"),
    ("table.sha256", "table.sha256[:32]", "its data is read, twice the same", "32 characters"),
    (
        "return [sentence for",
        'return [type("Told", (str,), {})(sentence) for',
        "its sentences are named, and plain text",
        "sentences holds Told, not str",
    ),
    (
        "vectors(self.sentences), self",
        'vectors([*self.sentences, "more"])[:-1], self',
        "its sentences are named, and plain text",
        "sentences lacks: 'more'",
    ),
    (
        PREDICTED,
        '"prediction": np.random.permutation(1000)[:4]',
        "its score is repeatable",
        "fix its seeds",
    ),
    (
        PREDICTED,
        '"prediction": self.data.odd',
        "its predictions follow the vectors",
        "made from the gold values",
    ),
    (
        "rescore=score_predictions",
        "rescore=lambda p, t: TaskScore(float(np.random.rand()), 4)",
        "its score follows from its predictions",
        "its predictions give",
    ),
    (
        '"subset": np.full(self.n, "Odd"),\n            }',
        '"subset": np.full(self.n, "Odd"),\n            },\n            penalty=0.1',
        "its score follows from its predictions",
        "do not give penalty of the detail: Suite(extra_detail=('penalty',))",
    ),
    (CONSTANT, "vectors(self.sentences)", "useless vectors are refused", "NaN in a vector"),
    ('protocol="odd-cosine/1"', 'protocol="odd"', "its result fits a record", "has no version"),
]


@pytest.mark.matrix(every=3)
@pytest.mark.parametrize(("old", "new", "caught", "seen"), [("", "", "", ""), *BROKEN])
def test_a_broken_suite_is_caught_by_the_right_check(folder, old, new, caught, seen):
    file = written(folder, replaced(old, new) if caught else str)
    done = bench("check", file, "--data", folder, "--json")
    findings = json.loads(done.stdout)["findings"]
    found = {one["kind"]: one["why"] for one in findings if one["outcome"] == "differs"}
    assert done.exit_code == bool(caught), (found, done.stderr)
    assert seen in found[caught] if caught else not found


def test_the_jackknife_of_a_correlation_is_near_its_influence_function() -> None:
    random = np.random.default_rng(1)
    gold_N = random.normal(size=400)
    said_N = gold_N + random.normal(size=400)
    exact = SPEARMAN.move(Predicted("t", "spearman", (1,), said_N[None], gold_N))
    _, moved_N, _ = jackknife(
        {"prediction": said_N, "gold": gold_N},
        lambda part: spearman(part["prediction"], part["gold"]),
    )
    sd, other = (float(np.sqrt((one**2).sum())) for one in (exact.moved_SN[0], moved_N))
    assert np.corrcoef(exact.moved_SN[0], moved_N)[0, 1] > 0.999 and abs(other / sd - 1) < 0.01


def run_of(
    store: RunsFolder, method: str, seed: int, said_N: np.ndarray, gold_N: np.ndarray, metric: str
) -> None:
    n, name = len(gold_N), f"{method}-tiny-s{seed}-{'0' * 8}"
    arrays = {"prediction": said_N, "gold": gold_N, "subset": np.full(n, "Odd")}
    value = 100 * float((said_N == gold_N).mean())
    about = {"suite": "odd", "task": "Odd", "protocol": "odd-cosine/1", "metric": metric}
    score = Score(**about, value=value, n=n)
    made = record(method, seed, backbone="tiny", setting="none", scores=(score,))
    store.write(replace(made, run_id=name, fingerprint="0" * 64))
    store.write_predictions(name, "Odd", "odd-cosine/1", arrays, "odd")


@pytest.fixture
def runs(folder: Path) -> Callable[[str], Path]:
    def make(metric: str) -> Path:
        random, store = np.random.default_rng(3), RunsFolder(folder / metric)
        gold_N = random.integers(0, 4, size=300)
        for method, right in (("good", 0.8), ("bad", 0.5)):
            for seed in (1, 2, 3):
                said_N = np.where(random.random(300) < right, gold_N, (gold_N + 1) % 4)
                run_of(store, method, seed, said_N, gold_N, metric)
        return store.path

    return make


def test_a_metric_of_its_own_has_the_intervals_of_the_same_metric_that_tables_know(folder, runs):
    plugin = written(folder, replaced(ACCURACY, 'metric="share-right", by_item=True'))
    tables = []
    for metric in ("accuracy", "share-right"):
        words = ("--plugin", plugin, "--baseline", "bad", "--format", "json")
        done = bench("compare", "--runs", runs(metric), *words)
        assert done.exit_code == 0, done.stderr
        rounded = json.loads(done.stdout, parse_float=lambda x: str(round(float(x), 6)))
        tables.append([row["cells"] for row in rounded["tables"][0]["rows"]])
    assert tables[0] == tables[1] and '"better"' in json.dumps(tables[1])


def test_a_metric_without_intervals_is_the_reason_why_nothing_was_tested(folder, runs):
    plugin = written(folder, replaced(ACCURACY, 'metric="share-right"'))
    words = ("compare", "--runs", runs("share-right"), "--baseline", "bad")
    done = bench(*words, "--plugin", plugin)
    assert done.exit_code == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "Differences were not tested: share-right has no interval over items." in said
    said = " ".join(bench(*words).stdout.split())
    assert "not tested: share-right is computed by the suite" in said
    assert "which is not installed: add --plugin FILE" in said
