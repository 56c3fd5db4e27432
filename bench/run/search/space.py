"""What is searched of a method: a recipe key with the values that it may take, and where these bounds come from.

Spaces stand in recipe files, as ``[[space]]`` tables: those of a method in ``recipes/<method>.toml`` beside it, the common ones in the
backbones' file. ::

    [[space]]
    setting = "unsupervised"                     # which recipes: setting, backbone, variant; a name, a list, or left out for all
    backbone = ["roberta-base", "roberta-large"]
    [space.values]
    learning_rate = { values = [1e-5, 3e-5], source = "the paper's grid" }
    temperature = { low = 0.02, high = 0.2, scale = "log", source = "..." }
    queue_size = { factor = 4, source = "..." }  # from a quarter of the recipe's own value to four times that, in equal ratios

What a method says of a key takes the place of what is common.
"""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.base.errors import BenchError, UnknownName
from bench.method import Recipe, Value
from bench.run.recipe_file import fits, read
from bench.run.recipes import BACKBONES, WHOLE, parse, wrong_kind
from bench.runs.searches import FAILED, FINISHED, PRUNED, RUNNING, Trial

if TYPE_CHECKING:
    import optuna


UNIFORM, LOG = "uniform", "log"
NOT_SEARCHED = (
    "select_on",
    "budget",
    "max_steps",
    "epochs",
    "eval_steps",
    "corpus_column",
    "patience",
)
"""Recipe keys that say what is compared: how long, on what, chosen by what. They are the same for all trials."""
DIGITS = 3  # significant digits of a value that is drawn from a range: a recipe is read by people
POINTS = 3  # of a range, in a grid


@dataclass(frozen=True, kw_only=True)
class Dimension:
    """One recipe key: ``values`` to choose from, or from ``low`` to ``high``."""

    key: str
    source: str
    values: tuple[Any, ...] = ()
    low: float = 0.0
    high: float = 0.0
    scale: str = UNIFORM
    whole: bool = False  # whole numbers alone

    def at(self, share: float) -> Any:
        """The value at ``share`` of the way, 0 <= share < 1: of each value, or piece of the range, the same share."""
        if self.values:
            return self.values[int(share * len(self.values))]
        if self.scale == LOG:
            return self.rounded(self.low * (self.high / self.low) ** share)
        return self.rounded(self.low + (self.high - self.low) * share)

    def rounded(self, value: float) -> Any:
        """With three digits, and never outside."""
        if self.whole:
            return round(value)
        return min(max(float(f"{value:.{DIGITS}g}"), self.low), self.high)

    def grid(self) -> tuple[Any, ...]:
        if self.values:
            return self.values
        ends = [
            self.rounded(self.low),
            *(self.at(i / (POINTS - 1)) for i in range(1, POINTS - 1)),
            self.rounded(self.high),
        ]
        return tuple(dict.fromkeys(ends))

    def words(self) -> str:
        """ "1e-05, 3e-05", "0.02 to 0.2, in equal ratios" """
        if self.values:
            return ", ".join(map(short, self.values))
        return f"{short(self.low)} to {short(self.high)}" + (
            ", in equal ratios" if self.scale == LOG else ""
        )

    def to_json(self) -> dict[str, Any]:
        bounds = (
            {"values": list(self.values)}
            if self.values
            else {"low": self.low, "high": self.high, "scale": self.scale}
        )
        return {**bounds, "source": self.source}


Space = tuple[Dimension, ...]


def short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def draw_values(space: Space, seed: str, number: int) -> dict[str, Any]:
    """The values of a random trial: of two methods that share a dimension the same, whatever else each of them has."""
    return {axis.key: axis.at(_share(f"{seed}/{number}/{axis.key}")) for axis in space}


def grid(space: Space, seed: str) -> list[dict[str, Any]]:
    """Every combination, in an order that the seed shuffles: its first part is a fair sample of all."""
    points = [
        dict(zip((axis.key for axis in space), values, strict=True))
        for values in product(*(one.grid() for one in space))
    ]
    return sorted(
        points,
        key=lambda point: hashlib.sha256(f"{seed}/{sorted(point.items())}".encode()).digest(),
    )


def _share(text: str) -> float:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**48


# --- Where it is said ---


