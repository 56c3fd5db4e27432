"""A finished run that was scored for real, on generated pairs with random vectors, without
torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from factories import DETERMINES, record, with_fingerprint, write_run
from generated import generated
from msgspec.structs import replace

from bench.base.hashes import folder_sha256
from bench.records import RunRecord, RunsFolder, Score


def vectors(sentences: Sequence[str]) -> np.ndarray:
    draw = np.random.default_rng(list(sentences[0].encode()))
    return draw.normal(size=(len(sentences), 8)).astype(np.float32)


def finished_run(
    store: RunsFolder, seed: int = 42, weights: float = 0, **changes: Any
) -> RunRecord:
    """Write a run with predictions and a checkpoint that agree with each other.

    Other ``weights`` give other predictions.
    """
    task = generated()
    result = task.score(lambda sentences: vectors(sentences) + weights * vectors(sentences[::-1]))
    score = Score(**{name: getattr(result, name) for name in Score.__struct_fields__})
    made = record(seed=seed, scores=(score,), recipe={"teacher": None, "epochs": 1})
    made = replace(
        made,
        provenance=replace(made.provenance, data={"CHECK": task.sha256}, determines=DETERMINES),
    )
    made = with_fingerprint(made)
    folder = store.folder(made.run_id)
    (folder / "checkpoint").mkdir(parents=True)
    (folder / "checkpoint" / "method.json").write_text('{"method": "simcse"}\n')
    made = replace(made, checkpoint=folder_sha256(folder / "checkpoint"), **changes)
    write_run(store, made, [(score, result.predictions)])
    return made


def predictions(store: RunsFolder, run: RunRecord) -> Path:
    return store.predictions_path(run.run_id, "CHECK", "check/1")
