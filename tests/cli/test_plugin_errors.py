"""What somebody who writes a plugin reads when it does not work: one line, with the file and the line of their own code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import argv, bench, error_line

from bench.base.contract import CheckResult, once_each, place_of, plugin_code
from bench.base.errors import BenchError, PluginFailed
from bench.run.conformance import SENTENCES, check
from bench.run.plugins import from_file

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
LAST = "return self.hidden(features)[:, 0]"


def line_of(text: str, part: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)


def written(folder: Path, old: str, new: str, text: str = METHOD) -> tuple[Path, str]:
    assert old in text
    (folder / "mine.py").write_text(text.replace(old, new), encoding="utf-8")
    return folder / "mine.py", text.replace(old, new)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "line", "function", "said"),
    [
        ("first @ second.T", "first @ second", "first @ second", "loss", "cannot be multiplied"),
        (LAST, LAST.replace("[:, 0]", ".nothing"), ".nothing", "embed", "no attribute 'nothing'"),
        (
            LAST,
            "import json; return json.loads('{')",
            "json.loads",
            "embed",
            "JSONDecodeError",
        ),  # deeper, in somebody else's code
        (
            "super().build(backbone, recipe)",
            "super().build(backbone, recipe); backbone.hidden",
            "backbone.hidden",
            "build",
            "no attribute",
        ),
        (
            "        pass",
            "        recipe.temprature",
            "recipe.temprature",
            "check",
            "no key 'temprature'",
        ),
        (
            "scores = first",
            "import sys; sys.exit('enough'); scores = first",
            "sys.exit",
            "loss",
            "SystemExit: enough",
        ),
        (
            "scores = first",
            "import sys; sys.exit(); scores = first",
            "sys.exit",
            "loss",
            "SystemExit",
        ),
        (
            "scores = first",
            "[view.nothing for view in views]; scores = first",
            "view.nothing",
            "loss",
            "no attribute 'nothing'",
        ),
        (
            RETURN,
            RETURN.replace("Loss(", "("),
            "def loss",
            "loss",
            "returned a Tensor; return Loss(tensor)",
        ),
        (RETURN, "pass", "def loss", "loss", "returned NoneType; return Loss(tensor)"),
        (
            RETURN,
            "return Loss(scores.sum(1))",
            "def loss",
            "loss",
            "expected one finite number as the loss, found a tensor of shape (8,)",
        ),
        (
            RETURN,
            RETURN[:-1] + ", {'part': 0.5})",
            "def loss",
            "loss",
            "part 'part' of the loss is float",
        ),
        (
            "return self.embed(batch.columns[0]),",
            "return 0 * self.embed(batch.columns[0]) +",
            "def views",
            "views",
            "views returned a Tensor; return a tuple of",
        ),
        (
            "return self.embed(batch.columns[0]),",
            "return None,",
            "def views",
            "views",
            "views returned tuple that holds NoneType",
        ),
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
    command = (
        "run",
        "mine.py",
        "--backbone",
        tiny,
        "--suite",
        "check",
        "--corpus",
        corpus,
        *argv("--max-steps 1 --set batch_size=8"),
    )
    told = error_line(bench(*command, "--runs", "runs"), 1)
    assert place in told and said in told
    (plugin,) = from_file(file)
    results = check(plugin, {}, lambda case: case.build().encode(SENTENCES))
    (failed,) = [result for result in results if result.failed]
    assert place in failed.seen and said in failed.seen
    assert {result.repeats for result in results if not result.passed} <= {"", failed.check}


@pytest.mark.parametrize(
    ("old", "new", "line", "code", "said"),
    [
        (
            "import torch\n",
            "import nothing_of_that_name\n",
            "import nothing",
            2,
            "ModuleNotFoundError",
        ),
        ("import torch\n", "import = torch\n", "import = torch", 2, "SyntaxError"),
        ("import torch\n", "import torch\n1 / 0\n", "1 / 0", 2, "ZeroDivisionError"),
        ("import torch\n", "import sys\nsys.exit(0)\n", "sys.exit", 1, "SystemExit: 0"),
        (
            '("unsupervised",)',
            '"unsupervised"',
            "class Mine",
            2,
            "write a tuple, settings = ('unsupervised',)",
        ),
        ('("unsupervised",)', '("unsup",)', "class Mine", 2, "choose from unsupervised"),
        ('"mine"', '"My method"', "class Mine", 2, "use a-z"),
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
    for command in (
        ("run", "mine.py", "--suite", "check"),
        ("run", "--plugin", "mine.py", "--method", "cls", "--suite", "check"),
        ("methods", "--check", "mine.py"),
    ):
        told = error_line(bench(*command), code)
        assert f"mine.py:{line_of(text, line)}" in told and said in told, told


SUITE = """
import hashlib
from dataclasses import dataclass

