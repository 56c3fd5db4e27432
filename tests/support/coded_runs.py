"""Runs of SimCSE that differ in their seed, their code and their date."""

from __future__ import annotations

from typing import Any

from factories import record
from msgspec.structs import replace

from bench.records import Code, RunRecord
from bench.records.fingerprint import record_fingerprint

FP32: dict[str, Any] = {"places": {}, "precision": "fp32", "dev": "d" * 64}


def run_of_code(seed: int, code: str = "a", created: str = "", **determines: Any) -> RunRecord:
    one = record("simcse", seed, recipe={"select_on": "STS-B dev"})
    about = replace(
        one.provenance,
        determines=FP32 | determines,
        plugin=Code(package="sentence-bench", version="1", sha256=code * 64),
        created=created or one.provenance.created,
    )
    one = replace(one, provenance=about)
    fingerprint = record_fingerprint(one) or ""
    return replace(one, fingerprint=fingerprint, run_id=f"simcse-builtin-s{seed}-{fingerprint[:8]}")


def renamed(one: RunRecord) -> RunRecord:
    fingerprint = record_fingerprint(one) or ""
    return replace(one, fingerprint=fingerprint, run_id=f"{one.run_id[:17]}{fingerprint[:8]}")


def with_recipe(one: RunRecord, **values: Any) -> RunRecord:
    recipe = dict(one.recipe)
    for key, value in values.items():
        recipe[key] = replace(recipe["epochs"], value=value)
    return renamed(replace(one, recipe=recipe))
