"""Format numbers and names as every verb and page prints them."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable
from typing import Any


def format_duration(seconds: float) -> str:
    """Return "4.2s", "39s", "13m32s", "2h05m", or from two days on "12 days"."""
    if seconds < 9.95:
        return f"{seconds:.1f}s"
    if seconds < 59.5:
        return f"{seconds:.0f}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}m{rest:02d}s"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours}h{minutes:02d}m"
    return f"{hours / 24:,.0f} days"


def format_bytes(count: float) -> str:
    """Return bytes in decimal units: "512 B", "10.6 MB"."""
    if count < 999.95:
        return f"{count:.0f} B"
    for unit in ("kB", "MB", "GB"):
        count /= 1000
        if count < 999.95:
            return f"{count:.1f} {unit}"
    count /= 1000
    return f"{count:,.1f} TB"


def comma_list(text: str | None) -> tuple[str, ...]:
    """Split "a,b" into ("a", "b"); blanks and empty parts are dropped."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def list_names(names: Iterable[str], most: int = 4) -> str:
    """Join names: "a", "a and b", "a, b and c"; above ``most`` "a, b, c, d and 3 more", but never
    "1 more", which a name says as well."""
    known = list(names)
    shown = known if len(known) == most + 1 else known[:most]
    if len(known) > len(shown):
        shown = [*shown, f"{len(known) - most} more"]
    if len(shown) < 2:
        return "".join(shown)
    return ", ".join(shown[:-1]) + " and " + shown[-1]


def looks_like_a_run(name: str) -> bool:
    """Return True for an id or a folder of a run, at least up to the seed: "simcse-builtin-s42",
    "runs/simcse-builtin-s42-1a2b3c4d".
    """
    return re.fullmatch(r".+-(s\d+|any)(-[0-9a-f]{1,8})?/?", name) is not None


def capitalised(text: str) -> str:
    """Return a text with a capital letter at its beginning; the rest stays as it is."""
    return text[:1].upper() + text[1:]


def with_variant(method: str, variant: str) -> str:
    """Return "promcse+eh", as commands write a method with its variant; "promcse" without one."""
    return f"{method}+{variant}" if variant else method


def plural(count: int, noun: str) -> str:
    """Return "1 run" or "1,029 runs"."""
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun}s"


def slug(*parts: str | None, longest: int = 100) -> str:
    """Keep lower-case letters, digits and hyphens: "senteval-all/1" -> "senteval-all-1".

    It is "" if nothing is left.
    """
    text = unicodedata.normalize("NFKD", " ".join(part for part in parts if part))
    plain = re.sub(r"[^a-z0-9]+", "-", text.encode("ascii", "ignore").decode().lower())
    return plain.strip("-")[:longest].strip("-")


def one_value(text: str) -> str:
    """Write one value that may hold commas for ``--set KEY=``."""
    return text.replace(",", "\\,")


def value_text(value: Any) -> str:
    """Format a recipe value: None as "none", True as "true", 3e-05 as "3e-5", lists as JSON."""
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:g}".replace("e-0", "e-").replace("e+0", "e+")
    if isinstance(value, str) and value:
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def seed_ranges(seeds: Iterable[int | None]) -> str:
    """Write seeds as --seeds takes them: [1, 2, 3, 7] -> "1-3,7"; "" if nothing is random."""
    parts: list[list[int]] = []
    for seed in sorted({seed for seed in seeds if seed is not None}):
        if parts and seed == parts[-1][-1] + 1:
            parts[-1].append(seed)
        else:
            parts.append([seed])
    written: list[str] = []
    for part in parts:
        first, last = part[0], part[-1]
        written.append(str(first) if first == last else f"{first}-{last}")
    return ",".join(written)
