"""The senders that rows of submitted runs name. Rows are made by name, and a name proves nothing.

So two runs of one name share a row only if they came together (``bench.compare.together``) and
neither would replace the other; and none joins the row of a published run.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence

from bench.compare.statistics.terms import configuration
from bench.records.record import RunRecord

NUMBERED = re.compile(r"\((?:\d+|[0-9a-f]{8})\)$")
"""The ending of the names of rows that must be kept apart."""


def plain_name(label: str) -> str:
    """Return the sender's name in the label of a row: "Ada (2)" -> "Ada"."""
    return NUMBERED.sub("", label).rstrip()


def row_labels(
    submitted: Sequence[tuple[RunRecord, str]],
    published: Iterable[str],
    together: Mapping[str, frozenset[str]] = {},
) -> dict[str, str]:
    """Return run id -> the sender as its row names it.

    ``submitted``: (record, name) of runs that no version has; ``published``: the senders that rows
    of published runs name; ``together``: run id -> a mark that runs share if they came together
    (``bench.compare.together``), empty for a single one.

    Runs under a name that the board has already get a number after it, and so their own rows. Runs
    of one name that would share a row do so only if they came together and none would replace
    another, because the seed is the same or the code of the method is another. Else the name is
    followed by the beginning of a hash.
    """
    taken = set(published)
    numbers: dict[str, str] = {}
    for _, name in submitted:
        numbers.setdefault(name, _next_label(name, taken))
    rows: dict[tuple[str, str], list[RunRecord]] = {}
    for record, name in submitted:
        rows.setdefault((name, _row(record)), []).append(record)
    labels: dict[str, str] = {}
    for (name, _), records in rows.items():
        groups = _groups_of(records, together)
        for group in groups:
            label = numbers[name] if len(groups) == 1 else f"{name} ({_hash_of(group)})"
            for record in group:
                labels[record.run_id] = label
    return labels


def _groups_of(
    records: Sequence[RunRecord], together: Mapping[str, frozenset[str]]
) -> list[list[RunRecord]]:
    """Return the runs of one row and name, in groups that may share it."""
    came: dict[frozenset[str], list[RunRecord]] = {}
    groups: list[list[RunRecord]] = []
    for record in records:
        others = together.get(record.run_id)
        if others:
            came.setdefault(others, []).append(record)
        else:
            groups.append([record])
    for group in came.values():
        seeds = {record.seed for record in group}
        codes = {record.provenance.plugin.sha256 for record in group}
        if len(seeds) == len(group) and len(codes) == 1:
            groups.append(group)
        else:
            groups += [[record] for record in group]
    return groups


def _hash_of(records: Sequence[RunRecord]) -> str:
    """Return eight digits that differ for any two groups of records: fingerprints may be copied."""
    digests = []
    for record in records:
        content = json.dumps(record.to_json(), sort_keys=True)
        digests.append(hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest())
    if len(digests) == 1:
        return digests[0][:8]
    return hashlib.sha256("".join(sorted(digests)).encode()).hexdigest()[:8]


def _next_label(name: str, taken: set[str]) -> str:
    """Return the name, or if the board has runs under it, the name with the first number that is
    free.
    """
    if not any(plain_name(label) == name for label in taken):
        return name
    number = 2
    while f"{name} ({number})" in taken:
        number += 1
    return f"{name} ({number})"


def _row(record: RunRecord) -> str:
    """Return the row key of ``bench.compare.statistics.rows.group_rows`` without the sender."""
    place = (record.method, record.variant, record.setting, record.backbone_name)
    return json.dumps([place, configuration(record)], sort_keys=True)
