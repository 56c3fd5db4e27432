"""A finished run with files deleted, cut short or altered: the same command makes them again, or
says which command does.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result
from commands import argv, bench, error_line, the_run, tree

Hurt = Callable[[Path], None]


def delete(file: Path) -> None:
    file.unlink()


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def alter(file: Path) -> None:
    """Another number in it, of the same size."""
    if file.suffix == ".npz":
        arrays = dict(np.load(file))
        arrays["prediction"][0] += 0.25
        np.savez_compressed(file, **arrays)
        return
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))


@pytest.fixture
def runs(finished: tuple[Path, Result], tmp_path: Path) -> Path:
    """A copy of the runs folder with the finished run."""
    return Path(shutil.copytree(finished[0], tmp_path / "runs"))


def content(folder: Path, *without: str) -> dict[str, str]:
    """File -> hash, without what is named and without the record, because its costs differ."""
    return {
        name: sha
        for name, (_, sha) in tree(folder).items()
        if not name.startswith(("run.json", *without))
    }


def record(runs: Path) -> dict[str, Any]:
    return json.loads((the_run(runs) / "run.json").read_text())


@pytest.mark.nightly
@pytest.mark.parametrize("hurt", [delete, alter])
def test_damaged_predictions_come_again(runs: Path, command: tuple[Any, ...], hurt: Hurt) -> None:
    before, whole = record(runs), content(the_run(runs))
    hurt(the_run(runs) / "predictions" / "captions.npz")
    assert bench("verify", "--runs", runs).exit_code == 1
    done = bench(*command, "--runs", runs)
    assert done.exit_code == 0 and "predictions are made again: captions (" in done.stderr
    after = record(runs)
    for key in ("scores", "training", "status"):
        assert after[key] == before[key]
    assert content(the_run(runs)) == whole
    assert bench("verify", "--runs", runs).exit_code == 0
    assert "was done already, nothing repeated" in bench(*command, "--runs", runs).stderr


def test_vectors_that_were_altered_are_not_taken_for_the_checkpoints(
    runs: Path, command: tuple[Any, ...]
) -> None:
    before = record(runs)["scores"]
    (the_run(runs) / "predictions" / "captions.npz").unlink()
    (vectors,) = (the_run(runs) / "vectors").glob("*.f32")
    numbers = np.fromfile(vectors, dtype="<f4")
    np.random.default_rng(0).shuffle(numbers)
    numbers.tofile(vectors)
    assert bench(*command, "--runs", runs).exit_code == 0
    assert record(runs)["scores"] == before


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("part", "hurt"), [("folder", shutil.rmtree), ("trained.safetensors", alter)]
)
def test_a_lost_checkpoint_is_one_line_and_following_it_helps(
    runs: Path, command: tuple[Any, ...], part: str, hurt: Hurt
) -> None:
    place = the_run(runs) / "checkpoint"
    file = place if part == "folder" else place / part

    def kept() -> dict[str, tuple[int, str]]:
        return {name: one for name, one in tree(runs).items() if "/checkpoint/" not in name}

    before, rest = tree(runs), kept()
    hurt(file)
    done = bench(*command, "--runs", runs)
    what = "is missing" if part == "folder" else "is cut short or altered"
    assert f"{file} {what}" in error_line(done, 1) and kept() == rest
    assert "the same command with --fresh" in done.stderr.splitlines()[-1]
    again = bench(*command, "--runs", runs, "--fresh")
    assert again.exit_code == 0, again.stderr
    changed = {name for name, (_, sha) in tree(runs).items() if before[name][1] != sha}
    assert changed <= {f"{the_run(runs).name}/{one}" for one in ("run.json", "curve.jsonl")}


@pytest.mark.nightly
def test_a_lost_checkpoint_and_a_new_suite_leave_no_old_score_with_new_weights(
    runs: Path, command: tuple[Any, ...], sts12: Path
) -> None:
    """The bug of issue 15: what was unscored was decided before the training."""
    shutil.rmtree(the_run(runs) / "checkpoint")
    before = record(runs)
    other = [*command, "--runs", runs, "--suite", "check,sts", "--data", sts12, *SAME]
    done = bench(*other)
    assert done.exit_code == 1 and "checkpoint is missing" in done.stderr and record(runs) == before
    done = bench(*other, "--fresh")
    after = record(runs)
    assert {score["task"] for score in after["scores"]} == {"captions", "STS12"}, done.stderr
    assert bench("verify", "--runs", runs).exit_code == 0


@pytest.mark.nightly
def test_a_record_whose_training_is_unknown_is_trained_and_all_its_scores_are_new(
    runs: Path, command: tuple[Any, ...]
) -> None:
    """No score of the old weights stays, also not of a suite that is not scored now."""
    folder, old = the_run(runs), record(runs)
    wrong = {**old["scores"][0], "value": 99.0}
    foreign = {**wrong, "suite": "mteb", "task": "STS12", "protocol": "mteb/2"}
    told = {**old, "training": None, "scores": [wrong, foreign]}
    (folder / "run.json").write_text(json.dumps(told))
    shutil.rmtree(folder / "checkpoint")
    assert bench(*command, "--runs", runs).exit_code == 0
    new = record(runs)
    assert new["scores"] == old["scores"] and set(new["provenance"]["data"]) == {"captions"}
    assert bench("verify", "--runs", runs).exit_code == 0


SAME = ("--set", "select_on=captions dev")  # implied by the suite check: the same run


@pytest.fixture(scope="module")
def sts12(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with one set of the suite."""
    folder = tmp_path_factory.mktemp("data")
    place = "senteval-moses/downstream/STS/STS12-en-test"
    shutil.copytree(shared / "data" / place, folder / place)
    return folder


@pytest.mark.nightly
@pytest.mark.parametrize("part", ["folder", "method.json"])
def test_the_checkpoint_of_what_is_not_trained_is_made_again_at_once(
    tiny: str, tmp_path: Path, part: str
) -> None:
    command = (*argv(f"run --method last-avg --backbone {tiny} --suite check --runs"), tmp_path)
    assert bench(*command).exit_code == 0
    before, whole = record(tmp_path), content(the_run(tmp_path))
    place = the_run(tmp_path) / "checkpoint"
    shutil.rmtree(place) if part == "folder" else cut(place / part)
    done = bench(*command)
    assert done.exit_code == 0 and "made again, because nothing was trained" in done.stderr
    after = record(tmp_path)
    assert content(the_run(tmp_path)) == whole
    assert (after["scores"], after["checkpoint"]) == (before["scores"], before["checkpoint"])
    assert "nothing repeated" in bench(*command).stderr
