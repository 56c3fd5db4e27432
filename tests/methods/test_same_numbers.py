"""``methods/same_numbers.toml`` describes today's code, and the records of the published version name that code."""

from __future__ import annotations

import tomllib
from pathlib import Path

import published_rows
import pytest
import same_numbers

from bench import methods
from bench.base.installed_code import hash_of_method
from bench.base.same_code import equivalent_code, name_of_code
from bench.records import RunsFolder

TABLE = tomllib.loads(Path(methods.__file__).with_name("same_numbers.toml").read_text("utf-8"))


def test_the_table_is_of_todays_code() -> None:
    """After a change in methods/: python tools/same_numbers.py."""
    folder = Path(methods.__file__).parent
    today = {
        module: same_numbers.hash_of(module, folder)
        for module in same_numbers.modules_with_methods()
    }
    assert {module: entry["code"] for module, entry in TABLE.items()} == today


def test_earlier_code_counts_as_todays_and_unknown_code_as_itself() -> None:
    entry = TABLE["simcse"]
    assert {equivalent_code(sha256) for sha256 in (entry["code"], *entry["earlier"])} == {
        entry["code"]
    }
    assert equivalent_code("0" * 64) == "0" * 64 and equivalent_code(None) is None
    every = [sha256 for one in TABLE.values() for sha256 in (one["code"], *one["earlier"])]
    assert len(every) == len(set(every)), "a hash stands for one code"


def test_code_of_equal_numbers_has_one_name_so_that_ids_stay() -> None:
    entry = TABLE["simcse"]
    codes = {entry["code"], *entry["earlier"]}
    assert entry["named"] in codes and len(codes) > 1
    assert {name_of_code(sha256) for sha256 in codes} == {entry["named"]}
    assert name_of_code("0" * 64) == "0" * 64 and name_of_code(None) is None


@pytest.mark.slow
def test_every_published_record_is_of_the_code_that_is_here() -> None:
    runs = published_rows.ROOT / published_rows.VERSION / "runs"
    records, _ = RunsFolder(runs).records()
    assert len(records) > 100
    for record in records:
        if (
            record.method == "pretrained"
        ):  # its vectors are others for some folders since: bench.methods.library_path
            continue
        made_by = record.provenance.plugin
        assert equivalent_code(made_by.sha256) == hash_of_method(record.method, made_by.package), (
            record.run_id
        )


def test_the_tool_keeps_a_hash_if_the_numbers_are_equal_and_refuses_if_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    table = {name: dict(entry) for name, entry in TABLE.items()}
    table["simcse"] = {"code": "1" * 64, "named": "2" * 64, "earlier": ["2" * 64]}
    losses = {"simcse, unsupervised": [1.5, 1.25], "simcse+mlm, unsupervised": [2.0]}
    other = losses | {"simcse+mlm, unsupervised": [2.0000001]}
    monkeypatch.setattr(same_numbers, "tree_at", lambda commit, place: place)
    for before, words, earlier in (
        (losses, ((), ()), ["2" * 64, "1" * 64]),
        (other, ((), ()), None),
        ({}, ((), ()), None),
        (other, (("simcse",), ()), []),
        (other, ((), ("simcse",)), ["2" * 64, "1" * 64]),
    ):
        found = {True: losses, False: before}
        monkeypatch.setattr(
            same_numbers,
            "numbers",
            lambda tree, names, found=found: found[tree == same_numbers.ROOT],
        )
        changed = {name: dict(entry) for name, entry in table.items()}
        problems = same_numbers.bring_up_to_date(changed, *words)
        if earlier is None:
            (problem,) = problems
            assert "simcse" in problem and changed == table
            continue
        assert problems == []
        today = TABLE["simcse"]["code"]
        named = "2" * 64 if earlier else today
        assert changed["simcse"] == {"code": today, "named": named, "earlier": earlier}
        assert changed["promcse"] == TABLE["promcse"]
    monkeypatch.setattr(same_numbers, "FILE", tmp_path / "table.toml")
    same_numbers.write_table(TABLE)
    assert same_numbers.read_table() == TABLE
