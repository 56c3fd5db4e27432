"""docs/claims.md: a table is the newest version's, and its printed gains are the papers'."""

from __future__ import annotations

from pathlib import Path

import make_claims
import published_rows
import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
# typed from the papers' tables: the method, then SimCSE, on BERT-base
PRINTED = {
    ("PromCSE", "STS average"): (78.49, 76.25),
    ("DCPCSE with MLM", "STS average"): (78.10, 76.25),
    ("ConPVP", "STS average"): (78.85, 76.25),
    ("Focal-InfoNCE", "STS average"): (77.32, 75.68),
    ("PromCSE", "CxC-STS, another domain"): (71.20, 67.50),
    ("ConPVP", "clustering average"): (63.86, 57.58),
}


def rows_below(heading: str) -> list[list[str]]:
    """Return the cells of the table below a heading of the page."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_the_page_has_the_tables_of_the_newest_version() -> None:
    assert make_claims.with_tables(PAGE, ROOT / published_rows.VERSION) == PAGE


def test_printed_gains_are_the_papers() -> None:
    gains = {(row[0], row[1]): row[2] for row in rows_below("The claims")}
    for claim, (method, simcse) in PRINTED.items():
        assert float(gains.pop(claim)) == pytest.approx(method - simcse, abs=0.005), claim
    assert gains == {("DCPCSE with MLM", "transfer average"): "-"}
