"""``import bench``: every verb from Python and from notebooks."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made import rated_pairs
from scipy.stats import spearmanr
from started import bench, python, record

# of equal sentences every cosine is 1, and rounding would rank them
PAIRS = [one for one in rated_pairs(80) if one[0] != one[1]]

FILE = '''"""A method in a file: SimCSE on views that are moved by one."""
from bench.methods.simcse import SimCSE

class Shifted(SimCSE):
    name = "shifted"
    settings = ("unsupervised",)
    variants = {}

    def loss(self, views, batch):
        return super().loss([view + 1 for view in views], batch)
'''

SCRIPT = """
import json, sys
from pathlib import Path
import numpy as np
from sentence_transformers import SentenceTransformer

import bench
from bench.method import Loss
from bench.methods.simcse import SimCSE

class Closer(SimCSE):
    name = "closer"
    settings = ("unsupervised",)
    variants = {}

    def loss(self, views, batch):
        first, second = views
        return Loss(((first - second) ** 2).mean())

inputs = Path(sys.argv[1])
said = {}
asked = dict(suites="pairs.tsv", runs="runs", progress=False)
texts = (inputs / "corpus.txt").read_text().splitlines()[:64]
options = dict(
    backbone=inputs / "tiny", corpus=texts, seeds=[1, 2, 3], batch_size=8,
    budget="3steps", select_on="last", learning_rate=0.01, **asked,
)
results = bench.train([Closer, "shifted.py", "simcse"], **options)
said["trained"] = [[one.record.method, one.record.seed, one.folder.name] for one in results]
said["again"] = [one.folder.name for one in bench.train([Closer, "shifted.py", "simcse"], **options)]

model = SentenceTransformer(str(inputs / "tiny"), device="cpu")
letters = "abcdefghijklmnopqrstuvwxyz"
def counted(some):
    return np.array([[one.count(letter) for letter in letters] for one in some], float)
scored = {
    "object": bench.evaluate(model, name="object", **asked),
    "function": bench.evaluate(counted, name="function", **asked),
    "folder": bench.evaluate(str(inputs / "tiny"), name="folder", pooling="mean", **asked),
}
said["scored"] = {name: one["pairs"].value for name, one in scored.items()}
lines = [line.split("\\t") for line in Path("pairs.tsv").read_text().splitlines()[1:]]
np.savez("vectors.npz", first=model.encode([one[0] for one in lines]),
         second=model.encode([one[1] for one in lines]))
said["value of a result"] = [one["pairs"].value for one in results]

comparison = bench.compare_runs(results, baseline="simcse")
frame = comparison.frame()
said["comparison"] = [type(frame).__module__, list(frame.columns), json.loads(frame.to_json(orient="records"))]
(axes,) = comparison.plot()
said["plot"] = [type(axes).__mro__[-2].__module__, [one.get_text() for one in axes.get_yticklabels()]]
axes.figure.savefig("comparison.png")
runs = bench.frame("runs")
said["runs"] = [type(runs).__module__, list(runs.columns), json.loads(runs.to_json(orient="records"))]

said["exported"] = str(bench.export_run(results[0], "my-model", progress=False))
first = results[0]
own, theirs = bench.load_run(first).encode(texts), SentenceTransformer("my-model").encode(texts)
said["largest difference"] = float(np.abs(own - theirs).max())

try:
    bench.train("cls", inputs / "tiny", **asked, max_steps=8)
except bench.BenchError as error:
    said["mistake"] = str(error)

