"""The example of docs/statistics.md runs and prints what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.compare.statistics.adjust import METHODS
from bench.runs.predicted import METRICS

PAGE = (Path(__file__).parents[2] / "docs" / "statistics.md").read_text(encoding="utf-8")


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    exec(compile(code, "docs/statistics.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("Interval(mean=") and printed[1] == "better"


def test_every_metric_and_every_correction_is_described() -> None:
    assert [name for name in (*METRICS, *METHODS) if f"`{name}`" not in PAGE] == []
