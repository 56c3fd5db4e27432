"""What docs/statistics.md shows is what the published runs give, and its example runs and prints what it says."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
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


def drawn(name: str, pattern: str) -> dict[str, list[tuple[float, float]]]:
    """Points of the elements of a picture that stand for numbers, by id, in the picture's units."""
    picture = (ROOT / "docs" / "pictures" / f"statistics-{name}.svg").read_text(encoding="utf-8")
    found = {}
    for title, body in re.findall(rf'<g id="({pattern})">(.*?)\n   </g>', picture, flags=re.DOTALL):
        used = re.search(r'<use .*? x="(.*?)" y="(.*?)"', body)
        text = " ".join(used.groups()) if used else re.findall(r' d="([^"]*)"', body)[0]
        numbers = [float(one) for one in re.findall(r"-?[\d.]+", text)]
        found[title] = list(zip(numbers[::2], numbers[1::2], strict=True))
    return found


def on_one_line(pairs: list[tuple[float, float]]) -> bool:
    """A picture is to scale: values and places follow one straight line, to a tenth of a unit."""
    values, places = zip(*pairs, strict=True)
    return len(pairs) > 3 and bool(
        np.abs(np.polyval(np.polyfit(values, places, 1), values) - places).max() < 0.1
    )


def test_the_intervals_are_drawn_to_scale(command: list[str]) -> None:
    """After other runs:  python tools/make_pictures.py"""
    (table,) = [
        one
        for one in json.loads(bench(*command, "--format", "json").stdout)["tables"]
        if len(one["rows"]) > 1
    ]
    rows = {row["method"]: of for row in table["rows"] if (of := row["cells"]["Avg."]["against"])}
    ends = drawn("differences", 'interval [^"]*')
    assert set(ends) == {f"interval {method}" for method in rows}
    pairs = [
        (of[end], ends[f"interval {method}"][k][0])
        for method, of in rows.items()
        for k, end in enumerate(("low", "high"))
    ]
    assert on_one_line(pairs) and not on_one_line(
        [(value + (k == 0), place) for k, (value, place) in enumerate(pairs)]
    )
    picture = (ROOT / "docs" / "pictures" / "statistics-differences.svg").read_text(
        encoding="utf-8"
    )
    for verdict in ("unknown", "worse", "better", "equivalent"):
        assert picture.count(f">{verdict}</text>") == sum(
            of["verdict"] == verdict for of in rows.values()
        )


def test_the_curve_of_false_verdicts_is_that_of_independent_questions() -> None:
    (points,) = drawn("families", "curve single").values()
    draws = (
        np.random.default_rng(1).uniform(size=(20_000, 28)) < 0.05
    )  # by simulation, not by the formula
    simulated = 100 * np.logical_or.accumulate(draws, axis=1).mean(0)
    places = np.array(points)[:, 1]
    fitted = np.polyval(np.polyfit(simulated, places, 1), simulated)
    assert len(points) == 28 and np.abs(fitted - places).max() < 0.02 * np.ptp(places)
    said = re.search(
        r"wrong somewhere in (\d+) of 100 tables in which nothing differs, all 28 pairs in (\d+)",
        PAGE,
    )
    assert said and [int(one) for one in said.groups()] == [
        pytest.approx(simulated[k - 1], abs=1.5) for k in (7, 28)
    ]
