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

A method's own bounds of a key replace the common ones. Each becomes one of Optuna's distributions: see :func:`bench.run.search.trials.distribution`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal

import msgspec

from bench.base.errors import BenchError, UnknownName
from bench.method import Recipe, Value
from bench.run.plugins import Plugin
from bench.run.recipes import BACKBONES, WHOLE, fits, parse, read, wrong_kind

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


class Dimension(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A line of ``[space.values]``: ``values`` to choose from, or a range from ``low`` to ``high``, both included.

    Ends that are ints mean whole numbers only. ``factor`` is how a file may state low and high: see :func:`dimension`.
    """

    source: Annotated[str, msgspec.Meta(pattern=r"\S")]
    values: tuple[Any, ...] = ()
    low: int | float = 0
    high: int | float = 0
    scale: Literal["uniform", "log"] = "uniform"
    factor: float | None = None

    def rounded(self, value: Any) -> Any:
        """A value from a range with three digits, within the range; one of ``values`` as it is."""
        if self.values or isinstance(self.low, int):
            return value if self.values else round(value)
        return min(max(float(f"{value:.{DIGITS}g}"), self.low), self.high)

    def grid(self) -> tuple[Any, ...]:
        """The values, or both ends and the middle of a range."""
        log = self.scale == "log"
        middle = math.sqrt(self.low * self.high) if log else (self.low + self.high) / 2
        ends = dict.fromkeys(map(self.rounded, (self.low, middle, self.high)))
        return self.values or tuple(ends)

    def text(self) -> str:
        """ "1e-05, 3e-05", "0.02 to 0.2, log scale" """
        ends = f"{short(self.low)} to {short(self.high)}{', log scale' * (self.scale == 'log')}"
        return ", ".join(map(short, self.values)) or ends


Space = Mapping[str, Dimension]
"""By recipe key."""


def short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def space_of(
    plugin: Plugin,
    recipe: Recipe,
    *,
    setting: str,
    backbone: str,
    variant: str,
    options: Mapping[str, str] | None = None,
    fixed: Collection[str] = (),
) -> Space:
    """What is searched of a method: ``options`` (--space KEY=...) before the method's own file before what is common to all.

    Keys of ``fixed`` have one value for all trials. Raises BenchError, with the file and the key, for bounds that are wrong.
    """
    which = {"setting": setting, "backbone": backbone, "variant": variant}
    space: dict[str, Dimension] = {}
    for folder, name in ((BACKBONES, "backbones"), (plugin.folder, plugin.name)):
        for table in read(folder, name).spaces:
            if not all(fits(getattr(table, axis), value) for axis, value in which.items()):
                continue
            for key, bounds in table.values.items():
                # a common bound of a key that this method does not have
                if name != plugin.name and recipe.get(key) is None:
                    continue
                label = f"{folder / 'recipes' / name}.toml: space of {key}"
                check_key(key, recipe, plugin, f"in {label}")
                space[key] = dimension(key, bounds, recipe, label)
    for key, text in (options or {}).items():
        if key in recipe:  # one of several methods may lack it
            check_key(key, recipe, plugin, f"of {plugin.name}")
            space[key] = parse_dimension(key, text, recipe)
    return {key: space[key] for key in sorted(space) if key not in fixed}


def check_key(key: str, recipe: Recipe, plugin: Plugin, where: str) -> None:
    """Raises BenchError for a key that the recipe lacks, or that a search may not change."""
    if key not in recipe:
        raise UnknownName("recipe key", key, recipe, where)
    if key in NOT_SEARCHED or key in plugin.cls.places:
        text = f"recipe key '{key}' cannot be searched {where}: all trials share it"
        raise BenchError(text, "--set gives it one value for all trials")


def parse_dimension(key: str, text: str, recipe: Recipe) -> Dimension:
    """``--space KEY=1,2,4``, ``KEY=0.1..0.4`` or ``KEY=log:1e-5..1e-3``. Raises BenchError for anything else."""
    scale, _, ends = text.rpartition(":")
    low, dots, high = ends.partition("..")
    label, bounds = f"--space {key}={text}", dict[str, Any](source="--space")
    try:
        if dots:
            bounds |= {"low": float(low), "high": float(high), "scale": scale or "uniform"}
        else:
            bounds["values"] = [parse(key, part.strip(), recipe[key]) for part in text.split(",")]
    except (ValueError, BenchError):
        raise BenchError(f"{label}: values of another kind than {recipe[key]}", EXAMPLE) from None
    return dimension(key, bounds, recipe, label)


def dimension(key: str, bounds: Any, recipe: Recipe, label: str) -> Dimension:
    """A recipe key with the ``bounds`` of a file's line: values; low, high and scale; or factor, which is from the recipe's value divided
    by it to the value times it. Raises BenchError, beginning with ``label``, where they are wrong."""
    try:
        return _checked(key, msgspec.convert(bounds, Dimension), recipe[key])
    except (ValueError, TypeError) as error:  # msgspec's errors are ValueErrors
        hint = EXAMPLE if label.startswith("--space") else IN_A_FILE
        raise BenchError(f"{label}: {error}", hint) from None


def _checked(key: str, axis: Dimension, current: Any) -> Dimension:
    whole = key in WHOLE or (isinstance(current, int) and not isinstance(current, bool))
    low, high, scale = axis.low, axis.high, axis.scale
    if axis.factor is not None:
        if not isinstance(current, int | float):
            raise ValueError(f"a factor needs a number in the recipe, found {current}")
        low, high, scale = current / axis.factor, current * axis.factor, "log"
        low, high = (max(1, round(low)), round(high)) if whole else (low, high)
    if not axis.values:
        if not (0 if scale == "log" else -math.inf) < low < high < math.inf:
            raise ValueError(
                f"expected values, or low below high (above 0 on a log scale); found {low:g} to {high:g}"
            )
        kind = int if whole and low == int(low) and high == int(high) else float
        low, high = kind(low), kind(high)
    for value in axis.values or (low, high):
        if reason := wrong_kind(key, value, current):
            raise ValueError(reason)
    return msgspec.structs.replace(axis, low=low, high=high, scale=scale, factor=None)


def with_values(recipe: Recipe, values: Mapping[str, Any], source: str) -> Recipe:
    changed = {key: Value(value, source) for key, value in values.items()}
    return Recipe(recipe.values_with_source() | changed)
