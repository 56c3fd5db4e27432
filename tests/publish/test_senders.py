"""Who submitted a run: names that can be seen, names that look alike, and rows that nobody else can
replace or join.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from factories import record
from made_runs import made_run
from msgspec.structs import replace

from bench.base.errors import BenchError
from bench.board.board import build_board
from bench.compare.sender_rows import row_labels
from bench.compare.senders import SENDER_FILE
from bench.compare.together import TOGETHER_FILE, write_together
from bench.publish.gather import gather
from bench.publish.senders import (
    check_name,
    look_alikes_last,
    refuse_look_alike,
)
from bench.records import RunRecord

UNSEEN = {
    "hangul filler": "\u3164",
    "half-width filler": "\uffa0",
    "braille blank": "\u2800",
    "jamo filler": "Ada\u115f",
    "combining only": "\u0301\u0302",
    "many marks": "Z\u0338\u0337\u0336da",
    "zero width": "Ada\u200bLovelace",
    "joiner": "Ada\u200d",
    "bidi": "Ada\u202e",
    "isolate": "\u2067Ada",
    "variation": "Ada\ufe0f",
    "grapheme joiner": "Ada\u034f",
    "tag": "Ada\U000e0041",
    "soft hyphen": "A\xadda",
    "surrogate": "Ada\udc80",
    "private": "\ue000",
    "blanks": "\u00a0\u3000",
    "signs": "...",
    "empty": "",
    "mixed scripts": "\u0410da Lovelace",
    "long": "x" * 121,
    "numbered": "Ada (2)",
    "hash": "Ada (0123abcd)",
    "folder": "/home/ada",
    "windows folder": "C:\\Users\\ada",
    "folder in a name": "Ada (~/runs/x)",
}
ALIKE = [
    "ada lovelace",
    "Ada  Lovelace.",
    "Ada Lоvеlасе",
    "Áda Lovelace",
    "Ａｄａ Ｌｏｖｅｌａｃｅ",
    "Ada Love1ace",
    "Ada LoveIace",
]


@pytest.mark.parametrize("name", UNSEEN.values(), ids=UNSEEN)
def test_a_name_that_cannot_be_seen_as_it_is_is_refused(name: str) -> None:
    with pytest.raises(BenchError) as caught:
        check_name(name)
    assert "\n" not in caught.value.message and caught.value.message.isprintable()


@pytest.mark.parametrize(
    "name",
    [
        "Ada Lovelace, Example University",
        "Ada (Example University)",
        "O'Brien & Co.",
        "Nguyễn Văn A",
        "Jürgen Müller",
        "Дмитрий Иванов",
        "李明",
        "मोहन",
        "α-lab",
        "Team 7",
    ],
)
def test_names_of_people_and_groups_are_names(name: str) -> None:
    assert check_name(f" {name}\n") == name


@pytest.mark.parametrize("name", ALIKE)
def test_a_name_that_looks_like_another_is_refused(name: str) -> None:
    with pytest.raises(BenchError, match="looks like 'Ada Lovelace'"):
        refuse_look_alike(name, ["Grace Hopper", "Ada Lovelace (2)"])


def test_the_very_same_name_and_other_names_are_no_look_alikes() -> None:
    for name in ("Ada Lovelace", "Adam Lovelace", "Grace"):
        refuse_look_alike(name, ["Ada Lovelace"])
    names = {"b": "Ada", "a": "Аdа"}
    assert look_alikes_last(names) == ["b", "a"]


def run(seed: int, fingerprint: str = "", code: str = "") -> RunRecord:
    made = record("simcse", seed)
    origin = replace(made.provenance, plugin=replace(made.provenance.plugin, sha256=code or "c"))
    return replace(made, fingerprint=fingerprint or made.fingerprint, provenance=origin)


def came(*records: RunRecord) -> dict[str, frozenset[str]]:
    """Say that one command made the runs."""
    names = frozenset(one.run_id for one in records)
    return dict.fromkeys(names, names)


def test_runs_that_would_replace_each_other_are_separate() -> None:
    first = run(1)
    other = run(2)
    second = run(1)
    second = replace(
        second,
        run_id="simcse-builtin-s1-0000000f",
        provenance=replace(second.provenance, created="9999-01-01T00:00:00Z"),
    )
    together = came(first, other)
    assert set(row_labels([(first, "Ada"), (other, "Ada")], [], together).values()) == {"Ada"}
    labels = row_labels([(first, "Ada"), (second, "Ada")], [], came(first, second))
    assert len(set(labels.values())) == 2 and "Ada" not in labels.values()
    swapped = row_labels([(second, "Ada"), (first, "Ada")], [], came(first, second))
    assert labels == swapped  # no order decides who has the plain name
    newer = run(3, code="d")  # other code of the method would replace the whole row
    labels = row_labels([(first, "Ada"), (newer, "Ada")], [], came(first, newer))
    assert len(set(labels.values())) == 2
    assert set(row_labels([(first, "Ada"), (second, "Grace")], []).values()) == {"Ada", "Grace"}


def test_runs_that_did_not_come_together_share_no_row() -> None:
    """Two people may write one name: their mean would be nobody's."""
    first = run(1)
    second = run(2)
    other = run(3)
    sent = [(one, "Ada") for one in (first, second, other)]
    labels = row_labels(sent, [], came(first, second))
    assert labels[first.run_id] == labels[second.run_id] != labels[other.run_id]
    assert all(re.fullmatch(r"Ada \([0-9a-f]{8}\)", label) for label in labels.values())
    assert row_labels(sent[::-1], [], came(first, second)) == labels
    assert len(set(row_labels(sent, []).values())) == 3
    assert row_labels(sent[:1], []) == {first.run_id: "Ada"}


