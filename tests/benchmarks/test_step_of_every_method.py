"""Every method with ``step=static`` and ``step=graph`` on the CPU: the plain step's bytes.

Graphs are recorded by a stand-in. A method that no graph follows is eager, and as exact.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from recorded_graph import RecordedGraphs

from bench.method import torch_method
from bench.method.masks import takes_whole_mask, whole_mask
from bench.training.trainer import Trainer

pytestmark = [pytest.mark.nightly, pytest.mark.slow(seconds=120)]

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
VALUES = {"batch_size": 4, "epochs": 9, "max_steps": 100, "max_seq_length": 32}
STEPS = 10


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """benchmarks/card_models.py, and one pass for all lengths under a whole mask, as on a GPU."""
    monkeypatch.syspath_prepend(str(FOLDER))
    import card_models

    def with_mask(inputs: Any, encoder: Any) -> Any:
        if "attention_mask" not in inputs or not takes_whole_mask(encoder):
            return dict(inputs)
        return {**inputs, "attention_mask": whole_mask(inputs["attention_mask"])}

    monkeypatch.setattr(torch_method, "group_by_length", lambda mask: [])
    monkeypatch.setattr(torch_method, "with_whole_mask", with_mask)
    yield card_models
    sys.modules.pop("card_models", None)


def trained(models: Any, place: Any, method: Any, corpus: Any, kind: str) -> SimpleNamespace:
    """Do some steps in one way."""
    step = "eager" if kind == "eager" else "static"
    one = models.copied(method, place, "cpu", "fp32", step=step)
    trainer = Trainer(one, corpus, one.context)
    if kind == "graph" and trainer.static is not None:
        trainer.static.recorder = RecordedGraphs()
    feed = models.feed_of(one, corpus)
    for _ in range(STEPS):
        trainer.step(feed)
    losses = [float(losses["loss"]) for losses in trainer.window]
    replayed = 0 if trainer.static is None else trainer.static.replayed
    return SimpleNamespace(losses=losses, state=one.training_state(), replayed=replayed)


def test_every_method_has_the_plain_steps_bytes(models: Any, tmp_path: Path) -> None:
    place = models.Place("cpu", True, tmp_path)
    different, replayed = [], set()
    for entry in models.entry_points():
        for case in models.cases_of(entry):
            if entry == "stored-prefix" or not case.in_the_loop:
                continue
            method = models.built(case, place, **VALUES)
            corpus = models.corpus_of(case, method, 8)
            plain, *others = (
                trained(models, place, method, corpus, kind)
                for kind in ("eager", "static", "graph")
            )
            for other in others:
                same = all(torch.equal(one, other.state[key]) for key, one in plain.state.items())
                if not same or other.losses != plain.losses:
                    different.append(str(case))
                if other.replayed:
                    replayed.add(case.cls.name)
    assert not different
    assert {"simcse", "angle", "sncse", "matryoshka", "focal-infonce"} <= replayed
