"""``bench/score/same_numbers.toml``: earlier code of a suite counts as today's if its scores are
equal.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import same_suites
from factories import record
from msgspec.structs import replace

import bench
from bench.base import same_code
from bench.base.same_code import suite_code_of
from bench.records import Score
from bench.records.names import data_key
from bench.records.record import Code
from bench.run.done import code_of_suite, is_scored
from bench.score.suites import KnownTask, built_in_code, suite, suite_names

TABLE = same_suites.read_table()


def test_the_table_is_of_todays_code() -> None:
    """After a change in bench/score/: python tools/same_suites.py."""
    ours = [name for name in suite_names() if built_in_code(name) is not None]
    assert {name: entry["code"] for name, entry in TABLE.items()} == {
        name: built_in_code(name) for name in ours
    }


def test_earlier_code_counts_as_todays_and_unknown_code_as_itself() -> None:
    for name, entry in TABLE.items():
        assert entry["earlier"] or name == "sts-multi", name  # a suite without earlier code
        every = (entry["code"], *entry["earlier"])
        assert {suite_code_of(name, sha256) for sha256 in every} == {entry["code"]}
    assert suite_code_of("sts", "0" * 64) == "0" * 64
    assert suite_code_of("sts", None) is None


def test_a_score_of_earlier_code_with_the_same_scores_is_not_computed_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    task = suite("sts").task("STS12")
    known = KnownTask("STS12", "tokenised", "5" * 64, 3108, lambda: pytest.fail("read"), "sts")
    score = Score(
        suite="sts",
        task="STS12",
        protocol=task.protocol,
        metric="spearman",
        value=50.0,
        n=3108,
        text="tokenised",
    )
    made = record("cls", 1, scores=(score,))
    execution = replace(
        made.provenance.execution, suites={"sts": replace(code_of_suite("sts"), sha256="1" * 64)}
    )
    data = {data_key("STS12", "tokenised", "sts"): "5" * 64}
    made = replace(made, provenance=replace(made.provenance, data=data, execution=execution))
    assert isinstance(execution.suites["sts"], Code)
    assert not is_scored(made, task, known)
    today = {("sts", "1" * 64): str(built_in_code("sts"))}
    monkeypatch.setattr(same_code, "_suites_today", lambda: today)
    assert is_scored(made, task, known)
    monkeypatch.setattr(
        same_code, "_suites_today", lambda: {("cxc", "1" * 64): today["sts", "1" * 64]}
    )
    assert not is_scored(made, task, known)


def copied(folder: Path, *changes: tuple[str, str]) -> Path:
    """A tree with this package's code, in which the module of the suite clustering is changed."""
    ignored = shutil.ignore_patterns("__pycache__", "methods", "templates")
    shutil.copytree(Path(bench.__file__).parent, folder / "bench", ignore=ignored)
    file = folder / "bench" / "score" / "suites" / "clustering.py"
    code = file.read_text(encoding="utf-8")
    for pattern, new in changes:
        code, found = re.subn(pattern, new, code)
        assert found
    file.write_text(code, encoding="utf-8")
    return folder


@pytest.mark.nightly
@pytest.mark.slow(seconds=15)
def test_an_edit_is_mapped_if_and_only_if_no_score_changes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    compared: list[str] = []
    real = same_suites.numbers

    def numbers(tree: Path, suites: list[str]) -> dict[str, object]:
        compared.extend(suites)
        return real(tree, suites)

    monkeypatch.setattr(same_suites, "numbers", numbers)
    before = copied(tmp_path / "before")
    then = same_suites.codes(before)
    renamed = copied(tmp_path / "renamed", (r"\bclusterings\b", "found"))
    table: same_suites.Table = {}
    assert same_suites.bring_up_to_date(table, before, renamed) == []
    assert table["clustering"]["earlier"] == [then["clustering"]]
    assert table["clustering"]["code"] != then["clustering"]
    assert table["transfer"] == {"code": then["transfer"], "earlier": []}

    other = copied(tmp_path / "other", (r"tuple\(range\(10\)\)", "tuple(range(9))"))
    untouched = {name: dict(entry) for name, entry in table.items()}
    problems = same_suites.bring_up_to_date(table, renamed, other)
    assert table == untouched
    assert "clustering: Tweet, sccl-kmeans/1: another score, detail or predictions" in problems
    assert set(compared) == {"clustering", "own"}

    assert same_suites.bring_up_to_date(table, renamed, other, ["clustering", "own"]) == []
    assert table["clustering"]["earlier"] == []
    monkeypatch.setattr(same_suites, "FILE", tmp_path / "table.toml")
    same_suites.write_table(table)
    assert same_suites.read_table() == table
