"""``bench.search_recipes``: search for the values of recipes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, RenderResult

from bench.base.grid import Grid, GridColumn, grid
from bench.base.markup import as_html
from bench.base.printing import draw_grid
from bench.library.arguments import (
    Methods,
    PathLike,
    Plugins,
    Seeds,
    check_argument,
    check_mapping,
    check_recipe_keys,
    classes_of,
    find_methods,
    read_arguments,
    recipe_texts,
)
from bench.library.corpora import corpus_place
from bench.library.libraries import import_pandas
from bench.library.plots import plot_trials
from bench.library.results import STYLE, print_to_text
from bench.library.running import choose_reporter
from bench.library.terms import in_python_terms
from bench.library.training import Setting
from bench.records.searches import RECIPE, Search, Trial, best_trial
from bench.run.plan_toml import Plan
from bench.run.request import make_plan
from bench.run.search.prepare import SearchOptions, plan_search, search_options
from bench.run.search.study import Sampler, Trials, TrialSettings
from bench.run.search.trials import describe_values, run_trials, write_found
from bench.run.session import Session

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@dataclass(frozen=True, repr=False)
class SearchResult:
    """The trials of a search, and the recipes that it found.

    ``result.recipes["simcse"]`` is the recipe file with the best values, which ``bench.train``
    takes.

    Attributes:
        folder: The folder of the search.
        search: Its record: the trials of each method, and the options.
        recipes: Method -> its recipe file, without methods that have no trial with a score.
    """

    folder: Path
    search: Search
    recipes: Mapping[str, Path]

    def frame(self) -> pd.DataFrame:
        """Return a row for each trial. Needs pandas.

        Columns: method, trial (0: the unchanged recipe), state, dev, steps, seconds, and its
        values.
        """
        rows = [
            {
                "method": method,
                "trial": trial.number,
                "state": trial.state,
                "dev": trial.score,
                "steps": trial.steps,
                "seconds": trial.seconds,
                **trial.values,
            }
            for method, trials in self.search.trials.items()
            for trial in trials
        ]
        return import_pandas().DataFrame(rows)

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the expected best dev score against the number of trials.

        Source: Dodge et al. 2019, "Show Your Work", section 3.1.

        Args:
            axes: Axes of matplotlib to draw on. None: new ones.

        Returns:
            The axes.

        Raises:
            BenchError: If matplotlib is not installed.
        """
        return plot_trials(self.search.trials, self.search.study.select_on, axes)

    def _grid(self) -> Grid:
        rows = []
        for method, trials in self.search.trials.items():
            unchanged = [trial for trial in trials if trial.number == RECIPE]
            best = best_trial(trials)
            recipe_score = _score_text(unchanged[0] if unchanged else None)
            rows.append([method, recipe_score, _score_text(best), describe_values(best)])
        return grid(
            [
                "method",
                GridColumn("recipe", right=True),
                GridColumn("best", right=True),
                GridColumn("values of the best", wrap=24),
            ],
            rows,
            title=f"{self.search.name}, {self.search.study.select_on}",
        )

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield draw_grid(self._grid(), console, options.max_width)

    def __repr__(self) -> str:
        return print_to_text(self)

    def _repr_html_(self) -> str:
        return STYLE + as_html(self._grid())