def test_a_name_that_the_board_has_never_opens_its_rows() -> None:
    assert row_labels([(run(5), "Ada")], ["Ada", "Grace"]) == {run(5).run_id: "Ada (2)"}
    assert row_labels([(run(5), "Ada")], ["Ada", "Ada (2)"]) == {run(5).run_id: "Ada (3)"}
    assert row_labels([(run(5), "Ada")], ["Ada (0123abcd)"]) == {run(5).run_id: "Ada (2)"}


def submitted(folder: Path, seed: int, by: str, **changes: object) -> RunRecord:
    made = made_run(folder, "simcse", seed, suites=("check",), **changes)
    (folder / made.run_id / SENDER_FILE).write_text(f"{by}\n", encoding="utf-8")
    return made


def test_an_imposter_neither_replaces_a_row_nor_joins_a_published_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.publish.gather.check_submission", read_only)
    made_run(tmp_path / "own", "ct", 1, suites=("check",))
    box = tmp_path / "box"
    ada = submitted(box, 1, "Ada", noise=0.1)
    junk = submitted(box, 2, "Ada", noise=3.0, created="9999-01-01T00:00:00Z")
    found = gather(tmp_path / "own", box, published={ada.run_id: "Ada"})
    assert found.refused == []
    assert found.senders == {ada.run_id: "Ada", junk.run_id: "Ada (2)"}
    made = build_board(found.runs, version="v1", title="x", senders=found.senders)
    assert not made.left_out
    rows = {row.runs for _, row in made.rows}
    assert {(ada.run_id,), (junk.run_id,)} <= rows


def test_an_imposter_of_the_same_batch_with_another_seed_joins_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.publish.gather.check_submission", read_only)
    box = tmp_path / "box"
    made_run(tmp_path / "own", "ct", 1, suites=("check",))
    ada = [submitted(box, seed, "Ada", noise=0.1) for seed in (1, 2)]
    write_together([box / one.run_id for one in ada])
    assert gather(tmp_path / "own", box).senders == {one.run_id: "Ada" for one in ada}
    junk = submitted(box, 3, "Ada", noise=3.0)
    shutil.copy(box / ada[0].run_id / TOGETHER_FILE, box / junk.run_id)
    found = gather(tmp_path / "own", box)
    made = build_board(found.runs, version="v1", title="x", senders=found.senders)
    rows = {frozenset(row.runs) for _, row in made.rows}
    assert {frozenset(one.run_id for one in ada), frozenset([junk.run_id])} <= rows
    assert "Ada" not in found.senders.values() and found.refused == []


def read_only(folder: Path, data: object = None) -> RunRecord:
    """Replace all checks: made runs have scores without predictions."""
    from bench.records.record import read_record

    return read_record(folder / "run.json")


def test_ids_that_differ_in_capital_letters_alone_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.publish.gather.check_submission", read_only)
    box = tmp_path / "box"
    made_run(tmp_path / "own", "ct", 1, suites=("check",))
    one = submitted(box, 1, "Ada")
    twin = one.run_id.replace("simcse", "SimCSE")
    (box / one.run_id).rename(box / twin)
    mine = made_run(tmp_path / "own", "simcse", 1, suites=("check",))
    changed = replace(mine, run_id=twin, fingerprint="f" * 64)
    (box / twin / "run.json").unlink()
    (box / twin / "run.json").write_text(as_json(changed), encoding="utf-8")
    (line,) = gather(tmp_path / "own", box).refused
    assert line == f"{twin}: refused: {mine.run_id} has the same id or fingerprint"
    # both of one batch: nobody can say which was first
    (tmp_path / "own" / mine.run_id).rename(box / mine.run_id)
    (box / mine.run_id / SENDER_FILE).write_text("Grace\n", encoding="utf-8")
    lines = gather(tmp_path / "own", box).refused
    assert len(lines) == 2 and all("only in capital letters" in line for line in lines)


def as_json(made: RunRecord) -> str:
    import json

    return json.dumps(made.to_json())
