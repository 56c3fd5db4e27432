"""The audit of the tables of printed numbers finds every known slip in them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import audit_checks
import pytest
from audit_bounds import impossible_accuracy, off_average
from audit_checks import SIZES, prompt_share
from audit_quoted import in_source
from make_remarks import compute_remarks

from bench.papers import PrintedRow, read_every, results, rows
from bench.papers.remarks import KINDS, all_remarks


def cells_with(kind: str) -> set[tuple[str, str, str, str, str]]:
    return {
        (r.paper, r.table, r.label, r.backbone, r.task) for r in all_remarks() if r.kind == kind
    }


def test_averages_that_do_not_follow() -> None:
    """Against a calculation of its own: in exact fractions."""
    groups: dict[tuple[str, ...], dict[str, Fraction]] = {}
    for r in results():
        groups.setdefault(
            (r.paper, r.table, r.label, r.backbone, r.metric, r.setting, r.variant), {}
        )[r.task] = Fraction(r.printed)
    want = set()
    for key, cells in groups.items():
        parts = [value for task, value in cells.items() if task != "Avg."]
        if (
            len(parts) > 1
            and "Avg." in cells
            and abs(sum(parts) / len(parts) - cells["Avg."]) > Fraction(1, 100)
        ):
            want.add((*key[:4], "Avg."))
    assert cells_with("average") == want
    assert len(want) == 14
    (mirror,) = [r.text for r in all_remarks() if r.kind == "average" and "one decimal" in r.text]
    assert mirror == (
        "published 74.40; the mean of its 7 cells is 74.39 (+0.01); each of its cells ends in 0, "
        "and rounding them to one decimal explains the difference"
    )


def test_printed_numbers_keep_their_trailing_zeros() -> None:
    """Numbers with a known print that the reference file does not keep."""
    printed = {
        (r.paper, r.table, r.label, r.backbone, r.task): r.printed
        for r in results()
        if r.metric in ("spearman", "uniformity")
    }
    bert = "bert-base-uncased"
    for place, text in {
        ("promcse", "1", "Mirror-BERT-base", bert, "Avg."): "74.40",
        ("promcse", "1", "PromCSE-RoBERTa-large + EH", "roberta-large", "Avg."): "85.10",
        ("promcse", "1", "BERT-base-whitening", bert, "STS14"): "60.9",
        ("focal-infonce", "3", "SimCSE", bert, "uniformity"): "-2.400",
    }.items():
        assert printed[place] == text
    assert all(float(r.printed) == r.value for r in results())


def test_the_one_quotation_that_differs_explains_its_average() -> None:
    """69.54 for 69.45: the source's own number gives the printed average, and is one that 1,725
    items can give.
    """
    slip, first, *later = [r for r in all_remarks() if r.kind == "quoted"]
    assert {(r.paper, r.method) for r in later} == {
        ("cot-bert", "rankcse"),  # which quotes other versions of both papers
        ("cot-bert", "pcl"),
    }
    assert (first.paper, first.table, first.task) == ("simcse", "E.1", "MRPC")
    assert (slip.paper, slip.table, slip.task) == ("promcse", "7", "MRPC")
    for one in (slip, first):
        assert "69.54" in one.text and "69.45" in one.text
        assert (
            one.paper,
            one.table,
            one.label,
            one.backbone,
            one.task,
        ) in cells_with("impossible")
        assert (
            one.paper,
            one.table,
            one.label,
            one.backbone,
            "Avg.",
        ) in cells_with("average")
    place = ("promcse", "7", slip.label)
    (row,) = [r for r in rows() if (r.first.paper, r.first.table, r.first.label) == place]
    right = {"value": 69.45, "printed": "69.45"}
    mended = PrintedRow(tuple(replace(c, **right) if c.task == "MRPC" else c for c in row.cells))
    assert off_average(mended) is None
    assert impossible_accuracy(mended.cells[6], mended) is None


def test_quotations_that_could_be_compared() -> None:
    assert sum(in_source(row.first) is not None for row in rows() if row.first.source) >= 61
    assert {r.kind for r in all_remarks()} == set(KINDS)


def test_every_remark_is_the_one_that_the_numbers_give() -> None:
    """The files are made by tools/make_remarks.py, and by nobody's hand."""
    assert sorted(map(repr, compute_remarks())) == sorted(map(repr, all_remarks()))


@pytest.mark.parametrize("backbone", sorted(SIZES))
def test_the_share_of_a_prompt(backbone: str) -> None:
    """Against torch: the backbones' own configurations, built without memory, and the prompt as a
    module.
    """
    import torch
    import transformers

    layers, width, _ = SIZES[backbone]
    bert = backbone.startswith("bert")
    family = "Bert" if bert else "Roberta"
    shape = {"num_hidden_layers": layers, "hidden_size": width, "intermediate_size": 4 * width}
    shape |= {"num_attention_heads": width // 64, "vocab_size": 30_522 if bert else 50_265}
    shape |= {} if bert else {"max_position_embeddings": 514, "type_vocab_size": 1}

    def count(module: torch.nn.Module) -> int:
        return sum(p.numel() for p in module.parameters())

    with torch.device("meta"):
        total = count(
            getattr(transformers, f"{family}Model")(
                getattr(transformers, f"{family}Config")(**shape)
            )
        )
        prompt = count(torch.nn.Embedding(7, layers * width))
    assert prompt_share(backbone, 7) == pytest.approx(100 * prompt / total)


def test_a_share_that_is_not_the_claimed_one_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = read_every("trained.tsv")
    lines[0]["claimed"] = "0.3"
    monkeypatch.setattr(audit_checks, "read_every", lambda name: lines)
    (told,) = [r for r in compute_remarks() if r.kind == "claim" and not r.task]
    assert told.label == "DCPCSE-BERT-base" and "around 0.3 %" in told.text
    assert "16 vectors in each layer has 0.135 %" in told.text
