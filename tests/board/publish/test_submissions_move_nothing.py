"""Whatever strangers submit, ``bench compare`` shows the publisher's rows as before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import bench
from made_runs import made_runs

from bench.compare.senders import SENDER_FILE, published_senders, read_sender
from bench.records import RunsFolder

LATER = "2027-01-01T00:00:00+00:00"


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
