"""What the papers printed, as data: reference results, never mixed up with runs. ``audit`` computes what the tables say about themselves.

``results.tsv`` holds one printed row a line, its cells under ``scores`` ("STS12=55.14", "Avg.=79.90±0.32"), with as many decimals
as its table prints. ``by`` is "own" where the paper says, or its marks say, that it ran the method itself, and "copied" where it
quotes somebody else: ``source`` says whom.

``ours.tsv`` has a line for every printed (method, variant) that has another name here, or that is not a method here at all; all
others have the same name on both sides. ``*`` stands for the number in a variant's name, as in "eh,m=0.1". A setting may precede a
method's name: "supervised:consert" is printed in that setting alone; on our side it is the one that is run. A backbone may follow:
"unsupervised:dcpcse@roberta-base" has another name on that backbone alone, because its recipe there is another one. ``set`` of such
a line is what the recipe has there; by it a run is known that was made under the printed name.

``checkpoints.tsv`` has a line for each checkpoint that authors released. ``paper``, ``table``, ``method``, ``setting``, ``backbone``
and ``variant`` name a row of ``results.tsv``, in the tables' own names, which has its printed value. ``ours`` is the method that
scores it, in the setting "none", with the recipe values ``set``: pooling (``mlp`` is the head on CLS), or template; none if its
folder says it. ``prefix`` is the length of the prefix that it holds. ``scored_in`` are the tables whose row the paper itself took
from this checkpoint, and did not train.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from bench.base.errors import BenchError, UnknownName

HERE = Path(__file__).parent
FILE, OURS = HERE / "results.tsv", HERE / "ours.tsv"

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
            raise BenchError(
                f"{file}: '{score}' in the row '{row['label']}' is not a score"
            ) from None
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
        key = (r.paper, r.table, r.label, r.setting, r.backbone, r.variant)
        groups.setdefault((*key, *((r.metric, r.source) if by_metric else ())), []).append(r)
    return tuple(Row(tuple(cells)) for cells in groups.values())


def tables() -> tuple[tuple[str, str], ...]:
    """(paper, table) of every table in ``results.tsv``."""
    return tuple(dict.fromkeys((r.paper, r.table) for r in results()))


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
    series: Mapping[str, str]  # recipe key -> values; empty without one
    open: str  # what the sources leave open


@dataclass(frozen=True)
class PrintedPoint:
    """A point of a paper's figure that a source gives."""

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
    """The runs of every figure that is drawn from runs."""
    parts = {(part.paper, part.part): part for part in contents()}
    return tuple(
        FigureRuns(
            part=parts[row["paper"], row["part"]],
            draws=row["draws"],
            backbones=tuple(row["backbones"].split(",")),
            suites=tuple(row["suites"].split(",")),
            runs=tuple(_figure_run(text) for text in row["runs"].split()),
            series=dict([row["set"].split("=", 1)]) if row["set"] else {},
            open=row["open"],
        )
        for row in read_rows(HERE / "figures.tsv")
    )


def _figure_run(text: str) -> tuple[str, str, str]:
    """ "supervised:simcse+eh" as (setting, method, variant)."""
    setting, _, name = text.partition(":")
    method, _, variant = name.partition("+")
    return setting, method, variant


def printed_points(part: Part) -> tuple[PrintedPoint, ...]:
    """The points of a figure that a source gives; empty for most."""
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


# --- which run of the harness a printed row means, and the printed number that belongs to a run ---


DEV = (
    "spearman-dev"  # of STS-B dev: no suite's score, but what a training selects its checkpoint by
)
SUITES = {
    "spearman": "sts",
    DEV: "sts",
    "spearman-bootstrap": "cxc",
    "accuracy": "transfer",
    "accuracy-dev": "transfer",
    "clustering-accuracy": "clustering",
    "alignment": "geometry",
    "uniformity": "geometry",
}
"""The suite that a printed metric belongs to."""


