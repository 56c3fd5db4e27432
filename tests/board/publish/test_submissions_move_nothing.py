"""Whatever strangers submit, the publisher's rows, tables, figures and headline are the same, byte
for byte.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from commands import bench
from made_runs import made_run, made_runs

from bench.board.board import Board, build_board
from bench.board.figures import board_figures
from bench.board.pages.board import render_board
from bench.board.publish.readme import version_readme
from bench.board.publish.version_files import board_json, table_files
from bench.compare.senders import SENDER_FILE, published_senders, read_sender
from bench.records import RunRecord, RunsFolder
from bench.records.run import Run

LATER = "2027-01-01T00:00:00+00:00"


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[RunRecord]]:
    """Two settings, untrained rows, a suite of several columns, one ablation."""
    folder = tmp_path_factory.mktemp("own")
    suites = ("sts", "geometry")
    records = [
        made_run(folder, "first-last-avg", None, noise=1.1),
        *made_runs(folder, suites=suites),
        made_run(folder, "promcse", 1, noise=0.5, recipe={"temperature": 0.1}),
        *made_runs(folder, {"simcse": 0.6}, setting="supervised"),
    ]
    return folder, records


@pytest.fixture(scope="module")
def junk(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[tuple[RunRecord, str]]]:
    """Make forty runs of three senders, more than the own runs.

    They have names of own rows, later dates, seeds far apart, and other values, tasks, suites,
    backbones, budgets and libraries.
    """
    folder = tmp_path_factory.mktemp("junk")
    made: list[tuple[RunRecord, str]] = []

    def send(sender: str, *args: Any, **more: Any) -> None:
        made.append((made_run(folder, *args, created=LATER, **more), sender))

    for seed in range(51, 57):
        send("Mallory", "simcse", seed, noise=0.1 * (seed - 50) ** 2)
        send("Mallory", "promcse", seed, noise=3.0, recipe={"temperature": 0.9, "budget": "9steps"})
        send("Mallory", "new", seed, noise=0.01, provenance={"packages": {"torch": "0.1"}})
    for seed in (61, 62, 63):
        send("Eve", "promptbert", seed, noise=0.02, suites=("sts", "clustering", "geometry"))
        send("Eve", "simcse", seed, noise=5.0, setting="supervised")
        send("Eve", "other", seed, noise=0.5, backbone="bert-base-uncased")
        send("Eve", "more", seed, noise=0.5, backbone="bert-base-uncased")
    send("Eve", "last-avg", None, noise=0.02)
    for seed in range(71, 80):
        send("Ada", "promptbert", seed, noise=0.44, recipe={"learning_rate": 1e-4})
    assert len(made) == 40
    return folder, made


def made_board(
    own: tuple[Path, list[RunRecord]], junk: tuple[Path, list[tuple[RunRecord, str]]], count: int
) -> Board:
    mine = [Run(record, RunsFolder(own[0]).folder(record.run_id)) for record in own[1]]
    sent = junk[1][:count]
    theirs = [Run(record, RunsFolder(junk[0]).folder(record.run_id)) for record, _ in sent]
    senders = {record.run_id: sender for record, sender in sent}
    return build_board([*mine, *theirs], version="v1", title="T", senders=senders)


@pytest.fixture(scope="module")
def beside(
    own: tuple[Path, list[RunRecord]], junk: tuple[Path, list[tuple[RunRecord, str]]]
) -> Board:
    return made_board(own, junk, 40)


def sections(page: str) -> list[str]:
    """The publisher's tables of a page, with their legends and notes, and the headline."""
    found = re.findall(r'<section class="scores".*?</section>', page, flags=re.DOTALL)
    (headline,) = re.findall(r'<p class="answer">.*?</p>', page, flags=re.DOTALL)
    return [headline, *(one for one in found if "submitted by" not in one)]


@pytest.mark.nightly
def test_the_publishers_part_of_a_board_is_the_same(
    own: tuple[Path, list[RunRecord]],
    junk: tuple[Path, list[tuple[RunRecord, str]]],
    beside: Board,
) -> None:
    """Daily, tests/promises asks it of a version with ten runs."""
    without = made_board(own, junk, 0)
    assert beside.answer == without.answer and "submitted" not in without.answer
    before, now = (json.loads(board_json(one)) for one in (without, beside))
    ours = [one for one in now["tables"] if "submitted_by" not in one["table"]]
    assert json.dumps(ours) == json.dumps(before["tables"])
    assert len(now["tables"]) > len(ours), "what was submitted is shown, too"
    assert now["tables"][: len(ours)] == ours, "below the publisher's"
    files = table_files(without)
    assert {name: table_files(beside)[name] for name in files} == files
    drawn = [
        [(one.name, one.caption, one.csv) for one in board_figures(each)]
        for each in (without, beside)
    ]
    assert drawn[0] == drawn[1]
    assert sections(render_board(beside)) == sections(render_board(without))
    parts = [version_readme(one).split("\n### ") for one in (without, beside)]
    kept = [one for one in parts[1] if not one.startswith("submitted by")]
    assert kept[1:-1] == parts[0][1:-1], "the first part counts all runs; the last one lists them"
    assert {run: beside.page_of[run] for run in without.page_of} == without.page_of


