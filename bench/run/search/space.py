"""What is searched of a method: a recipe key with the values that it may take, and where these bounds come from.

Spaces stand in recipe files, as ``[[space]]`` tables: those of a method in ``recipes/<method>.toml`` next to it, the common ones in
the backbones' file. ::

    [[space]]
    setting = "unsupervised"                     # which recipes: setting, backbone, variant; a name, a list, or left out for all
    backbone = ["roberta-base", "roberta-large"]
    [space.values]
    learning_rate = { values = [1e-5, 3e-5], source = "the paper's grid" }
    temperature = { low = 0.02, high = 0.2, scale = "log", source = "..." }
    queue_size = { factor = 4, source = "..." }  # from a quarter of the recipe's own value to four times that, on a log scale

A method's own bounds of a key replace the common ones. Each becomes one of Optuna's distributions: see :meth:`Dimension.suggest`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from bench.base.errors import BenchError, UnknownName
from bench.method import Recipe, Value
from bench.run.recipe_file import fits, read
from bench.run.recipes import BACKBONES, WHOLE, parse, wrong_kind

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
"""Recipe keys that define the comparison: how long a trial trains, on what, and what selects it. All trials share them."""
DIGITS = 3  # significant digits of a value from a range: people read recipes
EXAMPLE = (
    "--space temperature=0.03,0.05,0.1, --space dropout=0.05..0.2, "
    "or --space learning_rate=log:1e-5..1e-3"
)
IN_A_FILE = '{ values = [1e-5, 3e-5], source = "..." }, or low, high and scale, or factor'


class Dimension(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A line of ``[space.values]``: a recipe key with ``values`` to choose from, or from ``low`` to ``high``, both included.

    Ends that are ints mean whole numbers only. ``factor`` is how a file may state low and high: see :func:`dimension`.
    """

    key: str = ""
    source: Annotated[str, msgspec.Meta(pattern=r"\S")]
    values: tuple[Any, ...] = ()
    low: int | float = 0
    high: int | float = 0
    scale: Literal["uniform", "log"] = "uniform"
    factor: float | None = None

    def suggest(self, trial: optuna.Trial) -> None:
        """Give the trial a value: the one that it has already, or else what its study's sampler draws."""
        if self.values:
            trial.suggest_categorical(self.key, self.values)
        elif isinstance(self.low, int) and isinstance(self.high, int):
            trial.suggest_int(self.key, self.low, self.high, log=self.scale == LOG)
        else:
            trial.suggest_float(self.key, self.low, self.high, log=self.scale == LOG)

    def rounded(self, value: Any) -> Any:
        """A value from a range with three digits, within the range; one of ``values`` as it is."""
        if self.values or isinstance(self.low, int):
            return value if self.values else round(value)
        return min(max(float(f"{value:.{DIGITS}g}"), self.low), self.high)

    def grid(self) -> tuple[Any, ...]:
        """The values, or both ends and the middle of a range."""
        log = self.scale == LOG
        middle = math.sqrt(self.low * self.high) if log else (self.low + self.high) / 2
        ends = tuple(dict.fromkeys(map(self.rounded, (self.low, middle, self.high))))
        return self.values or ends

    def text(self) -> str:
        """ "1e-05, 3e-05", "0.02 to 0.2, log scale" """
        ends = f"{short(self.low)} to {short(self.high)}{', log scale' * (self.scale == LOG)}"
        return ", ".join(map(short, self.values)) or ends

    def to_json(self) -> dict[str, Any]:
        bounds = {"low": self.low, "high": self.high, "scale": self.scale}
        return {**({"values": list(self.values)} if self.values else bounds), "source": self.source}


Space = tuple[Dimension, ...]


