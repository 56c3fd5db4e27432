"""The record of a search for recipe values: ``search.json`` in its folder holds the search space
and the result of each trial.

The search itself (:mod:`bench.run.search`), boards and figures read this file. A version of the
leaderboards holds the same file. The record of a tuned run describes its search in
``provenance.execution.search``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from bench.base.errors import BenchError, one_line
from bench.base.reading import SEARCH_BYTES, read_plain_file
from bench.base.text import plural
from bench.records.record import RunRecord
from bench.records.value_sources import search_of

SCHEMA = "bench.search/1"
SUMMARY = "search.json"
# states of a trial; files of earlier versions may also have "pruned", ended early
RUNNING = "running"
FINISHED = "finished"
FAILED = "failed"

RECIPE = 0
"""The number of the trial with the unchanged recipe: every method has it, and it is not counted as
a trial.
"""


class Trial(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One setting of a method's values, trained with every seed of the search."""

    method: str
    number: int
    values: dict[str, Any]
    state: str = RUNNING
    dev: tuple[float, ...] = ()  # the best dev score of each seed that has one
    steps: int = 0  # trained, of all seeds
    seconds: float = 0.0  # of training and dev scores
    error: str | None = None
    runs: tuple[str, ...] = ()
    process: str = ""  # in files of earlier versions

    @property
    def score(self) -> float | None:
        """The mean over seeds; None for an unfinished trial."""
        return sum(self.dev) / len(self.dev) if self.state == FINISHED and self.dev else None


class Searched(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The search space of one method, and the facts that its trials share."""

    setting: str
    variant: str
    plugin: str  # the identity of its code (``Code.identity``)
    backbone: str
    revision: str
    corpus: str  # name@sha256
    dev: str  # sha256 of the dev set
    recipe: dict[str, Any]  # what all trials share
    space: dict[str, dict[str, Any]]


class Study(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that the trials of all methods have in common."""

    schema: str = SCHEMA
    name: str
    methods: dict[str, Searched]
    trials: int
    seeds: tuple[int, ...]
    sampler: str
    pruner: str = "none"  # another one in files of earlier versions
    budget: str | None
    select_on: str
    dev_pairs: int
    overlap: str  # of the dev set with test sets, as a sentence
    precision: str
    suites: tuple[str, ...]
    fixed: tuple[str, ...]  # recipe keys that options gave one value for all trials
    created: str
    command: str

    @property
    def words(self) -> str:
        """How every method was searched."""
        amount = re.sub(r"(?<=[\d.])(?=[a-z])", " ", self.budget or "")  # "500steps": "500 steps"
        length = f"for {amount}" if amount else "as long as its recipe says"
        trials = plural(self.trials, f"{self.sampler} trial")
        seeds = f"{'seed' if len(self.seeds) == 1 else 'seeds'} {', '.join(map(str, self.seeds))}"
        return (
            f"{trials} of each method and its recipe as it is, each trained {length} with "
            f"{seeds}, the best chosen on {self.select_on}"
        )


class Search(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole search, as a version of the leaderboards holds it: one file."""

    study: Study
    trials: dict[str, tuple[Trial, ...]]  # of each method, by number

    @property
    def name(self) -> str:
        return self.study.name

    def encode(self) -> bytes:
        """Return the content of a file that ``read_search`` reads."""
        return msgspec.json.encode(self) + b"\n"

    def of(self, record: RunRecord) -> bool:
        """Return True if the name, seeds and selection set of the search fit the record's
        values.
        """
        study = self.study
        mine = {"name": study.name, "seeds": list(study.seeds), "select_on": study.select_on}
        return record.method in self.trials and mine.items() <= {**search_of(record)}.items()


def read_search(file: Path, inside: Path | None = None) -> Search | None:
    """Return the search in a file ``search.json``; None if there is no file.

    ``inside``: a folder above it, below which no link is followed; None: its own.

    Raises BenchError if it is damaged.
    """
    try:
        return msgspec.json.decode(read_plain_file(file, SEARCH_BYTES, inside), type=Search)
    except FileNotFoundError:
        return None
    except OSError as error:
        why = f"{file} cannot be read: {error.strerror or error}"
    except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
        why = f"{file} is damaged: {one_line(error)}"
    raise BenchError(why, "restore it, or start another search with --name NEW")


def best_trial(trials: Sequence[Trial]) -> Trial | None:
    """Return the highest dev score; of equal ones the first."""
    return max(
        (trial for trial in trials if trial.score is not None),
        key=lambda trial: (trial.score, -trial.number),
        default=None,
    )


def expected_best(scores: Sequence[float | None]) -> list[float]:
    """Return the expected maximum of n dev scores (Dodge et al. 2019, "Show Your Work", section
    3.1), for n from 1 to their number: n draws, with replacement, from the scores of the trials.

    With N of them sorted, the highest of n draws is the i-th or a lower one with probability (i /
    N)^n. None is a trial without a score, which failed or was pruned: it counts as the lowest
    score. Empty if no trial has a score.
    """
    known = [score for score in scores if score is not None]
    if not known:
        return []
    ordered = sorted(min(known) if score is None else score for score in scores)
    count = len(scores)
    expected = []
    for n in range(1, count + 1):
        # each score times the probability that it is the highest of n draws
        shares = []
        for i, score in enumerate(ordered, 1):
            shares.append(score * ((i / count) ** n - ((i - 1) / count) ** n))
        expected.append(sum(shares))
    return expected
