"""docs/claims.md: a table is the newest version's, and its printed gains are the papers'."""

from __future__ import annotations

from pathlib import Path

import make_claims
import published_rows
import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
# typed from the papers' tables: STS averages of the method and of SimCSE, on BERT-base
PRINTED = {
    "PromCSE": (78.49, 76.25),
    "DCPCSE\\+MLM": (78.10, 76.25),
    "ConPVP": (78.85, 76.25),
    "Focal-InfoNCE": (77.32, 75.68),
}


def rows_below(heading: str) -> list[list[str]]:
    """Return the cells of the table below a heading of the page."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_the_page_has_the_tables_of_the_newest_version() -> None:
    assert make_claims.with_tables(PAGE, ROOT / published_rows.VERSION) == PAGE


def test_printed_gains_are_the_papers() -> None:
    gains = {row[0]: row[1] for row in rows_below("The answer")}
    for method, (own, simcse) in PRINTED.items():
        gain = gains[method].lstrip("\\").split(",")[0]
        assert float(gain) == pytest.approx(own - simcse, abs=0.005), method
    assert "its table says 6.28" in PAGE and pytest.approx(6.28) == 63.86 - 57.58
