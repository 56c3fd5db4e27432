"""The names of methods as their papers write them, and how many dimensions a paper's vectors have
if that is not the encoder's number."""

from __future__ import annotations

from functools import cache

from bench.base.text import with_variant
from bench.papers.reading import HERE, read_tsv

FILE = HERE / "names.tsv"


@cache
def _rows() -> dict[tuple[str, str], dict[str, str]]:
    return {(row["method"], row["variant"]): row for row in read_tsv(FILE)}


def printed_name(method: str, variant: str = "") -> str:
    """Return "DCPCSE+MLM" for the variant ``mlm`` of ``dcpcse``; a method that no paper of ours has
    keeps its name, and a variant follows a plus sign."""
    known = _rows()
    if (method, variant) in known:
        return known[method, variant]["name"]
    name = known[method, ""]["name"] if (method, "") in known else method
    return with_variant(name, variant)


BACKBONES = {
    "bert-base-uncased": "BERT-base",
    "bert-large-uncased": "BERT-large",
    "roberta-base": "RoBERTa-base",
    "roberta-large": "RoBERTa-large",
}
"""Backbones as papers write them."""
CLAIMED_ON = "bert-base-uncased"
"""The backbone of the gains that papers claim first."""


def printed_backbone(name: str) -> str:
    """Return "BERT-base" for "bert-base-uncased"; another backbone keeps its name."""
    return BACKBONES.get(name, name)


def printed_dimensions(method: str) -> int | None:
    """Return the number of dimensions of the vectors that the method's papers print; None if the
    encoder decides it."""
    row = _rows().get((method, ""))
    return int(row["dimensions"]) if row and row["dimensions"] else None
