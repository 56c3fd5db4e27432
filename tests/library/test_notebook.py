"""Progress in a notebook: one output, drawn again with functions that every notebook has."""

from __future__ import annotations

import base64
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


def test_a_failure_is_the_last_line(screen: Screen, tmp_path: Path) -> None:
    calls: list[int] = []

    def changes(some: list[str]) -> Any:
        calls.append(len(some))
        return bag(some, 48 if len(calls) < 6 else 47)  # the probe makes four calls

    with pytest.raises(bench.BenchError):
        bench.evaluate(changes, suites="check", device="cpu", runs=tmp_path)
    assert "failed: " in screen.outputs[0][-1] and "━" not in screen.outputs[0][-1]


CELLS = (
    """import bench
from datasets import Dataset

texts = [f"a {who} {does}" for who in ("man", "dog", "girl") for does in ("plays", "runs")]
dataset = Dataset.from_dict({"text": texts})""",
    """results = bench.train(
    ["cls", "simcse"],
    backbone=TINY,
    corpus=dataset,
    suites="pairs.tsv",
    batch_size=3,
    budget="2steps",
)
results""",
    "comparison = bench.compare_runs(results, baseline='cls')\ncomparison.plot();",
)


@pytest.mark.slow(seconds=12)
def test_a_notebook_trains_on_a_dataset_and_plots(
    tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real kernel shows one output of progress; a cell shows tables and plots."""
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("datasets")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    rows = ["a man runs\ta dog runs\t3", "a girl plays\ta man runs\t1", "a dog\tthe dog\t5"]
    (tmp_path / "pairs.tsv").write_text("sentence1\tsentence2\tscore\n" + "\n".join(rows) + "\n")
    cells = [nbformat.v4.new_code_cell(cell.replace("TINY", repr(tiny))) for cell in CELLS]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(
        notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    _, trained, plotted = (cell.outputs for cell in notebook.cells)
    assert [output.output_type for output in trained] == ["display_data", "execute_result"]
    assert "(2 of 2): done: own" in trained[0].data["text/html"]
    table = trained[1].data["text/html"]
    assert "<table>" in table and "SimCSE" in table
    assert "\nSimCSE " in trained[1].data["text/plain"], (
        "the text of a table is returned, not shown"
    )
    (picture,) = (output for output in plotted if output.output_type == "display_data")
    assert base64.b64decode(picture.data["image/png"]).startswith(b"\x89PNG")
