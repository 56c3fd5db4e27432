"""Which runs share a row, and which scores a table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.runs.record import RunRecord, Score

AVERAGE = "Avg."
SENDER = "submitted by"
"""What sets rows apart that others sent in, named even where nothing else has their name: such a row is never the baseline where the
board has one of that name itself."""
Differs = tuple[tuple[str, str], ...]


def by_protocol(record: RunRecord) -> dict[tuple[str, str, str], dict[str, Score]]:
    """(suite, protocol, text form) -> task -> score: what may stand side by side.

    Each set of a third tokenisation has a form of its own ("other-" and a hash), and a set in which there was nothing to split
    a known one; they belong together, under the name of their average's form.
    """
    found: dict[tuple[str, str, str], dict[str, Score]] = {}
    for score in record.scores:
        found.setdefault((score.suite, score.protocol, score.text or ""), {})[score.task] = score
    for suite, protocol in {key[:2] for key in found}:
        others = [key for key in found if key[:2] == (suite, protocol) and key[2].startswith("other-")]
        if not others:
            continue
        mixed = {task: score for key in others for task, score in found.pop(key).items()}
        for key in [key for key in found if key[:2] == (suite, protocol) and AVERAGE not in found[key]]:
            mixed = found.pop(key) | mixed
        forms = "\n".join(f"{task} {score.text}" for task, score in sorted(mixed.items()))
        name = mixed[AVERAGE].text if AVERAGE in mixed else None
        found[suite, protocol, name or f"other-{hashlib.sha256(forms.encode()).hexdigest()[:8]}"] = mixed
    return found


def rows_of(records: Sequence[RunRecord], notes: list[str]) -> list[tuple[list[RunRecord], Differs]]:
    """Runs that differ in nothing but the seed, by seed; with what sets them apart from runs of the same name."""
    named: dict[tuple[str, ...], dict[str, list[RunRecord]]] = {}
    settings: dict[str, dict[str, str]] = {}
    for record in records:
        values = configuration(record)
        settings[record.run_id] = values
        known = (record.provenance.backbone or {}).get("revision")  # the same weights may lie in several folders
        backbone = record.backbone_name if known else record.backbone
        same = named.setdefault((record.method, record.variant, record.setting, backbone), {})
        same.setdefault(json.dumps(values, sort_keys=True), []).append(record)
    rows = []
    for alike in named.values():
        first = [settings[runs[0].run_id] for runs in alike.values()]
        keys = sorted(key for key in {key for values in first for key in values} if key == SENDER or len({v.get(key) for v in first}) > 1)
        for runs in alike.values():
            values = settings[runs[0].run_id]
            differs = tuple((key, values[key]) for key in keys if key in values)
            rows.append((_one_per_seed(runs, differs, notes), differs))
    return rows


def configuration(record: RunRecord) -> dict[str, str]:
    """What besides the seed decides the result, as text."""
    values = {key: _short(value.value) for key, value in record.recipe.items()}
    corpus, backbone = record.provenance.corpus or {}, record.provenance.backbone or {}
    if (ranks := (record.provenance.determines or {}).get("ranks")) is not None:
        values["processes"] = _short(ranks)
    if corpus.get("sha256"):
        values["corpus"] = f"{corpus.get('name', 'corpus')}@{str(corpus['sha256'])[:6]}"
    if backbone.get("revision"):
        values["backbone revision"] = str(backbone["revision"])[:8]
    return values


def _short(value: object) -> str:
    if isinstance(value, str):
        return value
    return f"{value:g}" if isinstance(value, float) else json.dumps(value, default=str)


def _one_per_seed(runs: list[RunRecord], differs: Differs, notes: list[str]) -> list[RunRecord]:
    """The newest run of each seed; older ones are named in a note, because their code or data must differ."""
    newest: dict[int | None, RunRecord] = {}
    for run in sorted(runs, key=lambda run: (run.provenance.created, run.run_id)):
        newest[run.seed] = run
    if older := sorted(run.run_id for run in runs if newest[run.seed] is not run):
        notes.append(f"{title(runs[0], differs)}: a newer run of the same seed stands for {', '.join(older)}")
    kept = sorted(newest.values(), key=lambda run: -1 if run.seed is None else run.seed)
    if len({str((run.provenance.plugin or {}).get("sha256")) for run in kept}) > 1:
        notes.append(f"{title(runs[0], differs)}: its seeds ran with different versions of the method's code")
    return kept


def title(run: RunRecord, differs: Differs) -> str:
    """What a row is called."""
    name = f"{run.method}+{run.variant}" if run.variant else run.method
    return " ".join([name, *(f"{key}={value}" for key, value in differs)])
