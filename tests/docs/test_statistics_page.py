"""What docs/statistics.md shows is what the published runs give, and its example runs and prints what it says."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from commands import bench

from bench.compare.statistics.table import CORRECTIONS
from bench.runs.predicted import METRICS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "statistics.md").read_text(encoding="utf-8")


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    exec(compile(code, "docs/statistics.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("Interval(mean=") and printed[1] == "better"


def test_every_metric_and_every_correction_is_described() -> None:
    assert [name for name in (*METRICS, *CORRECTIONS) if f"`{name}`" not in PAGE] == []


@pytest.fixture(scope="module")
def command() -> list[str]:
    (found,) = re.findall(r"`bench (compare --runs [^`]*)`", PAGE)
    words = shlex.split(found)
    place = words.index("--runs") + 1
    words[place] = str(ROOT / words[place])
    return words


def blocks() -> tuple[list[str], list[str]]:
    """The lines of the picture, and those that the command prints."""
    picture, printed = re.findall(r"```\n(.*?)```", PAGE, flags=re.DOTALL)[:2]
    return picture.splitlines(), printed.splitlines()


def test_the_command_prints_the_lines_of_the_example(command: list[str]) -> None:
    said = " ".join(bench(*command).stdout.split())
    _, lines = blocks()
    assert lines and [line for line in lines if line not in said] == []


def test_the_picture_is_drawn_to_scale(command: list[str]) -> None:
    """A point is ten characters wide; each end of an interval stands within one of them."""
    *rows, axis = blocks()[0]
    ticks = {int(found[0]): found.end() - 1 for found in re.finditer(r"[+-]?\d", axis)}
    assert {ticks[value + 1] - ticks[value] for value in range(-4, 2)} == {10}
    (table,) = [one for one in json.loads(bench(*command, "--format", "json").stdout)["tables"] if len(one["rows"]) > 1]
    found: dict[str, Any] = {row["method"]: row["cells"]["Avg."]["against"] for row in table["rows"]}
    for row in rows:
        name, verdict = row.split()[0], row.split()[-1]
        assert found[name]["verdict"] == verdict
        for mark, value in (("[", "low"), ("o", "difference"), ("]", "high")):
            drawn = row.index(mark, len(name)) - ticks[0]
            assert abs(drawn - 10 * found[name][value]) <= 1, (name, mark)
