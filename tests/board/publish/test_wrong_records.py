"""A record that is wrong costs that run alone, whoever made it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from factories import record
from made_runs import made_run, made_runs
from msgspec.structs import replace
from published import Publish

from bench.base.errors import BenchError
from bench.records.record import RunRecord
from bench.records.store import RunsFolder

TYPES = [None, True, -1, 10**18, 1.5, "x", [], ["a"], [None], {}, {"a": 1}, {"a": {"b": [1]}}]
DEEP = json.loads("[" * 200 + "]" * 200)


@pytest.mark.parametrize("key", ["places", "precision", "dev", "ranks"])
def test_the_inputs_of_a_fingerprint_have_the_types_that_pages_expect(key: str) -> None:
    """Read as a damaged record, or drawn; never a traceback."""
    whole = record("simcse", 1, recipe={"teacher": "x"}).to_json()
    for value in [*TYPES, DEEP]:
        whole["provenance"]["determines"] = {"places": {}, "precision": "fp32", key: value}
        try:
            RunRecord.from_json(whole)
        except BenchError as error:
            assert f"provenance.determines{'.' if value is not DEEP else ''}" in error.message


def test_a_value_nested_too_deep_is_named() -> None:
    whole = record("simcse", 1).to_json()
    whole["provenance"]["platform"] = {"device": DEEP}
    with pytest.raises(BenchError, match="platform: more than 64 objects or lists"):
        RunRecord.from_json(whole)


def test_a_run_with_an_absolute_path_is_left_out_and_the_page_does_not_show_it(
    quick: Publish, runs: Path, out: Path
) -> None:
    store = RunsFolder(runs)
    one = made_run(runs, "ct", 1, suites=("check",))
    store.write(
        replace(one, provenance=replace(one.provenance, command="bench run --data /home/ada/sets"))
    )
    made = quick()
    (line,) = made.board.left_out
    assert "provenance.command holds the absolute path of 'sets'" in line
    assert not any(b"/home/ada" in file.read_bytes() for file in out.rglob("*") if file.is_file())
    with pytest.raises(BenchError, match="--note holds the absolute path of 'x'"):
        quick(note="see /home/ada/x")
    plan = out / "plans" / "v2.md"
    plan.parent.mkdir()
    plan.write_text("# Plan\n\nOn ~/machines/x.\n", encoding="utf-8")
    with pytest.raises(BenchError, match=r"v2.md, line 3 holds the absolute path of 'x"):
        quick(note="new")


def test_a_run_folder_that_is_a_link_is_left_out(
    quick: Publish, runs: Path, tmp_path: Path
) -> None:
    (there,) = made_runs(tmp_path / "elsewhere", {"ct": 0.5}, seeds=(1,), suites=("check",))
    (runs / there.run_id).symlink_to(tmp_path / "elsewhere" / there.run_id)
    (line,) = quick().board.left_out
    assert line.startswith(f"{there.run_id}: damaged: a link, not a folder")
