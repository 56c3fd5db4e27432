"""Plots show the numbers of the tables."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from bags import bag

import bench
from bench.base.errors import BenchError, UnknownName

pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Any:
    pyplot.switch_backend("agg")
    options: dict[str, Any] = {"suites": "check", "progress": False, "device": "cpu"}
    options["runs"] = tmp_path_factory.mktemp("runs")
    four = bench.evaluate(lambda some: bag(some, 4), name="bag 4", **options)
    more = bench.evaluate(lambda some: bag(some, 48), name="bag 48", **options)
    return [four, more]


@pytest.fixture(autouse=True)
def closed() -> Any:
    yield
    pyplot.close("all")


def points(axes: Any) -> dict[str, float]:
    """Label of a row -> the number at its point."""
    labels = [label.get_text() for label in axes.get_yticklabels()]
    dots = [line for line in axes.get_lines() if line.get_marker() == "o"]
    return {labels[int(dot.get_ydata()[0])]: dot.get_xdata()[0] for dot in dots}


def test_a_comparison_has_a_point_and_an_interval_for_each_row(results: Any) -> None:
    comparison = bench.compare_runs(results, baseline="bag 4")
    (axes,) = comparison.plot()
    assert points(axes) == {one.name: one["captions"].value for one in results}
    frame = comparison.frame().set_index("backbone")
    bars = [line for line in axes.get_lines() if line.get_marker() == "None"]
    ends = sorted(tuple(bar.get_xdata()) for bar in bars)
    assert ends == sorted(zip(frame["ci_low"], frame["ci_high"], strict=True))
    assert "95 %" in axes.get_xlabel()


def test_one_run_has_a_point_for_each_task(results: Any) -> None:
    (axes,) = results[0].plot()
    assert points(axes) == {"captions": results[0]["captions"].value}


def test_axes_of_the_user_are_drawn_on(results: Any) -> None:
    _, mine = pyplot.subplots()
    assert results[0].plot("captions", axes=mine) == [mine] and points(mine)
    with pytest.raises(UnknownName, match="unknown task 'caption'"):
        results[0].plot("caption")


def test_without_matplotlib_the_error_says_how_to_install_it(
    results: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(BenchError, match=r"plot\(\) needs matplotlib.*pip install"):
        results[0].plot()
