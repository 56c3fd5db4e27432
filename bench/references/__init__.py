"""What the papers printed, as data: reference results, never mixed up with runs.

``results.tsv`` holds one printed row a line, its cells under ``scores`` ("STS12=55.14", "Avg.=79.90±0.32"), with as many decimals
as its table prints. ``by`` is "own" where the paper says, or its marks say, that it ran the method itself, and "copied" where it
quotes somebody else: ``source`` says whom.
``ours`` says which run of the harness a row means, ``audit`` computes what the tables
say about themselves.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bench.base.errors import BenchError, UnknownName

HERE = Path(__file__).parent
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
        number = re.search(r"\d+", self.runs)
        return int(number.group()) if number else 1


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


# --- the printed tables, row by row: what ``bench references promcse:1`` shows, and what the audit and a reproduction go through ---
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
        key = (
            r.paper,
            r.table,
            r.label,
            r.setting,
            r.backbone,
            r.variant,
            *((r.metric, r.source) if by_metric else ()),
        )
        groups.setdefault(key, []).append(r)
    return tuple(Row(tuple(cells)) for cells in groups.values())


def tables() -> tuple[tuple[str, str], ...]:
    """(paper, table) of every table that is here."""
    return tuple(dict.fromkeys((r.paper, r.table) for r in results()))


@dataclass(frozen=True)
class PrintedGain:
    """The STS average of a method, less that of the SimCSE which the same paper ran itself in the same setting on the same backbone."""

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
    averages = [
        row.average
        for row in rows(results(metric="spearman"))
        if row.average is not None and row.first.protocol == WHOLE
    ]
    single = [
        average
        for average in averages
        if average.own_result and average.paper != BASE and average.runs in ("one run", "")
    ]  # "": it may be one
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


SCORES, RECIPES, TEMPLATES, RUNS, FORMULA, NO = (
    "scores",
    "recipes",
    "templates",
    "runs",
    "formula",
    "no",
)
"""How a part of a paper is done again: its scores beside ours; our recipes beside its hyperparameters; our templates beside its own; a
figure drawn from runs; one drawn from a formula; not."""


@dataclass(frozen=True)
class Part:
    """A table or figure of a paper."""

    paper: str
    part: str  # "table 6", "figure 2"
    shows: str
    how: str  # SCORES, RECIPES, TEMPLATES, RUNS, FORMULA or NO
    why: str  # of NO: the reason

    @property
    def short(self) -> str:
        """ "6" of a table, "figure2" of a figure."""
        kind, number = self.part.split()
        return number if kind == "table" else kind + number

    @property
    def name(self) -> str:
        return f"{self.paper}:{self.short}"

    @property
    def command(self) -> str:
        """What does it again; "" where nothing does."""
        return "" if self.how == NO else f"bench reproduce {self.name}"


@dataclass(frozen=True)
class FigureRuns:
    """The runs that a figure is drawn from. ``series`` is as ``--set`` takes it."""

    part: Part
    draws: str  # the kind of our figure: "ablation", "shift", ...
    backbones: tuple[str, ...]
    suites: tuple[str, ...]
    runs: tuple[tuple[str, str, str], ...]  # (setting, method, variant)
    series: tuple[str, str] | None  # (recipe key, values)
    open: str  # what the sources leave open


@dataclass(frozen=True)
class PrintedPoint:
    """A point of a paper's figure, where a source gives it."""

    panel: str  # the task
    key: str
    x: float
    y: float
    read: str  # from what


@cache
def contents() -> tuple[Part, ...]:
    """Every table and figure of the papers, in the papers' order."""
    return tuple(Part(**row) for row in read_rows(HERE / "contents.tsv"))


@cache
def figure_runs() -> tuple[FigureRuns, ...]:
    """Of every figure that is drawn from runs."""
    parts = {(part.paper, part.part): part for part in contents()}
    return tuple(
        FigureRuns(
            part=parts[row["paper"], row["part"]],
            draws=row["draws"],
            backbones=tuple(row["backbones"].split(",")),
            suites=tuple(row["suites"].split(",")),
            runs=tuple(_figure_run(text) for text in row["runs"].split()),
            series=_series(row["set"]),
            open=row["open"],
        )
        for row in read_rows(HERE / "figures.tsv")
    )


def _series(text: str) -> tuple[str, str] | None:
    """ "m=0.1,0.2" as ("m", "0.1,0.2"); None where one of both is missing."""
    key, _, values = text.partition("=")
    return (key, values) if key and values else None


def _figure_run(text: str) -> tuple[str, str, str]:
    """ "supervised:simcse+eh" as (setting, method, variant)."""
    setting, _, name = text.partition(":")
    method, _, variant = name.partition("+")
    return setting, method, variant


def printed_points(part: Part) -> tuple[PrintedPoint, ...]:
    """The points of a figure that a source gives; none of most."""
    return tuple(
        PrintedPoint(row["panel"], row["key"], float(row["x"]), float(row["y"]), row["read"])
        for row in read_rows(HERE / "points.tsv")
        if (row["paper"], row["part"]) == (part.paper, part.part)
    )


def find_part(name: str) -> Part:
    """ "promcse:6", "promcse:figure2", "promcse:table 6": the part. Raises UnknownName for one that is not listed."""
    parts = {part.name.lower(): part for part in contents()}
    key = re.sub(r"\s|(?<=:)table", "", name.lower())
    if key not in parts:
        raise UnknownName(
            "table or figure", name, parts, hint="bench reproduce: lists every table and figure"
        )
    return parts[key]


def split_name(name: str) -> tuple[str, str | None]:
    """ "promcse:1" -> ("promcse", "1"); "promcse" -> ("promcse", None). Raises BenchError for one that has no printed scores here."""
    paper, colon, table = name.partition(":")
    if paper not in PAPERS:
        raise UnknownName("paper", paper, PAPERS, "with printed tables here", "bench references")
    if not colon or (paper, table) in tables():
        return paper, table if colon else None
    part = find_part(name)
    raise BenchError(
        f"{part.part} of {paper} has no scores that can be compared: it shows {part.shows}",
        part.command or part.why,
    )
