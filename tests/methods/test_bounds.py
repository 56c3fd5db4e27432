"""Values with which a method cannot work are refused while a run is planned."""

from __future__ import annotations

import pytest

from bench.method import BenchError
from bench.method.plugins import discover
from bench.method.recipes import merge_recipe

REGISTRY = discover()
FIRST = {
    "dclr": {"teacher": "one"},
    "guided-simcse": {"guide": "one"},
    "infersent": {"vectors": __file__},
    "rankcse": {"teacher_1": "one"},
}
"""What a method's check asks for before it looks at numbers."""
WRONG = {
    "angle-llama": ["angle_scale=0"],
    "contrastive-prompting": ["layer=3"],
    "ct": ["schedule=constant", "warmup_steps=5", "warmup_ratio=0.1", "schedule_steps=9"],
    "esimcse": ["queue_size=-1", "repetition=-0.5", "momentum=2"],
    "infersent": ["schedule=constant", "warmup_steps=5", "dropout=0.1"],
    "is-bert": ["channels=0"],
    "mirror-bert": ["span=0"],
    "rankcse": ["weight_1=2", "listmle_eps=-1"],
    "sg-opt": ["head_width=0", "beta2=1"],
    "simcse": ["schedule=cosine"],
    "unsee": ["predictor_blocks=-1"],
    "whitening": ["components=some", "components=2.5", "components=0", "dropout=0.1"],
}
CASES = [(name, value) for name, values in WRONG.items() for value in values]
CASES += [
    (name, "temperature=0") for name in REGISTRY if "temperature" in REGISTRY[name].cls.defaults
]


def test_every_method_with_a_temperature_is_asked() -> None:
    assert len(CASES) > 35


@pytest.mark.parametrize(("name", "wrong"), CASES)
def test_a_value_that_cannot_work_is_named(name: str, wrong: str) -> None:
    cls = REGISTRY[name].cls
    cls.check(merge_recipe(cls, None, "", FIRST.get(name, {}), trained=True), None)
    key, _, text = wrong.partition("=")
    with pytest.raises(BenchError, match=f"{key}\\b") as refused:
        given = {**FIRST.get(name, {}), key: text}
        cls.check(merge_recipe(cls, None, "", given, trained=True), None)
    assert refused.value.hint
