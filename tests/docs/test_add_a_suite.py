"""docs/add-a-suite.md does what it says: its data, its manifest, its suite and its test, as a reader would put them in place."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
import types
from pathlib import Path
from typing import Any

import pytest
from commands import bench, error_line, the_run
from make_manifest import measure

from bench.data.sets import manifest
from bench.runs import RunsFolder
from bench.score import suites
from bench.score.suites.from_predictions import rescore

PAGE = Path(__file__).resolve().parents[2] / "docs" / "add-a-suite.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), flags=re.M | re.S)


@pytest.fixture
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data of somebody who followed the page, with manifest and suite known to the harness."""
    (table,), (described,), (code, line, _) = blocks("tsv"), blocks("json"), blocks("python")
    (tmp_path / "data" / "odd").mkdir(parents=True)
    (tmp_path / "data" / "odd" / "odd.tsv").write_text(table, encoding="utf-8")
    known = dict(manifest.data_sets()) | {one.name: one for one in manifest.parse_manifest(json.loads(described), "odd.json")}
    monkeypatch.setattr(manifest, "data_sets", lambda: known)
    (tmp_path / "odd_suite.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert line.strip() == '"odd": "bench.score.suites.odd",'
    monkeypatch.setitem(suites._MODULES, "odd", "odd_suite")
    return tmp_path / "data"


def test_the_manifest_says_what_make_manifest_measures(data_folder: Path) -> None:
    (described,) = blocks("json")
    (file,) = json.loads(described)["sets"][0]["files"]
    assert measure({"any": data_folder / "odd"}, file) == file
    assert file["forms"]["any"]["sha256"] == hashlib.sha256((data_folder / "odd" / "odd.tsv").read_bytes()).hexdigest()


def test_the_pages_own_tests_pass(data_folder: Path) -> None:
    module = types.ModuleType("test_odd")
    exec(compile(blocks("python")[2], "test_odd.py", "exec"), module.__dict__)
    tests: list[Any] = [made for name, made in inspect.getmembers(module, inspect.isfunction) if name.startswith("test_")]
    assert len(tests) == 2
    for test in tests:
        test(data_folder)


def test_the_suite_is_run_listed_and_shown_from_the_command_line(data_folder: Path, tmp_path: Path, tiny: str) -> None:
    command = ("run", "--method", "cls", "--backbone", tiny, "--suite", "odd", "--data", data_folder, "--runs", tmp_path / "runs")
    done = bench(*command, "--plain")
    assert done.exit_code == 0, done.stderr
    folder = the_run(tmp_path / "runs")
    (score,) = RunsFolder(tmp_path / "runs").read(folder.name).scores
    assert (score.task, score.protocol, score.n) == ("Odd", "odd-cosine/1", 4) and score.value in (0, 25, 50, 75, 100)
    stored = RunsFolder(tmp_path / "runs").read_predictions(folder.name, "Odd", None)
    assert 100 * (stored["prediction"] == stored["gold"]).mean() == score.value
    again = rescore(score.key, stored)
    assert again is not None and (again.value, again.n, again.detail) == (score.value, score.n, score.detail)
    assert "nothing repeated" in (done := bench(*command, "--plain")).stdout + done.stderr
    assert "Which of four sentences" in " ".join(bench("suites").stdout.split())
    assert "odd-cosine/1" in bench("suites", "odd").stdout and "odd-cosine/1" in bench("show", folder, "--scores").stdout
    assert "odd" in suites.expand_suites(["all"])


def test_an_altered_file_is_refused_by_name(data_folder: Path, tmp_path: Path, tiny: str) -> None:
    file = data_folder / "odd" / "odd.tsv"
    file.write_text(file.read_text().replace("guitar", "violin"))
    done = bench(
        "run", "--method", "cls", "--backbone", tiny, "--suite", "odd", "--data", data_folder, "--runs", tmp_path / "runs"
    )
    assert "odd.tsv" in error_line(done)
