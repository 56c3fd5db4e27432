"""Values that are typed as one text: lists with commas, seeds, KEY=VALUE."""

from __future__ import annotations

from collections.abc import Sequence

from bench.base.errors import BenchError

MOST_SEEDS = 1000
"""The longest range of seeds."""


def comma_list(text: str | None) -> tuple[str, ...]:
    """Split "a,b" into ("a", "b"); blanks and empty parts are dropped."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def parse_seeds(text: str) -> tuple[int, ...]:
    """Read "42" as (42,), "1-5" as (1, 2, 3, 4, 5), "1,7-8" as (1, 7, 8). Raises BenchError."""
    seeds: list[int] = []
    try:
        for part in comma_list(text):
            seeds += _seed_range(part)
    except ValueError:
        seeds = []
    if not seeds:
        raise BenchError(
            f"--seeds {text}: expected numbers or ranges",
            "--seeds 42, --seeds 1-5, or --seeds 1,3,7-9",
        )
    return tuple(dict.fromkeys(seeds))


def _seed_range(part: str) -> Sequence[int]:
    """Read "7" or "7-9". Raises ValueError for an empty or very long range, and for other text."""
    first, dash, last = part.partition("-")
    if not dash:
        return [int(first)]
    numbers = range(int(first), int(last) + 1)
    if not numbers or len(numbers) > MOST_SEEDS:
        raise ValueError(part)
    return numbers


def parse_overrides(pairs: Sequence[str]) -> dict[str, str]:
    """Read the texts KEY=VALUE of ``--set``. A value stays as it was typed; "A,B,C" is a series.

    Raises BenchError for a text without a key or without "=".
    """
    overrides = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        key = name.strip()
        if not equals or not name:
            raise BenchError(
                f"--set {pair}: expected KEY=VALUE", "for example --set batch_size=128"
            )
        if key not in ("prompt", "prompts"):  # a prompt such as "query: " ends in a blank
            value = value.strip()
        overrides[key] = value
    return overrides


def parse_switch(key: str, text: str) -> bool:
    """Read "true" or "false" after ``--set KEY=``; also 1, yes, 0 and no. Raises BenchError."""
    word = text.lower()
    if word in ("true", "1", "yes"):
        return True
    if word in ("false", "0", "no"):
        return False
    raise BenchError(
        f"--set {key}={text}: expected true or false", "it is the same for all runs of a command"
    )
