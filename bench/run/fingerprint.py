"""What determines a run's result, and the hash that names it.

The plan makes the fingerprint from everything that was asked (:func:`bench.run.plan.with_fingerprint`); a record keeps enough to make
it again, so that a record whose seed or recipe was changed afterwards is found out. What its own fields do not say stands in
``provenance.determines``. Of recipe keys that name a file or a backbone ("places") the content counts, not the name: they are kept
there with the content's name, or None where the recipe gives none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bench.runs.record import RunRecord


def of(determines: Mapping[str, Any]) -> str:
    """sha256 of everything that determines a result, as JSON with sorted keys."""
    return hashlib.sha256(json.dumps(determines, sort_keys=True).encode()).hexdigest()


def of_record(record: RunRecord, rest: Mapping[str, Any] | None = None) -> str | None:
    """The fingerprint made again from a record; None where the record, being older, does not keep what it was made of.

    ``rest`` takes the place of ``provenance.determines``.
    """
    rest = rest if rest is not None else record.provenance.determines
    places = (rest or {}).get("places")
    if rest is None or not isinstance(places, Mapping):
        return None
    stated = {key: found(record) for key, found in _STATED.items()}
    stated["recipe"] = {key: value for key, value in stated["recipe"].items() if key not in places}
    return of({**stated, **rest, "places": {key: value for key, value in places.items() if value is not None}})


_STATED = {
    "method": lambda record: record.method,
    "plugin": lambda record: (record.provenance.plugin or {}).get("sha256"),
    "variant": lambda record: record.variant,
    "setting": lambda record: record.setting,
    "seed": lambda record: record.seed,
    "backbone": lambda record: (record.provenance.backbone or {}).get("revision"),
    "recipe": lambda record: {key: one.value for key, one in record.recipe.items()},
    "corpus": lambda record: (record.provenance.corpus or {}).get("sha256"),
}
"""Parts of a fingerprint that a record's own fields say."""