import numpy as np

from bench.score.suites import LoadedTask, Suite, Task, TaskScore, check_variety, check_vectors


@dataclass(frozen=True)
class Rows:
    sha256: str = hashlib.sha256(b"abc").hexdigest()
    form: str | None = None

    def __len__(self):
        return 3


@dataclass(frozen=True)
class Loaded(LoadedTask):
    task: Task
    data: Rows = Rows()
    sentences = ["a", "b", "c"]

    def score(self, vectors):
        x = check_variety(check_vectors(vectors(self.sentences), self.sentences, "Odd"), self.sentences, "Odd")
        return self.result({"prediction": x[:, 0] > 0, "gold": np.array([True, False, True]), "subset": np.full(3, "Odd")})


def rescore(predictions, task):
    right = predictions["prediction"] == predictions["gold"]
    return TaskScore(100 * float(right.mean()), len(right))


def read(task, data, text):
    return Loaded(task)


TASK = Task(suite="odd", name="Odd", protocol="odd/1", metric="accuracy", n=3, read=read, rescore=rescore)
SUITE = Suite(name="odd", title="Odd", description="Odd", tasks=(TASK,), average=None, docs="x.md")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "line", "function", "said"),
    [
        (
            "return Loaded(task)",
            "return Loaded(task, int('x'))",
            "int('x')",
            "read",
            "ValueError: invalid literal",
        ),
        ("return Loaded(task)", "raise SystemExit(4)", "SystemExit(4)", "read", "SystemExit: 4"),
        (
            "return Loaded(task)",
            "Loaded(task)",
            "def read",
            "read",
            "it returned NoneType, and a LoadedTask is expected",
        ),
        ("x[:, 0] > 0", "x.reshape(7, 7)", "reshape", "score", "cannot reshape"),
        (
            'predictions["prediction"] ==',
            'predictions["nothing"] ==',
            "nothing",
            "rescore",
            "KeyError: 'nothing'",
        ),
    ],
)
def test_the_line_of_a_suite_is_named_in_a_run_and_in_the_check_which_fails_once(
    tiny: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    old: str,
    new: str,
    line: str,
    function: str,
    said: str,
) -> None:
    _, text = written(tmp_path, old, new, SUITE)
    monkeypatch.chdir(tmp_path)
    place = f"mine.py:{line_of(text, line)}, in {function}: "
    told = error_line(
        bench("run", "cls", "mine.py", "--suite", "odd", "--backbone", tiny, "--runs", "runs"), 1
    )
    assert place in told and said in told
    done = bench("suites", "--check", "mine.py", "--json")
    failed = [
        finding
        for finding in json.loads(done.stdout)["findings"]
        if not finding["passed"] and "repeats" not in finding
    ]
    assert done.exit_code == 1 and len(failed) == 1, failed
    assert place in failed[0]["seen"] and said in failed[0]["seen"]


def test_one_cause_is_one_failure_and_two_causes_are_two() -> None:
    seen = (
        ("a", True, "x"),
        ("b", False, "x"),
        ("c", False, "y"),
        ("d", False, "x"),
        ("e", True, "y"),
        ("f", False, "y"),
    )
    results = once_each([CheckResult("s", check_, passed, what) for check_, passed, what in seen])
    assert [result.check for result in results if result.failed] == ["b", "c"]
    assert {result.check: result.repeats for result in results if result.repeats} == {
        "d": "b",
        "f": "c",
    }


def test_what_bench_itself_raises_has_no_place_and_stays_as_it_is() -> None:
    of_bench, of_others = ({"__name__": name} for name in ("bench.made", "made"))
    for names in (
        of_bench,
        of_others,
    ):  # this file is no part of bench, so it stands for a plugin's; the other two are as they say
        with pytest.raises(ZeroDivisionError) as caught:
            exec(compile("1 / 0", str(Path.cwd() / "made.py"), "exec"), names)
        inside = caught.value.__traceback__ and caught.value.__traceback__.tb_next
        assert place_of(caught.value.with_traceback(inside)) == (
            "" if names is of_bench else "made.py:1"
        )
    with pytest.raises(BenchError, match="^known$"), plugin_code("the method x"):
        raise BenchError("known")
    with (
        pytest.raises(
            PluginFailed,
            match=r"^the method x: \S*test_plugin_errors.py:\d+, in test_what\w*: KeyError",
        ),
        plugin_code("the method x"),
    ):
        {}["nothing"]
