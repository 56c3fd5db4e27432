"""Suites that others wrote: found, refused with a reason, checked, and with intervals for a metric of their own."""

from __future__ import annotations

import importlib.metadata
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import bench, error_line

from bench.base.errors import BenchError
from bench.compare.judge import BLOCKS, jackknife
from bench.compare.statistics.influence import Items, influence
from bench.data.sets import DataFolder
from bench.run.suite_check import check
from bench.runs import Cost, Provenance, RunRecord, RunsFolder
from bench.runs.predicted import Predicted
from bench.score import suites
from bench.score.metrics.correlation import spearman
from bench.score.suites import Task
from bench.score.suites.known import KnownTask, survey

PAGE = Path(__file__).resolve().parents[2] / "docs" / "add-a-suite.md"
ODD = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), flags=re.M | re.S)[1]
ROWS = re.findall(r"^```tsv\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), flags=re.M | re.S)[1]


@pytest.fixture(autouse=True)
def no_others(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(suites, "_from_files", {})
    yield
    suites._points.cache_clear()
    suites._installed.cache_clear()


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


# --- found, or refused ---


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (replaced('name="odd"', 'name="sts"'), "bench has a suite sts of its own"),
        (
            replaced('metric="accuracy"', 'metric="acuracy"'),
            "the task Odd says metric='acuracy', and bench has 'accuracy'",
        ),
        (
            replaced('metric="accuracy"', 'metric="spearmann"'),
            "says metric='spearmann', and bench has 'spearman'",
        ),
        (
            replaced('metric="accuracy"', 'metric="Spearman"'),
            "says metric='Spearman', and bench has 'spearman'",
        ),
        (replaced('name="odd"', 'name="all"'), "a suite cannot be called 'all'"),
        (replaced('name="odd"', 'name="Odd One"'), "a suite cannot be called 'Odd One'"),
        (replaced('name="Odd"', 'name="STS12"'), "the suite sts has a task STS12"),
        (replaced('suite="odd"', 'suite="even"'), "the task Odd says suite='even'"),
        (replaced("tasks=(TASK,)", "tasks=()"), "the suite odd has no task"),
        (replaced("tasks=(TASK,)", "tasks=(TASK, TASK)"), "the suite odd has a task Odd"),
        (
            replaced("average=None", 'average=("Odd", "Even")'),
            "average names Even, which the suite has not",
        ),
        (lambda code: code + "\nSUITE = 3\n", "SUITE is of type int"),
        (lambda code: code + "\nSUITE = undefined\n", "NameError: name 'undefined' is not defined"),
    ],
)
def test_a_suite_that_cannot_be_is_one_line(
    folder: Path, change: Callable[[str], str], said: str
) -> None:
    done = bench("suites", "--plugin", written(folder, change))
    assert said in error_line(done) and done.exit_code == 2
    assert suites._from_files == {}


def test_two_suites_of_one_name_and_a_metric_of_its_own(folder: Path) -> None:
    first = written(folder, replaced('metric="accuracy"', 'metric="mean-reciprocal-rank"'))
    assert "odd" in bench("suites", "--plugin", first).stdout
    second = folder / "second.py"
    second.write_text(first.read_text(encoding="utf-8"), encoding="utf-8")
    line = error_line(bench("suites", "--plugin", first, "--plugin", second))
    assert "'odd'" in line and str(first) in line and str(second) in line
    assert "twice" in error_line(bench("suites", "--plugin", first, "--plugin", first))


def test_a_suite_whose_number_of_items_is_wrong_is_not_scored(folder: Path) -> None:
    file = written(folder, replaced("n=4", "n=5"))
    done = bench(
        "run",
        "--method",
        "cls",
        "--suite",
        "odd",
        "--plugin",
        file,
        "--data",
        folder,
        "--runs",
        folder / "runs",
    )
    line = error_line(done)
    assert "Odd" in line and "n=5" in line and "4 items" in line and done.exit_code == 2
    assert not (folder / "runs").exists()


