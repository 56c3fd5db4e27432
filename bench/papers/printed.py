"""The results that papers printed, row by row.

``results.tsv`` holds one printed row a line, its cells under ``scores`` ("STS12=55.14",
"Avg.=79.90±0.32"), with as many decimals as its table prints. ``by`` is "own" if the paper says, or
its marks say, that it ran the method itself, and "copied" if it quotes somebody else: ``source``
names the other paper.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import stdev

from bench.papers.reading import HERE, read_rows, read_scores

FILE = HERE / "results.tsv"


WHOLE, WEIGHTED = "senteval-all/1", "senteval-wmean/1"
"""Protocols of STS prints: all pairs of a year at once; the mean over its sub-datasets, weighted by
size (SimCSE, appendix B)."""


README = "README"
"""The ``table`` of numbers that were read from the README of a paper's repository."""


UNKNOWN = "unknown"
"""The protocol of a print that nobody published."""


PAPERS = {
    "promcse": "Jiang, Zhang, Wang: Improved Universal Sentence Embeddings with Prompt-based "
    "Contrastive Learning and "
    "Energy-based Learning, Findings of EMNLP 2022",
    "dcpcse": "Jiang, Wang: Deep Continuous Prompt for Contrastive Learning of Sentence "
    "Embeddings, arXiv 2203.06875v1",
    "conpvp": "Zeng, Yin, Jiang, Wu, Cao: Contrastive Learning with Prompt-derived Virtual "
    "Semantic Prototypes for Unsupervised "
    "Sentence Embedding, Findings of EMNLP 2022",
    "focal-infonce": "Hou, Li: Improving Contrastive Learning of Sentence Embeddings with "
    "Focal-InfoNCE, Findings of EMNLP 2023",
    "simcse": "Gao, Yao, Chen: SimCSE: Simple Contrastive Learning of Sentence Embeddings, EMNLP "
    "2021, arXiv 2104.08821v4",
    "rankcse": "Liu, Liu, Wang, Wang, Wu, Li, Guo: RankCSE: Unsupervised Sentence "
    "Representations Learning via Learning to Rank, "
    "ACL 2023",
    "pcl": "Wu et al.: PCL: Peer-Contrastive Learning with Diverse Augmentations for "
    "Unsupervised Sentence Embeddings, EMNLP 2022",
    "cot-bert": "Zhang et al.: CoT-BERT: Enhancing Unsupervised Sentence Representation through "
    "Chain-of-Thought, ICANN 2024",
    "infocse": "Wu, Gao, Lin, Han, Wang, Hu: InfoCSE: Information-aggregated Contrastive "
    "Learning of Sentence Embeddings, Findings "
    "of EMNLP 2022",
    "angle": "Li, Li: AoE: Angle-optimized Embeddings for Semantic Textual Similarity, ACL 2024; "
    "its repository",
    "syncse": "Zhang, Lan, He: Contrastive Learning of Sentence Embeddings from Scratch, EMNLP "
    "2023; its repository",
    "claif": "Cheng, Yang, Sun, Li, Qiu: Improving Contrastive Learning of Sentence Embeddings "
    "from AI Feedback, Findings of ACL "
    "2023; its repository",
    "gcse": "GCSE, arXiv 2409.12887; its repository",
    "esimcse": "Wu, Gao, Zang, Han, Wang, Hu: ESimCSE: Enhanced Sample Building Method for "
    "Contrastive Learning of Unsupervised "
    "Sentence Embedding, COLING 2022; its repository",
    "mirror-bert": "Liu, Vulić, Korhonen, Collier: Fast, Effective, and Self-Supervised: "
    "Transforming Masked Language Models into "
    "Universal Lexical and Sentence Encoders, EMNLP 2021; its repository",
    "prompteol": "Jiang, Huang, Luan, Wang, Zhuang: Scaling Sentence Embeddings with Large "
    "Language Models, Findings of EMNLP 2024; its repository",
    "pcc-tuning": "Zhang et al.: Pcc-tuning, EMNLP 2024, arXiv 2406.09790; its repository",
    "bellm": "Li, Li: BeLLM: Backward Dependency Enhanced Large Language Model for Sentence "
    "Embeddings, NAACL 2024; its repository",
    "token-prepending": "Fu et al.: Token Prepending, ACL 2025, arXiv 2412.11556",
    "contrastive-prompting": "Cheng et al.: Contrastive Prompting, ACL 2025, arXiv 2505.12831",
    "llm2vec": "BehnamGhader et al.: LLM2Vec: Large Language Models Are Secretly Powerful Text "
    "Encoders, COLM 2024; its model cards",
    "mteb": "finished models: embeddings-benchmark/results f4cc6c8, with SICK-R on all pairs and "
    "the models' own instructions",
    "ct": "Carlsson et al.: Semantic Re-tuning with Contrastive Tension, ICLR 2021; its repository",
}
"""The papers with tables here, by the name that ``paper`` has in a result."""


