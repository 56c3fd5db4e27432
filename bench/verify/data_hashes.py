"""What bench knows of every data set that it scores without having it: hashes of its gold values and of its files."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

SCHEMA = "bench.given/1"


@dataclass(frozen=True)
class Known:
    """``given``: suite/task -> array -> hash of its values; suite/task@form where a text form has others. ``data``: suite/task -> text form -> sha256, as records name data."""

    given: Mapping[str, Mapping[str, str]]
    data: Mapping[str, Mapping[str, str]]
    dev: Mapping[str, str]
    """Sets on which checkpoints are selected, and their sha256."""

    def given_of(self, suite: str, task: str, form: str | None) -> Mapping[str, str] | None:
        """Hashes of what no model changes; None for a task that is not known."""
        return self.given.get(f"{suite}/{task}@{form}", self.given.get(f"{suite}/{task}"))


@functools.cache
def known() -> Known:
    """From ``given.json``, which ``python tools/make_given.py DATA`` writes."""
    content = json.loads((resources.files("bench.verify") / "given.json").read_text(encoding="utf-8"))
    assert content["schema"] == SCHEMA
    return Known(content["given"], content["data"], content["dev"])
