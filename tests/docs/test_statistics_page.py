"""What docs/statistics.md shows is what the published runs give, and its example runs and prints what it says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from commands import bench

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "statistics.md").read_text(encoding="utf-8")


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    exec(compile(code, "docs/statistics.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("Interval(mean=") and printed[1] == "better"


@pytest.fixture(scope="module")
def command() -> list[str]:
    (found,) = re.findall(r"`bench (compare --runs [^`]*)`", PAGE)
    words = shlex.split(found)
    place = words.index("--runs") + 1
    words[place] = str(ROOT / words[place])
    return words


def test_the_command_prints_the_lines_of_the_example(command: list[str]) -> None:
    said = " ".join(bench(*command).stdout.split())
    (printed,) = re.findall(r"```\n(focal-infonce.*?)```", PAGE, flags=re.DOTALL)
    assert [line for line in printed.splitlines() if line not in said] == []
