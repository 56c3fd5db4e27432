"""benchmarks/training.py: the clock, the pairs, and the sides on a tiny backbone. How fast they are is not asked here."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from models import sentences
from scipy.stats import spearmanr

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
PAIRS = [
    ("a man", "a woman", 1.0),
    ("a dog runs fast", "the dog runs", 4.5),
    ("oil", "market prices", 2.0),
    ("a", "a", 5.0),
]


@pytest.fixture
def sides(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(FOLDER))
    import training_sides

    yield training_sides
    for name in ("training_sides", "training", "machine"):
        sys.modules.pop(name, None)


def test_the_warm_up_is_left_out_and_what_came_before_is_shared(sides: Any) -> None:
    clock = sides.Clock(now=float)
    clock.starts = [
        0.0,
        100.0,
        101.0,
        102.0,
        103.0,
        104.0,
        106.0,
        108.0,
        999.0,
    ]  # one look after the last step
    clock.before = 4.0
    assert clock.seconds_per_step(8) == 2.0 + 0.5
    assert clock.seconds_per_step(4) == 1.0 + 1.0  # fewer steps, a shorter warm-up


def test_senteval_scores_every_split_by_itself(sides: Any) -> None:
    asked: list[int] = []

    def batcher(texts: Any) -> np.ndarray:
        asked.append(len(texts))
        return np.array([[len(text), text.count("a") + 1.0, 1.0] for text in texts])

    def by_hand(pairs: Any) -> float:
        a, b = (batcher([pair[i] for pair in pairs]) for i in (0, 1))
        cosines = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
        return float(spearmanr(cosines, [pair[2] for pair in pairs]).statistic)

    assert sides.senteval([PAIRS, PAIRS * 40], batcher) == pytest.approx(
        [by_hand(PAIRS), by_hand(PAIRS * 40)]
    )
    assert asked[:6] == [4, 4, 128, 128, 32, 32]


@pytest.mark.parametrize("name", ["Trainer as SimCSE's script", "bench", "bench, cached"])
def test_a_side_takes_all_its_steps_and_evaluates(sides: Any, tiny: str, name: str) -> None:
    distinct = list(dict.fromkeys(sentences(60, seed=3)))[:24]
    setup = sides.Setup(
        tiny, distinct, 6, 4, 32, 2, "cpu", "fp32", dev=PAIRS, everything=[PAIRS, PAIRS]
    )
    clock = sides.SIDES[name](setup)
    assert len(clock.starts) >= 6 and clock.seconds_per_step(6) > 0 and clock.evaluation > 0
    assert clock.starts == sorted(clock.starts)