def space_of(
    folder: Path,
    method: str,
    *,
    setting: str,
    backbone: str,
    variant: str,
    recipe: Recipe,
    places: Collection[str],
    given: Mapping[str, str] | None = None,
    fixed: Collection[str] = (),
) -> Space:
    """What is searched of a method: ``given`` (--space KEY=...) before what lies beside it before what is common.

    Keys of ``fixed`` were set by hand and are not searched. Raises BenchError, naming the file and the key, for a space that is none.
    """
    which = {"setting": setting, "backbone": backbone, "variant": variant}
    axes: dict[str, Dimension] = {}
    for where, name, own in ((BACKBONES, "backbones", False), (folder, method, True)):
        file = where / "recipes" / f"{name}.toml"
        for table in read(where, name).spaces:
            if not all(fits(table.get(key), of) for key, of in which.items()):
                continue
            if not isinstance(table.get("values"), Mapping) or not table["values"]:
                raise BenchError(
                    f"{file}: a [[space]] is empty: nothing of {method} is searched",
                    "[space.values] with a line for each key",
                )
            for key, bounds in table["values"].items():
                if own:
                    check_key(key, recipe, places, f"in a space of {method} ({file})")
                elif key not in recipe or recipe[key] is None:
                    continue
                axes[key] = dimension(key, bounds, recipe, f"{file}: space of {key}")
    for key, text in (given or {}).items():
        if key in recipe:  # of several methods one may lack it
            check_key(key, recipe, places, f"of {method}")
            axes[key] = parse_dimension(key, text, recipe)
    return tuple(axes[key] for key in sorted(axes) if key not in fixed)


def check_key(key: str, recipe: Recipe, places: Collection[str], where: str) -> None:
    """Raises BenchError for a key that the recipe lacks, or that no search may change."""
    if key not in recipe:
        raise UnknownName("recipe key", key, recipe, where)
    if key in NOT_SEARCHED or key in places:
        why = "it names what lies elsewhere" if key in places else "it says how trials are compared"
        raise BenchError(
            f"recipe key '{key}' is not searched {where}: {why}",
            "--set gives it one value for all trials",
        )


def parse_dimension(key: str, text: str, recipe: Recipe) -> Dimension:
    """``--space KEY=1,2,4``, ``KEY=0.1..0.4`` or ``KEY=log:1e-5..1e-3``."""
    label = f"--space {key}={text}"
    ends = text.removeprefix(f"{LOG}:").split("..")
    if len(ends) == 2:
        try:
            low, high = map(float, ends)
        except ValueError:
            raise BenchError(f"{label}: expected numbers", EXAMPLE) from None
        scale = LOG if text.startswith(f"{LOG}:") else UNIFORM
        return dimension(
            key, {"low": low, "high": high, "scale": scale, "source": "--space"}, recipe, label
        )
    try:
        values = [parse(key, part.strip(), recipe[key]) for part in text.split(",") if part.strip()]
    except BenchError as error:
        raise BenchError(error.message.replace("--set", "--space"), EXAMPLE) from None
    return dimension(key, {"values": values, "source": "--space"}, recipe, label)


EXAMPLE = "--space temperature=0.03,0.05,0.1, --space dropout=0.05..0.2, or --space learning_rate=log:1e-5..1e-3"


def dimension(key: str, bounds: Any, recipe: Recipe, label: str) -> Dimension:
    """Raises BenchError, beginning with ``label``, where ``bounds`` do not say what the key may be."""
    in_a_file = 'as { values = [1e-5, 3e-5], source = "..." }, or low, high and scale, or factor'

    def wrong(what: str) -> BenchError:
        return BenchError(f"{label}: {what}", EXAMPLE if label.startswith("--space") else in_a_file)

    def check(value: Any) -> None:
        if reason := wrong_kind(key, value, recipe[key]):
            raise wrong(reason)

    if not isinstance(bounds, Mapping):
        raise wrong("expected a table")
    if unknown := bounds.keys() - {"values", "low", "high", "scale", "factor", "source"}:
        raise wrong(f"unknown key {', '.join(sorted(unknown))}")
    source = bounds.get("source")
    if not isinstance(source, str) or not source.strip():
        raise wrong("it does not say where the bounds come from (source)")
    like = recipe[key]
    if "values" in bounds:
        values = bounds["values"]
        if not isinstance(values, Sequence) or isinstance(values, str) or not values:
            raise wrong("its values are empty" if values == [] else "expected a list of values")
        for value in values:
            check(value)
        if len({str(value) for value in values}) < len(values):
            raise wrong("a value stands there twice")
        return Dimension(key=key, source=source, values=tuple(values))
    if isinstance(like, bool | str):
        raise wrong(
            f"{key} is {'true or false' if isinstance(like, bool) else 'a word'}: a range has no meaning, values = [...] has"
        )
    scale = bounds.get("scale", UNIFORM)
    if "factor" in bounds:
        factor = bounds["factor"]
        if (
            isinstance(factor, bool)
            or not isinstance(factor, int | float)
            or not math.isfinite(factor)
            or factor <= 1
        ):
            raise wrong(f"factor {factor!r}: expected a number above 1")
        if not isinstance(like, int | float) or like <= 0:
            raise wrong(
                f"factor: the recipe's own value is {like}, and only a positive number has multiples"
            )
        low, high, scale = like / factor, like * factor, LOG
    else:
        low, high = bounds.get("low"), bounds.get("high")  # type: ignore[assignment]
    whole = key in WHOLE or (isinstance(like, int) and not isinstance(like, bool))
    for end in (low, high):
        if isinstance(end, bool) or not isinstance(end, int | float) or not math.isfinite(end):
            raise wrong(f"expected numbers for low and high, found {end!r}")
        if not whole or "factor" not in bounds:
            check(int(end) if whole and end == int(end) else end)
    if whole:
        low, high = max(1, round(low)), round(high)
    if low >= high:
        raise wrong(f"it is empty: low {short(low)} is not below high {short(high)}")
    if scale not in (UNIFORM, LOG) or (scale == LOG and low <= 0):
        raise wrong(f"scale {scale!r}: {UNIFORM}, or {LOG} for bounds above 0")
    return Dimension(key=key, source=source, low=low, high=high, scale=scale, whole=whole)


