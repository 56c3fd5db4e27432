"""What of the evaluation sets stands in a run's corpus: a section of plain text rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.runs.record import RunRecord
from bench.tables.section import Section

TITLE = "sentences of the evaluation sets that stand in the corpus"
HEADING = ("task", "sentences", "the same", "nearly", "%", "rows of the corpus")


def of_record(record: RunRecord) -> Section:
    return section((record.provenance.corpus or {}).get("overlap"))


def section(overlap: Any) -> Section:
    """Of what a record keeps as ``provenance.corpus["overlap"]``. A task of which nothing was found is named in one last row;
    no rows where nothing was recorded."""
    tasks = overlap.get("tasks") if isinstance(overlap, Mapping) else None
    rows: list[tuple[str, ...]] = []
    clean: list[str] = []
    for one in tasks if isinstance(tasks, list) else []:
        try:
            found, sentences = int(one["exact"]) + int(one["near"]), int(one["sentences"])
            name = f"{one['suite']}: {one['task']}" + (f" ({one['text']})" if one["text"] else "")
            counts = (f"{sentences:,}", f"{int(one['exact']):,}", f"{int(one['near']):,}")
            if found:
                rows.append((name, *counts, share(found, sentences), f"{int(one['rows']):,}"))
            else:
                clean.append(str(one["task"]))
        except (KeyError, TypeError, ValueError):  # not of this version
            continue
    if clean:
        rows.append(("none of " + ", ".join(dict.fromkeys(clean)), "", "", "", "", ""))
    return Section(TITLE, HEADING, tuple(rows), (1, 2, 3, 4, 5))


def share(part: int, whole: int) -> str:
    """ "4.0", "<0.1": per cent of the whole."""
    percent = 100 * part / whole
    return f"{percent:.1f}" if percent >= 0.1 else "<0.1"
