"""A version whose tables are judged again: nothing differs, whatever it holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from published import hostile_site, site  # noqa: F401 - fixtures

from bench.base.findings import AGREES
from bench.board.verify.tables import check_tables
from bench.compare.rule import EARLIER, RULE


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param("site", marks=pytest.mark.nightly), "hostile_site"])
def test_what_was_published_is_judged_the_same(name: str, request: pytest.FixtureRequest) -> None:
    """Settings, backbones and suites of all kinds, and runs with markup in every text."""
    version: Path = request.getfixturevalue(name)
    report = check_tables(version)
    assert [finding for finding in report.findings if finding.outcome != AGREES] == []
    assert report.count("tables") >= 10


def test_each_earlier_rule_has_the_commit_that_judges_by_it() -> None:
    """A version of such a rule is told where to go."""
    assert list(EARLIER) == list(range(1, RULE))
