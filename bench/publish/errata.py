"""What a publisher found out about a version later: a text that stands beside it, for the version itself never changes."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.base.errors import BenchError, DataDamaged, one_line

ERRATA, SCHEMA = "errata.json", "bench.errata/1"
LONGEST = 2_000  # characters of a text


@dataclass(frozen=True)
class Erratum:
    """``date``: the day on which it was published, in UTC: "2026-11-23"."""

    version: str  # "v1"
    date: str
    text: str

    def words(self) -> str:
        return f"Erratum to {self.version}, {self.date}: {self.text}"


def made_erratum(version: str, text: str, known: Sequence[Erratum], date: str | None = None) -> Erratum:
    """Raises BenchError where the text says nothing, is too long, or stands there already."""
    from bench.compare.formatting import visible

    said = visible(text, limit=None)
    if not said:
        raise BenchError(f"--erratum {version}: the text is empty", 'bench publish --erratum v1 "what was wrong, and since when"')
    if len(said) > LONGEST:
        raise BenchError(f"--erratum {version}: {len(said):,} characters; {LONGEST:,} at most", "say it in short, and link to the rest")
    if any((erratum.version, erratum.text) == (version, said) for erratum in known):
        raise BenchError(f"{version} has this erratum already", "bench publish --check")
    return Erratum(version, date or datetime.now(UTC).date().isoformat(), said)


def read_errata(out: Path) -> tuple[Erratum, ...]:
    """In the order in which they were published; none where there is no file. Raises DataDamaged."""
    from bench.runs.reading import loads

    path = out / ERRATA
    if not path.is_file():
        return ()
    try:
        content = loads(path.read_bytes())
        if content["schema"] != SCHEMA:
            raise ValueError(f"it is of another schema than {SCHEMA}")
        found = tuple(Erratum(entry["version"], entry["date"], entry["text"]) for entry in content["errata"])
        if not all(isinstance(part, str) for erratum in found for part in asdict(erratum).values()):
            raise ValueError("version, date and text are texts")
        if odd := [erratum.date for erratum in found if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", erratum.date)]:
            raise ValueError(f"'{odd[0][:20]}' is no day")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        what = one_line(error)
        raise DataDamaged(f"{path} cannot be read: {what}", "restore it from where it was published (git checkout)") from None
    return found


def errata_bytes(errata: Sequence[Erratum]) -> bytes:
    content = {"schema": SCHEMA, "errata": [asdict(erratum) for erratum in errata]}
    return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()
