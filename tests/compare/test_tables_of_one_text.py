"""Rows of one table were trained on one text; another text is another table."""

from __future__ import annotations

from pathlib import Path

import pytest
from compared_runs import shown
from msgspec import structs
from predicted_runs import sts_run

from bench.compare.statistics.table import FOR_SCALE
from bench.compare.tables import make_tables
from bench.compare.words.names import table_name
from bench.records import Run

WIKI, NEWS = "wiki.txt.xz", "news.txt"


def on_text(run: Run, name: str) -> Run:
    """Return the run as if it had been trained or fitted on a text of that name."""
    provenance = run.record.provenance
    corpus = structs.replace(provenance.corpus, name=name, sha256=name[0] * 64)
    provenance = structs.replace(provenance, corpus=corpus)
    return Run(structs.replace(run.record, provenance=provenance), run.folder)


def three(folder: Path, method: str, noise: float, text: str, variant: str = "") -> list[Run]:
    runs = []
    for seed in (1, 2, 3):
        made = sts_run(folder / text, method, seed, noise, variant=variant, recipe={"text": text})
        runs.append(on_text(Run(made, folder / text / made.run_id), text))
    return runs


@pytest.fixture
def runs(tmp_path: Path) -> list[Run]:
    made = [
        *three(tmp_path, "simcse", 0.5, WIKI),
        *three(tmp_path, "promcse", 0.1, WIKI),
        *three(tmp_path, "ct", 0.5, WIKI),
        *three(tmp_path, "simcse", 0.9, NEWS),
        *three(tmp_path, "promcse", 0.2, NEWS),
    ]
    for name in ("cls", "flow"):
        record = sts_run(tmp_path, name, None, 1.3, setting="none")
        run = Run(record, tmp_path / record.run_id)
        made.append(on_text(run, NEWS) if name == "flow" else run)
    return made


def test_each_text_has_a_table_with_a_baseline_of_its_own(runs: list[Run]) -> None:
    wiki, news = make_tables(runs)
    assert shown(wiki) == {
        "PromCSE": "better",
        "SimCSE": None,
        "CT": "inconclusive",
        "CLS": FOR_SCALE,
    }
    fitted = {"BERT-flow": "worse", "CLS": FOR_SCALE}
    assert shown(news) == {"PromCSE": "better", "SimCSE": None, **fitted}
    assert (wiki.text, news.text[:5]) == ("", "news.")
    assert "trained on wiki" in table_name(wiki) and "trained on news" in table_name(news)
    bases = [next(row for row in table.rows if row.is_baseline) for table in (wiki, news)]
    assert [base.runs for base in bases] == [
        tuple(run.record.run_id for run in runs[start : start + 3]) for start in (0, 9)
    ]


def test_a_table_of_one_text_has_the_numbers_that_it_has_alone(runs: list[Run]) -> None:
    wiki, _ = make_tables(runs)
    news_alone = [run for run in runs if run.record.provenance.corpus.name == WIKI]
    (alone,) = make_tables([*news_alone, runs[-2]])
    assert wiki.rows == alone.rows and wiki.tested == alone.tested


def test_a_text_without_the_usual_baseline_has_no_differences(runs: list[Run]) -> None:
    _, news = make_tables([*runs[:9], *runs[12:15]])
    assert news.baseline is None and shown(news) == {"PromCSE": None}
