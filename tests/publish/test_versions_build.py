"""Versions: made whole or not at all, the same bytes for the same runs, and never changed afterwards."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest
from made_runs import damaged_run, failed_run, made_run
from msgspec.structs import replace
from published import Publish

from bench.base.errors import BenchError, DataDamaged
from bench.board.board import PREVIEW_NOTE
from bench.publish import build
from bench.publish.check import check
from bench.publish.versions import StagedFolder, versions
from bench.runs import RunsFolder
from bench.verify import check_manifest, runs_below, verify_run


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_version_has_everything_and_verifies_by_itself(
    quick: Publish, runs: Path, out: Path
) -> None:
    made = quick(title="A board", note="Only a test.")
    assert made.name == "v1" and made.folder == out / "v1" and made.board.changes is None
    shutil.rmtree(runs)
    found = contents(out / "v1")
    assert {
        "index.html",
        "README.md",
        "tables.json",
        "badge.svg",
        "version.json",
        "MANIFEST.json",
        "assets/board.css",
        "methods/simcse.html",
    } <= set(found)
    ids = [path.name for path in (out / "v1" / "runs").iterdir()]
    assert len(ids) == 4 and all(
        f"runs/{one}/{name}" in found
        for one in ids
        for name in ("index.html", "run.json", "scores.csv", "curve.jsonl")
    )
    manifest = check_manifest(out / "v1")
    assert (
        manifest is not None
        and manifest.differences == []
        and manifest.count_agreeing() == len(found) - 1
    )
    assert [verify_run(folder).differences for folder in runs_below(out / "v1")] == [[]] * 4
    assert [name for name in contents(out) if "/" not in name] == [
        "README.md",
        "badge.svg",
        "feed.xml",
        "index.html",
        "style.css",
        "versions.json",
    ]
    assert not any(path.name.startswith(".") for path in out.iterdir())


def test_the_same_runs_give_the_same_bytes(
    quick: Publish, runs: Path, out: Path, tmp_path: Path
) -> None:
    quick()
    other = tmp_path / "elsewhere" / "runs"
    shutil.copytree(runs, other)
    for folder in other.iterdir():
        (folder / "checkpoint").mkdir()
        (folder / "checkpoint" / "weights").write_bytes(b"not published")
    quick(runs=other, out=tmp_path / "second")
    assert contents(out) == contents(tmp_path / "second")


@pytest.mark.slow
def test_nothing_new_makes_no_version(quick: Publish, out: Path) -> None:
    quick(note="First.")
    before = contents(out)
    again = quick()
    assert again.folder is None and again.name == "v1" and contents(out) == before
    assert quick(note="First.").folder is None
    assert quick(note="Second.").name == "v2" and quick(anyway=True).name == "v3"
    assert quick(note="").name == "v4" and versions(out)[-1].note is None


@pytest.mark.slow
def test_a_new_version_says_what_is_new_and_leaves_the_old_one_alone(
    quick: Publish, runs: Path, out: Path
) -> None:
    quick()
    before = contents(out / "v1")
    made_run(runs, "simcse", 3, suites=("check",))
    made_run(runs, "promptbert", 1, suites=("check",))
    made = quick()
    assert made.name == "v2" and contents(out / "v1") == before
    assert made.board.changes is not None and made.board.changes.lines[:2] == (
        "2 new runs: promptbert (1), simcse (1).",
        "New methods: promptbert.",
    )
    assert "seeds: 2 before, 3 now." in made.board.changes.lines[2]
    v1, v2 = versions(out)
    assert (
        v2.before == v1.manifest and v2.changes == made.board.changes.lines and v1.changes is None
    )
    index = (out / "index.html").read_text(encoding="utf-8")
    assert (
        index.index('id="v2"') < index.index('id="v1"')
        and "2 new runs" in index
        and v1.manifest in index
    )
    assert [one.name for report in check(out) for one in [report] if report.differences] == []


def test_a_rescored_run_is_a_changed_score(quick: Publish, runs: Path, out: Path) -> None:
    quick()
    store = RunsFolder(runs)
    run = store.read(store.ids()[0])
    other = store.read(next(one for one in store.ids() if not one.startswith(run.method)))
    (score,) = other.scores  # what the same run predicts with another library
    store.write_predictions(
        run.run_id,
        score.task,
        score.text,
        store.read_predictions(other.run_id, score.task, score.text),
    )
    store.write(
        replace(run, scores=(score,), provenance=replace(run.provenance, packages={"torch": "9"}))
    )
    changes = quick().board.changes
    assert changes is not None and [(one.method, one.task, one.why) for one in changes.scores] == [
        (run.method, "CHECK", ("library: torch 2.13.0 before, 9 now",))
    ]


def test_runs_that_cannot_be_published_are_named_without_the_publishers_folders(
    quick: Publish, runs: Path, out: Path
) -> None:
    failed, stopped = failed_run(runs), failed_run(runs, "ct", status="interrupted")
    damaged_run(runs)
    bare = made_run(runs, "diffcse", 1, suites=("check",), keep_predictions=False)
    lines = quick().board.left_out
    assert (
        f"{failed.run_id}: failed: the loss is not finite at step 12" in lines
        and f"{stopped.run_id}: interrupted" in lines
    )
    assert sum(line.startswith("broken-builtin-s1-00000000: damaged: ") for line in lines) == 1
    assert [
        line
        for line in lines
        if line.startswith(f"{bare.run_id}: cannot be published: ")
        and "no predictions of CHECK" in line
    ]
    assert not any(str(runs) in line for line in lines)
    assert not (out / "v1" / "runs" / bare.run_id).exists() and len(versions(out)[0].runs) == 4


def test_every_run_of_the_folder_is_in_a_table_or_left_out_with_the_reason(
    quick: Publish, runs: Path, out: Path
) -> None:
    """``runs`` has four of check. Beside them: another suite, both suites, what ended early, what nobody can score, what was replaced."""
    made_run(runs, "simcse", 9, suites=("sts",))
    made_run(runs, "whitening", 1, suites=("sts", "check"))
    made_run(runs, "flow", 1, suites=("check",), backbone="bert-base-uncased")
    failed, stopped = failed_run(runs), failed_run(runs, "ct", status="interrupted")
    damaged_run(runs)
    store = RunsFolder(runs)
    foreign = made_run(runs, "diffcse", 1, suites=("sts",))
    store.write(
        replace(
            foreign,
            scores=tuple(
                replace(score, suite="theirs", predictions_sha256=None)
                for score in foreign.scores[:1]
            ),
        )
    )
    codes = [{"plugin": {"sha256": letter * 64}} for letter in "ab"]
    old = made_run(
        runs, "mine", 1, suites=("sts",), provenance=codes[0], created="2026-01-01T00:00:00+00:00"
    )
    new = made_run(
        runs, "mine", 2, suites=("sts",), provenance=codes[1], created="2026-01-03T00:00:00+00:00"
    )
    again = replace(
        new,
        run_id="mine-again",
        provenance=replace(new.provenance, created="2026-01-02T00:00:00+00:00"),
    )
    shutil.copytree(store.folder(new.run_id), store.folder(again.run_id))
    store.write(again)
    made = quick()
    shown = {run for table in made.board.tables for row in table.table.rows for run in row.runs}
    reasons = {
        run_id: reason
        for run_id, _, reason in (line.partition(": ") for line in made.board.left_out)
    }
    ids = set(store.ids())
    assert (
        len(ids) == 14
        and shown | reasons.keys() == ids
        and not shown & reasons.keys()
        and all(reasons.values())
    )
    assert {failed.run_id, stopped.run_id, old.run_id} <= reasons.keys() and new.run_id in shown
    assert reasons[old.run_id] == "replaced: its row has newer code of the method"
    assert reasons[again.run_id] == "replaced: a newer run of the same seed is in its row"
    assert (
        {run.record.run_id for run in made.board.runs}
        == shown
        == {path.name for path in (out / "v1" / "runs").iterdir()}
    )
    suites = [table.table.suite for table in made.board.tables]
    assert (
        suites == sorted(suites, key=lambda suite: suite == "check") and suites.count("check") == 2
    ), "the sample is last"
    manifest = check_manifest(out / "v1")
    assert manifest is not None and manifest.differences == []


@pytest.mark.slow
def test_a_preview_says_that_it_is_one_and_is_no_version(
    quick: Publish, runs: Path, out: Path
) -> None:
    first = quick(preview=True, note="A note.")
    assert (
        first.folder == out / "preview"
        and versions(out) == ()
        and not (out / "index.html").exists()
    )
    page = (out / "preview" / "index.html").read_text(encoding="utf-8")
    assert PREVIEW_NOTE in page and '<p class="note">A note.</p>' in page, (
        "the note is the publisher's"
    )
    (out / "preview" / "left").write_text("from the last preview")
    assert quick(preview=True).folder == out / "preview" and not (out / "preview" / "left").exists()
    quick()
    made_run(runs, "promptbert", 1, suites=("check",))
    preview = quick(preview=True)
    assert (
        preview.board.changes is not None
        and preview.board.changes.before == "v1"
        and len(versions(out)) == 1
    )
    assert "preview" not in (out / "index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("form", "there", "not_there"),
    [("md", "README.md", "index.html"), ("html", "index.html", "README.md")],
)
def test_one_format_alone(quick: Publish, out: Path, form: str, there: str, not_there: str) -> None:
    quick(formats=(form,))
    found = contents(out / "v1")
    assert (
        there in found
        and not_there not in found
        and "tables.json" in found
        and any(name.endswith("run.json") for name in found)
    )
    assert f"v1/{there}" in (out / "index.html").read_text(
        encoding="utf-8"
    ) and f"(v1/{there})" in (out / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_runs_of_the_last_version_are_kept_where_that_is_asked(
    quick: Publish, runs: Path, out: Path, tmp_path: Path
) -> None:
    quick()
    here = tmp_path / "mine"
    made_run(here, "promptbert", 1, suites=("check",))
    made = quick(runs=here, keep=True)
    assert (
        len(made.board.runs) == 5
        and made.board.changes is not None
        and made.board.changes.removed_runs == ()
    )
    alone = quick(runs=here)
    assert (
        len(alone.board.runs) == 1
        and alone.board.changes is not None
        and len(alone.board.changes.removed_runs) == 4
    )


def test_an_altered_version_is_not_built_upon(quick: Publish, runs: Path, out: Path) -> None:
    quick()
    page = out / "v1" / "README.md"
    page.write_text(page.read_text(encoding="utf-8") + "\nbetter", encoding="utf-8")
    made_run(runs, "promptbert", 1, suites=("check",))
    with pytest.raises(
        BenchError, match=r"v1 is not as it was published: README.md: changed"
    ) as caught:
        quick()
    assert "--check" in str(caught.value.hint) and not (out / "v2").exists()


def test_an_error_on_the_way_leaves_nothing_behind(
    quick: Publish, runs: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise BenchError("the disk is full")

    monkeypatch.setattr(StagedFolder, "seal", fail)
    with pytest.raises(BenchError, match="disk is full"):
        quick()
    assert not out.exists()
    monkeypatch.undo()
    monkeypatch.setattr(build, "_figures", lambda *_: ())
    quick()
    before = contents(out)
    made_run(runs, "promptbert", 1, suites=("check",))
    monkeypatch.setattr(build, "_figures", lambda *_: fail())
    with pytest.raises(BenchError, match="disk is full"):
        quick()
    assert contents(out) == before and not any(path.name.startswith(".") for path in out.iterdir())


def test_a_process_that_died_before_the_index_is_finished_by_the_next(
    quick: Publish, out: Path
) -> None:
    quick()
    whole = contents(out)
    for name in ("index.html", "versions.json", "feed.xml"):
        (out / name).unlink()
    assert [one.what for one in check(out)[-1].differences] == ["versions.json"]
    assert quick().folder is None and contents(out) == whole


def test_two_publishers_at_once_make_one_version_each_or_one_clear_error(
    quick: Publish, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def meanwhile(*_: object) -> tuple[()]:
        (out / "v1").mkdir()
        (out / "v1" / "index.html").write_text("theirs")
        return ()

    monkeypatch.setattr(build, "_figures", meanwhile)
    with pytest.raises(BenchError, match="published by somebody else"):
        quick()
    assert contents(out) == {"v1/index.html": b"theirs"}


def test_no_runs_and_no_folder_are_one_clear_line(
    quick: Publish, runs: Path, out: Path, tmp_path: Path
) -> None:
    with pytest.raises(BenchError, match="no finished run in"):
        quick(runs=tmp_path / "none")
    (tmp_path / "file").write_text("")
    with pytest.raises(BenchError, match="is no folder"):
        quick(out=tmp_path / "file")
    for path in runs.rglob("*.npz"):
        path.unlink()
    with pytest.raises(BenchError, match="none of these runs can be published"):
        quick()
    assert not out.exists()


# --- the check ---


def differences(out: Path) -> list[str]:
    return [
        f"{report.name}: {one.what}: {one.why}"
        for report in check(out)
        for one in report.differences
    ]


@pytest.mark.slow
def test_whatever_is_altered_is_found(quick: Publish, runs: Path, out: Path) -> None:
    quick()
    made_run(runs, "promptbert", 1, suites=("check",))
    quick()
    assert differences(out) == []
    kept = contents(out)

    def restore() -> None:
        shutil.rmtree(out)
        for name, data in kept.items():
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            (out / name).write_bytes(data)

    for name in (
        "v1/index.html",
        "v2/tables.json",
        next(one for one in kept if one.endswith(".npz")),
    ):
        (out / name).write_bytes(kept[name] + b" ")
        version, _, inside = name.partition("/")
        found = differences(out)
        assert f"{version}: {inside}: changed since it was published" in found
        assert all(inside in one for one in found), (
            "a version that leaves the file there says it, too"
        )
        restore()
    (out / "v1" / "more.html").write_text("")
    assert differences(out) == ["v1: more.html: not in the manifest"]
    restore()
    (out / "index.html").write_text("")
    assert [one.partition(": ")[2] for one in differences(out)] == [
        "index.html: changed since it was published"
    ]
    restore()
    shutil.rmtree(out / "v1")
    found = [one.partition(": ")[2] for one in differences(out)]
    assert "v1: it was published and is missing" in found and any(
        "missing: v1 is not beside v2" in one for one in found
    )
    restore()
    shutil.copytree(out / "v2", out / "v3")
    assert any("v3: it is not in versions.json" in one for one in differences(out))


def test_who_alters_a_file_and_its_manifest_is_found_out_too(
    quick: Publish, runs: Path, out: Path
) -> None:
    quick()
    made_run(runs, "promptbert", 1, suites=("check",))
    quick()
    (out / "v1" / "README.md").write_text("better")
    manifest = json.loads((out / "v1" / "MANIFEST.json").read_bytes())
    manifest["files"]["README.md"] = hashlib.sha256(b"better").hexdigest()
    (out / "v1" / "MANIFEST.json").write_text(json.dumps(manifest))
    found = differences(out)
    assert any(
        one.startswith("v2: v1/MANIFEST.json: v2 was published after another v1") for one in found
    )
    assert any("v1/MANIFEST.json: changed since it was published" in one for one in found)
    with pytest.raises(BenchError, match="not as it was published"):
        quick(anyway=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        '{"schema": "bench.version/1"}',
        '{"schema": "bench.version/9"}',
        '{"schema": "bench.version/1", "runs": [{}]}',
    ],
)
def test_a_version_that_cannot_be_read_is_one_clear_line(
    quick: Publish, out: Path, content: str
) -> None:
    quick()
    (out / "v1" / "version.json").write_text(content)
    with pytest.raises(DataDamaged, match=r"v1/version.json cannot be read"):
        versions(out)
    assert any(
        one.startswith("v1: version.json: ") and "cannot be read" in one for one in differences(out)
    )
    with pytest.raises(DataDamaged):
        quick(anyway=True)


def test_nothing_to_check_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="no version in"):
        check(tmp_path)


def test_version_json_fits_its_schema(quick: Publish, runs: Path, out: Path) -> None:
    import jsonschema

    quick()
    made_run(runs, "promptbert", 1, suites=("check",))
    quick(note="x")
    schema = json.loads(
        (Path(build.__file__).parent / "schema" / "version-1.schema.json").read_bytes()
    )
    for name in ("v1", "v2"):
        jsonschema.validate(json.loads((out / name / "version.json").read_bytes()), schema)


def test_a_plan_beside_the_versions_is_part_of_the_one_that_follows(
    quick: Publish, runs: Path, out: Path
) -> None:
    quick()
    plan = out / "plans" / "v2.md"
    plan.parent.mkdir()
    plan.write_text("# Question\n\nWhich of both?\n", encoding="utf-8")
    assert check(out)[-1].differences == [], "a plan of what comes next"
    made_run(runs, "conpvp", 7)
    assert quick().name == "v2" and (out / "v2" / "plan.md").read_bytes() == plan.read_bytes()
    page, readme = (
        (out / "v2" / name).read_text(encoding="utf-8") for name in ("index.html", "README.md")
    )
    sha256 = hashlib.sha256(plan.read_bytes()).hexdigest()
    assert (
        'href="plan.md"' in page
        and sha256 in page
        and "[plan](plan.md)" in readme
        and sha256 in readme
    )
    assert (
        "plan.md" not in (out / "v1" / "index.html").read_text(encoding="utf-8")
        and check(out)[-1].differences == []
    )
    plan.write_text("# Question\n\nWhich is better?\n", encoding="utf-8")
    (out / "plans" / "v1.md").write_text("I knew it.\n", encoding="utf-8")
    assert [(one.what, one.why) for one in check(out)[-1].differences] == [
        ("plans/v1.md", "it was written after v1 was published"),
        ("plans/v2.md", "it was changed after v2 was published with it"),
    ]
    (out / "plans" / "v3.md").write_bytes(b"\xff")
    with pytest.raises(BenchError, match="v3.md cannot be read"):
        quick(anyway=True)
    assert not (out / "v3").exists()
