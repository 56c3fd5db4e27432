"""Who submitted a run: names that can be read, and rows that nobody else can replace or join."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_runs import made_run

from bench.base.errors import BenchError
from bench.board.board import build_board
from bench.board.publish.gather import gather
from bench.compare.senders import SENDER_FILE, check_name
from bench.records import RunRecord
from bench.records.record import read_record

UNREADABLE = {
    "zero width": "Ada\u200bLovelace",
    "bidi": "Ada\u202e",
    "surrogate": "Ada\udc80",
    "blanks": "\u00a0\u3000",
    "empty": "",
    "long": "x" * 121,
    "folder": "/home/ada",
    "folder in a name": "Ada (~/runs/x)",
}


@pytest.mark.parametrize("name", UNREADABLE.values(), ids=UNREADABLE)
def test_a_name_that_cannot_be_read_is_refused(name: str) -> None:
    with pytest.raises(BenchError) as caught:
        check_name(name)
    assert "\n" not in caught.value.message and caught.value.message.isprintable()


@pytest.mark.parametrize(
    "name",
    [
        "Ada Lovelace, Example University",
        "Nguyễn Văn A",
        "李明",
    ],
)
def test_names_of_people_and_groups_are_names(name: str) -> None:
    assert check_name(f" {name}\n") == name


def submitted(folder: Path, seed: int, by: str, **changes: object) -> RunRecord:
    made = made_run(folder, "simcse", seed, suites=("check",), **changes)
    (folder / made.run_id / SENDER_FILE).write_text(f"{by}\n", encoding="utf-8")
    return made


def read_only(folder: Path) -> RunRecord:
    """Replace all checks: made runs have scores without predictions."""
    return read_record(folder / "run.json")


@pytest.mark.parametrize("name", ["Ada", "ADA"])
def test_an_imposter_neither_replaces_a_row_nor_joins_a_published_one(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.board.publish.gather.check_submission", read_only)
    made_run(tmp_path / "own", "ct", 1, suites=("check",))
    box = tmp_path / "box"
    ada = submitted(box, 1, "Ada", noise=0.1)
    junk = submitted(box, 2, name, noise=3.0, created="9999-01-01T00:00:00Z")
    found = gather(tmp_path / "own", box, published={ada.run_id: "Ada"})
    (line,) = found.refused
    assert line.startswith(f"{junk.run_id}: refused: the leaderboard has runs by {name} already")
    assert found.senders == {ada.run_id: "Ada"}
    made = build_board(found.runs, version="v1", title="x", senders=found.senders)
    assert not made.left_out
    assert [row.runs for shown, row in made.rows if shown.table.sender] == [(ada.run_id,)]


def test_runs_of_one_name_that_no_version_has_share_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.board.publish.gather.check_submission", read_only)
    made_run(tmp_path / "own", "ct", 1, suites=("check",))
    box = tmp_path / "box"
    ada = [submitted(box, seed, "Ada") for seed in (1, 2)]
    grace = submitted(box, 3, "Grace")
    found = gather(tmp_path / "own", box)
    made = build_board(found.runs, version="v1", title="x", senders=found.senders)
    sent = [(shown.table.sender, row.runs) for shown, row in made.rows if shown.table.sender]
    assert sent == [("Ada", tuple(one.run_id for one in ada)), ("Grace", (grace.run_id,))]
