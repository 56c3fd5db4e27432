"""Tables with the numbers of papers, and with notes on rows that trained on scored sentences."""

from __future__ import annotations

from pathlib import Path

import pytest
from compared_runs import row_named, runs_in, unwritten_runs
from factories import RAW_PROTOCOL, record, sts_scores
from msgspec import structs
from predicted_runs import family

from bench.base.errors import BenchError
from bench.compare.forms.forms import format_tables
from bench.compare.tables import make_tables


def test_the_printed_value_is_shown_with_ours(tmp_path: Path) -> None:
    made = family(tmp_path, {"simcse": 0.3, "mine": 0.3}, seeds=(1,), backbone="bert-base-uncased")
    (table,) = make_tables(runs_in(tmp_path, made), paper=True)
    values = (68.40, 82.41, 74.38, 80.91, 78.56, 76.85, 72.23, 76.25)  # Gao et al. 2021, table 5
    for value, cell in zip(values, row_named(table, "simcse").cells, strict=True):
        assert cell is not None and cell.printed is not None and cell.printed.value == value
        assert cell.printed.difference == pytest.approx(round(cell.mean, 2) - value, abs=1e-9)
        assert cell.printed.verdict == "not tested" and cell.printed.reason.startswith("one seed")
    assert all(cell is None or cell.printed is None for cell in row_named(table, "mine").cells)
    reason = "one seed: how far seeds vary is not known"
    assert f"not compared with the published value: SimCSE ({reason})" in table.notes
    assert "no published number for this backbone and protocol: mine" in table.notes
    for form in ("md", "latex", "csv", "json"):
        assert "82.41" in format_tables((table,), form)


def test_an_untrained_start_is_not_compared_with_a_trained_row_s_print() -> None:
    trained = [record("simcse", seed, backbone="bert-base-uncased") for seed in (1, 2)]
    of = trained[0].training
    assert of is not None
    start = record("simcse", 3, backbone="bert-base-uncased")
    untrained = structs.replace(of, steps=0, best_step=0, dev_score=None)
    start = structs.replace(start, training=untrained)
    (table,) = make_tables(unwritten_runs(*trained, start), paper=True)
    printed = {}
    for row in table.rows:
        printed[row.is_start] = any(cell and cell.printed for cell in row.cells)
    assert printed == {False: True, True: False}
    assert not [note for note in table.notes if note.startswith("no published number")]


def test_a_printed_value_of_another_protocol_is_not_ours() -> None:
    other = tuple(structs.replace(s, protocol="other/9") for s in sts_scores())
    for seed, scores in ((1, other), (2, sts_scores(protocol=RAW_PROTOCOL))):
        one = record("simcse", seed, backbone="bert-base-uncased", scores=scores)
        (table,) = make_tables(unwritten_runs(one), paper=True)
        assert all(cell is None or cell.printed is None for one in table.rows for cell in one.cells)


@pytest.mark.parametrize(("share", "marked"), [(0.099, False), (0.1, True), (1.0, True)])
def test_a_row_that_trained_on_a_tenth_of_the_scored_sentences_is_marked(
    tmp_path: Path, share: float, marked: bool
) -> None:
    """Even where all rows of the table did; ``--strict`` refuses it."""
    seen = {"suite": "sts", "text": "", "sentences": 1000, "near": 0, "rows": 9}
    tasks = [
        seen | {"task": "STS12", "exact": round(1000 * share)},
        seen | {"task": "STS13", "exact": 99},
        seen | {"task": "Other", "suite": "cxc", "exact": 1000},
    ]
    one = record("cosent", setting="supervised")
    corpus = structs.replace(one.provenance.corpus, overlap={"rule": "overlap/1", "tasks": tasks})
    one = structs.replace(one, provenance=structs.replace(one.provenance, corpus=corpus))
    runs = runs_in(tmp_path, [one])
    (table,) = make_tables(runs)
    assert table.rows[0].notes == ("trained on test sentences (STS12)",) * marked
    if marked:
        with pytest.raises(BenchError, match="--strict: 1 difference"):
            make_tables(runs, strict=True)