ARXIV = {
    "promcse": "2203.06875",
    "dcpcse": "2203.06875v1",
    "conpvp": "2211.03348",
    "focal-infonce": "2310.06918",
    "simcse": "2104.08821",
    "rankcse": "2305.16726",
    "pcl": "2201.12093",
    "cot-bert": "2309.11143",
    "infocse": "2210.06432",
    "angle": "2309.12871",
    "syncse": "2305.15077",
    "claif": "2305.01918",
    "gcse": "2409.12887",
    "esimcse": "2109.04380",
    "mirror-bert": "2104.08027",
}
"""Their numbers at arXiv; a paper that is not there has none."""


@dataclass(frozen=True)
class ReferenceResult:
    """One printed number. Scores are in the papers' scale; ``std`` is None if none is printed."""

    # who printed it: a key of PAPERS
    paper: str
    table: str
    # the row's own words
    label: str
    setting: str
    method: str
    backbone: str
    variant: str
    task: str
    metric: str
    value: float
    # the value as printed, with its zeros: "74.40"
    printed: str
    std: float | None
    # False: copied from an earlier paper
    own_result: bool
    # the paper that it was copied from; "" for an own result
    source: str
    # "one run", "mean of 10 runs", "best of 4 seeds"; "" if nothing says it
    runs: str
    # our protocol name; UNKNOWN if the paper used an unpublished one
    protocol: str
    # "tokenised", "unknown", or "" if nothing depends on it or nothing is said
    text: str
    # training text that its neighbours did not have, such as the scored sentences; "" for all
    # others
    corpus: str
    # the footnote, the place, and remarks for readers of the published table
    note: str
    # from what the value was read, if that is known and not the paper itself: "README", "model
    # card", "picture" (read by eye), "conversion" (of the paper, by a third party), "transcription"
    # (of one table), "issue", "result files"
    read: str = ""

    @property
    def repeats(self) -> int:
        """How many runs the number summarises, as far as ``runs`` says it; else 1."""
        number = re.search(r"\d+", self.runs)
        return 1 if number is None else int(number.group())


@cache
def results(
    method: str | None = None, backbone: str | None = None, **fields: str | None
) -> tuple[ReferenceResult, ...]:
    """Return the printed numbers that fit all conditions, in the papers' order.

    ``fields``: other fields of ReferenceResult, such as ``task``; None fits all.
    """
    wanted = {"method": method, "backbone": backbone, **fields}
    given = {name: value for name, value in wanted.items() if value is not None}
    found = []
    for result in _all_results():
        if all(getattr(result, name) == value for name, value in given.items()):
            found.append(result)
    return tuple(found)


@cache
def _all_results() -> tuple[ReferenceResult, ...]:
    found = []
    for row in read_rows(FILE):
        texts = {name: text for name, text in row.items() if name not in ("by", "scores")}
        for task, printed, value, std in read_scores(row, FILE):
            found.append(
                ReferenceResult(
                    task=task,
                    value=value,
                    printed=printed,
                    std=std,
                    own_result=row["by"] == "own",
                    **texts,
                )
            )
    return tuple(found)


AVERAGE = "Avg."


@dataclass(frozen=True)
class PrintedRow:
    """Printed cells that belong together, in the table's order."""

    cells: tuple[ReferenceResult, ...]

    @property
    def first(self) -> ReferenceResult:
        """The first cell: it has what all cells share.

        That is paper, table, label, setting, method, backbone and variant; if the row has one
        metric, also the rest but task and value.
        """
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
) -> tuple[PrintedRow, ...]:
    """Return all printed rows, or those that these results make, in the papers' order.

    ``by_metric``: cells of two metrics, which one line of print may hold, are two rows; without it
    they are one.
    """
    groups: dict[tuple[str, ...], list[ReferenceResult]] = {}
    if found is None:
        found = results()
    for cell in found:
        key: tuple[str, ...] = (
            cell.paper,
            cell.table,
            cell.label,
            cell.setting,
            cell.backbone,
            cell.variant,
        )
        if by_metric:
            key += (cell.metric, cell.source)
        groups.setdefault(key, []).append(cell)
    return tuple(PrintedRow(tuple(cells)) for cells in groups.values())


