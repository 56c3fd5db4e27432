from __future__ import annotations

import pytest

from bench.score.suites import registry


@pytest.fixture
def no_other_suites(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the suites of other plugins, and forget those that the test has found."""
    monkeypatch.setattr(registry, "_from_files", {})
