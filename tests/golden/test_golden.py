"""What a rebuilt house must not change is what it was: tools/golden.py says what is held, and
writes it anew where a change is meant.
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
@pytest.mark.parametrize("name", [name for name in golden.FILES if name != "losses.json"])
def test_what_must_not_move_has_not_moved(name: str) -> None:
    assert moved(golden.held(name), golden.as_text(golden.FILES[name]())) == []


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
    """Another processor's last digits may differ, and they grow from step to step."""
    held, now = json.loads(golden.held("losses.json")), golden.losses()
    assert held.keys() == now.keys()
    assert [
        key
        for key in held
        if not all(
            math.isclose(a, b, rel_tol=1e-3, abs_tol=1e-4)
            for a, b in zip(held[key], now[key], strict=True)
        )
    ] == []
