"""The page of a search: how every method was tuned, with all trials. A pure function of the search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench.board.names import search_file
from bench.board.repeat import without_folders
from bench.compare.formatting import score
from bench.runs.searches import RECIPE, best_trial
from bench.show.figures.search import of_all_methods
from bench.show.pages.engine import render as rendered
from bench.show.pages.engine import value_words
from bench.show.tables.report import Section

if TYPE_CHECKING:
    from bench.board.board import Board
    from bench.runs.searches import Search, Study, Trial

UP = 1  # folders between a search's page and its version


def render(board: Board, search: Search) -> str:
    """The page as HTML."""
    study = search.study
    return rendered(
        "search.html",
        study=study,
        board=board,
        up=UP,
        figures=of_all_methods(study, search.trials),
        lead=_lead(study),
        command=without_folders(study.command),
        data=search_file(search.name, "json").rsplit("/", 1)[-1],
        sections=[_trials(study, method, own) for method, own in search.trials.items()],
    )


def _lead(study: Study) -> str:
    return (
        f"{study.words} ({study.dev_pairs:,} pairs); it gave the values of the method's runs. No test score was computed. "
        "These scores chose the values: they are higher than those of new seeds."
    )


def _trials(study: Study, method: str, trials: Sequence[Trial]) -> Section:
    keys, best = list(study.methods[method].space), best_trial(trials)
    rows = [
        (
            "the recipe as it is" if trial.number == RECIPE else f"trial {trial.number}",
            *("" if key not in trial.values else value_words(trial.values[key]) for key in keys),
            trial.state if trial.score is None else score(trial.score),
            "best" if best is not None and trial.number == best.number else "",
        )
        for trial in trials
    ]
    return Section(
        method, (method, *keys, study.select_on, ""), tuple(rows), tuple(range(1, len(keys) + 2))
    )
