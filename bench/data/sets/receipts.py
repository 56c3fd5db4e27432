"""What was fetched, from where, which revision and which bytes: a small file beside the data, so that it travels with it.

Where nobody could know a checksum beforehand, the first receipt is the checksum: trust on first use.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.base.errors import DataDamaged
from bench.base.files import write_whole

SCHEMA = "bench.receipt/1"


@dataclass(frozen=True)
class Receipt:
    source: str
    url: str
    revision: str
    fetched: str
    """Date and time, UTC, ISO 8601."""
    downloads: Mapping[str, str]
    """Path in the source -> sha256 of what was downloaded."""


def receipt_path(folder: Path, source: str) -> Path:
    return folder / f"{source}.receipt.json"


def read_receipt(path: Path) -> Receipt | None:
    """None where there is none. Raises DataDamaged where it cannot be read: it is what later fetches are held against."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        if raw["schema"] != SCHEMA:
            raise ValueError(f"schema {raw['schema']}")
        return Receipt(raw["source"], raw["url"], raw["revision"], raw["fetched"], dict(raw["downloads"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataDamaged(
            f"{path} is no receipt of a download ({error})", "remove it to fetch again and trust what comes"
        ) from None


def write_receipt(path: Path, receipt: Receipt) -> None:
    """Add this fetch to what is known; what was known of other files of the same revision stays. Raises OSError."""
    before = read_receipt(path)
    known = dict(before.downloads) if before and before.revision == receipt.revision else {}
    content = {
        "schema": SCHEMA,
        "source": receipt.source,
        "url": receipt.url,
        "revision": receipt.revision,
        "fetched": receipt.fetched,
        "downloads": known | dict(receipt.downloads),
    }
    write_whole(path, (json.dumps(content, indent=1) + "\n").encode())
