"""Faults that `bench check` finds: an encoder that ignores its sentence, an impossible score."""

from __future__ import annotations

from types import SimpleNamespace
from typing import ClassVar

import pytest
from torch import Tensor

from bench.method import Features, TorchMethod
from bench.method.plugins import Plugin
from bench.run.conformance import Failed
from bench.run.conformance.methods import check_method
from bench.run.conformance.suites import record_takes_it
from bench.score.metrics.metric import metric_named


class Constant(TorchMethod):
    name = "constant"
    settings: ClassVar[tuple[str, ...]] = ("none",)

    def embed(self, features: Features) -> Tensor:
        return self.hidden(features)[:, 0] * 0 + 1


def test_constant_vectors_fail_with_one_finding() -> None:
    plugin = Plugin("constant", Constant, "", "", "")
    findings = [found for found in check_method(plugin) if not found.passed]
    assert [(one.kind, one.why) for one in findings] == [
        (
            "encode gives (n, dim) float32",
            "different sentences have the same vector: the encoder ignores its sentence",
        )
    ]


@pytest.mark.parametrize(
    ("metric", "value", "passes"),
    [
        ("accuracy", 100.0, True),
        ("clustering-accuracy", -1.0, False),
        ("spearman", 101.0, False),
        ("perplexity", 10_000.0, True),
    ],
)
def test_a_score_beyond_its_metrics_range_fails(metric: str, value: float, passes: bool) -> None:
    names = {"suite": "s", "protocol": "s/1", "metric": metric}
    result = SimpleNamespace(task="T", value=value, n=3, detail={}, **names)
    task = SimpleNamespace(name="T", **{**names, "metric": metric_named(metric)})
    case = SimpleNamespace(task=task, score=lambda: result)
    if passes:
        assert record_takes_it(case)  # type: ignore[arg-type]
        return
    with pytest.raises(Failed, match=f"{metric} {value:g}: expected -?[0-9]+ to 100"):
        record_takes_it(case)  # type: ignore[arg-type]
