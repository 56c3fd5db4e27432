"""Joules of a training: added up over its pieces and ranks, recorded, and compared."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from bench.compare.statistics.table import RowCost
from bench.method.ranks import ALONE
from bench.show.tables.data import _cost_facts
from bench.show.tables.scores import cost_texts
from bench.training.progress import Progress
from bench.training.trainer import Trainer


def counted(joules: float | None, before: float | None) -> float | None:
    meter = SimpleNamespace(take=lambda: joules)
    trainer: Any = SimpleNamespace(ranks=ALONE, meter=meter, progress=Progress(joules=before))
    Trainer.count_energy(trainer)
    return trainer.progress.joules  # type: ignore[no-any-return]


def test_a_resumed_training_adds_to_what_it_used_before() -> None:
    assert counted(2.5, 5.0) == 7.5
    assert counted(2.5, None) == 2.5
    assert counted(None, 5.0) == 5.0
    assert counted(None, None) is None


def test_compare_shows_energy_only_if_it_was_counted() -> None:
    row: Any = SimpleNamespace(cost=RowCost(energy_joules=84_100.0))
    assert cost_texts(row)["energy"] == ("84.1kJ", 84_100.0)
    assert _cost_facts(row.cost)["energy_joules"] == 84_100.0
    row = SimpleNamespace(cost=RowCost())
    assert cost_texts(row)["energy"] == ("", None)
    assert "energy_joules" not in _cost_facts(row.cost)
