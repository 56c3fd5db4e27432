"""The printed numbers: row for row what the reference file of the project's owner has, and findable by method and backbone."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path

import pytest

from bench import references
from bench.errors import BenchError
from bench.references import PAPERS, ReferenceResult, results


def _reworded(note: str) -> str:
    """Notes name two things that the package does not have."""
    return note.replace(", see METHODS.md", "").replace("not verifiable from the seeds", "not verifiable here")


def test_every_row_is_that_of_the_papers_tables(shared: Path) -> None:
    rows = json.loads((shared / "reference" / "paper_results.json").read_text(encoding="utf-8"))
    for row in rows:
        row["note"] = _reworded(row["note"])
    assert [asdict(r) for r in results()] == [{field: row[field] for field in asdict(results()[0])} for row in rows]
    assert set(rows[0]) == set(asdict(results()[0]))


def test_what_is_known_without_the_reference_file() -> None:
    assert len(results()) == 1095
    (headline,) = results("simcse", "bert-base-uncased", setting="unsupervised", task="Avg.", metric="spearman", paper="dcpcse")
    assert (headline.value, headline.std, headline.own_result, headline.table) == (76.25, None, False, "1")
    (spread,) = results("conpvp", "roberta-large", variant="", task="Avg.", metric="spearman", paper="conpvp")[1:]
    assert (spread.value, spread.std, spread.own_result) == (79.9, 0.32, True)
    assert results("no such method") == ()


# printed Avg. minus the mean of the printed sets, where they differ by more than rounding: slips of the papers, kept as printed
SLIPS = {
    ("promcse", "unsupervised", "Mirror-BERT-base", "bert-base-uncased"): 0.01,
    ("promcse", "unsupervised", "PromptBERT-base", "bert-base-uncased"): 0.02,
    ("promcse", "supervised", "SBERT-base", "bert-base-uncased"): 0.03,
    ("promcse", "supervised", "PromCSE-BERT-base", "bert-base-uncased"): 0.15,
    ("promcse", "supervised", "SimCSE-RoBERTa-base + EH", "roberta-base"): -0.07,
    ("dcpcse", "supervised", "SBERT-base", "bert-base-uncased"): 0.03,
    ("dcpcse", "supervised", "DCPCSE-BERT-base", "bert-base-uncased"): -0.01,
    ("dcpcse", "supervised", "SimCSE-BERT-large", "bert-large-uncased"): -0.08,
    ("conpvp", "unsupervised", "PromptBERT", "bert-base-uncased"): 0.02,
    ("focal-infonce", "unsupervised", "SimCSE-BERT-base", "bert-base-uncased"): -0.01,
}


def test_the_printed_averages_are_those_of_their_seven_sets_but_for_known_slips() -> None:
    """A misread cell would show here: Avg. is the mean of the seven sets to the second decimal."""
    rows: dict[tuple[str, ...], dict[str, float]] = {}
    for r in results(metric="spearman"):
        rows.setdefault((r.paper, r.setting, r.label, r.backbone, r.variant, r.table), {})[r.task] = r.value
    whole = {key: scores for key, scores in rows.items() if len(scores) == 8}
    assert len(whole) > 80
    off = {key[:4]: scores["Avg."] - sum(value for task, value in scores.items() if task != "Avg.") / 7
           for key, scores in whole.items()}  # fmt: skip
    assert {key: round(by, 2) for key, by in off.items() if abs(by) > 0.0101} == SLIPS


def test_papers_and_metrics_are_named_and_values_are_in_range() -> None:
    assert {r.paper for r in results()} == set(PAPERS)
    for r in results():
        assert re.fullmatch("unsupervised|supervised|other", r.setting) and re.fullmatch(r"[1-9]", r.table) and r.label
        assert r.metric in {"alignment", "uniformity"} or 0 < r.value < 100, r
        assert r.std is None or 0 <= r.std < 5, r


def test_a_damaged_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "results.tsv"
    file.write_text(references.FILE.read_text(encoding="utf-8").replace("Avg.=79.9±0.32", "Avg.79.9±0.32"), encoding="utf-8")
    monkeypatch.setattr(references, "FILE", file)
    with pytest.raises(BenchError, match="'Avg.79.9±0.32' in the row 'ConPVP' is no score"):
        tuple(references._everything.__wrapped__())


def test_a_result_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        results()[0].value = 1.0  # type: ignore[misc]
    assert isinstance(results()[0], ReferenceResult)