@dataclass(frozen=True)
class Meaning:
    """A run of the harness. If there is none, ``method`` is empty and ``why_not`` is the reason."""

    method: str
    variant: str = ""
    setting: str = ""  # in which it is run, where that is not the printed one
    set: Mapping[str, str] = field(
        default_factory=dict
    )  # recipe values that the print names: --set
    on: str = ""  # the method whose run is its backbone
    on_setting: str = ""  # in which that one is run; "": the first that it has
    holds: Mapping[str, str] = field(
        default_factory=dict
    )  # recipe values that tell this run from one of the other name
    uses: Mapping[str, str] = field(
        default_factory=dict
    )  # recipe key -> the method whose run is its value
    why_not: str = ""
    doubt: str = ""  # what the print leaves open

    @property
    def name(self) -> str:
        """With the variant: "promcse+eh"; empty where no run is meant."""
        return f"{self.method}+{self.variant}" if self.variant else self.method


@cache
def meaning(method: str, variant: str, setting: str = "", backbone: str = "") -> Meaning:
    """What a printed method and variant are called here, in the setting and on the backbone that they are printed in."""
    for row in _lines():
        number = _number(variant, row["variant"])
        name, _, only_on = row["method"].partition("@")
        if (
            name in (method, f"{setting}:{method}")
            and only_on in ("", backbone)
            and number is not None
        ):
            changes, uses = (  # "m=0.1,eh=1": {"m": "0.1", "eh": "1"}
                dict(pair.split("=") for pair in row[name].replace("*", number).split(",") if pair)
                for name in ("set", "uses")
            )
            run_in, _, ours = row["ours"].rpartition(":")  # "unsupervised:consert", "simcse"
            below_in, _, below = row["on"].rpartition(":")
            return Meaning(
                ours,
                row["our_variant"],
                run_in,
                {} if only_on else changes,
                below,
                below_in,
                changes if only_on else {},
                uses,
                row["why_not"],
                row["doubt"],
            )
    return Meaning(method, variant)


def find_printed(
    method: str,
    task: str,
    *,
    suite: str,
    setting: str,
    backbone: str,
    variant: str = "",
    protocol: str | None = None,
    recipe: Mapping[str, object] | None = None,
) -> tuple[ReferenceResult, ...]:
    """The printed numbers for this run, the one to compare with first; empty if no table has any.

    ``backbone`` may be a folder or a full name of the hub: its last part counts. ``protocol`` leaves out what was scored by
    another one (without it, the weighted means alone, which are no suite's score); ``recipe`` adds rows whose print names the
    recipe values that the run had. First comes a paper's number of its own method (a mean before a best one, one of a run before
    a rerun by others), or the quotation of it; then reruns by others. Of a checkpoint that authors released and that is scored as
    they do, it is the printed numbers of the model that it is.
    """
    checkpoint = find_checkpoint(backbone)
    candidates = (
        [r for r in results(checkpoint.method, task=task) if released_for(r) == checkpoint]
        if checkpoint is not None and checkpoint.is_scored_by(method, recipe)
        else [
            r
            for r in results(task=task, backbone=Path(backbone).name)
            if _is(r, method, variant, recipe) and (r.setting == setting or setting == "none")
        ]
    )
    printed = [
        r
        for r in candidates
        if SUITES[r.metric] == suite
        and (r.protocol == protocol if protocol else r.protocol != WEIGHTED)
    ]
    return tuple(sorted(printed, key=lambda r: _rank(r, printed)))


def _is(r: ReferenceResult, method: str, variant: str, recipe: Mapping[str, object] | None) -> bool:
    means = meaning(r.method, r.variant, r.setting, r.backbone)
    names = {means.variant, r.variant} if means.holds else {means.variant}
    return (
        (means.method, means.on) == (method, "")
        and variant in names
        and all(
            recipe is not None and key in recipe and _same(recipe[key], value)
            for key, value in {**means.set, **means.holds}.items()
        )
    )


def _same(value: object, text: str) -> bool:
    try:
        return float(str(value)) == float(text)
    except ValueError:
        return str(value).lower() == text.lower()


def _rank(r: ReferenceResult, printed: list[ReferenceResult]) -> tuple[object, ...]:
    """What stands first: what the method's own paper prints, as a mean; among equals, what most papers print."""
    return (
        r.own_result and r.paper != r.method,  # a rerun
        bool(meaning(r.method, r.variant, r.setting).set) or r.variant == "reproduced",
        r.runs.startswith("best"),
        not r.own_result,
        -sum(other.value == r.value for other in printed),
    )


def _number(variant: str, pattern: str) -> str | None:
    """What ``*`` stands for, "" where there is none; None where the names differ."""
    match = re.fullmatch(re.escape(pattern).replace(r"\*", "(.+)"), variant)
    return "".join(match.groups()) if match else None


