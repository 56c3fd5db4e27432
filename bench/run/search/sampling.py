"""Which values the next trial has: drawn at random, the next of a grid, or what Optuna asks for.

Random and grid need nothing: the values of a trial follow from the seeds and its number alone. Optuna's samplers and pruners know the
trials before; they keep them in a SQLite file in the search's folder, and the sampler is seeded for each trial anew, so that a search that
was killed asks for what it would have asked for.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.base.errors import BenchError
from bench.run.search.space import LOG, Dimension, Space, drawn, grid
from bench.runs.searches import FAILED, FINISHED, PRUNED, RUNNING, Trial

if TYPE_CHECKING:
    import optuna

RANDOM, GRID, TPE, GP = "random", "grid", "tpe", "gp"
SAMPLERS = (RANDOM, GRID, TPE, GP)
NONE, MEDIAN, HALVING = "none", "median", "halving"
PRUNERS = (NONE, MEDIAN, HALVING)
AT_RANDOM_FIRST = 5  # trials before Optuna's samplers use what they know, and its median pruner stops any


def needs_optuna(sampler: str, pruner: str) -> bool:
    return sampler in (TPE, GP) or pruner != NONE


def check_optuna(sampler: str, pruner: str) -> None:
    """Raises BenchError where Optuna is asked for and not installed."""
    if needs_optuna(sampler, pruner):
        try:
            import optuna  # noqa: F401
        except ImportError:
            what = f"--sampler {sampler}" if sampler in (TPE, GP) else f"--pruner {pruner}"
            raise BenchError(
                f"{what} needs Optuna, which is not installed",
                "pip install 'sentence-bench[search]', or --sampler random, which needs nothing",
            ) from None


def check_grid(method: str, space: Space, trials: int) -> None:
    """Raises BenchError where a grid has fewer points than there are trials: each method gets as many as every other."""
    points = len(grid(space, ""))
    if points < trials:
        raise BenchError(f"--sampler grid: the grid of {method} has {points} points, fewer than {trials} trials", f"--trials {points}")


class Sampling:
    """The values of one method's trials. Optuna's study is asked and told by one process at a time: the caller holds the search's lock."""

    def __init__(self, folder: Path, method: str, space: Space, *, sampler: str, pruner: str, seeds: tuple[int, ...]) -> None:
        self.folder, self.method, self.space, self.sampler, self.pruner = folder, method, space, sampler, pruner
        self.seed = ",".join(map(str, seeds))
        self._study: optuna.Study | None = None

    def values(self, number: int) -> dict[str, Any]:
        """Of a trial that is not begun yet; numbers count from 1."""
        if self.sampler == RANDOM:
            own = drawn(self.space, self.seed, number)
        elif self.sampler == GRID:
            own = grid(self.space, self.seed)[number - 1]
        else:
            own = {}
        if not needs_optuna(self.sampler, self.pruner):
            return own
        with quiet():
            study = self.study()
            known = len(study.trials)  # it may have been asked for by a process that was killed before it could say so
            if own and known < number:
                study.enqueue_trial(own)
            if known < number or not study.trials[number - 1].params:
                study.sampler = self._sampler(number)
                study.ask({dimension.key: _distribution(dimension) for dimension in self.space})
            found = study.trials[number - 1].params
        return {dimension.key: _as_recipe(dimension, found[dimension.key]) for dimension in self.space}

    def tell(self, trials: Mapping[int, Trial]) -> None:
        """What became of trials, those that Optuna knows already left out."""
        if not needs_optuna(self.sampler, self.pruner):
            return
        from optuna.trial import TrialState

        states = {FAILED: TrialState.FAIL, PRUNED: TrialState.PRUNED}
        with quiet():
            study = self.study()
            for known in study.trials:
                trial = trials.get(known.number + 1)
                if trial is None or trial.state == RUNNING or known.state.is_finished():
                    continue
                if trial.state == FINISHED:
                    study.tell(known.number, trial.score, skip_if_finished=True)
                else:
                    study.tell(known.number, state=states[trial.state], skip_if_finished=True)

    def should_prune(self, number: int, step: int, score: float) -> bool:
        """Whether a trial with this dev score at a step is to end there."""
        if self.pruner == NONE or number == 0:
            return False
        import optuna

        with quiet():
            study = self.study()
            known = study.trials[number - 1]
            trial = optuna.trial.Trial(study, known._trial_id)
            if step not in known.intermediate_values:
                trial.report(score, step)
            return trial.should_prune()

    def study(self) -> optuna.Study:
        if self._study is None:
            import optuna

            file = self.folder / "study" / "optuna.db"
            file.parent.mkdir(parents=True, exist_ok=True)
            storage = optuna.storages.RDBStorage(f"sqlite:///{file.resolve()}", engine_kwargs={"connect_args": {"timeout": 120}})
            self._study = optuna.create_study(
                storage=storage, study_name=self.method, direction="maximize", load_if_exists=True, pruner=self._pruner()
            )
        return self._study

    def _sampler(self, number: int) -> optuna.samplers.BaseSampler:
        import optuna

        seed = int.from_bytes(hashlib.sha256(f"{self.seed}/{number}/{self.method}".encode()).digest()[:4], "big")
        if self.sampler == TPE:
            return optuna.samplers.TPESampler(seed=seed, n_startup_trials=AT_RANDOM_FIRST)
        if self.sampler == GP:
            return optuna.samplers.GPSampler(seed=seed, n_startup_trials=AT_RANDOM_FIRST)
        return optuna.samplers.RandomSampler(seed=seed)  # asked for nothing: its values are enqueued

    def _pruner(self) -> optuna.pruners.BasePruner:
        import optuna

        if self.pruner == MEDIAN:
            return optuna.pruners.MedianPruner(n_startup_trials=AT_RANDOM_FIRST)
        if self.pruner == HALVING:
            return optuna.pruners.SuccessiveHalvingPruner()
        return optuna.pruners.NopPruner()


def _distribution(dimension: Dimension) -> optuna.distributions.BaseDistribution:
    import optuna

    if dimension.values:
        return optuna.distributions.CategoricalDistribution(dimension.values)
    if dimension.whole:
        return optuna.distributions.IntDistribution(int(dimension.low), int(dimension.high), log=dimension.scale == LOG)
    return optuna.distributions.FloatDistribution(dimension.low, dimension.high, log=dimension.scale == LOG)


def _as_recipe(dimension: Dimension, value: Any) -> Any:
    return value if dimension.values else dimension.rounded(value)


@contextmanager
def quiet() -> Iterator[None]:
    """Optuna without its lines on standard error: what they say is said here."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        optuna.logging.set_verbosity(before)
