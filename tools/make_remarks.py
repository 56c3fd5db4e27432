"""Compute the remarks on the printed tables, and write ``remarks.tsv`` into each paper's folder:
``python tools/make_remarks.py``.

Every remark follows from printed numbers (``audit_checks.py``); none is typed. A test computes them
again.
"""

from __future__ import annotations

from dataclasses import asdict

from audit_checks import CHECKS

from bench.papers import papers, rows
from bench.papers.remarks import Remark

COLUMNS = ("kind", "table", "label", "setting", "method", "backbone", "variant", "metric")
FILE = "remarks.tsv"


def compute_remarks() -> list[Remark]:
    """Return every remark, kind after kind, in the papers' order."""
    every = rows()
    return [remark for check in CHECKS for remark in check(every)]


def main() -> None:
    """Write the remarks of each paper; a file without a remark is removed."""
    found = compute_remarks()
    for paper in papers().values():
        lines = ["\t".join((*COLUMNS, "task", "text"))]
        for remark in found:
            if remark.paper == paper.name:
                cells = asdict(remark)
                lines.append("\t".join(cells[name] for name in (*COLUMNS, "task", "text")))
        file = paper.folder / FILE
        file.unlink(missing_ok=True)
        if len(lines) > 1:
            file.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
