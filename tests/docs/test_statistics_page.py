"""What docs/statistics.md shows is what the published runs give, and its example runs and prints what it says."""

from __future__ import annotations

import re
from pathlib import Path

import make_pictures
import numpy as np
import pytest

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


def test_the_seeds_are_drawn_to_scale_and_their_spread_is_said() -> None:
    found, points = make_pictures.seeds(), drawn("seeds", 'seed [^"]*')
    mean = {method: sum(values.values()) / len(values) for method, values in found.items()}
    values = {
        f"seed {method} {seed}": value - mean[method]
        for method, of in found.items()
        for seed, value in of.items()
    }
    assert set(values) == set(points) and len(points) == 15
    assert on_one_line([(value, points[name][0][0]) for name, value in values.items()])
    said = re.search(r"seeds of simcse lie ([\d.]+) points apart, those of dcpcse ([\d.]+)\.", PAGE)
    assert said and [float(one) for one in said.groups()] == [
        pytest.approx(max(found[method].values()) - min(found[method].values()), abs=0.005)
        for method in ("simcse", "dcpcse")
    ]


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
