"""What the papers printed, as data: reference results, never mixed up with runs.

``results.tsv`` holds one printed row a line, its cells under ``scores`` ("STS12=55.14", "Avg.=79.90±0.32"), with as many decimals
as its table prints. ``by`` is "own" where the paper says, or its marks say, that it ran the method itself, and "copied" where it
quotes somebody else: ``source`` says whom.
``rows`` puts the cells of a row together, ``ours`` says which run of the harness a row means, ``audit`` computes what the tables
say about themselves.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bench.base.errors import BenchError

FILE = Path(__file__).with_name("results.tsv")

WHOLE, WEIGHTED = "senteval-all/1", "senteval-wmean/1"
"""Protocols of STS prints: all pairs of a year at once; the mean over its sub-datasets, weighted by size (SimCSE, appendix B)."""
UNKNOWN = "unknown"  # the protocol of a print that nobody published

PAPERS = {
    "promcse": "Jiang, Zhang, Wang: Improved Universal Sentence Embeddings with Prompt-based Contrastive Learning and "
    "Energy-based Learning, Findings of EMNLP 2022",
    "dcpcse": "Jiang, Wang: Deep Continuous Prompt for Contrastive Learning of Sentence Embeddings, arXiv 2203.06875v1",
    "conpvp": "Zeng, Yin, Jiang, Wu, Cao: Contrastive Learning with Prompt-derived Virtual Semantic Prototypes for Unsupervised "
    "Sentence Embedding, Findings of EMNLP 2022",
    "focal-infonce": "Hou, Li: Improving Contrastive Learning of Sentence Embeddings with Focal-InfoNCE, Findings of EMNLP 2023",
    "simcse": "Gao, Yao, Chen: SimCSE: Simple Contrastive Learning of Sentence Embeddings, EMNLP 2021, arXiv 2104.08821v4",
}  # the papers whose tables are here, by the name that `paper` has in a result


@dataclass(frozen=True)
class ReferenceResult:
    """One printed number. Scores are in the papers' scale; ``std`` is None where none is printed."""

    paper: str  # who printed it: a key of PAPERS
    table: str
    label: str  # the row's own words
    setting: str
    method: str
    backbone: str
    variant: str
    task: str
    metric: str
    value: float
    printed: str  # the value as it is printed, with its zeros: "74.40"
    std: float | None
    own_result: bool  # False: copied from an earlier paper
    source: str  # the paper that it was copied from; "" for an own result
    runs: str  # what the number is of: "one run", "mean of 10 runs", "best of 4 seeds"; "" where nothing says so
    protocol: str  # the harness's name of it; UNKNOWN where the paper's is another one that nobody published
    text: str  # "tokenised", "unknown", or "" where nothing depends on it or nothing is said
    corpus: str  # training text that its neighbours did not have, such as the scored sentences; "" for all others
    note: str  # the footnote, and what a reader of the print should know


def results(
    method: str | None = None,
    backbone: str | None = None,
    *,
    setting: str | None = None,
    variant: str | None = None,
    task: str | None = None,
    metric: str | None = None,
    paper: str | None = None,
) -> tuple[ReferenceResult, ...]:
    """The printed numbers that fit all that is given, in the papers' order."""
    wanted = {
        "method": method,
        "backbone": backbone,
        "setting": setting,
        "variant": variant,
        "task": task,
        "metric": metric,
        "paper": paper,
    }
    given = {field: value for field, value in wanted.items() if value is not None}
    return tuple(r for r in _everything() if all(getattr(r, field) == value for field, value in given.items()))


@cache
def _everything() -> tuple[ReferenceResult, ...]:
    return tuple(
        ReferenceResult(
            paper=row["paper"], table=row["table"], label=row["label"], setting=row["setting"], method=row["method"],
            backbone=row["backbone"], variant=row["variant"], task=task, metric=row["metric"], value=value,
            printed=printed, std=std, own_result=row["by"] == "own", note=row["note"], source=row["source"], runs=row["runs"],
            protocol=row["protocol"], text=row["text"], corpus=row["corpus"],
        )
        for row in read_rows(FILE) for task, printed, value, std in read_scores(row, FILE)
    )  # fmt: skip


def read_rows(file: Path) -> list[dict[str, str]]:
    """The rows of a table with tabs and a header; nothing is quoted."""
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


def read_scores(row: dict[str, str], file: Path) -> Iterator[tuple[str, str, float, float | None]]:
    """(task, value as it is printed, value, standard deviation) of every cell that a row has under ``scores``.

    Raises BenchError, naming the file.
    """
    for score in row["scores"].split(" "):
        try:
            task, printed = score.split("=")
            value, *std = printed.split("±")
            number, spread = float(value), float(std[0]) if std else None
        except ValueError:
            raise BenchError(f"{file}: '{score}' in the row '{row['label']}' is no score") from None
        yield task, value, number, spread
