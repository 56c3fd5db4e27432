"""The papers' printed numbers as data, with their source, and whether the tables agree with
themselves.

Not here: a score of ours, or a verdict on one; no number is computed but of printed ones.
"""

from bench.papers.backbones import printed_names
from bench.papers.checkpoints import (
    Checkpoint,
    find_checkpoint,
    released_checkpoints,
    released_for,
    scored_from,
)
from bench.papers.finding import RunTerms, find_printed, rows_of_run
from bench.papers.hyperparameters import (
    PrintedHyperparameter,
    hyperparameters,
    printed_hyperparameters,
)
from bench.papers.mapping import BY_MTEB, DEV, SUITES, Meaning, meaning
from bench.papers.parts import PaperPart, contents, find_part, printed_points
from bench.papers.printed import (
    AVERAGE,
    README,
    REPORTED,
    UNKNOWN,
    WEIGHTED,
    WHOLE,
    PrintedRow,
    ReferenceResult,
    claimed_gain,
    format_printed,
    half_unit,
    reported_sd,
    results,
    rows,
    tables,
)
from bench.papers.reading import HERE, find_paper, papers, read_every, read_scores, read_tsv

__all__ = [
    "AVERAGE",
    "BY_MTEB",
    "Checkpoint",
    "DEV",
    "HERE",
    "Meaning",
    "PaperPart",
    "PrintedHyperparameter",
    "PrintedRow",
    "README",
    "REPORTED",
    "ReferenceResult",
    "RunTerms",
    "SUITES",
    "UNKNOWN",
    "WEIGHTED",
    "WHOLE",
    "claimed_gain",
    "contents",
    "find_checkpoint",
    "find_paper",
    "find_part",
    "find_printed",
    "format_printed",
    "half_unit",
    "hyperparameters",
    "meaning",
    "papers",
    "printed_hyperparameters",
    "printed_names",
    "printed_points",
    "read_every",
    "read_tsv",
    "read_scores",
    "released_checkpoints",
    "released_for",
    "reported_sd",
    "results",
    "rows",
    "rows_of_run",
    "scored_from",
    "tables",
]
