"""Names of backbones as tables print them, and the models of the hub that they mean.

``backbones.tsv`` has a line for each name that is not the whole name of a model on the hub, as
"bert-base-uncased" is.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from bench.papers.reading import HERE, read_tsv


@cache
def printed_to_hub() -> Mapping[str, str]:
    """Return printed name -> owner and name on the hub: "opt-1.3b" -> "facebook/opt-1.3b"."""
    return {row["printed"]: row["hub"] for row in read_tsv(HERE / "backbones.tsv")}


def printed_names(backbone: str) -> set[str]:
    """Return the names that tables may print for a backbone.

    ``backbone`` may be a folder, or a name of the hub, with or without @revision: its last part
    counts.
    """
    last = Path(backbone).name.partition("@")[0]
    names = {last}
    for printed, hub in printed_to_hub().items():
        if Path(hub).name == last:
            names.add(printed)
    return names
