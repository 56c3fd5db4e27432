"""Scores on a page agree with the runs or papers that it names, and each section with a score names
its source.
"""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_commands import PAGES

from bench.papers import results

ROOT = Path(__file__).resolve().parents[2]
SCORE = re.compile(r"(?<![\d.])[1-9]\d\.\d\d(?!\.?\d)")
SOURCE = re.compile(
    # a version, a run, a search
    r"leaderboards/v\d|[a-z+-]+-[\w.+-]+-(?:s\d+|any)-[0-9a-f]{8}\b|search-[0-9a-f]{8}\b"
    # a paper, a thread, a table
    r"|\bprint(?:s|ed)\b|published|public numbers|/(?:issues|pull)/\d|\b[a-z-]+:(?:\d|E\.\d)"
    # a script, a count, verified.md's own runs
    r"|benchmarks/|tests/|\d of the [\d,]+ |built-in backbone \(a small BERT"
)
PYTHON = re.compile(r"\b(?:Python|py)\W[^.\n]*?\b3\.1\d\b(?:[ ,toand]+3\.1\d)*")


def sections(text: str) -> Iterator[str]:
    yield from re.split(r"(?m)^(?=#{1,3} )", PYTHON.sub("", text))


def sourceless(text: str) -> list[str]:
    return [
        one.splitlines()[0]
        for one in sections(text)
        if SCORE.search(one) and not SOURCE.search(one)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_section_with_a_score_names_where_it_is_from(page: Path) -> None:
    assert sourceless(page.read_text(encoding="utf-8")) == []


def table(page: str, name: str) -> list[list[str]]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    (found,) = re.findall(rf"<!-- table: {name} -->\n(.*?)<!-- end of table -->", text, flags=re.S)
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in found.strip().splitlines()[2:]
    ]


def test_printed_numbers_of_methods_equal_the_papers() -> None:
    """docs/methods.md against bench.papers; its remarks hold, too."""
    page = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
    every = [one for one in results() if one.task == "Avg." and not one.variant]

    def printed(place: str, method: str, backbone: str, setting: str = "unsupervised") -> list[str]:
        row = (*place.split(":"), method, backbone, setting)
        keys = ("paper", "table", "method", "backbone", "setting")
        return [one.printed for one in every if tuple(getattr(one, k) for k in keys) == row]

    rows = table("methods.md", "printed")
    for method, base, large, place in rows:
        for value, backbone in ((base, "bert-base-uncased"), (large, "roberta-large")):
            assert not value or value in printed(place, method, backbone), (method, place)
    assert "75.68" in printed("focal-infonce:2", "simcse", "bert-base-uncased") and "75.68" in page
    minilm = re.search(r"all-MiniLM-L6-v2 has ([\d.]+)", page)
    assert minilm and float(minilm[1]) > max(float(base) for _, base, _, _ in rows)
    assert float(minilm[1]) == score("pretrained-all-MiniLM-L6-v2-any-51ce7864", "Avg.")["value"]
    gain = float(printed("simcse:5", "simcse", "bert-base-uncased", "supervised")[0]) - 76.25
    assert "about five points above unsupervised" in page and gain == pytest.approx(5, abs=0.5)


def score(run: str, task: str) -> dict[str, object]:
    """Read the score of a run of v1: the run is no longer in the tree, its records are."""
    records = json.loads(
        lzma.decompress((ROOT / "tests/support/data/v1_records.json.xz").read_bytes())
    )
    scores = records[run]["scores"]
    return next(one for one in scores if (one["suite"], one["task"]) == ("sts", task))


def test_the_three_aggregations_are_those_of_the_published_runs() -> None:
    runs = {
        "simcse, built-in backbone": "simcse-builtin-s42-910e53bc",
        "all-MiniLM-L6-v2": "pretrained-all-MiniLM-L6-v2-any-51ce7864",
    }
    name, rows = "", table("faq.md", "aggregation")
    assert len(rows) == 10
    for label, task, *values in rows:
        name = label or name
        of: dict[str, Any] = score(runs[name], task)
        three = (of["value"], of["detail"]["mean"], of["detail"]["wmean"])
        assert [float(value) for value in values] == [pytest.approx(x, abs=0.005001) for x in three]
    apart = [float(row[3]) - float(row[2]) for row in rows]
    assert max(map(abs, apart)) > 8 and min(apart) < 0 < max(apart)  # "in both directions"
