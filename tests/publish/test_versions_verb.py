"""``bench publish`` as it is typed: what it says, its exit codes, and submissions on their way into a version."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from commands import bench, error_line
from made_runs import failed_run, made_run, made_runs
from msgspec import structs

from bench.base.errors import BenchError
from bench.base.files import file_sha256, folder_sha256
from bench.cli import publish as verb
from bench.publish import build
from bench.publish.versions import versions
from bench.runs import RunsFolder
from bench.verify.attestation import sent, write
from bench.verify.submit import pack


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(build, "_figures", lambda *_: ())
    made_runs(tmp_path / "runs", {"simcse": 0.8, "promcse": 0.45}, seeds=(1, 2), suites=("check",))
    return tmp_path / "runs"


def publish(runs: Path, *more: str | Path) -> tuple[str, str]:
    done = bench(
        "publish", "--runs", runs, "--out", runs.parent / "board", "--statistics", "no", *more
    )
    assert done.exit_code == 0, done.output
    return done.stdout, done.stderr


@pytest.mark.slow
def test_what_is_said(runs: Path) -> None:
    out = runs.parent / "board"
    failed = failed_run(runs)
    said, aside = publish(runs, "--note", "A test.")
    assert said.splitlines()[0] == f"v1: 4 runs of 2 methods, 1 table: {out / 'v1' / 'index.html'}"
    assert (
        f"left out: {failed.run_id}: failed: the loss is not finite at step 12"
        in aside.splitlines()
    )
    assert publish(runs)[0] == "nothing is new since v1; no version is made (--anyway makes one)\n"
    made_run(runs, "simcse", 3, suites=("check",))
    lines = publish(runs)[0].splitlines()
    assert lines[0].startswith("v2: 5 runs of 2 methods") and lines[2:4] == [
        "since v1:",
        "  1 new run: simcse (1).",
    ]
    assert publish(runs, "--preview")[0].startswith(
        f"preview: 5 runs of 2 methods, 1 table: {out / 'preview' / 'index.html'}"
    )


def test_json_is_alone_on_standard_output(runs: Path) -> None:
    found = json.loads(publish(runs, "--json")[0])
    assert (found["version"], found["new"], found["runs"], found["changes"], found["methods"]) == (
        "v1",
        True,
        4,
        None,
        ["promcse", "simcse"],
    )
    assert json.loads(publish(runs, "--json")[0])["new"] is False


def test_markdown_alone(runs: Path) -> None:
    assert publish(runs, "--format", "md")[0].splitlines()[0].endswith("v1/README.md")
    assert not list((runs.parent / "board" / "v1").rglob("*.html"))


def test_the_check_has_an_exit_code(runs: Path) -> None:
    out = runs.parent / "board"
    publish(runs)
    done = bench("publish", "--check", "--out", out)
    assert done.exit_code == 0 and "as published" in done.output and "differ" not in done.output
    (out / "v1" / "tables.json").write_text("{}")
    done = bench("publish", "--check", "--out", out)
    assert (
        done.exit_code == 1
        and "  tables.json: changed since it was published" in done.output.splitlines()
    )
    objects = [
        json.loads(line)
        for line in bench("publish", "--check", "--out", out, "--json").stdout.splitlines()
    ]
    assert [one["differ"] for one in objects] == [1, 0]
    assert "v1 is not as it was published" in error_line(
        bench("publish", "--runs", runs, "--out", out)
    )


def test_mistakes_are_one_line(runs: Path, tmp_path: Path) -> None:
    out = tmp_path / "board"
    assert "no finished run in" in error_line(
        bench("publish", "--runs", tmp_path / "none", "--out", out)
    )
    assert "no version in" in error_line(bench("publish", "--check", "--out", out))
    assert "no folder" in error_line(
        bench("publish", "--runs", runs, "--out", out, "--submissions", tmp_path / "none")
    )
    assert "unknown" in error_line(
        bench("publish", "--runs", runs, "--out", out, "--baseline", "nobody")
    )
    assert not out.exists()


def test_a_folder_of_the_publisher_in_a_command_is_told(runs: Path) -> None:
    assert "names a folder" not in publish(runs)[1]
    told = made_run(
        runs,
        "simcse",
        3,
        suites=("check",),
        provenance={"command": "bench run --data /home/ada/data --seeds 3"},
    )
    assert (
        f"the command of 1 run names a folder of this machine; it is published as it was recorded: {told.run_id}"
        in publish(runs)[1]
    )


def test_a_submitted_run_is_added_and_stays_when_its_file_is_gone(
    runs: Path, tmp_path: Path
) -> None:
    theirs = made_run(tmp_path / "theirs", "mine", 7, suites=("check",))
    box = tmp_path / "box"
    box.mkdir()
    pack([tmp_path / "theirs" / theirs.run_id], box / "a.zip", by="Ada")
    (box / "b.zip").write_bytes(b"no zip")
    said, aside = publish(runs, "--submissions", box)
    assert said.startswith("v1: 5 runs of 3 methods") and "b.zip" in aside
    (v1,) = versions(runs.parent / "board")
    assert [(one.grade, one.submitted_by) for one in v1.runs if one.run_id == theirs.run_id] == [
        ("submitted", "Ada")
    ]
    assert publish(runs, "--submissions", box)[0].startswith("nothing is new")
    (box / "a.zip").unlink()
    assert publish(runs, "--keep")[0].startswith("nothing is new since v1")
    assert "1 run no longer shown: mine (1)." in publish(runs)[0]


def test_a_published_run_is_not_replaced_by_a_submission(runs: Path, tmp_path: Path) -> None:
    """Neither where the publisher has only the published version and no runs folder of the time."""
    publish(runs)
    other = tmp_path / "other"
    made_run(other, "promptbert", 1, suites=("check",))
    box = tmp_path / "box"
    box.mkdir()
    pack([next(runs.iterdir())], box / "a.zip", by="Eve")
    _, aside = publish(runs, "--runs", other, "--keep", "--submissions", box)
    assert "this board has its own run of it" in aside
    v2 = versions(runs.parent / "board")[-1]
    assert len(v2.runs) == 5 and all(one.submitted_by is None for one in v2.runs)


def test_a_run_that_was_checked_before_stays_checked(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bench.board import grades

    real = grades.grade_runs
    monkeypatch.setattr(
        grades,
        "grade_runs",
        lambda *a: tuple(
            replace(one, grade="checkpoint", reason="encoded again") for one in real(*a)
        ),
    )
    first = runs.parent / "first"
    made_runs(
        first, {"simcse": 0.8, "promcse": 0.45}, seeds=(1,), suites=("check",)
    )  # one seed: none agrees with another
    publish(runs, "--runs", first)
    monkeypatch.setattr(grades, "grade_runs", real)
    more = runs.parent / "more"
    made_run(more, "promptbert", 1, suites=("check",))
    publish(runs, "--runs", more, "--keep")
    found = versions(runs.parent / "board")[-1].runs
    assert sorted(one.grade for one in found) == ["checkpoint", "checkpoint", "own"]


def test_another_run_of_a_checked_ones_name_is_not_checked(runs: Path, tmp_path: Path) -> None:
    """Ada's run was encoded again for v1. What somebody sends later under its id and her name does not inherit that."""
    box, theirs = tmp_path / "box", tmp_path / "theirs"
    box.mkdir()
    run = made_run(theirs, "mine", 7, suites=("check",))
    (theirs / run.run_id / "checkpoint").mkdir()
    (theirs / run.run_id / "checkpoint" / "method.json").write_text("{}")
    run = structs.replace(run, checkpoint=folder_sha256(theirs / run.run_id / "checkpoint"))
    RunsFolder(theirs).write(run)
    pack([theirs / run.run_id], box / "a.zip", by="Ada")
    found = {
        "record_sha256": file_sha256(theirs / run.run_id / "run.json"),
        "files": {},
        "date": "2026-11-21",
        "bench_version": "1",
        "device": "cpu",
        "tasks": 1,
        "sentences": 20,
    }
    write(sent(runs, theirs / run.run_id), {run.run_id: found})
    grade = {"v1": "checkpoint", "v2": "checkpoint", "v3": "submitted"}
    publish(runs, "--submissions", box)
    sent(runs, theirs / run.run_id).unlink()
    made_run(runs, "simcse", 3, suites=("check",))
    publish(runs, "--submissions", box, "--keep")
    (box / "a.zip").unlink()
    RunsFolder(theirs).write(
        structs.replace(run, cost=structs.replace(run.cost, train_seconds=1.0))
    )
    pack([theirs / run.run_id], box / "a.zip", by="Ada")
    publish(runs, "--submissions", box, "--keep")
    for one in versions(runs.parent / "board"):
        (mine,) = [found for found in one.runs if found.run_id == run.run_id]
        assert (mine.grade, mine.submitted_by) == (grade[one.name], "Ada"), one.name
        assert ("all 20 sentences encoded again" in mine.reason) is (mine.grade == "checkpoint")


