"""The results that papers printed, row by row.

``results.tsv`` holds one printed row a line, its cells under ``scores`` ("STS12=55.14", "Avg.=79.90±0.32"), with as many decimals as
its table prints. ``by`` is "own" if the paper says, or its marks say, that it ran the method itself, and "copied" if it quotes somebody
else: ``source`` names the other paper.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from bench.references.reading import HERE, read_rows, read_scores

FILE = HERE / "results.tsv"


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
    "rankcse": "Liu, Liu, Wang, Wang, Wu, Li, Guo: RankCSE: Unsupervised Sentence Representations Learning via Learning to Rank, "
    "ACL 2023",
    "pcl": "Wu et al.: PCL: Peer-Contrastive Learning with Diverse Augmentations for Unsupervised Sentence Embeddings, EMNLP 2022",
    "cot-bert": "Zhang et al.: CoT-BERT: Enhancing Unsupervised Sentence Representation through Chain-of-Thought, ICANN 2024",
    "infocse": "Wu, Gao, Lin, Han, Wang, Hu: InfoCSE: Information-aggregated Contrastive Learning of Sentence Embeddings, Findings "
    "of EMNLP 2022",
    "angle": "Li, Li: AoE: Angle-optimized Embeddings for Semantic Textual Similarity, ACL 2024; its repository",
    "syncse": "Zhang, Lan, He: Contrastive Learning of Sentence Embeddings from Scratch, EMNLP 2023; its repository",
    "claif": "Cheng, Yang, Sun, Li, Qiu: Improving Contrastive Learning of Sentence Embeddings from AI Feedback, Findings of ACL "
    "2023; its repository",
    "gcse": "GCSE, arXiv 2409.12887; its repository",
    "esimcse": "Wu, Gao, Zang, Han, Wang, Hu: ESimCSE: Enhanced Sample Building Method for Contrastive Learning of Unsupervised "
    "Sentence Embedding, COLING 2022; its repository",
    "mirror-bert": "Liu, Vulić, Korhonen, Collier: Fast, Effective, and Self-Supervised: Transforming Masked Language Models into "
    "Universal Lexical and Sentence Encoders, EMNLP 2021; its repository",
    "ct": "Carlsson et al.: Semantic Re-tuning with Contrastive Tension, ICLR 2021; its repository",
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

    @property
    def repeats(self) -> int:
        """How many runs the number is of, as far as ``runs`` says it; else 1."""
        return int(number.group()) if (number := re.search(r"\d+", self.runs)) else 1


@cache
def results(
    method: str | None = None, backbone: str | None = None, **fields: str | None
) -> tuple[ReferenceResult, ...]:
    """The printed numbers that fit all conditions, in the papers' order. ``fields``: others of ReferenceResult, such as ``task``; None fits
    all."""
    wanted = {"method": method, "backbone": backbone, **fields}.items()
    return tuple(
        r
        for r in _everything()
        if all(value in (None, getattr(r, field)) for field, value in wanted)
    )


@cache
def _everything() -> tuple[ReferenceResult, ...]:
    return tuple(
        ReferenceResult(
            task=task,
            value=value,
            printed=printed,
            std=std,
            own_result=row["by"] == "own",
            **{name: text for name, text in row.items() if name not in ("by", "scores")},
        )
        for row in read_rows(FILE)
        for task, printed, value, std in read_scores(row, FILE)
    )


# And every part of a paper, table or figure, with how it is done again.


AVERAGE = "Avg."


@dataclass(frozen=True)
class Row:
    """Printed cells that belong together, in the table's order."""

    cells: tuple[ReferenceResult, ...]

    @property
    def first(self) -> ReferenceResult:
        """What all cells share: paper, table, label, setting, method, backbone, variant, and of a row of one metric the rest."""
        return self.cells[0]

    @property
    def average(self) -> ReferenceResult | None:
        return next((cell for cell in self.cells if cell.task == AVERAGE), None)

    @property
    def parts(self) -> tuple[ReferenceResult, ...]:
        """The cells that the average is taken of."""
        return tuple(cell for cell in self.cells if cell.task != AVERAGE)


def rows(
    found: Sequence[ReferenceResult] | None = None, *, by_metric: bool = True
) -> tuple[Row, ...]:
    """All printed rows, or those that these results make, in the papers' order.

    ``by_metric``: cells of two metrics, which one line of print may hold, are two rows; without it they are one.
    """
    groups: dict[tuple[str, ...], list[ReferenceResult]] = {}
    for r in results() if found is None else found:
        key = (r.paper, r.table, r.label, r.setting, r.backbone, r.variant)
        groups.setdefault((*key, *((r.metric, r.source) if by_metric else ())), []).append(r)
    return tuple(Row(tuple(cells)) for cells in groups.values())


def tables() -> tuple[tuple[str, str], ...]:
    """(paper, table) of every table in ``results.tsv``."""
    return tuple(dict.fromkeys((r.paper, r.table) for r in results()))


def line_of(cell: ReferenceResult) -> tuple[str, ...]:
    """What the cells of one printed line share."""
    return (
        cell.paper,
        cell.table,
        cell.label,
        cell.setting,
        cell.method,
        cell.backbone,
        cell.variant,
    )


@dataclass(frozen=True)
class PrintedGain:
    """The STS average of a method minus that of the SimCSE that the same paper ran itself, in the same setting on the same backbone."""

    first: ReferenceResult  # the method's average
    base: float

    @property
    def gain(self) -> float:
        return self.first.value - self.base

    @property
    def label(self) -> str:
        return (
            f"{self.first.method}+{self.first.variant}" if self.first.variant else self.first.method
        )


BASE = "simcse"
"""Over which the papers after it print their gains: the method, and its own paper."""


def printed_gains() -> list[PrintedGain]:
    """Gains of single runs over single runs, the largest first.

    SimCSE's own paper is left out, whose SimCSE is the new method. A number that two tables of a paper print of one run counts once.
    """
    single = [
        average
        for row in rows(results(metric="spearman"))
        if (average := row.average) is not None
        and row.first.protocol == WHOLE
        and average.own_result
        and average.paper != BASE
        and average.runs in ("one run", "")  # "": it may be one
    ]
    bases = {
        (result.paper, result.setting, result.backbone): result.value
        for result in single
        if _is_base(result)
    }
    gains: dict[tuple[object, ...], PrintedGain] = {}
    for result in single:
        place = (result.paper, result.setting, result.backbone)
        if place in bases and not _is_base(result):
            gains.setdefault(
                (*place, result.method, result.value), PrintedGain(result, bases[place])
            )
    return sorted(gains.values(), key=lambda gain: -gain.gain)


def _is_base(result: ReferenceResult) -> bool:
    return result.method == BASE and result.variant in ("", "reproduced")
