"""Plans, losses and scores that a refactoring must not change; tools/golden.py lists them, and
rewrites them if a change is intended.
"""

from __future__ import annotations

import json
import math
import re

import golden
import pytest

NUMBER = re.compile(r"(-?\d+\.\d+(?:e-?\d+)?)")


def moved(before: str, now: str) -> list[str]:
    """Lines that differ by more than the last digits of their numbers (a score's fourth decimal),
    which are another processor's.
    """
    old, new = before.splitlines(), now.splitlines()
    pairs = [(a, b) for a, b in zip(old, new, strict=False) if not alike(a, b)]
    return [f"{a[:300]} -> {b[:300]}" for a, b in pairs] + old[len(new) :] + new[len(old) :]


def alike(a: str, b: str) -> bool:
    first, second = NUMBER.split(a), NUMBER.split(b)
    if first[::2] != second[::2]:
        return False
    return all(
        math.isclose(float(x), float(y), rel_tol=3e-6, abs_tol=1e-9)
        for x, y in zip(first[1::2], second[1::2], strict=True)
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "compare.json",
        pytest.param("plans.json", marks=pytest.mark.nightly),
        pytest.param("scores.json", marks=pytest.mark.nightly),
    ],
)
def test_golden_numbers_have_not_moved(name: str) -> None:
    assert moved(golden.held(name), golden.as_text(golden.FILES[name]())) == []


@pytest.mark.slow
def test_the_plans_of_one_backbone_have_not_moved() -> None:
    """Plans of the built-in backbone, with fingerprints; nightly, of all five."""
    backbones = ("builtin",)
    every = json.loads(golden.held("plans.json"))
    held = {key: plan for key, plan in every.items() if key.endswith(backbones)}
    now = golden.plans(backbones)
    assert len(now) > 100
    assert moved(golden.as_text(held), golden.as_text(now)) == []


@pytest.mark.slow
def test_the_score_of_one_encoder_has_not_moved() -> None:
    """Nightly, the scores of all four encoders."""
    held = json.loads(golden.held("scores.json"))["first-last-avg"]
    now = golden.scores(["first-last-avg"])["first-last-avg"]
    assert moved(json.dumps(held), json.dumps(now)) == []


def test_a_move_is_noticed() -> None:
    assert moved("a,1.0000000001\n", "a,1.0000000002\n") == []
    assert (
        moved("a,1.0\nb\n", "a,1.01\nb\n")
        and moved("a,1.0\n", "b,1.0\n")
        and moved("a\n", "a\nb\n")
    )


@pytest.mark.nightly
@pytest.mark.slow(seconds=60)
def test_no_loss_has_moved() -> None:
    """Another processor rounds otherwise, by 1e-5 at most in the first steps. A high learning rate
    and Barlow's batch statistics make that grow: it is 4e-3 and 1e-2 after the tenth step.
    """
    held, now = json.loads(golden.held("losses.json")), golden.losses()
    assert held.keys() == now.keys()
    assert [key for key in held if not are_equal_losses(held[key], now[key])] == []


def are_equal_losses(held: list[float], now: list[float]) -> bool:
    """Compare the first three steps closely: there a changed loss or recipe shows."""
    first = all_close(held[:3], now[:3], 1e-4)
    next_ones = all_close(held[3:10], now[3:10], 1e-2)
    return first and next_ones and all_close(held[10:], now[10:], 3e-2)


def all_close(first: list[float], second: list[float], tolerance: float) -> bool:
    pairs = zip(first, second, strict=True)
    return all(math.isclose(a, b, rel_tol=tolerance, abs_tol=1e-5) for a, b in pairs)


def test_losses_are_compared_more_closely_at_the_start() -> None:
    held = [1.0] * 20
    assert are_equal_losses(held, [1.00005] * 3 + [1.009] * 7 + [1.029] * 10)
    assert not are_equal_losses(held, [1.0, 1.0, 1.0002] + [1.0] * 17)
    assert not are_equal_losses(held, [1.0] * 9 + [1.02] + [1.0] * 10)
    assert not are_equal_losses(held, [1.0] * 19 + [1.04])
