"""Submitted runs: their folder, and records that a forger changed."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from scored_run import predictions

from bench.base.hashes import values_sha256
from bench.compare.senders import SENDER_FILE
from bench.records import RunRecord, RunsFolder, Score
from bench.records.arrays import read_arrays


@pytest.fixture
def theirs(tmp_path: Path) -> RunsFolder:
    return RunsFolder(tmp_path / "theirs")


def as_submission(store: RunsFolder) -> Path:
    """The only folder of a runs folder, as somebody submits it who does not use ``bench
    submit``.
    """
    (folder,) = store.path.iterdir()
    shutil.rmtree(folder / "checkpoint", ignore_errors=True)
    (folder / SENDER_FILE).write_text("Eve\n")
    return folder


def spoil(store: RunsFolder, run: RunRecord, changes: Mapping[str, Any], **how: Any) -> None:
    """Other predictions, with a record that gives their hash, as a forger writes it."""
    path = predictions(store, run)
    arrays = {**read_arrays(path), **changes}
    np.savez_compressed(path, **arrays)
    sha256 = values_sha256({key: np.asarray(one) for key, one in arrays.items()})
    store.write(replace(run, scores=(replace(run.scores[0], predictions_sha256=sha256, **how),)))


def flipped(store: RunsFolder, run: RunRecord) -> None:
    spoil(store, run, {"prediction": read_arrays(predictions(store, run))["prediction"][::-1]})


def own_suite(store: RunsFolder, run: RunRecord) -> None:
    """An average of a suite that nobody knows: nothing differs, and nothing was computed."""
    score = Score(suite="mine", task="Avg.", protocol="mine/1", metric="spearman", value=99.0, n=10)
    store.write(replace(run, scores=(*run.scores, score)))
