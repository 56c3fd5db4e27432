"""The audit of the tables of printed numbers finds every known slip in them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from bench.papers import PrintedRow, read_rows, results, rows
from bench.papers.audit import audit, remarks
from bench.papers.bounds import impossible_accuracy, off_average
from bench.papers.claims import SIZES, TRAINED, ClaimedGain, claimed_gains, trained_shares
from bench.papers.quoted import in_source
from bench.papers.remark import KINDS


def cells_with(kind: str) -> set[tuple[str, str, str, str, str]]:
    return {
        (r.cell.paper, r.cell.table, r.cell.label, r.cell.backbone, r.task)
        for r in audit()
        if r.kind == kind
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
    (mirror,) = [r.why for r in audit() if r.kind == "average" and "one decimal" in r.why]
    assert mirror == (
        "printed 74.40; the mean of its 7 cells is 74.39 (+0.01); each of its cells ends in 0, "
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
    slip, first, *later = [r for r in audit() if r.kind == "quoted"]
    assert {(r.cell.paper, r.cell.method) for r in later} == {
        ("cot-bert", "rankcse"),  # which quotes other versions of both papers
        ("cot-bert", "pcl"),
    }
    assert (first.cell.paper, first.cell.table, first.task) == ("simcse", "E.1", "MRPC")
    assert (slip.cell.paper, slip.cell.table, slip.task) == ("promcse", "7", "MRPC")
    for one in (slip, first):
        assert "69.54" in one.why and "69.45" in one.why
        assert (
            one.cell.paper,
            one.cell.table,
            one.cell.label,
            one.cell.backbone,
            one.task,
        ) in cells_with("impossible")
        assert (
            one.cell.paper,
            one.cell.table,
            one.cell.label,
            one.cell.backbone,
            "Avg.",
        ) in cells_with("average")
    place = ("promcse", "7", slip.cell.label)
    (row,) = [r for r in rows() if (r.first.paper, r.first.table, r.first.label) == place]
    right = {"value": 69.45, "printed": "69.45"}
    mended = PrintedRow(tuple(replace(c, **right) if c.task == "MRPC" else c for c in row.cells))
    assert off_average(mended) is None
    assert impossible_accuracy(mended.cells[6], mended) is None


def test_best_of_four_is_marked_and_differs_from_the_mean_elsewhere() -> None:
    assert {
        label for paper, table, label, *_ in cells_with("best") if (paper, table) == ("conpvp", "3")
    } == {"ConPVP", "PromptBERT"}
    (cell,) = [
        r
        for r in results("conpvp", "roberta-large", variant="", task="Avg.", metric="spearman")
        if r.table == "3"
    ]
    told = {r.kind: r.why for r in remarks(cell)}
    assert "conpvp table 4: 79.90 (own, mean of 4 seeds)" in told["differs"] and told[
        "best"
    ].startswith("best of 4 seeds")


def test_cxc_rows_of_another_protocol() -> None:
    assert {
        label
        for _, table, label, *_ in cells_with("protocol")
        if table == "2" and "CxC" not in label
    } >= {"GloVe embeddings (avg.)", "ALIGN-BERT-base", "MURAL-BERT-base"}
    assert not any(label == "unsup-PromCSE-BERT-base" for _, _, label, *_ in cells_with("protocol"))


def test_every_copied_row_says_so_and_most_could_be_compared() -> None:
    assert len([r for r in audit() if r.kind == "copied"]) == len(
        [row for row in rows() if row.first.source]
    )
    assert sum(in_source(row.first) is not None for row in rows() if row.first.source) == 61
    assert {r.kind for r in audit()} == set(KINDS)


def test_claims_of_texts_that_the_tables_do_not_bear_out() -> None:
    """Every gain that is recorded is held against its two cells, here in exact fractions; three of
    24 are false.
    """
    claims = claimed_gains()
    off = {
        (one.cell.paper, one.claimed, one.cell.printed, one.less.printed)
        for one in claims
        if not _holds(one)
    }
    assert off == {
        ("dcpcse", "0.78", "82.89", "82.21"),
        ("conpvp", "1.21", "63.86", "57.58"),
        ("conpvp", "2.18", "64.14", "63.06"),
    }
    assert len(claims) == 24 and len({(one.cell.paper, one.claimed) for one in claims}) == 24
    gains = [r for r in audit() if r.kind == "claim" and r.task]
    assert {(r.cell.paper, r.cell.backbone) for r in gains} == {
        ("dcpcse", "bert-large-uncased"),
        ("conpvp", "bert-base-uncased"),
        ("conpvp", "bert-large-uncased"),
    }
    for remark, numbers in zip(
        gains, (("0.78", "0.68"), ("1.21", "6.28"), ("2.18", "1.08")), strict=True
    ):
        assert all(number in remark.why for number in numbers)


def _holds(claim: ClaimedGain) -> bool:
    """Is the claim the difference of its cells, rounded as it is printed?"""
    gain = Fraction(claim.cell.printed) - Fraction(claim.less.printed)
    return abs(gain - Fraction(claim.claimed)) <= Fraction(
        1, 2 * 10 ** len(claim.claimed.partition(".")[2])
    )


@pytest.mark.parametrize("backbone", sorted(SIZES))
def test_shares_of_trained_parameters(backbone: str) -> None:
    """Against torch: the backbones' own configurations, built without memory, and the parts as
    modules.
    """
    import torch
    import transformers

    layers, width, vocabulary, _ = SIZES[backbone]
    bert = backbone.startswith("bert")
    family = "Bert" if bert else "Roberta"
    shape = {"num_hidden_layers": layers, "hidden_size": width, "intermediate_size": 4 * width}
    shape |= {"num_attention_heads": width // 64, "vocab_size": vocabulary}
    shape |= {} if bert else {"max_position_embeddings": 514, "type_vocab_size": 1}
    config = getattr(transformers, f"{family}Config")(tie_word_embeddings=False, **shape)

    def count(module: torch.nn.Module, without: tuple[str, ...] = ()) -> int:
        return sum(p.numel() for name, p in module.named_parameters() if name not in without)

    with torch.device("meta"):
        total = count(getattr(transformers, f"{family}Model")(config))
        masked = getattr(transformers, f"{family}ForMaskedLM")(config)
        second_names = ("predictions.bias", "bias")  # names of the decoder's bias
        lm_head = count(masked.cls if bert else masked.lm_head, second_names)
        prompt = count(torch.nn.Embedding(7, layers * 2 * width))
        head = count(torch.nn.Linear(width, width))
    shares = trained_shares(backbone, 7, lm_head=True)
    assert shares == pytest.approx([100 * part / total for part in (prompt, head, lm_head)])
    assert trained_shares(backbone, 7, lm_head=False) == (*shares[:2], 0.0)


def test_the_tenth_of_a_percent_of_dcpcse() -> None:
    """Each of its seven rows; prompts of the lengths that its recipes have."""
    from bench.method.plugins import discover
    from bench.method.recipe_files import read_recipes

    claims = [r for r in audit() if r.kind == "claim" and not r.task]
    told = {(r.cell.setting, r.cell.label): r.why for r in claims}
    assert len(told) == 7 and {r.cell.paper for r in claims} == {"dcpcse"}
    base = told["unsupervised", "DCPCSE-BERT-base"]
    assert "0.27 %" in base and "0.81 %" in base and "LM head" not in base
    assert "32 %" in told["unsupervised", "DCPCSE-RoBERTa-base"]
    plugin = discover(())["dcpcse"]
    known = [
        entry
        for entry in read_recipes(plugin.folder, plugin.name).recipes
        if "prompt_length" in entry.values
    ]
    first = [row.first for row in rows() if row.first.paper == "dcpcse"]
    backbones = {(one.setting, one.label): one.backbone for one in first}
    for claim in read_rows(TRAINED):
        place = (backbones[claim["setting"], claim["label"]], claim["setting"])
        of = [
            entry.values["prompt_length"].value
            for entry in known
            if (entry.backbone, entry.setting) == place
        ]
        assert int(claim["prompt_length"]) in of, claim
