"""Adapters under every method that trains its encoder; no method knows of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from test_every_method import EVERY_CASE, TEXTS, training

from bench.backbones.adapters import KEY, AdapterSettings, add_adapters
from bench.method import building

TRAINED = [case for case in EVERY_CASE if "encoder." not in case.frozen]


@pytest.fixture
def adapted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every method get an encoder with adapters."""
    plain = building.read_backbone

    def read_backbone(*given: Any) -> Any:
        backbone = plain(*given)
        add_adapters(backbone.encoder, AdapterSettings(4, 8.0, 0.05), seed=1)
        return backbone

    monkeypatch.setattr(building, "read_backbone", read_backbone)


@pytest.mark.slow
@pytest.mark.matrix(every=12)
@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing:FutureWarning")
@pytest.mark.parametrize("case", TRAINED, ids=[case.name for case in TRAINED])
def test_adapters_train_and_alone_are_kept_of_the_encoder(
    case: Any, adapted: None, tiny: str, tmp_path: Path
) -> None:
    method = case.build(tiny, tmp_path)
    with training(method):
        torch.manual_seed(0)
        for _ in range(2):
            method(case.batch(method)).total.backward()
    for name, parameter in method.encoder.named_parameters():
        assert parameter.requires_grad == (KEY in name) == (parameter.grad is not None), name
    method.save(tmp_path / "checkpoint")
    names = load_file(tmp_path / "checkpoint" / "trained.safetensors")
    assert any(KEY in name for name in names)
    assert not [name for name in names if name.startswith("encoder.") and KEY not in name]
    again = case.build(tiny, tmp_path)
    again.load(tmp_path / "checkpoint")
    method.eval()
    assert (again.encode(TEXTS[0]) == method.encode(TEXTS[0])).all()
