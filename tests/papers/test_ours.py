"""Printed rows and the harness's runs: each row means a run that can be planned, and each run finds
its printed numbers.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.method.plugins import discover
from bench.method.recipe_defaults import TRAINING
from bench.method.recipes import variants_of
from bench.papers import RunTerms, find_printed, meaning, rows

REGISTRY = discover()


def test_every_printed_row_means_a_method_that_is_here_or_says_why_not() -> None:
    for row in rows():
        means = meaning(row.first.method, row.first.variant, row.first.setting, row.first.backbone)
        assert means.why_not or means.method, row.first
        if means.method:
            cls = REGISTRY[means.method].cls
            assert not means.variant or means.variant in variants_of(cls), row.first
            assert {*means.set, *means.holds} <= {*cls.defaults, *TRAINING}, row.first


@pytest.mark.parametrize(
    ("method", "variant", "want"),
    [
        ("simcse", "eh,m=0.15", ("simcse", "eh", {"eh_margin": "0.15"})),
        ("focal-infonce", "tau=0.03", ("focal-infonce", "", {"temperature": "0.03"})),
        ("focal-infonce", "on-dclr", ("dclr", "focal", {})),
        ("promcse", "layer-shared-prompt", ("promcse", "layer-shared", {})),
        ("first-last-avg", "", ("embedding-last-avg", "", {})),
        ("simcse", "eh,m=", ("simcse", "eh,m=", {})),  # no number: not that pattern
    ],
)
def test_printed_names_map_to_ours(
    method: str, variant: str, want: tuple[str, str, dict[str, str]]
) -> None:
    means = meaning(method, variant)
    assert (means.method, means.variant, dict(means.set)) == want


@pytest.mark.parametrize(
    ("variant", "mlm", "values"),
    [
        ("", True, [77.93, 77.93]),
        ("mlm", True, [77.93, 77.93]),
        ("no-mlm", False, [69.24]),
        ("", False, [69.24]),
    ],
)
def test_a_run_is_held_against_the_number_of_its_recipe_whatever_its_variant_is_called(
    variant: str, mlm: bool, values: list[float]
) -> None:
    """On RoBERTa DCPCSE has MLM. Runs that were made when the method had none there, and the
    variant had it, keep their numbers.
    """
    roberta = RunTerms("dcpcse", "unsupervised", "roberta-base", variant, {"mlm": mlm})
    assert [r.value for r in find_printed(roberta, "Avg.", suite="sts")] == values
    bert = RunTerms("dcpcse", "unsupervised", "bert-base-uncased", recipe={"mlm": False})
    assert [r.value for r in find_printed(bert, "Avg.", suite="sts")] == [78.49] * 2


def test_the_paper_of_the_method_comes_first_and_a_mean_before_a_best() -> None:
    conpvp = RunTerms("conpvp", "unsupervised", "roberta-large")
    found = find_printed(conpvp, "Avg.", suite="sts")
    assert [(r.table, r.value) for r in found] == [("4", 79.9), ("3", 80.18)]
    simcse = RunTerms("simcse", "unsupervised", "hub/bert-base-uncased")
    found = find_printed(simcse, "Avg.", suite="sts")
    *quoted, rerun = [r.value for r in found]
    assert len(quoted) >= 5 and {*quoted} == {76.25} and rerun == 75.68


def test_a_suite_a_protocol_and_a_recipe_decide() -> None:
    bert = RunTerms("simcse", "supervised", "bert-base-uncased")
    metrics = [r.metric for r in find_printed(bert, "Avg.", suite="transfer")]
    assert metrics == ["accuracy", "accuracy-dev", "accuracy"]
    glove = RunTerms("glove-avg", "none", "glove")
    for protocol, count in (("cxc-promcse/1", 0), ("cxc-parekh/1", 1)):
        assert len(find_printed(glove, "CxC-STS", suite="cxc", protocol=protocol)) == count
    for recipe, values in (({"eh_margin": 0.35}, [81.94, 81.48]), (None, [81.94])):
        swept = replace(bert, variant="eh", recipe=recipe)
        assert [r.value for r in find_printed(swept, "Avg.", suite="sts")] == values
    plain = RunTerms("whitening", "none", "bert-base-uncased")
    assert find_printed(plain, "Avg.", suite="sts")[0].value == 66.28  # not on sbert: 77.00
