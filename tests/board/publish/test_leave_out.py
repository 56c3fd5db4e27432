"""Own files on a board: their gold values are published and said to be, their texts never;
``--leave-out`` keeps a suite out.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from commands import bench, error_line
from made_runs import made_runs
from msgspec.structs import replace as replace_fields
from published import Publish
from recomputed_scores import packed_arrays

from bench.base.errors import BenchError
from bench.board.publish import gather
from bench.board.publish.submit import submit_runs
from bench.board.publish.suites import (
    keep_suites,
    leave_out_suites,
)
from bench.board.publish.versions import check_versions
from bench.board.verify import runs_below, verify_run
from bench.compare.senders import SENDER_FILE
from bench.records import Code, HowExecuted, Run, RunsFolder
from bench.records.names import RECORD
from bench.records.record import read_record

WORDS = ("quokka", "zephyr", "marzipan", "obelisk", "tundra", "xylophone")
"""Of the texts of the files, and of nothing else that bench knows."""


@pytest.fixture(scope="module")
def made_of_two_suites(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("both") / "runs"
    made_runs(runs, {"simcse": 0.8, "promcse": 0.45}, seeds=(1, 2), suites=("check", "fewshot"))
    return runs


@pytest.fixture
def two_suites(made_of_two_suites: Path, tmp_path: Path) -> Path:
    """A folder of runs with scores of two suites each."""
    return shutil.copytree(made_of_two_suites, tmp_path / "both")


def suites_in(folder: Path) -> set[str]:
    """Every suite that the records below a version, its tables and its predictions name."""
    records, damaged = RunsFolder(folder / "runs").records()
    assert not damaged
    tables = json.loads((folder / "tables.json").read_text())["tables"]
    found = {score.suite for record in records for score in record.scores}
    return found | {shown["table"]["suite"] for shown in tables}


def test_a_suite_that_is_left_out_is_nowhere_and_the_rest_is_verified(
    quick: Publish, two_suites: Path, out: Path
) -> None:
    whole, _ = RunsFolder(two_suites).records()
    made = quick(runs=two_suites, leave_out=("fewshot",))
    version = out / "v1"
    assert made.folder == version and suites_in(version) == {"check"}
    assert made.board.left_out == ("suite fewshot: scores and predictions, by --leave-out: 4 runs",)
    assert '<dt id="left-out">' in (version / "index.html").read_text()
    landing = (out / "index.html").read_text()
    assert '2 methods; <a href="v1/index.html#left-out">what was left out</a>' in landing
    assert len(packed_arrays(version / "predictions.parquet")) == 4
    (report,) = check_versions(out)
    assert report.differences == []
    reports = [verify_run(folder) for folder in runs_below(version)]
    assert len(reports) == 4 and all(not one.differences for one in reports)
    assert all(one.count("score") == 1 for one in reports)
    published, _ = RunsFolder(version / "runs").records()
    for record, before in zip(published, whole, strict=True):
        assert record.scores == tuple(s for s in before.scores if s.suite == "check")
        assert record.fingerprint == before.fingerprint and record.cost == before.cost
        assert record.provenance.command == before.provenance.command
    assert quick(runs=two_suites, leave_out=("fewshot",)).folder is None, "nothing is new"
    assert quick(runs=version / "runs").folder is None, "nor if its own runs are published again"


def test_a_run_of_nothing_else_is_left_out_as_a_whole(
    quick: Publish, two_suites: Path, out: Path
) -> None:
    made_runs(two_suites, {"consert": 0.5}, seeds=(1,), suites=("fewshot",))
    board = quick(runs=two_suites, leave_out=("fewshot",)).board
    assert board.methods == ["promcse", "simcse"]
    assert any(
        "all of its scores are of suites that are left out" in line for line in board.left_out
    )


def test_a_submission_that_is_published_in_part_is_not_refused_later(
    quick: Publish,
    runs: Path,
    two_suites: Path,
    out: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its made gold values are no check's data, so only its record is read."""
    sent = tmp_path / "submissions"
    shutil.rmtree(runs)
    made_runs(runs, {"consert": 0.3}, seeds=(1,), suites=("check",))
    for folder in two_suites.glob("simcse*"):
        shutil.copytree(folder, sent / folder.name, ignore=lambda *_: ["checkpoint"])
        (sent / folder.name / SENDER_FILE).write_text("Ada Lovelace\n")
    monkeypatch.setattr(gather, "check_submission", lambda folder: read_record(folder / RECORD))
    first = quick(submissions=sent, leave_out=("fewshot",))
    assert first.refused == [] and suites_in(out / "v1") == {"check"}
    for leave_out in (("fewshot",), ()):
        again = quick(runs=out / "v1" / "runs", submissions=sent, leave_out=leave_out)
        assert again.refused == [] and again.folder is None


