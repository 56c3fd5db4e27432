"""The tables of docs/claims.md, made from the newest published version: ``python
tools/make_claims.py [VERSION]`` writes them below their comments.

<!-- table: claims -->     what each paper claims, and the same difference here
<!-- table: lengths -->    a method after 100 and after 1,000 steps
<!-- table: seeds -->      the smallest gains that so many seeds find
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.base.text import plural
from bench.board.publish.versions import version_folders
from bench.compare.formatting import signed_number
from bench.compare.tables import make_tables
from bench.papers import results
from bench.records import Run, RunsFolder

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "claims.md"
BUDGET = "1000steps"
PRINTED_BACKBONE = "bert-base-uncased"
BLOCK = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end of table -->)", flags=re.S)


@dataclass(frozen=True)
class Claim:
    """A difference from SimCSE that a paper claims."""

    # the score that is said to rise: "STS average"
    score: str
    # as the paper writes it: "DCPCSE with MLM"
    name: str
    method: str
    variant: str
    suite: str
    protocol: str
    # (paper, table) of the printed numbers; None if the paper prints none
    printed: tuple[str, str] | None
    task: str = "Avg."


STS, CXC = ("sts", "senteval-all/1"), ("cxc", "cxc-promcse/1")
TRANSFER, CLUSTERING = ("transfer", "senteval-probe/1"), ("clustering", "sccl-kmeans/1")
CLAIMS = (
    Claim("STS average", "PromCSE", "promcse", "", *STS, ("promcse", "1")),
    Claim("STS average", "DCPCSE with MLM", "dcpcse", "mlm", *STS, ("dcpcse", "2")),
    Claim("STS average", "ConPVP", "conpvp", "", *STS, ("conpvp", "3")),
    Claim("STS average", "Focal-InfoNCE", "focal-infonce", "", *STS, ("focal-infonce", "2")),
    Claim("CxC-STS, another domain", "PromCSE", "promcse", "", *CXC, ("promcse", "2"), "CxC-STS"),
    Claim("transfer average", "DCPCSE with MLM", "dcpcse", "mlm", *TRANSFER, None),
    Claim("clustering average", "ConPVP", "conpvp", "", *CLUSTERING, ("conpvp", "6")),
)


def signed(value: float) -> str:
    """Write "+1.64" or "−1.64", as papers do."""
    return signed_number(value).replace("-", "−")


def printed_gain(claim: Claim) -> str:
    """Return the published gain over SimCSE on BERT-base; "-" if the paper prints none."""
    if claim.printed is None:
        return "-"
    paper, table = claim.printed
    values = {}
    for cell in results(
        paper=paper, setting="unsupervised", backbone=PRINTED_BACKBONE, task=claim.task
    ):
        if cell.table == table:
            values[cell.method, cell.variant] = cell.value
    baseline = values.get(("simcse", ""))
    if baseline is None:  # DCPCSE's table 2 has no row of SimCSE; its table 1 quotes 76.25
        (baseline,) = (
            cell.value
            for cell in results(paper=paper, setting="unsupervised", task=claim.task)
            if (cell.table, cell.method, cell.backbone) == ("1", "simcse", PRINTED_BACKBONE)
        )
    return signed(values[claim.method, claim.variant] - baseline)


def claims_table(version: Path) -> list[str]:
    """Lay out the claims, each with the same difference in the version."""
    made = json.loads((version / "tables.json").read_text("utf-8"))
    lines = [
        "| method | score | published gain | SimCSE here | method here | difference here "
        "| verdict | detectable | seeds |",
        "|---|---|--:|--:|--:|---|---|--:|--:|",
    ]
    for claim in CLAIMS:
        (table,) = (
            shown["table"]
            for shown in made["tables"]
            if (shown["table"]["suite"], shown["table"]["protocol"], shown["table"]["budget"])
            == (claim.suite, claim.protocol, BUDGET)
        )
        baseline = _row(table, "simcse", "")
        row = _row(table, claim.method, claim.variant)
        against = row["against"] or {}
        difference = verdict = detectable = "-"
        if against.get("ci_low") is not None:
            low, high = signed(against["ci_low"]), signed(against["ci_high"])
            difference = f"{signed(against['difference'])} [{low}, {high}]"
            verdict = against["verdict"]
            detectable = f"{against['mde']:.1f}"
        means = f"{baseline['mean']:.2f} | {row['mean']:.2f}"
        lines.append(
            f"| {claim.name} | {claim.score} | {printed_gain(claim)} | {means} | {difference} | "
            f"{verdict} | {detectable} | {row['n']} |"
        )
    return lines


def _row(table: dict[str, Any], method: str, variant: str) -> dict[str, Any]:
    """Return the row of a method with most seeds."""
    rows = [row for row in table["rows"] if (row["method"], row["variant"]) == (method, variant)]
    return max(rows, key=lambda row: row["n"])


def lengths_table(version: Path) -> list[str]:
    """Lay out STS averages by length and training text, with the difference that length makes."""
    made = json.loads((version / "tables.json").read_text("utf-8"))
    store = RunsFolder(version / "runs")
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for shown in made["tables"]:
        table = shown["table"]
        if (table["suite"], table["setting"]) != ("sts", "unsupervised"):
            continue
        for row in table["rows"]:
            if row["setting"] == "none":
                continue
            record = store.read(row["runs"][0])
            steps = record.training.steps if record.training else 0
            place = f"{steps} steps of {record.provenance.corpus.name}"
            name = row["method"] + (f" {row['variant']}" if row["variant"] else "")
            found.setdefault(name, {})[place] = row
    short, same, other = (
        "100 steps of builtin",
        "1000 steps of builtin",
        "1000 steps of wiki_sentences.txt.xz",
    )
    lines = [
        "| method | 100 steps, 10,000 sentences | 1,000 steps, 10,000 sentences | minus 100 steps "
        "| 1,000 steps, a million sentences | minus 100 steps |",
        "|---|--:|--:|---|--:|---|",
    ]
    for name, rows in found.items():
        if other not in rows:
            continue
        cells = [name, _mean(rows.get(short)), _mean(rows.get(same))]
        cells.append(_difference(store, rows.get(short), rows.get(same)))
        cells += [_mean(rows[other]), _difference(store, rows.get(short), rows[other])]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _mean(row: dict[str, Any] | None) -> str:
    if row is None:
        return "-"
    return f"{row['mean']:.2f} ({plural(row['n'], 'seed')})"


def _difference(
    store: RunsFolder, before: dict[str, Any] | None, after: dict[str, Any] | None
) -> str:
    """Return the second row minus the first, with the interval of one planned comparison; "-" if
    a row is missing or has fewer than three seeds."""
    if before is None or after is None:
        return "-"
    runs = [Run(store.read(run), store.folder(run)) for run in (*before["runs"], *after["runs"])]
    tables = make_tables(runs, together=True, baseline=before["runs"][0])
    (table,) = (one for one in tables if (one.suite, one.protocol) == STS)
    (row,) = (one for one in table.rows if after["runs"][0] in one.runs)
    cell = row.cells[-1]
    against = None if cell is None else cell.against
    if against is None or against.ci_low is None or against.ci_high is None:
        return "-"
    low, high = signed(against.ci_low), signed(against.ci_high)
    return f"{signed(against.difference)} [{low}, {high}]"


def seeds_table(version: Path) -> list[str]:
    """Return the version's own table of gains and seeds, with links to its page."""
    text = (version / "README.md").read_text("utf-8")
    heading = r"## How many seeds (?:does a gain need|tell a gain of this size)\?"
    section = re.split(heading, text)[1].split("\n## ")[0]
    page = f"../leaderboards/{version.name}/index.html"
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [line.replace("](#", f"]({page}#") for line in lines]


TABLES: dict[str, Callable[[Path], Sequence[str]]] = {
    "claims": claims_table,
    "lengths": lengths_table,
    "seeds": seeds_table,
}


def with_tables(text: str, version: Path) -> str:
    """Return the page with today's tables below their comments."""

    def fill(found: re.Match[str]) -> str:
        lines = "\n".join(TABLES[found[2]](version))
        return f"{found[1]}{lines}\n{found[3]}"

    return BLOCK.sub(fill, text)


if __name__ == "__main__":
    chosen = Path(sys.argv[1]) if len(sys.argv) > 1 else version_folders(ROOT / "leaderboards")[-1]
    PAGE.write_text(with_tables(PAGE.read_text("utf-8"), chosen), "utf-8")
