"""Suites that others wrote: found, refused with a reason, and checked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import bench, error_line
from pages import code_blocks

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
