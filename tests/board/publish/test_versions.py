"""Versions: made whole or not at all, the same bytes for the same runs, never changed afterwards,
verified from the folder alone.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from commands import bench
from made_runs import damaged_run, failed_run, made_run
from msgspec.structs import replace
from published import Publish

from bench.base.errors import BenchError
from bench.board.publish import build
from bench.board.publish.versions import check_versions, versions
from bench.board.verify import runs_below, verify_run
from bench.records import RunsFolder
from bench.records.packed import MANIFEST, NAME


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def policy_of(page: Path) -> str:
    found = re.search(r'Content-Security-Policy" content="([^"]*)"', page.read_text("utf-8"))
    assert found is not None, page
    return found[1]


def test_every_page_has_the_same_policy(quick: Publish, out: Path) -> None:
    quick()
    pages = sorted(out.rglob("*.html"))
    assert out / "index.html" in pages and len(pages) > 4
    policies = {policy_of(page) for page in pages}
    assert len(policies) == 1 and policies.pop().startswith("default-src 'none'")


def test_a_version_has_everything_and_verifies_by_itself(
    quick: Publish, runs: Path, out: Path
) -> None:
    made = quick(title="A board", note="Only a test.")
    assert made.name == "v1" and made.folder == out / "v1" and made.board.changes is None
    shutil.rmtree(runs)
    found = set(contents(out / "v1"))
    assert {"index.html", "README.md", "tables.json", NAME, MANIFEST, "assets/board.css"} <= found
    ids = [path.name for path in (out / "v1" / "runs").iterdir()]
    names = {"index.html", "run.json", "curve.jsonl"}
    assert len(ids) == 4
    assert {path for path in found if path.startswith("runs/")} == {
        f"runs/{run}/{name}" for run in ids for name in names
    }
    (report,) = check_versions(out)
    assert report.differences == [] and report.count() == len(found) - 1
    reports = [verify_run(folder) for folder in runs_below(out / "v1")]
    assert [(one.differences, one.count("score")) for one in reports] == [([], 1)] * 4


def test_the_same_runs_give_the_same_bytes(
    quick: Publish, runs: Path, out: Path, tmp_path: Path
) -> None:
    quick()
    other = tmp_path / "elsewhere" / "runs"
    shutil.copytree(runs, other)
    (other / next(other.iterdir()).name / "checkpoint").mkdir()
    quick(runs=other, out=tmp_path / "second")
    assert contents(out) == contents(tmp_path / "second")


@pytest.mark.slow
def test_the_next_version_leaves_the_last_one_alone_and_shows_what_changed(
    quick: Publish, runs: Path, out: Path
) -> None:
    quick(note="First.")
    before = contents(out / "v1")
    assert quick().folder is None and quick(note="First.").folder is None
    made_run(runs, "simcse", 3, suites=("check",))
    made_run(runs, "promptbert", 1, suites=("check",))
    made = quick()
    assert made.name == "v2" and contents(out / "v1") == before
    assert made.board.changes is not None
    changed = {row.row: row.differs for row in made.board.changes.rows}
    assert changed == {"PromptBERT": "new", "SimCSE": "seeds: 1-2 before, 1-3 now"}
    assert "| SimCSE | unsupervised, built-in backbone |" in (out / "v2" / "README.md").read_text()
    page = (out / "v2" / "index.html").read_text()
    assert "Changed since v1" in page
    index = (out / "index.html").read_text()
    assert index.index('id="v2"') < index.index('id="v1"')
    # the runs of a version are a runs folder: the next version needs no other
    shutil.rmtree(runs)
    again = quick(runs=out / "v2" / "runs")
    assert again.folder is None
    third = quick(runs=out / "v2" / "runs", note="")
    assert third.name == "v3" and versions(out)[-1].note is None
    assert (out / "v3" / NAME).read_bytes() == (out / "v2" / NAME).read_bytes()


def test_the_main_budget_is_that_of_the_last_version(quick: Publish, runs: Path, out: Path) -> None:
    """``bench compare`` of a version begins with the table that its page begins with."""

    def first_length() -> str:
        return made.board.tables[0].table.length

    for seed in (1, 2, 3, 4, 5):
        made_run(runs, "ct", seed, suites=("check",), recipe={"budget": "100steps"})
    made_run(runs, "ct", 6, suites=("check",), recipe={"budget": "60s"})
    made = quick()
    assert first_length() == "100steps"
    made = quick(main_budget="1m", note="A minute first.")
    assert (made.name, first_length()) == ("v2", "60s")
    made_run(runs, "simcse", 7, suites=("check",), recipe={"budget": "60s"})
    made = quick()
    assert (made.name, first_length()) == ("v3", "60s")
    assert ", 60s" in bench("compare", "--runs", out / "v3" / "runs").stdout.split("\n\n")[1]
    assert ", 100 steps" in bench("compare", "--runs", runs).stdout.split("\n")[0]
    made = quick(main_budget="", note="Most runs first.")
    assert (made.name, first_length()) == ("v4", "100steps")


def test_runs_that_cannot_be_published_are_named_without_the_publishers_folders(
    quick: Publish, runs: Path, out: Path
) -> None:
    failed = failed_run(runs)
    damaged_run(runs)
    bare = made_run(runs, "diffcse", 1, suites=("check",), keep_predictions=False)
    lines = quick().board.left_out
    assert f"{failed.run_id}: failed: the loss is not finite at step 12" in lines
    starts = ("broken-builtin-s1-00000000: damaged: ", f"{bare.run_id}: cannot be published: ")
    assert all(any(line.startswith(start) for line in lines) for start in starts)
    assert not any(str(runs) in line for line in lines)
    assert not (out / "v1" / "runs" / bare.run_id).exists()


@pytest.mark.parametrize("what", ["score", "hash", "average"])
def test_a_score_that_does_not_follow_from_its_predictions_is_not_published(
    quick: Publish, tmp_path: Path, what: str
) -> None:
    runs = tmp_path / "mine"
    suites = ("sts",) if what == "average" else ("check",)
    made_run(runs, "simcse", 1, suites=suites)
    run = made_run(runs, "promcse", 1, suites=suites)
    change = {"predictions_sha256": "0" * 64} if what == "hash" else {"value": 99.0}
    scores = [*run.scores]
    scores[-1] = replace(scores[-1], **change)
    RunsFolder(runs).write(replace(run, scores=tuple(scores)))
    (line,) = quick(runs=runs).board.left_out
    assert line.startswith(f"{run.run_id}: cannot be published: ")


FILES = (
    "index.html",
    "README.md",
    "tables.json",
    "tables/*.csv",
    "methods/*.html",
    "runs/*/index.html",
    "runs/*/run.json",
    "runs/*/curve.jsonl",
    "assets/*.css",
    "assets/*.js",
    "plan.md",
    NAME,
    MANIFEST,
)
"""Every kind of file of a version; figures and searches are written like these."""


def test_every_kind_of_file_is_tampered_with_below(quick: Publish, out: Path) -> None:
    (out / "plans").mkdir(parents=True)
    (out / "plans" / "v1.md").write_text("# Plan")
    quick()
    known = {path for kind in FILES for path in (out / "v1").glob(kind)}
    assert {path for path in (out / "v1").rglob("*") if path.is_file()} == known


@pytest.mark.parametrize("change", ["changed", "missing", "link", "not listed"])
@pytest.mark.parametrize("kind", FILES)
def test_an_altered_file_of_a_version_is_named(
    version: Path, tmp_path: Path, kind: str, change: str
) -> None:
    out = tmp_path / "leaderboards"
    shutil.copytree(version.parent, out)
    path = sorted((out / "v1").glob(kind))[0]
    name, why = path.relative_to(out / "v1").as_posix(), change
    if change == "changed":
        path.write_bytes(path.read_bytes() + b" ")
    elif change == "missing":
        path.unlink()
    elif change == "link":
        path.rename(out / "elsewhere")
        path.symlink_to(out / "elsewhere")
        why = "a link or a pipe, not a file"
    else:
        path = path.with_name("more.txt")
        path.write_text("x")
        name = path.relative_to(out / "v1").as_posix()
    done = bench("publish", "--check", "--out", out)
    if (kind, change) == (MANIFEST, "changed"):
        # the same list, which nothing lists; git and signed tags guard it
        assert done.exit_code == 0
        return
    said = " ".join(done.output.split())
    if (kind, change) == (MANIFEST, "link"):  # it is not followed
        assert done.exit_code == 1 and MANIFEST in said, done.output
        return
    assert done.exit_code == 1 and f"v1 files {name} {why}" in said, done.output
    with pytest.raises(BenchError, match="v1 has changed since it was published"):
        build.publish_version(runs=version / "runs", out=out)


@pytest.fixture(scope="module")
def version(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published")
    for seed in (1, 2):
        made_run(folder / "runs", "simcse", seed, suites=("check",))
    (folder / "leaderboards" / "plans").mkdir(parents=True)
    (folder / "leaderboards" / "plans" / "v1.md").write_text("# Plan")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(build, "board_figures", lambda *_: ())
        made = build.publish_version(runs=folder / "runs", out=folder / "leaderboards")
    assert made.folder is not None
    return made.folder


def test_an_error_on_the_way_leaves_nothing_and_leftovers_of_a_kill_are_removed(
    quick: Publish, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick()
    before = contents(out)
    (out / ".publishing-dead" / "version").mkdir(parents=True)
    with monkeypatch.context() as patched:
        patched.setattr(build, "version_files", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            quick(note="Another.")
    assert contents(out) == before and not list(out.glob(".publishing-*"))
    (out / "index.html").unlink()  # as if a process was killed before it wrote the index
    quick()
    assert contents(out) == before


def test_mistakes_are_one_line(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    empty = tmp_path / "empty"
    empty.mkdir()
    for words, error in [
        (("--runs", empty), "no finished run in"),
        (("--runs", runs, "--out", tmp_path / "file"), "file"),
        (("--runs", runs, "--baseline", "nobody"), "nobody"),
        (("--runs", runs, "--submissions", tmp_path / "none"), "does not exist"),
        (("--runs", runs, "--predictions-url", "file:///etc/passwd"), "expected https://"),
        (("--check",), "no version in"),
    ]:
        out = () if "--out" in words else ("--out", tmp_path / "boards")
        done = bench("publish", *words, *out)
        assert done.exit_code == 2 and error in done.stderr and "Traceback" not in done.stderr