@pytest.mark.parametrize(
    "name, said",
    [
        ("fewshoot", "unknown suite 'fewshoot'; nearest: fewshot"),
        ("check:sentences", "unknown suite 'check:sentences'"),
        ("mr-16", "unknown suite 'mr-16'"),
    ],
)
def test_a_name_that_is_no_suite_is_one_line_and_publishes_nothing(
    quick: Publish, two_suites: Path, out: Path, tmp_path: Path, name: str, said: str
) -> None:
    with pytest.raises(BenchError, match=".") as caught:
        quick(runs=two_suites, leave_out=(name,))
    assert said in caught.value.message and (caught.value.hint or "").startswith("--leave-out ")
    assert not list(out.glob("v*"))
    (folder, *_) = sorted(two_suites.glob("simcse*"))
    with pytest.raises(BenchError) as refused:
        submit_runs([folder], tmp_path / "sent", "Ada", leave_out=(name,))
    assert refused.value.message == caught.value.message and not (tmp_path / "sent").exists()


def test_submit_hands_over_the_suites_that_are_asked_for(two_suites: Path, tmp_path: Path) -> None:
    sources = sorted(two_suites.glob("simcse*"))
    for number, asked in enumerate(({"suites": ("check",)}, {"leave_out": ("fewshot",)})):
        folders = submit_runs(sources, tmp_path / str(number), "Ada", **asked)
        for folder in folders:
            record = RunsFolder(folder.parent).read(folder.name)
            assert {score.suite for score in record.scores} == {"check"}
            assert len(list(folder.glob("predictions/*.npz"))) == 1
    with pytest.raises(BenchError, match="none of its scores is left"):
        submit_runs(sources, tmp_path / "none", "Ada", ("check",), ("check",))
    with pytest.raises(BenchError, match="unknown suite 'chek'; nearest: check"):
        submit_runs(sources, tmp_path / "none", "Ada", ("chek",))


def test_a_record_says_nothing_of_a_suite_that_is_left_out(two_suites: Path) -> None:
    (record, *_), _ = RunsFolder(two_suites).records()
    assert leave_out_suites(record, ("sts",)) is record
    codes = {"check": Code(package="a"), "fewshot": Code(package="b"), "fewshot MR-16 x": Code()}
    execution = HowExecuted(suites=codes)
    origin = replace_fields(
        record.provenance, data={"MR-16": "0" * 64, "CHECK": "1" * 64}, execution=execution
    )
    less = leave_out_suites(replace_fields(record, provenance=origin), ("fewshot",))
    assert set(less.provenance.execution.suites) == {"check"}
    assert set(less.provenance.data) == {"CHECK"}
    assert keep_suites(replace_fields(record, provenance=origin), ("check",)) == less


@pytest.mark.slow
@pytest.mark.usefixtures("without_figures")
def test_gold_values_of_own_files_are_published_and_no_word_of_a_text(
    tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rated = [f"the {a} {b}\tthe {b} of {c}\t{n / 7:.3f}" for n, (a, b, c) in enumerate(triples())]
    Path("pairs.tsv").write_text("sentence1\tsentence2\tscore\n" + "\n".join(rated) + "\n")
    texts = [f"{w} number {n % 7},{'AB'[n % 2]}" for n in range(40) for w in WORDS[:3]]
    Path("texts.csv").write_text("text,label\n" + "\n".join(texts) + "\n")
    suites = "pairs.tsv,classification:texts.csv,clustering:texts.csv,check"
    given = ("--suite", suites, "--backbone", tiny, "--runs", "runs", "--plain")
    run = bench("run", "cls", *given)
    assert run.exit_code == 0, run.output
    done = bench("publish", "--runs", "runs")
    assert done.exit_code == 0, done.output
    said = (
        "own files (pairs, texts and texts-clusters): "
        "their gold values and predictions are published"
    )
    assert said in done.stderr and "--leave-out own" in done.stderr
    version = Path("leaderboards/v1")
    assert suites_in(version) >= {"own"}
    content = [path.read_bytes() for path in version.rglob("*") if path.is_file()]
    records, _ = RunsFolder(version / "runs").records()
    for record in records:
        run_files = Run(record, version / "runs" / record.run_id)
        for score in record.scores:
            if score.task != "Avg.":
                arrays = run_files.predictions(score.key)
                content += [repr(values.tolist()).encode() for values in arrays.values()]
    assert any(b"texts-clusters" in part for part in content)
    for word in WORDS:
        assert not any(word.encode() in part for part in content), word
    sent = bench("submit", "cls", "--by", "Ada", "--to", "sent", "--runs", "runs")
    assert sent.exit_code == 0 and said in sent.stderr, sent.output
    less = bench(
        "publish", "--runs", "runs", "--out", "less", "--leave-out", "own", "--leave-out", "own,sts"
    )
    assert less.exit_code == 0 and "own files" not in less.stderr
    assert "left out: suite own: scores and predictions, by --leave-out: 1 run" in less.stderr
    assert suites_in(Path("less/v1")) == {"check"}
    assert bench("verify", "less/v1").exit_code == 0
    assert not any("own/" in name for name in packed_arrays(Path("less/v1/predictions.parquet")))
    assert any("own/" in name for name in packed_arrays(version / "predictions.parquet"))
    wrong = bench("publish", "--runs", "runs", "--out", "x", "--leave-out", "pairs.tsv")
    assert "unknown suite 'pairs.tsv'" in error_line(wrong) and not Path("x/v1").exists()


def triples() -> list[tuple[str, str, str]]:
    """24 rows of three of the words."""
    count = len(WORDS)
    return [(WORDS[n % count], WORDS[n // count], WORDS[(n * 5) % count]) for n in range(24)]
