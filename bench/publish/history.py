"""Over versions: a line per method of the newest main table, its average and rank in each version, and what moved it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.compare.formatting import listed, score, span_words, visible
from bench.publish.versions import VERSION_FILE, Version
from bench.runs.reading import loads

MOST = 6
"""Versions that are shown, the newest ones."""


@dataclass(frozen=True, kw_only=True)
class HistoryRow:
    """One method."""

    method: str  # with its variant and whatever else sets it apart
    cells: tuple[tuple[str, str], ...]  # of each version: average and rank; empty where it was not there
    moved: str  # what moved it, version by version; "unchanged" where nothing did


@dataclass(frozen=True, kw_only=True)
class History:
    """One table over the versions that have it, the oldest first."""

    caption: str  # "sts, unsupervised, builtin: Avg."
    versions: tuple[str, ...]
    rows: tuple[HistoryRow, ...]


def history(versions: Sequence[Version]) -> History | None:
    """Of the newest version's first table; None where fewer than two versions have it, or one of them cannot be read."""
    try:
        return _history(versions)
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
        return None  # the page of versions is no place to refuse; `bench publish --check` says what was altered


def _history(versions: Sequence[Version]) -> History | None:
    found: list[tuple[Version, Mapping[str, Any]]] = []
    anchor = ""
    for version in reversed(versions[-MOST:]):
        tables = loads((version.folder / "tables.json").read_bytes())["tables"]
        anchor = anchor or str(tables[0]["anchor"])
        table = next((other["table"] for other in tables if other["anchor"] == anchor), None)
        if table is not None:
            found.insert(0, (version, table))
    if len(found) < 2:
        return None
    newest = found[-1][1]
    head = str(newest["columns"][-1])
    rows_of = [{_same(row): row for row in reversed(table["rows"])} for _, table in found]
    changes = [
        {},
        *(loads((published_version.folder / VERSION_FILE).read_bytes())["changes"] or {} for published_version, _ in found[1:]),
    ]
    rows = []
    for row in newest["rows"]:
        there = [by_name.get(_same(row)) for by_name in rows_of]
        moved = [_moved((found[i - 1][0], found[i][0]), (there[i - 1], there[i]), changes[i], newest, head) for i in range(1, len(found))]
        told = [f"{found[i + 1][0].name}: {words}" for i, words in enumerate(moved) if words]
        name = " ".join(
            str(part) for part in (row["method"], row["variant"], *(f"{key}={value}" for key, value in row["differs"].items())) if part
        )
        rows.append(
            HistoryRow(
                method=visible(name),
                cells=tuple(_cell(one, head) for one in there),
                moved=visible("; ".join(told), limit=None) or "unchanged",
            )
        )
    caption = ", ".join(str(newest[key]) for key in ("suite", "setting", "backbone") if newest[key] and newest[key] != "none")
    return History(
        caption=visible(f"{caption}: {head}"),
        versions=tuple(published_version.name for published_version, _ in found),
        rows=tuple(rows),
    )


def _same(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (str(row["method"]), str(row["variant"]), *(f"{key}={value}" for key, value in sorted(row["differs"].items())))


def _cell(row: Mapping[str, Any] | None, head: str) -> tuple[str, str]:
    if row is None:
        return "", ""
    cell = row["cells"].get(head)
    return "" if cell is None else score(float(cell["mean"]), int(cell.get("decimals", 2))), _rank(row["rank"])


def _rank(rank: object) -> str:
    """Versions of the first statistics have one number, that of a group; the later ones the first and the last that a row may have."""
    return str(rank) if isinstance(rank, int) else span_words(rank) if isinstance(rank, list) else ""


def _moved(
    versions: tuple[Version, Version],
    rows: tuple[Mapping[str, Any] | None, Mapping[str, Any] | None],
    changes: Mapping[str, Any],
    table: Mapping[str, Any],
    head: str,
) -> str:
    """Why a row is another one than in the version before; "" where it is the same. ``changes``: what the later version says of them."""
    (before, after), (old, new) = versions, rows
    if new is None or old is None:
        return "" if new is old else "new" if old is None else "not there"
    (was, was_rank), (now, rank) = _cell(old, head), _cell(new, head)
    if (was, was_rank) == (now, rank):
        return ""
    name = f"{new['method']}+{new['variant']}" if new["variant"] else str(new["method"])
    place = (name, table["setting"], table["backbone"], table["suite"], table["protocol"], table["text"])

    def why(kind: str, tasks: tuple[str, ...]) -> list[str]:
        return [
            str(reason)
            for entry in changes.get(kind, ())
            for reason in entry["why"]
            if tuple(entry[key] for key in ("method", "setting", "backbone", "suite", "protocol", "text")) == place
            and entry["task"] in tasks
        ]

    told = ([f"average {was} before"] if was != now else []) + ([f"rank {was_rank or 'none'} before"] if was_rank != rank else [])
    reasons = list(dict.fromkeys(why("scores", tuple(table["columns"])) if was != now else why("verdicts", (head,))))
    if not reasons and was == now:  # a rank is of all pairs of rows
        same = before.statistics == after.statistics
        reasons = ["other rows of the table"] if same else [f"statistics: version {before.statistics} before, {after.statistics} now"]
    return f"{listed(told)}{f' ({listed(reasons)})' if reasons else ''}"
