"""Values that are typed as one text: lists with commas, KEY=VALUE."""

from __future__ import annotations

from collections.abc import Sequence

from bench.base.errors import BenchError


def comma_list(text: str | None) -> tuple[str, ...]:
    """Split "a,b" into ("a", "b"); blanks and empty parts are dropped."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


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
