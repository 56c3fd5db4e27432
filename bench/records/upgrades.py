"""Older schemas of records: a function for each version that turns its JSON into the next one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from bench.base.errors import OtherSchema, RecordDamaged, printable
from bench.records.names import RAW, with_text

SCHEMA, VERSION = "bench.run", 5


def _to_typed_provenance(record: dict[str, Any]) -> dict[str, Any]:
    """Turn version 3 into 4: the objects in ``provenance`` have typed fields, and a null, which
    meant "not recorded", is left out.
    """
    provenance = record.get("provenance")
    if isinstance(provenance, dict):
        provenance = {key: value for key, value in provenance.items() if value is not None}
    return record | {"provenance": provenance}


FORMER_TEXTS = {None: "", "tokenised": "", "sccl": "", "raw": RAW, "original": RAW}
"""Text form of a score in version 4 -> what its protocol says of its texts."""


def _to_protocols_of_texts(record: dict[str, Any]) -> dict[str, Any]:
    """Turn version 4 into 5: raw texts are a protocol of their own, and no score has ``text``.

    Raises RecordDamaged for a score on texts that no protocol has.
    """
    scores = record.get("scores")
    if not isinstance(scores, list):
        return record
    upgraded = []
    suites: dict[str, str] = {}  # old key in ``provenance.execution.suites`` -> new key
    for number, score in enumerate(scores):
        if not isinstance(score, dict):
            upgraded.append(score)
            continue
        text = score.get("text")
        if not isinstance(text, str | None) or text not in FORMER_TEXTS:
            raise RecordDamaged(
                f"scores[{number}].text: {str(text)[:40]!r} is a text that no protocol has",
                "read it with the bench that wrote it, or score the run again",
            )
        score = {name: value for name, value in score.items() if name != "text"}
        former = [str(score.get(name)) for name in ("suite", "task", "protocol")]
        if FORMER_TEXTS[text] and isinstance(score.get("protocol"), str):
            score["protocol"] = with_text(score["protocol"], FORMER_TEXTS[text])
        suites[" ".join([*former, text or ""]).strip()] = " ".join(
            [*former[:2], str(score.get("protocol"))]
        )
        upgraded.append(score)
    provenance = record.get("provenance")
    if isinstance(provenance, dict):
        provenance = _with_new_names(provenance, suites)
    return record | {"scores": upgraded, "provenance": provenance}


def _with_new_names(provenance: dict[str, Any], suites: dict[str, str]) -> dict[str, Any]:
    """Return ``provenance`` with the names of version 5 for data, suites and overlaps."""
    provenance = dict(provenance)
    data = provenance.get("data")
    if isinstance(data, dict):
        renamed = {}
        for name, sha256 in data.items():
            task, _, text = str(name).rpartition("@")
            known = FORMER_TEXTS.get(text) if task else None
            if known is None:
                renamed[name] = sha256
            else:
                renamed[f"{task}@{known}" if known else task] = sha256
        provenance["data"] = renamed
    execution = provenance.get("execution")
    if isinstance(execution, dict) and isinstance(execution.get("suites"), dict):
        codes = {suites.get(name, name): code for name, code in execution["suites"].items()}
        provenance["execution"] = execution | {"suites": codes}
    corpus = provenance.get("corpus")
    if isinstance(corpus, dict) and isinstance(corpus.get("overlap"), dict):
        overlap = corpus["overlap"]
        if isinstance(overlap.get("tasks"), list):
            tasks = [_overlap_of_text(count) for count in overlap["tasks"]]
            provenance["corpus"] = corpus | {"overlap": overlap | {"tasks": tasks}}
    return provenance


def _overlap_of_text(count: Any) -> Any:
    """Return the overlap of one task, with what its protocol says of its texts."""
    if not isinstance(count, dict):
        return count
    text = count.get("text")
    known = FORMER_TEXTS.get(text) if isinstance(text, str | None) else None
    return count if known is None else count | {"text": known}


def former_predictions(file: str) -> str:
    """Return the name of a file of predictions beside records before version 5.

    The texts of clustering were named "sccl" and "original": "predictions/AgNews.npz" was
    "predictions/AgNews@sccl.npz".
    """
    name = file.removesuffix(".npz")
    if name.endswith(f"@{RAW}"):
        return f"{name.removesuffix(RAW)}original.npz"
    return f"{name}@sccl.npz"


UPGRADES: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {
    # version 2 adds optional fields: hashes of predictions and checkpoint, inputs of the
    # fingerprint
    1: dict,
    # version 3 adds optional fields: tokens, memory of the host, how the run was executed
    2: dict,
    3: _to_typed_provenance,
    4: _to_protocols_of_texts,
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
