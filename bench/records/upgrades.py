"""Older schemas of records: a function for each version that turns its JSON into the next one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from bench.base.errors import OtherSchema, RecordDamaged, printable

SCHEMA, VERSION = "bench.run", 4


def _to_typed_provenance(record: dict[str, Any]) -> dict[str, Any]:
    """Turn version 3 into 4: the objects in ``provenance`` have typed fields, and a null, which
    meant "not recorded", is left out.
    """
    provenance = record.get("provenance")
    if isinstance(provenance, dict):
        provenance = {key: value for key, value in provenance.items() if value is not None}
    return record | {"provenance": provenance}


UPGRADES: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {
    # version 2 adds optional fields: hashes of predictions and checkpoint, inputs of the
    # fingerprint
    1: dict,
    # version 3 adds optional fields: tokens, memory of the host, how the run was executed
    2: dict,
    3: _to_typed_provenance,
}
"""Version n -> the function that turns the JSON object of version n into one of version n + 1."""


def upgrade(content: Any) -> dict[str, Any]:
    """Bring the JSON object of any older schema to this one.

    Raises RecordDamaged for anything else, and for a newer schema.
    """
    if not isinstance(content, dict):
        raise RecordDamaged("the record is not a JSON object")
    name = content.get("schema")
    match = re.fullmatch(re.escape(SCHEMA) + "/(0|[1-9][0-9]{0,5})", str(name))
    if match is None:
        raise RecordDamaged(f"schema: expected '{SCHEMA}/{VERSION}', found {str(name)[:40]!r}")
    version = int(match[1])
    if version > VERSION:
        made = content.get("provenance")
        wrote = made.get("bench_version") if isinstance(made, dict) else None
        raise OtherSchema(
            f"{SCHEMA}/{version}, which a newer bench wrote; this one reads {SCHEMA}/{VERSION}",
            f"bench {printable(str(wrote or 'that wrote it'))[:60]} reads it",
        )
    for older in range(version, VERSION):
        if older not in UPGRADES:
            raise RecordDamaged(f"schema: bench cannot read {SCHEMA}/{older}")
        content = {**UPGRADES[older](content), "schema": f"{SCHEMA}/{older + 1}"}
    return content