def with_values(recipe: Recipe, values: Mapping[str, Any], source: str) -> Recipe:
    return Recipe(
        recipe.values_with_source() | {key: Value(value, source) for key, value in values.items()}
    )


# --- Which values the next trial has: drawn at random, the next of a grid, or what Optuna asks for ---
# Random and grid need nothing: the values of a trial follow from the seeds and its number alone. Optuna's samplers and pruners know the
# trials before; they keep them in a SQLite file in the search's folder, and the sampler is seeded for each trial anew, so that a search that
# was killed asks for what it would have asked for.


RANDOM, GRID, TPE, GP = "random", "grid", "tpe", "gp"
NONE, MEDIAN, HALVING = "none", "median", "halving"
AT_RANDOM_FIRST = (
    5  # trials before Optuna's samplers use what they know, and its median pruner stops any
)


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
        raise BenchError(
            f"--sampler grid: the grid of {method} has {points} points, fewer than {trials} trials",
            f"--trials {points}",
        )


class Sampling:
    """The values of one method's trials. Optuna's study is asked and told by one process at a time: the caller holds the search's lock."""

    def __init__(
        self,
        folder: Path,
        method: str,
        space: Space,
        *,
        sampler: str,
        pruner: str,
        seeds: tuple[int, ...],
    ) -> None:
        self.folder, self.method, self.space, self.sampler, self.pruner = (
            folder,
            method,
            space,
            sampler,
            pruner,
        )
        self.seed = ",".join(map(str, seeds))
        self._study: optuna.Study | None = None

    def values(self, number: int) -> dict[str, Any]:
        """Of a trial that is not begun yet; numbers count from 1."""
        if self.sampler == RANDOM:
            own = draw_values(self.space, self.seed, number)
        elif self.sampler == GRID:
            own = grid(self.space, self.seed)[number - 1]
        else:
            own = {}
        if not needs_optuna(self.sampler, self.pruner):
            return own
        with quiet():
            study = self.study()
            known = len(
                study.trials
            )  # it may have been asked for by a process that was killed before it could say so
            if own and known < number:
                study.enqueue_trial(own)
            if known < number or not study.trials[number - 1].params:
                study.sampler = self._sampler(number)
                study.ask({dimension.key: _distribution(dimension) for dimension in self.space})
            asked = study.trials[number - 1].params
        return {
            axis.key: asked[axis.key] if axis.values else axis.rounded(asked[axis.key])
            for axis in self.space
        }

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
            storage = optuna.storages.RDBStorage(
                f"sqlite:///{file.resolve()}", engine_kwargs={"connect_args": {"timeout": 120}}
            )
            self._study = optuna.create_study(
                storage=storage,
                study_name=self.method,
                direction="maximize",
                load_if_exists=True,
                pruner=self._pruner(),
            )
        return self._study

    def _sampler(self, number: int) -> optuna.samplers.BaseSampler:
        import optuna

        seed = int.from_bytes(
            hashlib.sha256(f"{self.seed}/{number}/{self.method}".encode()).digest()[:4], "big"
        )
        if self.sampler == TPE:
            return optuna.samplers.TPESampler(seed=seed, n_startup_trials=AT_RANDOM_FIRST)
        if self.sampler == GP:
            return optuna.samplers.GPSampler(seed=seed, n_startup_trials=AT_RANDOM_FIRST)
        return optuna.samplers.RandomSampler(
            seed=seed
        )  # asked for nothing: its values are enqueued

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
        return optuna.distributions.IntDistribution(
            int(dimension.low), int(dimension.high), log=dimension.scale == LOG
        )
    return optuna.distributions.FloatDistribution(
        dimension.low, dimension.high, log=dimension.scale == LOG
    )


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
