from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench.score.suites import registry


@pytest.fixture
def no_other_suites(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Hide the suites of other plugins, and forget those that the test has found."""
    monkeypatch.setattr(registry, "_from_files", {})
    yield
    registry._points.cache_clear()
    registry._installed.cache_clear()
