"""Versions: made whole or not at all, the same bytes for the same runs, never changed afterwards,
verified from the folder alone.
"""

from __future__ import annotations

import json
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
from bench.board.publish.versions import versions
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


def test_every_page_has_the_same_policy(version: Path) -> None:
    out = version.parent
    pages = sorted(out.rglob("*.html"))
    assert out / "index.html" in pages and len(pages) > 4
    policies = {policy_of(page) for page in pages}
    assert len(policies) == 1 and policies.pop().startswith("default-src 'none'")


@pytest.mark.slow
def test_the_next_version_leaves_the_last_one_alone(quick: Publish, runs: Path, out: Path) -> None:
    quick(note="First.")
    before = contents(out / "v1")
    assert quick().folder is None
    made_run(runs, "simcse", 3, suites=("check",))
    made_run(runs, "promptbert", 1, suites=("check",))
    made = quick()
    assert made.name == "v2" and contents(out / "v1") == before
    index = (out / "index.html").read_text()
    assert index.index('id="v2"') < index.index('id="v1"')
    # the runs of a version are a runs folder: the next version needs no other
    shutil.rmtree(runs)
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
    made = quick(main_budget="1m")
    assert (made.name, first_length()) == ("v1", "60s")
    made_run(runs, "simcse", 7, suites=("check",), recipe={"budget": "60s"})
    made = quick()
    assert (made.name, first_length()) == ("v2", "60s")
    assert ", 60s" in bench("compare", "--runs", out / "v2" / "runs").stdout.split("\n\n")[1]
    assert ", 100 steps" in bench("compare", "--runs", runs).stdout.split("\n\n")[1]
    made = quick(main_budget="")
    assert (made.name, first_length()) == ("v3", "100steps")


def test_another_baseline_makes_another_version_and_stays(quick: Publish, out: Path) -> None:
    quick()
    assert quick(baseline="promcse").name == "v2"
    assert quick(baseline="promcse").folder is None
    assert quick().folder is None, "as in the last version"
    compared = json.loads(bench("compare", "--runs", out / "v2" / "runs", "--json").stdout)
    assert compared["tables"][0]["baseline"] == "promcse"
    back = quick(baseline="")
    assert (back.name, back.board.tables[0].table.baseline) == ("v3", "simcse")


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


@pytest.mark.parametrize("what", ["score", "average"])
def test_a_score_that_does_not_follow_from_its_predictions_is_not_published(
    quick: Publish, tmp_path: Path, what: str
) -> None:
    runs = tmp_path / "mine"
    suites = ("sts",) if what == "average" else ("check",)
    made_run(runs, "simcse", 1, suites=suites)
    run = made_run(runs, "promcse", 1, suites=suites)
    scores = [*run.scores]
    scores[-1] = replace(scores[-1], value=99.0)
    RunsFolder(runs).write(replace(run, scores=tuple(scores)))
    (line,) = quick(runs=runs).board.left_out
    assert line.startswith(f"{run.run_id}: cannot be published: ")


def test_a_manifest_that_is_a_link_is_named_and_nothing_is_built_on_it(
    version: Path, tmp_path: Path
) -> None:
    out = tmp_path / "leaderboards"
    shutil.copytree(version.parent, out)
    path = out / "v1" / MANIFEST
    path.rename(out / "elsewhere")
    path.symlink_to(out / "elsewhere")
    done = bench("publish", "--check", "--out", out)
    assert done.exit_code == 1 and "MANIFEST" in done.output, done.output
    with pytest.raises(BenchError, match="v1"):
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
        (("--check",), "no version in"),
        (("--check", "--title", "T"), "--check cannot be combined with --title"),
    ]:
        out = () if "--out" in words else ("--out", tmp_path / "boards")
        done = bench("publish", *words, *out)
        assert done.exit_code == 2 and error in done.stderr and "Traceback" not in done.stderr
