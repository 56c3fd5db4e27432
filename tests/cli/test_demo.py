"""``bench demo``: what it says follows from its numbers, its page is the preview's, and the whole of it as a real process."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from unittest import mock
from urllib.parse import unquote

import numpy as np
import pytest
from commands import bench, error_line, tree
from factories import record
from forked import bench_process
from msgspec.structs import replace

from bench.cli.demo import NOTE, POOLED, recipe, show
from bench.publish.build import PublishOptions
from bench.publish.build import publish as build
from bench.runs import RunRecord, RunsFolder, Score

N = 400
GOLD = np.random.default_rng(0).integers(0, 6, N).astype(float)
STRAY = np.random.default_rng(1).normal(size=N)


def scored(store: RunsFolder, method: str, seed: int | None, noise: float) -> RunRecord:
    """A run whose cosines follow the ratings but for ``noise``; most of what they stray by is the same for all methods."""
    from scipy.stats import spearmanr

    own = np.random.default_rng([seed or 0, len(method)]).normal(size=N)
    found = {
        "prediction": GOLD + noise * (STRAY + 0.1 * own),
        "gold": GOLD,
        "subset": np.full(N, "c2c_isim"),
        "image": np.arange(N) // 2,
    }
    score = Score(
        suite="check",
        task="captions",
        protocol="check/2",
        metric="spearman",
        n=N,
        value=100 * float(spearmanr(found["prediction"], GOLD)[0]),
    )
    made = record(method, seed, setting="none" if seed is None else "unsupervised", scores=(score,))
    made = replace(made, provenance=replace(made.provenance, data={"captions": "0" * 64}))
    store.write_predictions(made.run_id, "captions", None, found, "check")
    store.write(made)
    return made


def runs(
    folder: Path, noise: float, seeds: tuple[int, ...] = (1, 2, 3)
) -> tuple[RunsFolder, list[RunRecord]]:
    """An untrained baseline with noise 3, and a trained method."""
    store = RunsFolder(folder / "runs")
    return store, [
        scored(store, "cls", None, 3.0),
        *(scored(store, "simcse", seed, noise) for seed in seeds),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "claim"),
    [
        (1.0, "simcse is the best of 2 rows on captions"),
        (9.0, "cls is the best of 2 rows on captions"),
        (3.0, "do not tell which of 2 rows is best"),
    ],
    ids=["it helps", "it harms", "it does nothing"],
)
def test_page_and_terminal_answer_with_one_sentence_that_follows_from_the_numbers(
    tmp_path: Path, noise: float, claim: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store, records = runs(tmp_path, noise)
    show(records, store, tmp_path, browse=False)
    printed = " ".join(capsys.readouterr().out.split())
    board = json.loads((tmp_path / "preview" / "tables.json").read_text())
    answer = board["answer"]
    page = " ".join((tmp_path / "preview" / "index.html").read_text(encoding="utf-8").split())
    assert answer in printed and answer.partition(":")[0] in page
    (row,) = [row for row in board["tables"][0]["table"]["rows"] if row["method"] == "simcse"]
    values = [record.scores[0].value for record in records]
    assert row["against"]["difference"] == pytest.approx(np.mean(values[1:]) - values[0], abs=0.011)
    assert board["tables"][0]["table"]["baseline"] == "cls"
    assert claim in answer


@pytest.mark.slow
def test_the_page_is_the_one_that_publish_makes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, records = runs(tmp_path, 1.0)
    show(records, store, tmp_path, browse=False)
    said = capsys.readouterr().out
    mine = {name: content for name, (_, content) in tree(tmp_path / "preview").items()}
    again = PublishOptions(
        runs=store.path,
        out=tmp_path / "again",
        preview=True,
        title="bench demo",
        note=NOTE,
        baseline="cls",
    )
    build(again)
    assert mine == {
        name: content for name, (_, content) in tree(tmp_path / "again" / "preview").items()
    }
    page = (tmp_path / "preview" / "index.html").read_text(encoding="utf-8")
    assert NOTE in " ".join(page.split()) and "captions" in page
    assert (
        f"page: {tmp_path / 'preview' / 'index.html'}" in said
        and "baseline: cls" in said
        and "▲ better" in said
    )
    board = json.loads((tmp_path / "preview" / "tables.json").read_text())
    (row,) = [row for row in board["tables"][0]["table"]["rows"] if row["method"] == "simcse"]
    assert f"+{row['against']['difference']:.2f} [" in said, "the terminal and the page agree"
    level = f"{100 * row['against']['ci_level']:.3g} % CI"
    assert f"less cls [{level}]" in said, "the level is that of the comparison"


def test_no_link_of_the_page_leads_nowhere(tmp_path: Path) -> None:
    store, records = runs(tmp_path, 1.0)
    show(records, store, tmp_path, browse=False)
    pages = [*(tmp_path / "preview").rglob("*.html"), *(tmp_path / "preview").rglob("README.md")]
    assert len(pages) == 1 + 2 + 4 + 1
    for page in pages:
        text = page.read_text(encoding="utf-8")
        links = (
            re.findall(r'(?:href|src)="([^"#:]+)(?:#[^"]*)?"', text)
            if page.suffix == ".html"
            else re.findall(r"\]\(([^)#:]+)\)", text)
        )
        assert [link for link in links if not (page.parent / unquote(link)).is_file()] == [], page


def test_an_older_demo_in_the_same_folder_is_no_hindrance(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from scored_run import finished_run

    store, records = runs(tmp_path, 1.0)
    finished_run(store)  # of the generated pairs: check/1
    show(records, store, tmp_path, browse=False)
    said = capsys.readouterr().out
    assert said.count("baseline: cls") == 1 and ", check/2 " in said and ", check/1 " not in said


@pytest.mark.parametrize("works", [True, False])
def test_the_browser_is_asked_only_when_that_is_asked_for(
    tmp_path: Path, works: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    store, records = runs(tmp_path, 1.0)
    with mock.patch("webbrowser.open", return_value=works) as opened:
        show(records, store, tmp_path, browse=False)
        assert opened.call_count == 0
        show(records, store, tmp_path, browse=True)
        opened.assert_called_once_with((tmp_path / "preview" / "index.html").resolve().as_uri())
    assert ("no browser could be started" in capsys.readouterr().err) != works


def test_as_many_steps_as_are_asked_for() -> None:
    from bench.data.sets import DataFolder
    from bench.run.plan import Request, make
    from bench.run.plugins import discover

    for steps, epochs in ((60, 1), (312, 1), (313, 2), (1000, 4)):
        (run,) = make(
            Request(("simcse",), suites=("check",), corpus="builtin", overrides=recipe(steps)),
            discover(),
            DataFolder(None),
        )
        assert run.corpus is not None and (run.recipe.max_steps, run.recipe.epochs) == (
            steps,
            epochs,
        )
        assert len(run.corpus) // run.recipe.batch_size * run.recipe.epochs >= steps


def test_mistakes(tmp_path: Path) -> None:
    assert "unknown method 'simsce'" in error_line(
        bench("demo", "--method", "simsce", "--out", tmp_path / "out")
    )
    assert "--seeds x" in error_line(bench("demo", "--seeds", "x", "--out", tmp_path / "out"))
    (tmp_path / "file").write_text("")
    assert bench("demo", "--out", tmp_path / "file").exit_code == 2
    assert bench("demo", "--steps", "0", "--out", tmp_path / "out").exit_code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


BLOCKED = """
import socket
def refuse(*_, **__):
    raise SystemExit("a connection was opened")
