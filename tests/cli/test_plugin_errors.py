"""The error of a plugin that does not work: one line, with the file and the line of its author's
own code.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import argv, bench, error_line

from bench.method.plugins import from_file
from bench.run.conformance.methods import check_method

METHOD = """
import torch
from torch.nn.functional import cross_entropy, normalize

from bench.method import Loss, TorchMethod


class Mine(TorchMethod):
    name = "mine"
    settings = ("unsupervised",)
    defaults = {"temperature": 0.05}
    variants = {"hot": {"temperature": 0.1}}

    @classmethod
    def check(cls, recipe, backbone):
        pass

    def build(self, backbone, recipe):
        super().build(backbone, recipe)

    def views(self, batch):
        return self.embed(batch.columns[0]), self.embed(batch.columns[0])

    def loss(self, views, batch):
        first, second = (normalize(view, dim=-1) for view in views)
        scores = first @ second.T / self.recipe.temperature
        return Loss(cross_entropy(scores, torch.arange(len(scores))))

    def embed(self, features):
        return self.hidden(features)[:, 0]
"""
RETURN = "return Loss(cross_entropy(scores, torch.arange(len(scores))))"


def line_of(text: str, part: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)


def written(folder: Path, old: str, new: str, text: str = METHOD) -> tuple[Path, str]:
    assert old in text
    (folder / "mine.py").write_text(text.replace(old, new), encoding="utf-8")
    return folder / "mine.py", text.replace(old, new)


@pytest.mark.slow
@pytest.mark.usefixtures("short_check")
@pytest.mark.parametrize(
    ("old", "new", "line", "function", "said"),
    [
        ("scores = f", "import sys; sys.exit(); scores = f", "sys.exit", "loss", "SystemExit"),
        (RETURN, "pass", "def loss", "loss", "returned NoneType; return Loss(tensor)"),
    ],
)
def test_the_line_of_the_plugin_is_named_in_a_run_and_in_the_check_which_fails_once(
    tiny: str,
    corpus: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    old: str,
    new: str,
    line: str,
    function: str,
    said: str,
) -> None:
    file, text = written(tmp_path, old, new)
    monkeypatch.chdir(tmp_path)
    place = f"mine.py:{line_of(text, line)}, in {function}: "
    command = (*argv("run mine.py --suite check --set max_steps=1 --set batch_size=8 --runs runs"),)
    told = error_line(bench(*command, "--backbone", tiny, "--corpus", corpus), 1)
    assert place in told and said in told
    (plugin,) = from_file(file)
    results = check_method(plugin)
    (failed,) = [result for result in results if result.failed]
    assert place in failed.why and said in failed.why
    assert {result.repeats for result in results if not result.passed} <= {"", failed.kind}


TUPLE = '("unsupervised",)'
NO_TUPLE = "write a tuple"


@pytest.mark.parametrize(
    ("old", "new", "line", "code", "said"),
    [
        ("import torch\n", "import sys\nsys.exit(0)\n", "sys.exit", 1, "SystemExit: 0"),
        (TUPLE, '"unsupervised"', "class Mine", 2, NO_TUPLE),
    ],
)
def test_a_file_that_does_not_import_names_its_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    old: str,
    new: str,
    line: str,
    code: int,
    said: str,
) -> None:
    _, text = written(tmp_path, old, new)
    monkeypatch.chdir(tmp_path)
    for command in ("run mine.py --suite check", "check mine.py"):
        told = error_line(bench(*argv(command)), code)
        assert f"mine.py:{line_of(text, line)}" in told and said in told, told


SUITE = """
import hashlib
from dataclasses import dataclass

import numpy as np

from bench.score.suites import LoadedTask, Suite, Task, TaskScore, check_variety, check_vectors


@dataclass(frozen=True)
class Rows:
    sha256: str = hashlib.sha256(b"abc").hexdigest()

    def __len__(self):
        return 3


@dataclass(frozen=True)
class Loaded(LoadedTask):
    task: Task
    data: Rows = Rows()
    sentences = ["a", "b", "c"]

    def score(self, vectors):
        x = check_vectors(vectors(self.sentences), self.sentences, "Odd")
        x = check_variety(x, self.sentences, "Odd")
        gold, subset = np.array([True, False, True]), np.full(3, "Odd")
        return self.result({"prediction": x[:, 0] > 0, "gold": gold, "subset": subset})


def rescore(predictions, task):
    right = predictions["prediction"] == predictions["gold"]
    return TaskScore(100 * float(right.mean()), len(right))


def read(task, data):
    return Loaded(task)


FACTS = {"suite": "odd", "name": "Odd", "protocol": "odd/1", "metric": "accuracy", "n": 3}
TASK = Task(**FACTS, read=read, rescore=rescore)
SUITE = Suite(name="odd", title="Odd", description="Odd", tasks=(TASK,), average=None, docs="x.md")
"""


@pytest.mark.slow
def test_the_line_of_a_suite_is_named_in_a_run_and_in_the_check_which_fails_once(
    tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, text = written(tmp_path, "x[:, 0] > 0", "x.reshape(7, 7)", SUITE)
    monkeypatch.chdir(tmp_path)
    place = f"mine.py:{line_of(text, 'reshape')}, in score: "
    run = argv("run cls mine.py --suite odd --runs runs --backbone")
    told = error_line(bench(*run, tiny), 1)
    assert place in told and "cannot reshape" in told
    done = bench("check", "mine.py", "--json")
    found = json.loads(done.stdout)["findings"]
    failed = [one for one in found if one["outcome"] == "differs" and not one["repeats"]]
    assert done.exit_code == 1 and len(failed) == 1, failed
    assert place in failed[0]["why"] and "cannot reshape" in failed[0]["why"]
    shown = bench("suites", "odd", "--plugin", "mine.py").stdout
    assert "odd/1" in shown and "bench data" not in shown, "no data set is of this suite"