published = bench.publish_runs("boards", note="")
said["published"] = str(published.folder)
said["verified"] = bench.verify_runs(published.folder).agree
print(json.dumps(said))
"""
AS_A_FILE = "import runpy; runpy.run_path('session.py', run_name='__main__')"


@pytest.fixture(scope="module")
def session(made_once: Callable[..., Path], inputs: Path) -> Path:
    """Return the folder in which a script has used every function; said.json has its answers."""

    def write(folder: Path) -> None:
        (folder / "shifted.py").write_text(FILE, encoding="utf-8")
        lines = ["sentence1\tsentence2\tscore", *(f"{a}\t{b}\t{score}" for a, b, score in PAIRS)]
        (folder / "pairs.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        (folder / "session.py").write_text(SCRIPT, encoding="utf-8")
        done = python(AS_A_FILE, inputs, cwd=folder, env={"MPLBACKEND": "agg"}, seconds=1200)
        (folder / "said.json").write_text(done.out.splitlines()[-1], encoding="utf-8")

    return made_once("python", write)


@pytest.fixture(scope="module")
def said(session: Path) -> dict[str, Any]:
    return dict(json.loads((session / "said.json").read_text(encoding="utf-8")))


@pytest.mark.promise(5, 28)
def test_a_class_a_file_and_a_name_are_trained(session: Path, said: dict[str, Any]) -> None:
    wanted = [[name, seed] for name in ("closer", "shifted", "simcse") for seed in (1, 2, 3)]
    assert sorted(one[:2] for one in said["trained"]) == wanted
    for method, seed, folder in said["trained"]:
        found = record(session / "runs" / folder)
        assert (found["method"], found["seed"], found["status"]) == (method, seed, "finished")
        assert found["training"]["steps"] == 3
        rate = found["recipe"]["learning_rate"]
        assert rate["value"] == 0.01 and rate["source"]
    assert len({one[2] for one in said["trained"]}) == 9
    # the scores of three losses differ
    assert len({round(value, 6) for value in said["value of a result"]}) > 3


@pytest.mark.promise(10, 28)
def test_the_same_call_trains_nothing_again(said: dict[str, Any]) -> None:
    assert sorted(said["again"]) == sorted(folder for _, _, folder in said["trained"])


@pytest.mark.promise(15, 28)
def test_an_object_a_function_and_a_folder_are_scored_as_they_encode(
    session: Path, said: dict[str, Any]
) -> None:
    """Object and folder are one model of sentence-transformers; the function counts letters."""
    first, second, gold = zip(*PAIRS, strict=True)

    def counted(some: tuple[str, ...]) -> np.ndarray:
        letters = "abcdefghijklmnopqrstuvwxyz"
        return np.array([[one.count(letter) for letter in letters] for one in some], float)

    def score(a: np.ndarray, b: np.ndarray) -> float:
        a, b = a.astype(np.float64), b.astype(np.float64)
        cosines = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
        return float(100 * spearmanr(cosines, gold).statistic)

    found = said["scored"]
    with np.load(session / "vectors.npz") as vectors:
        own = score(vectors["first"], vectors["second"])
    assert found["object"] == pytest.approx(own, abs=0.01)
    assert found["folder"] == pytest.approx(found["object"], abs=0.01)
    assert found["function"] == pytest.approx(score(counted(first), counted(second)), abs=0.3)
    assert abs(found["function"] - found["object"]) > 1


@pytest.mark.promise(17, 28)
def test_a_comparison_is_a_frame_with_a_row_for_each_cell(said: dict[str, Any]) -> None:
    module, columns, rows = said["comparison"]
    assert module.startswith("pandas")
    wanted = {"method", "task", "mean", "n", "ci_low", "ci_high", "difference", "verdict"}
    assert wanted <= set(columns)
    values = dict[str, list[float]]()
    trained = zip(said["trained"], said["value of a result"], strict=True)
    for (method, _, _), value in trained:
        values.setdefault(method, []).append(value)
    means = {row["method"]: row["mean"] for row in rows}
    assert len(rows) == 3 and {row["task"] for row in rows} == {"pairs"}
    for method, three in values.items():
        assert means[method] == pytest.approx(np.mean(three), abs=0.006)
    others = [row for row in rows if row["method"] != "simcse"]
    for row in others:
        assert row["difference"] == pytest.approx(row["mean"] - means["simcse"], abs=0.011)
        assert row["verdict"] in ("better", "worse", "inconclusive")


@pytest.mark.promise(28)
def test_runs_are_a_frame_with_a_row_for_each_score(session: Path, said: dict[str, Any]) -> None:
    module, columns, rows = said["runs"]
    assert module.startswith("pandas")
    assert {"method", "backbone", "seed", "suite", "task", "value"} <= set(columns)
    files = (session / "runs").glob("*/run.json")
    records = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    found = sorted((row["method"], round(row["value"], 6)) for row in rows)
    scores = [(one["method"], score["value"]) for one in records for score in one["scores"]]
    assert found == sorted((method, round(value, 6)) for method, value in scores)
    assert len(found) == 12  # nine that were trained, three that were evaluated


@pytest.mark.promise(28)
def test_plots_are_axes_of_matplotlib(session: Path, said: dict[str, Any]) -> None:
    module, labels = said["plot"]
    assert module.startswith("matplotlib")
    for method in ("closer", "shifted", "simcse"):
        assert any(method in label.lower() for label in labels), labels
    assert (session / "comparison.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.promise(22, 23, 27, 28)
def test_what_was_trained_is_exported_published_and_verified(
    session: Path, said: dict[str, Any]
) -> None:
    assert said["exported"].endswith("my-model") and said["largest difference"] <= 1e-5
    assert (session / "my-model" / "modules.json").is_file()
    board = session / said["published"]
    assert (board / "index.html").is_file() and said["verified"] is True


@pytest.mark.promise(28, 29)
def test_a_hint_does_not_repeat_the_mistake(said: dict[str, Any]) -> None:
    """Nothing of ``cls`` is trained, so it has no steps."""
    line = said["mistake"]
    assert "max_steps" in line.partition("(try: ")[0]
    assert "max_steps" not in line.partition("(try: ")[2], "the hint is what was wrong"


CELLS = (
    """import bench
