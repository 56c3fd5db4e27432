"""Names of rows and tables: as papers write them, and no two rows of a table alike."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import entry_points

import pytest
from factories import record
from judged_rows import judged_row, judged_table

from bench.compare.statistics.summary import summarise
from bench.compare.words.names import (
    baseline_name,
    column_name,
    row_name,
    row_names,
    table_name,
    table_names,
)
from bench.papers.names import printed_name

SIMCSE = judged_row("simcse", 60.0)


def named(*rows: object, **of_table: object) -> list[str]:
    table = replace(judged_table(*rows), **of_table)  # type: ignore[arg-type]
    return [row_name(row, table) for row in table.rows]


def test_methods_have_the_names_of_their_papers() -> None:
    wanted = {
        ("dcpcse", "mlm"): "DCPCSE+MLM",
        ("focal-infonce", ""): "Focal-InfoNCE",
        ("first-last-avg", ""): "first-last avg",
        ("simcse", "no-head"): "SimCSE+no-head",
        ("mine", "long"): "mine+long",
    }
    assert {key: printed_name(*key) for key in wanted} == wanted
    methods = [entry.name for entry in entry_points(group="bench.methods")]
    without = [name for name in methods if printed_name(name) == name]
    assert set(without) <= {
        *("crop-documents", "pretrained", "stored-prefix", "truncated", "untrained")
    }


def test_rows_of_one_name_are_told_apart_by_what_differs() -> None:
    def of_text(name: str) -> object:
        return replace(SIMCSE, differs=(("corpus", name),))

    assert named(SIMCSE) == ["SimCSE"]
    assert named(of_text("builtin"), of_text("wiki.txt.xz")) == [
        "SimCSE (builtin)",
        "SimCSE (wiki)",
    ]
    assert named(of_text("wiki.txt"), of_text("wiki.csv")) == [
        "SimCSE (wiki.txt)",
        "SimCSE (wiki.csv)",
    ]
    warm, cold = (replace(SIMCSE, differs=(("temperature", value),)) for value in ("0.1", "0.05"))
    assert named(warm, cold) == ["SimCSE (temperature 0.1)", "SimCSE (temperature 0.05)"]
    tuned = [replace(warm, values="tuned: 6 trials"), replace(cold, values="paper")]
    assert named(*tuned) == ["SimCSE (tuned: 6 trials)", "SimCSE (paper)"]


def test_a_row_says_what_its_table_does_not() -> None:
    assert named(SIMCSE, backbone=None) == ["SimCSE (builtin)"]
    assert named(SIMCSE, setting=None) == ["SimCSE (unsupervised)"]
    assert named(replace(SIMCSE, setting="none"), setting=None) == ["SimCSE (not trained here)"]
    assert named(replace(SIMCSE, model="my model"), backbone=None) == ["my model"]
    sent = replace(SIMCSE, differs=(("submitted by", "Ada"),))
    assert named(sent) == ["SimCSE (submitted by Ada)"]
    assert named(sent, sender="Ada") == ["SimCSE"]


def test_finished_encoders_have_their_own_names_among_themselves() -> None:
    """Beside trained rows of its backbone, an encoder is what they are before training."""
    encoders = [record("pretrained", None, setting="none", backbone=name) for name in ("e5", "gte")]
    (table,) = summarise(encoders)
    assert sorted(row_names(table.rows, table)) == ["e5", "gte"]
    (trained,) = summarise([record("simcse", 1, backbone="gte"), encoders[1]])
    assert sorted(row_names(trained.rows, trained)) == ["SimCSE", "pretrained"]


def test_a_precision_is_named_by_its_value_alone() -> None:
    smaller = replace(SIMCSE, differs=(("dimensions", "64"), ("vector_precision", "int8")))
    assert named(smaller) == ["SimCSE (dimensions 64, int8)"]


def test_the_hash_of_a_file_is_in_the_name_of_its_table_alone() -> None:
    own = replace(judged_table(SIMCSE), suite="own", protocol="own-ap-1a2b3c4d/1", columns=("a",))
    assert "1a2b3c4d" in table_name(own) and "1a2b3c4d" not in column_name(own)
    raw = replace(judged_table(SIMCSE), protocol="senteval-all-raw/1")
    assert column_name(raw).endswith(" (raw texts)")
    without = replace(judged_table(SIMCSE), protocol="senteval-all-without-4-tokens/1")
    assert column_name(without).endswith(" (without 4 tokens)")


@pytest.mark.parametrize(
    ("baseline", "name"),
    [
        ("promcse+eh", "PromCSE+EH"),
        (None, ""),
    ],
)
def test_a_baseline_has_the_name_of_its_row(baseline: str | None, name: str) -> None:
    assert baseline_name(replace(judged_table(SIMCSE), baseline=baseline)) == name


def test_tables_are_named_by_all_that_sets_them_apart() -> None:
    first = replace(judged_table(SIMCSE), length="1000steps")
    others = [
        replace(first, setting="supervised"),
        replace(first, length="10m"),
        replace(first, setting="none", backbone=None),
        replace(first, suite="cxc", protocol="cxc-parekh/1"),
        replace(first, suite="cxc", protocol="cxc-promcse/1"),
        replace(first, protocol="senteval-wmean/1"),
        replace(first, sender="Ada"),
    ]
    names = [table_name(table) for table in (first, *others)]
    assert names[0] == "STS, unsupervised, built-in backbone, 1,000 steps, senteval-all/1"
    assert names[3] == "STS, ready-made encoders, 1,000 steps, senteval-all/1"
    assert len(set(names)) == len(names)
    assert table_names(others, beside=first) == [
        "STS, supervised",
        "STS, 10m",
        "STS, ready-made encoders",
        "CxC, cxc-parekh/1",
        "CxC, cxc-promcse/1",
        "STS, senteval-wmean/1",
        "submitted by Ada, STS",
    ]