def rows(tables: Sequence[dict[str, Any]], sender: str) -> dict[str, dict[str, Any]]:
    found = {}
    for one in tables:
        table = one["table"]
        if table.get("submitted_by") == sender:
            for row in table["rows"]:
                key = f"{table['suite']} {row['method']} {row['setting']} {row['backbone']}"
                found[key] = row
    return found


@pytest.mark.nightly
def test_a_senders_table_is_judged_among_its_own_rows(
    own: tuple[Path, list[RunRecord]],
    junk: tuple[Path, list[tuple[RunRecord, str]]],
    beside: Board,
) -> None:
    tables = json.loads(board_json(beside))["tables"]
    mallory = rows(tables, "Mallory")
    row = mallory["sts new unsupervised builtin"]
    assert row["against"]["verdict"] == "better" and row["may_be_best"]
    assert row["differs"] == {"submitted by": "Mallory"}
    (table,) = (one["table"] for one in tables if one["table"].get("submitted_by") == "Ada")
    assert table["baseline"] is None and table["tested"] is None, "one row"
    for sender in ("Mallory", "Eve", "Ada"):
        sent = [one for one in junk[1] if one[1] == sender]
        alone = json.loads(board_json(made_board(own, (junk[0], sent), 40)))["tables"]
        assert rows(alone, sender) == rows(tables, sender), "no sender moves another"


def test_a_submitted_row_is_no_baseline_of_ours(tmp_path: Path) -> None:
    """With no row of that name of the publisher's own there is none, whatever is sent."""
    made_runs(tmp_path / "own", {"promcse": 0.5, "ct": 0.6})
    for record in made_runs(tmp_path / "sent", {"simcse": 0.1, "ct": 0.6}):
        (RunsFolder(tmp_path / "sent").folder(record.run_id) / SENDER_FILE).write_text("Eve\n")
    folders = [str(path) for name in ("own", "sent") for path in (tmp_path / name).iterdir()]
    done = bench("compare", *folders, "--format", "json")
    first, second = json.loads(done.stdout)["tables"]
    assert first["baseline"] is None and {row["method"] for row in first["rows"]} == {
        "promcse",
        "ct",
    }
    assert (second["submitted_by"], second["baseline"]) == ("Eve", "simcse")
    refused = bench("compare", *folders, "--baseline", "simcse")
    assert refused.exit_code == 2 and "unknown baseline" in refused.stderr


@pytest.mark.slow
def test_compare_knows_who_submitted_a_run_of_a_version(tmp_path: Path) -> None:
    """The runs of a published version, one submitted by somebody else: in the command and in
    Python.
    """
    import bench as library

    own = made_runs(tmp_path / "v1" / "runs", {"simcse": 0.5, "promcse": 0.6})
    alone = bench("compare", "--runs", tmp_path / "v1" / "runs", "--format", "json").stdout
    text = bench("compare", "--runs", tmp_path / "v1" / "runs").stdout
    sent = made_runs(
        tmp_path / "v1" / "runs",
        {"simcse": 4.0},
        created=LATER,
        seeds=(1, 2, 3),
        recipe={"temperature": 0.9},
    )
    runs = [
        {"run_id": one.run_id, "submitted_by": "Eve" if one in sent else None}
        for one in (*own, *sent)
    ]
    board = {"schema": "bench.board/3", "runs": runs}
    (tmp_path / "v1" / "tables.json").write_text(json.dumps(board))
    beside = bench("compare", "--runs", tmp_path / "v1" / "runs", "--format", "json").stdout
    ours = [one for one in json.loads(beside)["tables"] if "submitted_by" not in one]
    assert ours == json.loads(alone)["tables"]
    shown = bench("compare", "--runs", tmp_path / "v1" / "runs").stdout
    own_table, _, _ = text.partition("All tables:")
    assert shown.startswith(own_table.rstrip())
    names = [one.run_id for one in (*own, *sent)]
    made = library.compare_runs(names, runs=tmp_path / "v1" / "runs")
    assert [table.sender for table in made.tables] == ["", "Eve"]
    (tmp_path / "v1" / "tables.json").write_text('{"schema":"bench.board/3","runs":3}')
    damaged = bench("compare", "--runs", tmp_path / "v1" / "runs")
    assert damaged.exit_code == 2 and "tables.json cannot be read" in damaged.stderr


@pytest.mark.parametrize(
    ("content", "name"),
    [(b"Ada\n", "Ada"), (b"\xff\xfe", "somebody")],
)
def test_the_sender_of_a_folder(tmp_path: Path, content: bytes, name: str) -> None:
    assert read_sender(tmp_path) is None
    (tmp_path / SENDER_FILE).write_bytes(content)
    assert read_sender(tmp_path) == name


def test_a_file_of_that_name_that_is_none_of_ours(tmp_path: Path) -> None:
    assert published_senders(tmp_path) == {}
    for text in ("no JSON", "[1]", '{"schema": 3}', '{"schema": "mine", "runs": 5}', "[" * 100_000):
        (tmp_path / "tables.json").write_text(text)
        assert published_senders(tmp_path) == {}