from datasets import Dataset

texts = [f"a {who} {does}" for who in ("man", "dog", "girl") for does in ("plays", "runs")]
dataset = Dataset.from_dict({"text": texts})""",
    """results = bench.train(
    ["cls", "simcse"], backbone=r"TINY", corpus=dataset, suites=r"PAIRS", batch_size=3,
    budget="2steps", select_on="last",
)
results""",
    "comparison = bench.compare_runs(results, baseline='cls')\ncomparison.plot();",
    "comparison",
)


@pytest.mark.nightly
@pytest.mark.promise(28)
def test_a_notebook_trains_compares_and_shows_tables_and_plots(
    inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import nbclient
    import nbformat

    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    names = {"TINY": str(inputs / "tiny"), "PAIRS": str(inputs / "pairs.tsv")}
    cells = [cell.replace("TINY", names["TINY"]).replace("PAIRS", names["PAIRS"]) for cell in CELLS]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(one) for one in cells])
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=600, resources=resources).execute()
    _, trained, plotted, compared = (cell.outputs for cell in notebook.cells)
    for outputs in (trained, compared):
        shown = outputs[-1].data["text/html"]
        assert "<table" in shown and "simcse" in shown.lower()
    pictures = [one.data["image/png"] for one in plotted if "image/png" in one.get("data", {})]
    assert len(pictures) == 1 and base64.b64decode(pictures[0]).startswith(b"\x89PNG")
    assert not [
        one for cell in notebook.cells for one in cell.outputs if one.output_type == "error"
    ]
    assert len([*(tmp_path / "runs").glob("*/run.json")]) == 2


@pytest.mark.promise(28)
def test_python_and_the_command_read_each_others_runs(session: Path, tmp_path: Path) -> None:
    words = ("compare", "--runs", session / "runs", "--baseline", "simcse", "--json")
    tables = bench(*words, cwd=tmp_path).json["tables"]
    assert {row["method"] for one in tables for row in one["rows"]} >= {"closer", "simcse"}
