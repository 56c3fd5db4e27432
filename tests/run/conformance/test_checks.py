"""Faults that `bench check` finds: an encoder that ignores its sentence, an impossible score."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from bench.method import Features, TorchMethod
from bench.method.plugins import Plugin
from bench.run.conformance.methods import check_method


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
