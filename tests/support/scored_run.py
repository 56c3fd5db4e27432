"""A finished run that was scored for real, on generated pairs with random vectors: made without torch in a moment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from factories import record
from generated import generated
from msgspec.structs import replace

from bench.base.hashes import folder_sha256
from bench.records import RunRecord, RunsFolder, Score
from bench.records.fingerprint import record_fingerprint

DETERMINES = {"precision": "fp32", "dev": None, "places": {"teacher": None}}


def vectors(sentences: Sequence[str]) -> np.ndarray:
    draw = np.random.default_rng(list(sentences[0].encode()))
    return draw.normal(size=(len(sentences), 8)).astype(np.float32)


def finished_run(
    store: RunsFolder, seed: int = 42, weights: float = 0, **changes: Any
) -> RunRecord:
    """Written to ``store`` with predictions and a checkpoint; everything about it agrees. Other ``weights`` predict otherwise."""
    task = generated()
    result = task.score(lambda sentences: vectors(sentences) + weights * vectors(sentences[::-1]))
    score = Score(**{name: getattr(result, name) for name in Score.__struct_fields__})
    made = record(seed=seed, scores=(score,), recipe={"teacher": None, "epochs": 1})
    made = replace(
        made,
        provenance=replace(made.provenance, data={"CHECK": task.sha256}, determines=DETERMINES),
    )
    of = record_fingerprint(made)
    assert of is not None
    made = replace(made, fingerprint=of, run_id=f"simcse-builtin-s{seed}-{of[:8]}")
    folder = store.folder(made.run_id)
    (folder / "checkpoint").mkdir(parents=True)
    (folder / "checkpoint" / "method.json").write_text('{"method": "simcse"}\n')
    store.write_predictions(made.run_id, "CHECK", None, result.predictions)
    made = replace(made, checkpoint=folder_sha256(folder / "checkpoint"), **changes)
    store.write(made)
    return made


def predictions(store: RunsFolder, run: RunRecord) -> Path:
    return store.predictions_path(run.run_id, "CHECK", None)
