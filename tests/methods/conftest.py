from __future__ import annotations

import pytest


@pytest.fixture(params=["tiny", "tiny_roberta"])
def backbone(request: pytest.FixtureRequest) -> str:
    """Return the folder of a tiny random BERT, then of a tiny random RoBERTa."""
    return str(request.getfixturevalue(request.param))
