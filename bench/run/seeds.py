"""Seeds, as a person types them."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

MOST_SEEDS = 1000
"""The longest range of seeds."""
LARGEST = 2**63 - 1
"""The largest seed that a record holds."""


def parse_seeds(seeds: Any) -> tuple[int, ...]:
    """Read 42, "42", "1-5" or "1,7-9", or several numbers, as (42,) or (1, 2, 3, 4, 5), each once.

    Raises ValueError for anything else, for a range that is empty or longer than a thousand, and
    for a seed that no record could hold.
    """
    if isinstance(seeds, str):
        numbers = _numbers_of(seeds)
    elif isinstance(seeds, Iterable):
        numbers = [_number_of(seed) for seed in seeds]
    else:
        numbers = [_number_of(seeds)]
    if not numbers or min(numbers) < 0 or max(numbers) > LARGEST:
        raise ValueError("expected whole numbers from 0, such as 42, 1-5 or 1,7-9")
    return tuple(dict.fromkeys(numbers))


def _number_of(seed: Any) -> int:
    """Return a number of Python or numpy; -1 for anything else."""
    if isinstance(seed, bool):
        return -1
    try:
        return operator.index(seed)
    except TypeError:
        return -1


def _numbers_of(text: str) -> list[int]:
    """Return the numbers of "1,7-9"; none if a part is no number or range."""
    numbers: list[int] = []
    for part in text.split(","):
        if not part.strip():
            continue
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            return []
        begin = int(first)
        end = int(last) if dash else begin
        if not 0 <= end - begin < MOST_SEEDS:
            return []
        numbers += range(begin, end + 1)
    return numbers