def test_an_interruption_leaves_nothing(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(build, "version_files", stop)
    done = bench("publish", "--runs", runs, "--out", runs.parent / "board", "--statistics", "no")
    assert done.exit_code == 130 and not (runs.parent / "board").exists()


def test_progress_is_plain_where_there_is_no_terminal(runs: Path) -> None:
    aside = publish(runs)[1]
    assert aside.splitlines()[:2] == [
        "scoring again and copying predictions ...",
        "writing pages ...",
    ] and not set("\r\x1b") & set(aside)


def test_an_erratum_stands_beside_its_version_and_above_the_next_changes(runs: Path) -> None:
    out = runs.parent / "board"
    publish(runs)
    before = {path: path.read_bytes() for path in (out / "v1").rglob("*") if path.is_file()}
    text = "Intervals were too short; <b>see</b> v2."
    done = bench("publish", "--out", out, "--erratum", "v1", text)
    assert done.exit_code == 0 and text in done.stdout
    assert {path: path.read_bytes() for path in (out / "v1").rglob("*") if path.is_file()} == before
    page, feed, readme = (
        (out / name).read_text() for name in ("index.html", "feed.xml", "README.md")
    )
    assert "&lt;b&gt;see&lt;/b&gt; v2." in page and "<b>see" not in page + feed + readme
    assert "erratum to v1" in feed and "**Erratum**" in readme
    assert bench("publish", "--check", "--out", out).exit_code == 0
    made_run(runs, "simcse", 3, suites=("check",))
    publish(runs)
    changes = json.loads((out / "v2" / "version.json").read_text())["changes"]
    assert changes["errata"] == changes["lines"][:1] and changes["lines"][0].startswith(
        "Erratum to v1, "
    )
    board = (out / "v2" / "index.html").read_text()
    assert board.index("Intervals were too short") < board.index("1 new run")
    altered = json.loads((out / "errata.json").read_text())
    altered["errata"][0]["text"] = "All is well."
    (out / "errata.json").write_text(json.dumps(altered))
    done = bench("publish", "--check", "--out", out)
    assert done.exit_code == 1 and "errata.json: changed since it was published" in done.stdout
    refused = bench("publish", "--runs", runs, "--out", out, "--statistics", "no", "--anyway")
    assert refused.exit_code == 2 and "errata.json" in error_line(refused)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--erratum", "v7", "x"), "unknown version 'v7'"),
        (("--erratum", "v1", "  "), "--erratum v1: the text is empty"),
        (("--erratum", "v1", "x" * 2001), "--erratum v1: 2,001 characters; 2,000 at most"),
        (
            ("--erratum", "v1", "x", "--check"),
            "--erratum goes neither with --check nor with --preview",
        ),
        (("--erratum", "../v1", "x"), "unknown version '../v1'"),
    ],
)
def test_an_erratum_that_cannot_be_is_one_line_and_changes_nothing(
    runs: Path, words: tuple[str, ...], said: str
) -> None:
    out = runs.parent / "board"
    publish(runs)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    done = bench("publish", "--out", out, *words)
    assert done.exit_code == 2 and said in error_line(done)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_the_same_erratum_twice_and_a_damaged_list(runs: Path) -> None:
    out = runs.parent / "board"
    publish(runs)
    assert bench("publish", "--out", out, "--erratum", "v1", "x").exit_code == 0
    assert "v1 has this erratum already" in error_line(
        bench("publish", "--out", out, "--erratum", "v1", "x")
    )
    (out / "errata.json").write_text("{}")
    assert "errata.json cannot be read" in error_line(
        bench("publish", "--out", out, "--erratum", "v1", "y")
    )


def test_every_option_is_in_the_documentation() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "publish.md").read_text(encoding="utf-8")
    options = [name for one in verb.publish.params for name in one.opts if name.startswith("--")]
    assert [name for name in options if name not in page] == []


def test_what_it_raises_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "v1").mkdir()
    with pytest.raises(BenchError, match=r"version.json cannot be read"):
        build.publish(build.PublishOptions(runs=tmp_path, out=tmp_path / "out"))
