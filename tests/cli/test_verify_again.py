"""A run that was trained for real: its record agrees with its files, and its checkpoint gives the
same predictions.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from commands import bench


def verify(runs: Path, *more: str) -> Result:
    return bench("verify", "--runs", runs, "--retrain-free", "--device", "cpu", *more)


@pytest.mark.slow
def test_a_trained_run_agrees_in_everything(finished: tuple[Path, Result]) -> None:
    found = verify(finished[0])
    words = " ".join(found.output.split())
    assert found.exit_code == 0 and "not checked" not in words, found.output
    assert "checkpoint fingerprint encoding" in words and " 1 1 1 1" in words


def test_a_checkpoint_that_is_not_the_one_that_was_scored(
    finished: tuple[Path, Result], tmp_path: Path
) -> None:
    from safetensors.numpy import load_file, save_file

    runs = tmp_path / "runs"
    shutil.copytree(finished[0], runs)
    (file,) = runs.glob("*/checkpoint/trained.safetensors")
    tensors: dict[str, Any] = load_file(file)
    other = {name: v[::-1].copy() if v.ndim == 2 else v for name, v in tensors.items()}
    save_file(other, file)
    found = verify(runs)
    words = " ".join(found.output.split())
    assert found.exit_code == 1 and "checkpoint trained.safetensors: " in words
    assert "it cannot be encoded again" in words
    assert "1 score computed again" in words, (
        "the scores themselves still follow from the predictions"
    )


def test_a_backbone_that_is_not_here_is_not_checked_and_no_difference(
    finished: tuple[Path, Result], tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    shutil.copytree(finished[0], runs)
    (file,) = runs.glob("*/run.json")
    made = json.loads(file.read_text())
    made["backbone"] = made["provenance"]["backbone"]["name"] = str(tmp_path / "gone" / "tiny")
    file.write_text(json.dumps(made))
    found = json.loads(verify(runs, "--json").stdout)
    (told,) = [one for one in found["findings"] if one["kind"] == "encoding"]
    assert found["differ"] == 0 and told["outcome"] == "unchecked"
    assert "gone/tiny" in told["why"]
