"""Progress in a notebook: one output, drawn again with functions that every notebook has."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import pytest
from bags import bag

import bench
from bench.library.notebook import NotebookReporter, in_notebook


class Screen:
    """The outputs that a notebook shows: the drawings of each, in order."""

    def __init__(self) -> None:
        self.outputs: list[list[str]] = []

    def display(self, drawing: Any, display_id: bool = False) -> Any:
        assert display_id
        shown = [html_of(drawing)]
        self.outputs.append(shown)
        return types.SimpleNamespace(update=lambda again: shown.append(html_of(again)))


def html_of(drawing: Any) -> str:
    return str(drawing._repr_mimebundle_((), ())["text/html"])


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """Make this process look like the kernel of a notebook: a fake IPython, with a shell that has a
    kernel.
    """
    screen = Screen()
    library = types.ModuleType("IPython")
    shown = types.ModuleType("display")
    shell = types.SimpleNamespace(kernel=object())
    library.get_ipython = lambda: shell  # type: ignore[attr-defined]
    shown.display = screen.display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", library)
    monkeypatch.setitem(sys.modules, "IPython.display", shown)
    return screen


def test_a_terminal_of_ipython_is_no_notebook(
    screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert in_notebook()
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: object())
    assert not in_notebook()
    monkeypatch.delitem(sys.modules, "IPython")
    assert not in_notebook()


def test_an_evaluation_draws_one_output_and_prints_nothing(
    screen: Screen,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bench.library.notebook.REDRAW", 0.0)  # however fast this machine is
    bench.evaluate(bag, suites="check", name="<b>", device="cpu", runs=tmp_path)
    (drawings,) = screen.outputs
    assert any("━" in one and "encode" in one for one in drawings)
    assert "━" not in drawings[-1] and "done: check" in drawings[-1]
    assert capsys.readouterr() == ("", "")


def test_names_are_no_html_and_old_lines_go(screen: Screen) -> None:
    reporter = NotebookReporter()
    for number in range(50):
        reporter.done(f"<b> {number}")
    last = screen.outputs[0][-1]
    assert "<b>" not in last and "&lt;b&gt; 49" in last and "&lt;b&gt; 0<" not in last
    assert "... 10 lines before" in last