def tables() -> tuple[tuple[str, str], ...]:
    """Return (paper, table) of every table in ``results.tsv``."""
    return tuple(dict.fromkeys((cell.paper, cell.table) for cell in results()))


def line_of(cell: ReferenceResult) -> tuple[str, ...]:
    """Return the names that the cells of one printed line share."""
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
    """A method's STS average, and the average of SimCSE as the same paper ran it itself.

    Both are in the same setting and on the same backbone.
    """

    # the method's average
    first: ReferenceResult
    # SimCSE's
    base: float

    @property
    def gain(self) -> float:
        return self.first.value - self.base

    @property
    def label(self) -> str:
        if not self.first.variant:
            return self.first.method
        return f"{self.first.method}+{self.first.variant}"


BASE = "simcse"
"""The method over which later papers print their gains, and its own paper."""


REPORTED = {
    "its paper": 76.25,
    "Focal-InfoNCE's own run": 75.68,
    "issue 53 of its repository": 73.47,
    "issue 258 of its repository": 74.84,
    "issue 246 of its repository": 75.99,
}
"""Averages of unsupervised SimCSE on BERT-base as five parties report them. They differ in seeds,
and in code and hardware, too."""


def reported_sd() -> float:
    """Return the standard deviation of ``REPORTED``, in points."""
    return stdev(REPORTED.values())


def noise_of_single_runs(sd: float) -> float:
    """Return the difference below which two single runs of one method stay in 95 of 100 pairs.

    ``sd``: the standard deviation of single runs, in points.
    """
    return 1.96 * math.sqrt(2) * sd


def claimed_gain(
    method: str, variant: str, setting: str, backbone: str
) -> tuple[float, ReferenceResult] | None:
    """Return a method's gain on the STS average over SimCSE and the result that it comes from.

    Both are from one paper; None if no paper reports both.

    A paper's own result comes before one that another paper copied. SimCSE's number is
    from the same paper, its own run or a copied one, or else from SimCSE's paper.
    """
    world = {"setting": setting, "backbone": backbone, "task": "Avg."}
    averages = [cell for cell in results(**world) if cell.metric.startswith("spearman")]
    bases: dict[str, float] = {}
    for cell in averages:
        if _is_base(cell) and cell.protocol == WHOLE and cell.table != README:
            bases.setdefault(cell.paper, cell.value)
    if method == BASE:
        return None
    found = []
    for cell in averages:
        named = (cell.method, cell.variant) == (method, variant)
        if named and cell.protocol == WHOLE and (cell.paper in bases or BASE in bases):
            found.append(cell)
    if not found:
        return None
    found.sort(key=lambda cell: not cell.own_result)
    first = found[0]
    base = bases[first.paper if first.paper in bases else BASE]
    return round(first.value - base, 2), first


def printed_gains() -> list[PrintedGain]:
    """Return gains of single runs over single runs, the largest first.

    SimCSE's own paper is left out, because SimCSE is its new method. A number that two tables of a
    paper print of one run counts once.
    """
    averages = [average for average in _own_averages() if average.paper != BASE]
    bases = {}
    for average in averages:
        if _is_base(average):
            bases[average.paper, average.setting, average.backbone] = average.value
    gains: dict[tuple[object, ...], PrintedGain] = {}
    for average in averages:
        world = (average.paper, average.setting, average.backbone)
        if world in bases and not _is_base(average):
            key = (*world, average.method, average.value)
            gains.setdefault(key, PrintedGain(average, bases[world]))
    return sorted(gains.values(), key=lambda gain: -gain.gain)


def _own_averages() -> list[ReferenceResult]:
    """Return the STS averages of single runs that papers did themselves."""
    found = []
    for row in rows(results(metric="spearman")):
        average = row.average
        if average is None or row.first.protocol != WHOLE or not average.own_result:
            continue
        # "" may be one run
        if average.runs in ("one run", ""):
            found.append(average)
    return found


def _is_base(result: ReferenceResult) -> bool:
    return result.method == BASE and result.variant in ("", "reproduced")
