"""The names of files in a run's folder, and of the data and predictions of its tasks."""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import quote

RECORD, LOCK = "run.json", ".lock"
OWN_DATA = "own"
"""The suite of a user's own data files."""
FOREIGN = ("mteb", OWN_DATA)
"""Suites with task names that others chose: mteb has an STS12, too."""
CHECKPOINT = "checkpoint"
VECTORS = "vectors"
CURVE = "curve.jsonl"
PLAN = "plan.toml"
"""What makes the run again: ``bench run --plan``."""


RAW = "raw"
"""How the protocols of raw texts end: "senteval-all-raw/1"."""
WITHOUT_TOKENS = "without-{}-tokens"
"""How the protocols of shortened texts end: "senteval-all-without-4-tokens/1"."""
_OTHER_TEXT = re.compile(rf"-({RAW}|{WITHOUT_TOKENS.format('[0-9]+')}|[0-9a-f]{{8}})/[0-9]+")


def protocol_text(protocol: str) -> str:
    """Return a protocol's word for its texts: "raw", "without-4-tokens", or the hash of a user's
    file, as "1a2b3c4d" of "own-pairs-1a2b3c4d/1"; "" for the texts of the papers.
    """
    found = _OTHER_TEXT.search(protocol)
    return found[1] if found else ""


def with_text(protocol: str, text: str) -> str:
    """Return the protocol with other texts: "senteval-all/1" with "raw" is "senteval-all-raw/1"."""
    name, slash, version = protocol.rpartition("/")
    return f"{name}-{text}{slash}{version}"


def data_key(task: str, protocol: str, suite: str = "") -> str:
    """Return a set's name in ``provenance.data``: "STS12", "STS12@raw", "mteb/STS12"; its
    predictions have the same name.
    """
    prefix = f"{suite}/" if suite in FOREIGN else ""
    text = protocol_text(protocol)
    return f"{prefix}{task}@{text}" if text else f"{prefix}{task}"


@lru_cache(maxsize=1 << 10)  # thousands of runs have the same few names
def predictions_name(task: str, protocol: str, suite: str = "") -> str:
    """Return the predictions of a task in a run's folder: "predictions/STS12@raw.npz"."""
    prefix = f"{suite}/" if suite in FOREIGN else ""
    name = quote(data_key(task, protocol), safe=" @", errors="surrogatepass")
    return f"predictions/{prefix}{name}.npz"