def short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


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
    """What is searched of a method: ``given`` (--space KEY=...) before the method's own file before what is common to all.

    Keys of ``fixed`` were set by hand and are not searched. Raises BenchError, with the file and the key, for bounds that are wrong.
    """
    which = {"setting": setting, "backbone": backbone, "variant": variant}
    axes: dict[str, Dimension] = {}
    for where, name in ((BACKBONES, "backbones"), (folder, method)):
        file = where / "recipes" / f"{name}.toml"
        for table in read(where, name).spaces:
            if not all(fits(table.get(key), of) for key, of in which.items()):
                continue
            if not isinstance(table.get("values"), Mapping) or not table["values"]:
                raise BenchError(
                    f"{file}: a [[space]] is empty", "[space.values] with a line per key"
                )
            for key, bounds in table["values"].items():
                if name == method:
                    check_key(key, recipe, places, f"in a space of {method} ({file})")
                elif key not in recipe or recipe[key] is None:
                    continue
                axes[key] = dimension(key, bounds, recipe, f"{file}: space of {key}")
    for key, text in (given or {}).items():
        if key in recipe:  # one of several methods may lack it
            check_key(key, recipe, places, f"of {method}")
            axes[key] = parse_dimension(key, text, recipe)
    return tuple(axes[key] for key in sorted(axes) if key not in fixed)


def check_key(key: str, recipe: Recipe, places: Collection[str], where: str) -> None:
    """Raises BenchError for a key that the recipe lacks, or that a search may not change."""
    if key not in recipe:
        raise UnknownName("recipe key", key, recipe, where)
    if key in NOT_SEARCHED or key in places:
        why = "it names a file" if key in places else "all trials share it"
        hint = "--set gives it one value for all trials"
        raise BenchError(f"recipe key '{key}' cannot be searched {where}: {why}", hint)


def parse_dimension(key: str, text: str, recipe: Recipe) -> Dimension:
    """``--space KEY=1,2,4``, ``KEY=0.1..0.4`` or ``KEY=log:1e-5..1e-3``. Raises BenchError for anything else."""
    label = f"--space {key}={text}"
    scale, colon, ends = text.rpartition(":")
    low, dots, high = ends.partition("..")
    bounds: dict[str, Any] = {"source": "--space"}
    try:
        if dots:
            bounds |= {"low": float(low), "high": float(high), "scale": scale or UNIFORM}
        else:
            parts = [part.strip() for part in text.split(",") if part.strip()]
            bounds["values"] = [parse(key, part, recipe[key]) for part in parts]
    except ValueError:
        raise BenchError(f"{label}: expected numbers", EXAMPLE) from None
    except BenchError as error:
        raise BenchError(error.message.replace("--set", "--space"), EXAMPLE) from None
    return dimension(key, bounds, recipe, label)


def dimension(key: str, bounds: Any, recipe: Recipe, label: str) -> Dimension:
    """A recipe key with the ``bounds`` of a file's line: values; low, high and scale; or factor, which is from the recipe's value divided
    by it to the value times it. Raises BenchError, beginning with ``label``, where they are wrong."""
    try:
        return _checked(key, msgspec.convert(bounds, Dimension), recipe[key])
    except ValueError as error:  # msgspec's errors are ValueErrors
        hint = EXAMPLE if label.startswith("--space") else IN_A_FILE
        raise BenchError(f"{label}: {error}", hint) from None


def _checked(key: str, axis: Dimension, current: Any) -> Dimension:
    whole = key in WHOLE or (isinstance(current, int) and not isinstance(current, bool))
    low, high, scale = axis.low, axis.high, axis.scale
    if axis.factor is not None:
        if isinstance(current, bool | str | None) or current <= 0 or not 1 < axis.factor < math.inf:
            text = f"the recipe has {current}, factor is {axis.factor:g}"
            raise ValueError(f"expected a factor above 1 of a positive number; {text}")
        low, high, scale = current / axis.factor, current * axis.factor, "log"
        low, high = (max(1, round(low)), round(high)) if whole else (low, high)
    if not axis.values:
        if not (0 if scale == LOG else -math.inf) < low < high < math.inf:
            text = f"low is {short(low)}, high is {short(high)}, scale is {scale}"
            raise ValueError(f"expected values, or low below high (above 0 on a log scale); {text}")
        kind = int if whole and low == int(low) and high == int(high) else float
        low, high = kind(low), kind(high)
    for value in axis.values or (low, high):
        if reason := wrong_kind(key, value, current):
            raise ValueError(reason)
    if len(set(map(str, axis.values))) < len(axis.values):
        raise ValueError("a value stands there twice")
    return msgspec.structs.replace(axis, key=key, low=low, high=high, scale=scale, factor=None)


def with_values(recipe: Recipe, values: Mapping[str, Any], source: str) -> Recipe:
    changed = {key: Value(value, source) for key, value in values.items()}
    return Recipe(recipe.values_with_source() | changed)