def test_a_built_in_suite_may_have_another_number_of_items_in_another_text_form(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As the raw GoogleNews of clustering, which has an item more than the tokenised one."""
    task = Task(suite="s", name="T", protocol="s/1", metric="accuracy", n=4, read=lambda *_: None)  # type: ignore[arg-type,return-value]

    def survey_of(form: str | None, text: str, n: int) -> KnownTask:
        known_task = KnownTask(name="T", form=form, sha256="a" * 64, n=n, read=lambda: None)  # type: ignore[arg-type,return-value]
        monkeypatch.setattr("bench.score.suites.known.survey_files", lambda *_: known_task)
        return survey(task, DataFolder(None), text)

    assert survey_of("raw", "raw", 5).n == 5 and survey_of("tokenised", "tokenised", 4).n == 4
    for form, text in (("tokenised", "tokenised"), (None, "tokenised"), (None, "raw")):
        with pytest.raises(BenchError, match="n=4.* 5 items"):
            survey_of(form, text, 5)


def test_a_file_that_is_not_there_is_one_line(folder: Path) -> None:
    assert "no such file" in error_line(bench("suites", "--check", folder / "none.py"))
    assert "it defines a suite and no method" in error_line(
        bench("methods", "--check", written(folder))
    )
    (folder / "empty.py").write_text("x = 1\n")
    assert "it defines no suite" in error_line(bench("suites", "--check", folder / "empty.py"))


def test_the_next_command_does_not_know_the_file_of_the_last_one(folder: Path) -> None:
    assert "odd" in bench("suites", "--plugin", written(folder)).stdout
    assert "Which of four" not in bench("suites").stdout
    assert "unknown suite 'odd'" in error_line(bench("suites", "odd"))


class Point:
    """What importlib.metadata says of an entry point."""

    def __init__(self, name: str, module: str, loaded: Callable[[], Any]) -> None:
        self.name, self.module, self.load, self.dist = name, module, loaded, None


def test_an_installed_suite_is_found_and_a_broken_one_takes_no_other_down(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suites.use_files([written(folder)])
    found = suites.suite("odd")
    module = next(
        name for name, one in list(sys.modules.items()) if vars(one).get("SUITE") is found
    )
    suites.use_files([])

    def broken() -> Any:
        raise RuntimeError("no such library")

    points = [
        Point("odd", module, lambda: found),
        Point("broken", module, broken),
        Point("even", module, lambda: found),
    ]
    real = importlib.metadata.entry_points
    monkeypatch.setattr(
        importlib.metadata,
        "entry_points",
        lambda group: points if group == suites.GROUP else real(group=group),
    )
    suites._points.cache_clear()
    done = bench("suites")
    assert (
        "Which of four" in " ".join(done.stdout.split())
        and "the seven STS" in " ".join(done.stdout.split())
        or "sts" in done.stdout
    )
    assert (
        "the suite broken of ? does not import: " in done.stderr
        and "RuntimeError: no such library" in done.stderr
    )
    assert "registers the suite odd under the name even" in done.stderr
    assert "odd-cosine/1" in bench("suites", "odd").stdout
    assert bench("doctor", "--json").exit_code == 0
    assert "odd" not in suites.expand_suites(["all"])


# --- the checks: each catches what it is meant for ---

CONSTANT = 'check_variety(check_vectors(vectors(self.sentences), self.sentences, "Odd"), self.sentences, "Odd")'


@pytest.mark.parametrize(
    ("change", "caught", "seen"),
    [
        (str, set(), ""),
        (
            replaced("    n=4,", "    n=5,"),
            {"its data is read, twice the same"},
            "the task says n=5, its data has 4 items",
        ),
        (
            replaced("hashlib.sha256(content)", "hashlib.md5(content)"),
            {"its data is read, twice the same"},
            "32 characters",
        ),
        (
            replaced("return [sentence for", 'return [type("Told", (str,), {})(sentence) for'),
            {"its sentences are named, and plain text"},
            "sentences holds Told, not str",
        ),
        (
            replaced(
                "vectors(self.sentences), self", 'vectors([*self.sentences, "more"])[:-1], self'
            ),
            {"its sentences are named, and plain text"},
            "does not name: 'more'",
        ),
        (
            replaced(
                '"prediction": cosine_N44.sum(axis=2).argmin(axis=1)',
                '"prediction": np.random.permutation(1000)[:4]',
            ),
            {"its score is repeatable"},
            "fix its seeds",
        ),
        (
            replaced(
                '"prediction": cosine_N44.sum(axis=2).argmin(axis=1)', '"prediction": self.data.odd'
            ),
            {"its predictions follow the vectors"},
            "made from the gold values",
        ),
        (
            replaced(
                "rescore=score_predictions",
                "rescore=lambda p, t: TaskScore(float(np.random.rand()), 4)",
            ),
            {"its score follows from its predictions"},
            "its predictions give",
        ),
        (
            replaced(CONSTANT, "vectors(self.sentences)"),
            {"useless vectors are refused"},
            "NaN in a vector",
        ),
        (
            replaced('protocol="odd-cosine/1"', 'protocol="odd"'),
            {"its result fits a record"},
            "has no version",
        ),
        (
            lambda code: code.replace('metric="accuracy"', 'metric="odd", by_item=True').replace(
                "len(right_N))", "4)"
            ),
            {"its items stand alone"},
            "of 2 items, 4 are scored",
        ),
    ],
)
def test_a_broken_suite_is_caught_by_the_right_check(
    folder: Path, change: Callable[[str], str], caught: set[str], seen: str
) -> None:
    done = bench("suites", "--check", written(folder, change), "--data", folder, "--json")
    found = {
        one["check"]: one["seen"]
        for one in json.loads(done.stdout)["findings"]
        if not one["passed"]
    }
    assert caught <= set(found) and done.exit_code == bool(caught), (found, done.stderr)
    if caught:
        assert seen in found[next(iter(caught))]


@pytest.mark.slow
def test_this_packages_own_suite_keeps_it() -> None:
    assert [
        one
        for one in check(suites.suite("check"), DataFolder(None, offline=True))
        if not one.passed
    ] == []


# --- intervals of a metric of its own ---


def test_the_jackknife_of_a_mean_is_what_each_item_adds() -> None:
    x_N = np.random.default_rng(0).normal(size=37)
    value, moved_N, block_N = jackknife(
        {"prediction": x_N}, lambda part: float(part["prediction"].mean())
    )
    assert (
        value == x_N.mean()
        and np.allclose(moved_N, (x_N - x_N.mean()) / 37, atol=1e-15)
        and list(block_N) == list(range(37))
    )


def test_the_jackknife_of_a_correlation_is_near_its_influence_function() -> None:
    random = np.random.default_rng(1)
    gold_N = random.normal(size=400)
    said_N = gold_N + random.normal(size=400)
    exact = influence(Predicted("t", "spearman", (1,), said_N[None], gold_N))
    _, moved_N, _ = jackknife(
        {"prediction": said_N, "gold": gold_N},
        lambda part: spearman(part["prediction"], part["gold"]),
    )
    sd, other = (float(np.sqrt((one**2).sum())) for one in (exact.moved_SN[0], moved_N))
    assert np.corrcoef(exact.moved_SN[0], moved_N)[0, 1] > 0.999 and abs(other / sd - 1) < 0.01


def test_blocks_of_neighbours_give_the_variance_of_their_means() -> None:
    """Neighbours that say the same are one observation, whatever their number: items of blocks of four."""
    random = np.random.default_rng(2)
    x_N = np.repeat(random.normal(size=BLOCKS), 4)
    _, moved_N, block_N = jackknife(
        {"prediction": x_N}, lambda part: float(part["prediction"].mean())
    )
    p = Predicted(
        "t",
        "mine",
        (1,),
        moved_N[None],
        np.zeros(len(x_N)),
        shared_NK=block_N[:, None],
        moved_SN=moved_N[None],
        score_S=np.zeros(1),
    )
    variance = Items([p], [influence(p)]).covariance(moved_N[None])[0, 0, 0]
    assert np.isclose(variance, x_N[::4].var(ddof=1) / BLOCKS)


def run_of(
    store: RunsFolder, method: str, seed: int, said_N: np.ndarray, gold_N: np.ndarray, metric: str
) -> None:
    arrays: Mapping[str, np.ndarray] = {
        "prediction": said_N,
        "gold": gold_N,
        "subset": np.full(len(gold_N), "Odd"),
    }
    result = suites.TaskResult(
        suite="odd",
        task="Odd",
        protocol="odd-cosine/1",
        metric=metric,
        value=100 * float((said_N == gold_N).mean()),
        n=len(gold_N),
        predictions=dict(arrays),
    )
    from bench.run.executors.scoring import merge_scores

    name = f"{method}-tiny-s{seed}-{'0' * 8}"
    store.write(
        RunRecord(
            run_id=name,
            fingerprint="0" * 64,
            status="finished",
            method=method,
            setting="none",
            backbone="tiny",
            seed=seed,
            recipe={},
            scores=merge_scores((), [result]),
            cost=Cost(),
            provenance=Provenance(created="2026-01-01T00:00:00+00:00"),
        )
    )
    store.write_predictions(name, "Odd", None, arrays, "odd")


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


def test_a_metric_of_its_own_has_the_intervals_of_the_same_metric_that_tables_know(
    folder: Path, runs: Callable[[str], Path]
) -> None:
    plugin = written(folder, replaced('metric="accuracy"', 'metric="share-right", by_item=True'))
    tables = []
    for metric in ("accuracy", "share-right"):
        done = bench(
            "compare",
            "--runs",
            runs(metric),
            "--plugin",
            plugin,
            "--baseline",
            "bad",
            "--format",
            "json",
        )
        assert done.exit_code == 0, done.stderr
        tables.append(json.loads(done.stdout)["tables"][0])
    known, own = (
        [[cell["cells"] for cell in table["rows"]] for table in tables][i] for i in (0, 1)
    )
    assert json.loads(
        json.dumps(known), parse_float=lambda x: str(round(float(x), 6))
    ) == json.loads(json.dumps(own), parse_float=lambda x: str(round(float(x), 6)))
    assert '"better"' in json.dumps(own)


@pytest.mark.parametrize(
    ("change", "given", "said"),
    [
        (
            'metric="share-right", by_item=True',
            False,
            "share-right is computed by the suite odd, which is not here; --plugin FILE gives it",
        ),
        ('metric="share-right"', True, "share-right has no interval over items"),
    ],
)
def test_without_intervals_the_table_says_why(
    folder: Path, runs: Callable[[str], Path], change: str, given: bool, said: str
) -> None:
    plugin = written(folder, replaced('metric="accuracy"', change))
    done = bench(
        "compare", "--runs", runs("share-right"), *(("--plugin", plugin) if given else ()), "--all"
    )
    assert done.exit_code == 0 and said in " ".join(done.stdout.split()), done.stdout


def test_the_hint_about_the_file_helps(folder: Path, runs: Callable[[str], Path]) -> None:
    plugin = written(folder, replaced('metric="accuracy"', 'metric="share-right", by_item=True'))
    done = bench("compare", "--runs", runs("share-right"), "--plugin", plugin, "--all")
    assert done.exit_code == 0 and "without statistics" not in done.stdout


def test_a_scorer_that_fails_on_part_of_the_items_is_a_reason_and_no_traceback(
    folder: Path, runs: Callable[[str], Path]
) -> None:
    def change(code: str) -> str:
        code = code.replace('metric="accuracy"', 'metric="share-right", by_item=True')
        return code.replace(
            "    right_N = ",
            '    assert len(predictions["gold"]) == 300, "all or nothing"\n    right_N = ',
        )

    done = bench(
        "compare", "--runs", runs("share-right"), "--plugin", written(folder, change), "--all"
    )
    assert done.exit_code == 0 and re.search(
        r"on Odd \(Odd: the scorer of the suite odd fails: \S*mine.py:\d+, in score_predictions: AssertionError: all or nothing\)",
        " ".join(done.stdout.split()),
    ), done.stdout + done.stderr


def test_one_item_is_none_to_leave_out() -> None:
    with pytest.raises(BenchError, match="no row for each item"):
        jackknife({"prediction": np.ones(1)}, lambda part: 0.0)