socket.socket.connect = refuse
socket.create_connection = refuse
"""


@pytest.mark.slow(seconds=20)
def test_the_whole_of_it_as_a_process(tmp_path: Path) -> None:
    """One seed of three steps; again; and what it says to do next, done. The first process starts cold, the others are forked."""
    environment = {**os.environ, "COLUMNS": "80", "BENCH_CACHE": str(tmp_path / "cache")}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return bench_process([*arguments], tmp_path, environment, BLOCKED)

    demo = ["demo", "--steps", "3", "--seeds", "1", "--out", "a demo"]
    cold = [sys.executable, "-c", f"{BLOCKED}\nfrom bench.cli import main; main()", *demo]
    done = subprocess.run(
        cold, cwd=tmp_path, capture_output=True, text=True, timeout=600, env=environment
    )
    assert done.returncode == 0, done.stderr
    records, damaged = RunsFolder(tmp_path / "a demo" / "runs").records()
    assert damaged == [] and sorted((one.method, one.seed) for one in records if one.seed) == [
        ("simcse", 1)
    ]
    values = {one.method: one.scores[0].value for one in records}
    untrained = {
        "first-last-avg": 61.13,
        "embedding-last-avg": 60.76,
        "last-avg": 59.95,
        "cls": 54.12,
    }
    assert {name: values[name] for name in untrained} == pytest.approx(untrained, abs=0.3)
    assert all(one.scores[0].protocol == "check/2" and one.scores[0].n == 4742 for one in records)
    assert f"{NOTE} {POOLED}" in " ".join(done.stdout.split())
    for line in (
        "baseline: first-last-avg",
        "simcse ",
        f"page: {tmp_path / 'a demo' / 'preview' / 'index.html'}",
    ):
        assert line in done.stdout
    before = tree(tmp_path / "a demo" / "runs")
    again = run(*demo)
    assert (
        again.returncode == 0
        and again.stdout == done.stdout
        and tree(tmp_path / "a demo" / "runs") == before
    )
    assert again.stderr.count("was done already, nothing repeated") == 5
    lines = done.stdout.partition("next:")[2].splitlines()
    commands = [shlex.split(line)[1:] for line in lines if line.strip().startswith("bench ")]
    (tmp_path / "sentences.txt").write_text("A dog runs.\nA cat sleeps.\n")
    assert [command[0] for command in commands] == [
        "runs",
        "encode",
        "run",
    ] and "(bench data list names them)" in done.stdout
    for command in (*commands[:2], ["data", "list"]):
        told = run(*command)
        assert told.returncode == 0, told.stderr
    assert np.load(tmp_path / "vectors.npy").shape == (2, 256)
    planned = run(*commands[2][:-1], str(tmp_path), "--dry-run")
    assert (
        "STS" in planned.stderr + planned.stdout and "no such option" not in planned.stderr.lower()
    )
