"""``bench run`` over several sets: one that is missing, one that cannot be scored, and what is read
again.
"""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from commands import bench, the_run

from bench.data.sets import DataFolder
from bench.records import RunsFolder
from bench.score.suites import suite

LETTERS = '''
from bench.method import Method
import numpy as np

class Letters(Method):
    """How often each letter occurs; a sentence with the word ``hurt`` gets no vector."""
    name = "letters"
    settings = deterministic = ("none",)
    defaults = {"hurt": None}
    def build(self, backbone, recipe):
        super().build(backbone, recipe)
        self.hurt = recipe["hurt"]
    def encode(self, sentences):
        counts = [[s.count(c) for c in "abcdefghijklmnopqrstuvwxyz"] for s in sentences]
        for row, sentence in zip(counts, sentences):
            if self.hurt and self.hurt in sentence:
                row[:] = [np.nan] * 26
        return np.array(counts, dtype=np.float32)
    def save(self, folder): pass
    def load(self, folder): pass
'''


@pytest.fixture(scope="module")
def letters(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, ...]:
    plugin = tmp_path_factory.mktemp("plugin") / "letters.py"
    plugin.write_text(LETTERS, encoding="utf-8")
    return ("run", "--method", "letters", "--plugin", plugin, "--plain")


@pytest.fixture
def some(shared: Path, tmp_path: Path) -> Path:
    """A data folder that has STS12 and STS13 only."""
    home = tmp_path / "data" / "senteval-moses"
    home.mkdir(parents=True)
    for name in ("STS12-en-test", "STS13-en-test"):
        found = next((shared / "data" / "senteval-moses").rglob(name))
        place = home / found.relative_to(shared / "data" / "senteval-moses")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(found, place)
    return tmp_path / "data"


@pytest.mark.slow
def test_a_missing_set_is_one_line_and_the_other_sets_are_scored(
    letters: tuple[Any, ...], some: Path, shared: Path, tmp_path: Path
) -> None:
    command = (*letters, "--suite", "sts", "--runs", tmp_path / "runs", "--data")
    done = bench(*command, some)
    assert done.exit_code == 1, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("missing: ")]
    missing = [line.split(":")[1].strip() for line in lines]
    assert missing == ["STS14", "STS15", "STS16", "STS-B", "SICK-R"]
    record = RunsFolder(tmp_path / "runs").read(the_run(tmp_path / "runs").name)
    assert record.status == "finished"
    assert [score.task for score in record.scores] == ["STS12", "STS13"], "and no average"
    whole = bench(*command, shared / "data", "--json")
    assert whole.exit_code == 0 and "missing: " not in whole.stderr
    scores = {score["task"]: score["value"] for score in json.loads(whole.stdout)["scores"]}
    assert len(scores) == 8 and scores["STS12"] == record.scores[0].value
    each = [round(value, 2) for task, value in scores.items() if task != "Avg."]
    assert scores["Avg."] == round(sum(each) / 7, 2)


def test_a_task_that_cannot_be_scored_is_noted_and_the_run_with_its_other_scores_is_finished(
    letters: tuple[Any, ...], some: Path, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    hurt = next(word for word in words(some, "STS13") if word not in words(some, "STS12"))
    done = bench(
        *letters, "--suite", "sts", "--data", some, "--runs", runs, "--set", f"hurt={hurt}"
    )
    assert done.exit_code == 1 and "STS13: " in done.stderr
    assert "NaN or infinity, first for the sentence" in done.stderr
    record = RunsFolder(runs).read(the_run(runs).name)
    assert record.status == "finished" and "NaN" in (record.error or "")
    assert [score.task for score in record.scores] == ["STS12"]
    assert (the_run(runs) / "predictions" / "STS12.npz").is_file()
    assert "not scored: STS13" in bench("runs", record.run_id, "--runs", runs).stdout
    assert f"not scored in full: {record.run_id} (STS13" in bench("compare", "--runs", runs).stdout


def words(data: Path, task: str) -> dict[str, None]:
    sentences = suite("sts").task(task).load(DataFolder(data)).sentences
    words = itertools.chain.from_iterable(sentence.split() for sentence in sentences)
    return dict.fromkeys(word for word in words if word.isalpha() and len(word) > 9)
