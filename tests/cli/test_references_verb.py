"""``bench references``: the papers, a table as printed, the audit, as text and as JSON."""

from __future__ import annotations

import json

from commands import bench


def as_json(*arguments: str) -> list[dict[str, object]]:
    return [*map(json.loads, bench("references", *arguments, "--json").stdout.splitlines())]


def test_filters_know_our_names_and_theirs() -> None:
    # SBERT's encoder, pooled so, is the same as ours
    methods = {row["method"] for row in as_json("--method", "embedding-last-avg")}
    assert methods == {"first-last-avg", "sbert"}
    rows = as_json("conpvp:3", "--own", "--task", "Avg.")
    assert {row["value"] for row in rows} >= {78.85, 80.18}
    for row in rows:
        assert row["own_result"]
        assert "best" in {remark["kind"] for remark in row["remarks"]}  # type: ignore[attr-defined]


def test_the_audit_as_text_and_as_json() -> None:
    flat = " ".join(bench("references", "--audit", COLUMNS="200").stdout.split())
    assert "printed 81.81; the mean of its 7 cells is 81.66" in flat
    assert "copied from" not in flat and "--kind differs,copied" in flat
    assert {row["kind"] for row in as_json("--audit", "--kind", "quoted,best")} == {
        "quoted",
        "best",
    }
    assert "4 published numbers, 0 remarks" in bench("references", "dcpcse:2", "--audit").stdout