@cache
def _lines() -> list[dict[str, str]]:
    lines = read_rows(OURS)
    for row in lines:
        if None in row or None in row.values():
            raise BenchError(
                f"{OURS}: the line of '{row['method']}' does not have {len(lines[0])} cells"
            )
    return lines


# --- released checkpoints: which printed row each is, and how it is scored here without any training ---


@dataclass(frozen=True)
class Checkpoint:
    """A model of the hub. The names of its printed row are the tables' own."""

    hub: str
    paper: str
    table: str
    method: str
    setting: str
    backbone: str
    variant: str
    ours: str
    set: Mapping[str, str]
    prefix: int | None
    scored_in: tuple[str, ...]  # "promcse:2"
    note: str

    @property
    def row(self) -> Row:
        """The printed row that it is. Raises LookupError where that is not one row of ``results.tsv``."""
        (row,) = rows(
            [
                cell
                for cell in results(self.method, paper=self.paper)
                if cell.table == self.table and self.made(cell)
            ]
        )
        return row

    @property
    def printed(self) -> str:
        """The average of its row, as printed."""
        return average.printed if (average := self.row.average) else ""

    def is_scored_by(self, method: str, recipe: Mapping[str, object] | None) -> bool:
        """Whether a run of a method with this recipe scores it as its authors do."""
        # without values here, the folder says itself how it pools
        return method == self.ours and all(
            (recipe or {}).get(key) == value
            for key, value in (self.set.items() or (("pooling", None),))
        )

    def made(self, cell: ReferenceResult) -> bool:
        """Whether a printed cell is of a model of this kind: the same method, variant, setting and backbone, scored after training
        (metrics that end in "-dev" are scores on the sets by which a training selects its checkpoint)."""
        return (cell.method, cell.variant, cell.setting, cell.backbone) == (
            self.method,
            self.variant,
            self.setting,
            self.backbone,
        ) and not cell.metric.endswith("-dev")


@cache
def checkpoints() -> tuple[Checkpoint, ...]:
    """All released checkpoints, in the file's order."""
    return tuple(
        Checkpoint(
            **{
                name: row[name]
                for name in (
                    "hub",
                    "paper",
                    "table",
                    "method",
                    "setting",
                    "backbone",
                    "variant",
                    "ours",
                    "note",
                )
            },
            set=dict([row["set"].split("=", 1)]) if row["set"] else {},
            prefix=int(row["prefix"]) if row["prefix"] else None,
            scored_in=tuple(row["scored_in"].split()),
        )
        for row in read_rows(HERE / "checkpoints.tsv")
    )


def scored_from(cell: ReferenceResult) -> Checkpoint | None:
    """The checkpoint that the paper itself took this printed cell from; None where it trained, or does not say so."""
    return next(
        (
            checkpoint
            for checkpoint in checkpoints()
            if f"{cell.paper}:{cell.table}" in checkpoint.scored_in and checkpoint.made(cell)
        ),
        None,
    )


def released_for(cell: ReferenceResult) -> Checkpoint | None:
    """The released checkpoint of the model that this printed cell is of; None where none is known.

    A line of print is of one model. It is the authors' own where their own paper prints it or another one quotes it; what another
    paper ran again is another training.
    """
    theirs = (
        checkpoint
        for checkpoint in checkpoints()
        if checkpoint.made(cell) and line_of(cell) in _theirs()
    )
    return scored_from(cell) or next(theirs, None)


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


@cache
def _theirs() -> frozenset[tuple[str, ...]]:
    return frozenset(
        line_of(cell) for cell in results() if cell.paper == cell.method or not cell.own_result
    )


def released_as(method: str, setting: str, backbone: str) -> Checkpoint | None:
    """The released checkpoint of a method without a variant in a setting on a backbone; None where none is known."""
    return next(
        (
            checkpoint
            for checkpoint in checkpoints()
            if (method, setting, backbone, "")
            == (checkpoint.method, checkpoint.setting, checkpoint.backbone, checkpoint.variant)
        ),
        None,
    )


@cache
def find_checkpoint(name: str) -> Checkpoint | None:
    """The listed checkpoint that a backbone's name means: owner/name, with or without @revision, or a folder of that name."""
    last = Path(name).name.partition("@")[0]
    return next(
        (checkpoint for checkpoint in checkpoints() if Path(checkpoint.hub).name == last), None
    )
