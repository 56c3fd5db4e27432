"""A run that was trained for real: its record agrees with its files, and its checkpoint gives the same predictions."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from commands import bench
from factories import record
from msgspec.structs import replace

from bench.base.errors import BenchError
from bench.run.plugins import Plugin
from bench.runs import RecipeValue, RunRecord


@pytest.mark.slow
def test_a_trained_run_agrees_in_everything(finished: tuple[Path, Result]) -> None:
    runs, done = finished
    assert done.exit_code == 0, done.output
    found = bench("verify", "--runs", runs, "--retrain-free", "--device", "cpu")
    assert found.exit_code == 0, found.output
    assert (
        "checkpoint, fingerprint, 1 task encoded again" in " ".join(found.output.split())
        and "not checked" not in found.output
    )


@pytest.mark.parametrize("what", ["weights", "no file"])
def test_a_checkpoint_that_is_not_the_one_that_was_scored(
    finished: tuple[Path, Result], tmp_path: Path, what: str
) -> None:
    from safetensors.numpy import load_file, save_file

    runs = tmp_path / "runs"
    shutil.copytree(finished[0], runs)
    (file,) = runs.glob("*/checkpoint/trained.safetensors")
    if what == "weights":
        tensors: dict[str, Any] = load_file(file)
        save_file(
            {
                name: values[::-1].copy() if values.ndim == 2 else values
                for name, values in tensors.items()
            },
            file,
        )
    else:
        file.unlink()
    found = bench("verify", "--runs", runs, "--retrain-free", "--device", "cpu")
    words = " ".join(found.output.split())
    assert found.exit_code == 1 and "checkpoint: trained.safetensors" in words
    assert ("comes out" if what == "weights" else "it cannot be encoded again") in words
    assert "1 score" in words, "the scores themselves still follow from the predictions"


def test_a_backbone_that_is_not_here_is_not_checked_and_no_difference(
    finished: tuple[Path, Result], tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    shutil.copytree(finished[0], runs)
    (file,) = runs.glob("*/run.json")
    made = json.loads(file.read_text())
    made["backbone"] = made["provenance"]["backbone"]["name"] = str(tmp_path / "gone" / "tiny")
    file.write_text(json.dumps(made))
    found = json.loads(
        bench("verify", "--runs", runs, "--retrain-free", "--device", "cpu", "--json").stdout
    )
    (told,) = [one for one in found["findings"] if one["kind"] == "encoding"]
    assert found["differ"] == 0 and told["outcome"] == "unchecked" and "gone/tiny" in told["why"], (
        found
    )


@pytest.mark.slow
def test_of_a_submission_no_path_is_opened_that_the_record_names(tmp_path: Path) -> None:
    """Word vectors of the sender's machine are those of the receiver's here: an own run opens them, a submission does not."""
    vectors = tmp_path / "vectors.txt"
    vectors.write_text(
        "".join(
            f"{word} {i} {i * i % 7}.5\n"
            for i, word in enumerate(
                ["a", "the", "man", "woman", "dog", "is", "in", "on", "of", "and", "two", "with"], 1
            )
        )
    )
    done = bench(
        "run",
        "--method",
        "glove-avg",
        "--set",
        f"vectors={vectors}",
        "--suite",
        "check",
        "--runs",
        tmp_path / "runs",
    )
    assert done.exit_code == 0, done.output
    (run,) = (path.parent for path in (tmp_path / "runs").glob("*/run.json"))
    assert bench("submit", run, "--to", tmp_path / "a.zip", "--by", "Eve").exit_code == 0
    own = bench("verify", run, "--retrain-free", "--device", "cpu")
    assert own.exit_code == 0 and "1 task encoded again" in " ".join(own.output.split()), own.output
    vectors.write_text("not word vectors: whoever reads this says so\n")
    found = " ".join(
        bench(
            "verify",
            tmp_path / "a.zip",
            "--runs",
            tmp_path / "runs",
            "--retrain-free",
            "--device",
            "cpu",
        ).output.split()
    )
    assert (
        f"the record names vectors={str(vectors)[:80]}, which is neither in the submission nor"
        in found
        and "whoever reads" not in found
    )
    assert not (tmp_path / "runs" / ".verified").exists()


class Placed:
    """What of a method's class says which recipe keys are places."""

    own_backbone = None
    places = ("teacher",)


COMMIT = "0123456789abcdef0123456789abcdef01234567"


def of(
    backbone: str = "builtin", revision: str = "e" * 40, teacher: str | None = None
) -> RunRecord:
    made = record("simcse", 1, backbone=backbone)
    recipe = {**made.recipe, "teacher": RecipeValue(value=teacher, source="x")}
    return replace(
        made,
        recipe=recipe,
        provenance=replace(made.provenance, backbone={"name": backbone, "revision": revision}),
    )


@pytest.mark.parametrize(
    "named",
    [
        of(),
        of("owner/model", COMMIT),
        of("bert-base-uncased", COMMIT),
        of(f"owner/model@{COMMIT}", COMMIT),
        of(teacher="builtin"),
        of(teacher=f"owner/model@{COMMIT}"),
    ],
    ids=lambda one: f"{one.backbone} {one.recipe['teacher'].value}",
)
def test_what_a_submission_may_name(named: RunRecord) -> None:
    from bench.verify.reencode import _refuse_outside

    _refuse_outside(named, Plugin("simcse", Placed, "x", "1", "0" * 64))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "named",
    [
        of("/etc", COMMIT),
        of("./model", COMMIT),
        of("../model", COMMIT),
        of("~/model", COMMIT),
        of("a/b/c", COMMIT),
        of("here", COMMIT),
        of("here/run", COMMIT),
        of("owner/model", "main"),
        of("owner/model", "unknown"),
        of("owner/model", "e" * 64),
        of("owner/model", COMMIT.upper()),
        of("", COMMIT),
        of(f"here@{COMMIT}", COMMIT),
        of(teacher="/etc/passwd"),
        of(teacher="owner/model"),
        of(teacher="owner/model@main"),
        of(teacher=f"here@{COMMIT}"),
        of(teacher=""),
    ],
    ids=lambda one: f"{one.backbone} {one.recipe['teacher'].value}"[:40],
)
def test_what_a_submission_may_not_name(
    named: RunRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bench.verify.reencode import _refuse_outside

    (tmp_path / "here" / "run").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        BenchError, match="neither in the submission nor a model of the hub at a revision"
    ):
        _refuse_outside(named, Plugin("simcse", Placed, "x", "1", "0" * 64))  # type: ignore[arg-type]
