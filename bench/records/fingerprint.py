"""The inputs that determine a run's result, and the hash that names it.

The plan computes the fingerprint from every option (:func:`bench.run.planned.with_fingerprint`). A
record holds enough to compute it again, so that a seed or recipe that was changed afterwards is
noticed. The inputs without a field of their own are in ``provenance.determines``. Recipe keys that
name a file or a backbone ("places") count by their content, not by their name: they are stored
there with the name of their content, or None if the recipe gives none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from bench.records.record import RunRecord


def fingerprint_of(determines: Mapping[str, Any]) -> str:
    """Return sha256 of everything that determines a result, as JSON with sorted keys."""
    return hashlib.sha256(json.dumps(determines, sort_keys=True).encode()).hexdigest()


def record_fingerprint(record: RunRecord) -> str | None:
    """Return the fingerprint computed again from a record; None if an older record does not hold
    all its inputs.
    """
    rest = record.provenance.determines
    places = (rest or {}).get("places")
    if rest is None or not isinstance(places, Mapping):
        return None
    return fingerprint_of(
        {
            "method": record.method,
            "plugin": record.provenance.plugin.identity,
            "variant": record.variant,
            "setting": record.setting,
            "seed": record.seed,
            "backbone": record.provenance.backbone.revision,
            "recipe": {
                key: value.value for key, value in record.recipe.items() if key not in places
            },
            "corpus": record.provenance.corpus.sha256,
            **rest,
            "places": {key: name for key, name in places.items() if name is not None},
        }
    )
