from __future__ import annotations

from typing import Any

import pytest
import torch


@pytest.fixture(params=["tiny", pytest.param("tiny_roberta", marks=pytest.mark.nightly)])
def backbone(request: pytest.FixtureRequest) -> str:
    """Return the folder of a tiny random BERT, then of a tiny random RoBERTa."""
    return str(request.getfixturevalue(request.param))


@pytest.fixture
def z(reference_c: dict[str, Any]) -> list[torch.Tensor]:
    """Return three views of the reference sentences, as leaves of a graph."""
    rows = (reference_c["inputs"][f"z{i}"] for i in (1, 2, 3))
    return [torch.tensor(one, dtype=torch.float64, requires_grad=True) for one in rows]


@pytest.fixture
def t(reference_c: dict[str, Any]) -> list[torch.Tensor]:
    """Return the vectors of a teacher for the three views."""
    return [torch.tensor(reference_c["inputs"][f"t{i}"], dtype=torch.float64) for i in (1, 2, 3)]