@in_python_terms
def search_recipes(
    method: Methods,
    backbone: PathLike | None = None,
    corpus: Any = None,
    seeds: Seeds | None = None,
    *,
    trials: int = 12,
    space: Mapping[str, str | Sequence[Any]] | None = None,
    select: str | None = None,
    budget: str | None = None,
    sampler: Sampler = "random",
    name: str | None = None,
    suites: PathLike | Sequence[PathLike] = ("sts",),
    data: PathLike | None = None,
    setting: Setting | None = None,
    variant: str = "",
    precision: str = "auto",
    chunk: int | None = None,
    device: str = "auto",
    offline: bool = False,
    allow_pickle: bool = False,
    plugins: Plugins = (),
    runs: PathLike | None = None,
    progress: bool = True,
    settings: Mapping[str, Any] | None = None,
    **recipe: Any,
) -> SearchResult:
    """Search for values of recipes, with the same effort for each method, as ``bench search`` does.

        found = bench.search_recipes(["simcse", "promcse"], trials=12, budget="500steps")
        bench.train(list(found.recipes.values()), seeds="1-5")

    Several processes with the same call share the trials. Nothing is scored on the suites.

    Args:
        method: A name of ``bench methods``, a Method class, a Python file with methods, a recipe
            file, or a list of these.
        backbone: A hub name, a folder or "builtin". None: the recipe file's, else "builtin".
        corpus: The training text, as in ``bench.train``. None: the recipe's.
        seeds: Seeds of every trial, which is scored by their mean. None: 901, because published
            runs need others.
        trials: Trials of each method, besides its unchanged recipe. The same call with more
            continues a search.
        space: Search these keys, and no others, instead of those of recipe files: {"temperature":
            [0.03, 0.05], "learning_rate": "log:1e-5..1e-3"}.
        select: The dev set. None: sts-dev-clean, or captions dev with the suite check, or with the
            backbone or corpus builtin.
        budget: The length of each training: "500steps", "10m", "2epochs". None: the recipe's.
        sampler: How values are chosen: "random" or "grid".
        name: Name of the search and its folder. None: a hash of its options.
        suites: The suites that will be scored later, to report the dev set's overlap with them.
        data: The folder with evaluation data. None: $BENCH_DATA, or fetched.
        setting: "unsupervised", "supervised" or "none". None: the one with a recipe for the
            backbone.
        variant: The variant of methods that name none.
        precision: "auto", "fp32", "tf32", "bf16" or "fp16".
        chunk: Rows of a batch in memory at a time, with the same gradient. None: all.
        device: "auto", "cpu", "cuda:1" or "mps".
        offline: Open no connection.
        allow_pickle: Accept backbones with weights in a pickle.
        plugins: Further Python files and classes, with suites or methods.
        runs: The folder of the runs. None: $BENCH_RUNS, or ./runs.
        progress: Show lines and bars.
        settings: Values of the recipe as a dictionary; they are the same in all trials.
        **recipe: Every other keyword is a value of the recipe, which is the same in all trials.

    Returns:
        The trials, and a recipe file for each method.

    Raises:
        BenchError: For an argument that cannot work.
        UnknownName: For an unknown argument or name, with the nearest names.
    """
    arguments = locals()
    for argument, value, kind in (
        ("trials", trials, Trials),
        ("sampler", sampler, Sampler),
    ):
        check_argument(argument, value, kind)
    check_mapping(space, "space", 'space={"temperature": [0.03, 0.05]}')
    values = recipe_texts(settings, recipe)
    methods = find_methods(method, plugins)
    check_recipe_keys(values, search_recipes, classes_of(methods))
    fields = read_arguments(
        arguments,
        names=None,  # ``name`` is the search's
        overrides=values,
        corpus=corpus_place(corpus),
        **methods,
    )
    asked = search_options(make_plan(fields).runs, select, seeds_named=seeds is not None)
    how = TrialSettings(trials=trials, sampler=sampler, name=name, command=_command(asked, trials))
    return _search(asked, _space_texts(space), how, progress)


def _command(asked: SearchOptions, trials: int) -> str:
    """Return the call as the record of a search holds it."""
    named = dict.fromkeys(method for method, _ in asked.config.named)
    return f"bench.search_recipes({', '.join(map(repr, named))}, trials={trials})"


def _search(
    asked: SearchOptions, space: Mapping[str, str], how: TrialSettings, progress: bool
) -> SearchResult:
    """Run the trials that are missing, and write the recipes that were found."""
    session = Session.begin(Plan((asked.config,)), choose_reporter(progress))
    prepared = session.plan_runs().runs
    planned = plan_search(prepared, session.config, asked, space, how)
    worker = planned.begin()
    with session.reporter.display():
        for note in planned.notes:
            session.reporter.note(note)
        run_trials(worker, session.reporter)
    search, files = write_found(worker)
    recipes = {method: file for method, file in files.items() if file is not None}
    return SearchResult(worker.folder, search, recipes)


def _score_text(trial: Trial | None) -> str:
    """Return the dev score of a trial; "" if it has none."""
    if trial is None or trial.score is None:
        return ""
    return f"{trial.score:.2f}"


def _space_texts(space: Mapping[str, str | Sequence[Any]] | None) -> dict[str, str]:
    """Return the values to search as ``--space`` takes them."""
    texts = {}
    for key, values in (space or {}).items():
        texts[key] = values if isinstance(values, str) else ",".join(map(str, values))
    return texts
