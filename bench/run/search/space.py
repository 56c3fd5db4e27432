"""The space of a search: which recipe keys are searched, and which values they may have."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from bench.base.errors import BenchError, UnknownName
from bench.method.plugins import Plugin
from bench.method.recipe import Recipe
from bench.method.recipe_defaults import BACKBONES
from bench.method.recipe_files import fits_selector, read_recipes
from bench.method.recipe_types import WHOLE, parse_value, wrong_kind

NOT_SEARCHED = (
    "select_on",
    "budget",
    "max_steps",
    "epochs",
    "eval_steps",
    "corpus_column",
    "patience",
)
"""Recipe keys that define the comparison: how long a trial trains, on what, and what selects it.

All trials share them.
"""
EXAMPLE = (
    "--space temperature=0.03,0.05,0.1, --space dropout=0.05..0.2, "
    "or --space learning_rate=log:1e-5..1e-3"
)


class Dimension(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A line of ``[space.values]``: ``values`` to choose from, or a range from ``low`` to ``high``,
    both included.

    Ends that are ints mean integers only. ``factor`` is how a file may state low and high: see
    :func:`dimension`.
    """

    source: Annotated[str, msgspec.Meta(pattern=r"\S")]
    values: tuple[Any, ...] = ()
    low: int | float = 0
    high: int | float = 0
    scale: Literal["uniform", "log"] = "uniform"
    factor: Annotated[float, msgspec.Meta(gt=0)] | None = None

    def rounded(self, value: float) -> int | float:
        """Return a value from a range with three digits, because people read recipes."""
        if isinstance(self.low, int):
            return min(max(round(value), self.low), self.high)
        return min(max(float(f"{value:.3g}"), self.low), self.high)

    def grid(self) -> tuple[Any, ...]:
        """Return the values, or both ends and the middle of a range."""
        low, high = self.low, self.high
        middle = math.sqrt(low * high) if self.scale == "log" else (low + high) / 2
        return self.values or tuple(dict.fromkeys(map(self.rounded, (low, middle, high))))

    def draw(self, seed: int) -> Any:
        """Return a value at random: uniform over the values, or over the range on its scale."""
        random = np.random.RandomState(seed)
        if self.values:
            return self.values[int(random.uniform(size=len(self.values)).argmax())]
        low, high = self.low, self.high
        if isinstance(low, int):  # so that both ends are as likely as the others
            low, high = low - 0.5, high + 0.5
        if self.scale == "log":
            return self.rounded(math.exp(random.uniform(math.log(low), math.log(high))))
        return self.rounded(random.uniform(low, high))

    def text(self) -> str:
        """Return "1e-05, 3e-05", "0.02 to 0.2, log scale"."""
        scale = ", log scale" if self.scale == "log" else ""
        return (
            ", ".join(map(short_value, self.values))
            or f"{short_value(self.low)} to {short_value(self.high)}{scale}"
        )


def short_value(value: Any) -> str:
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
) -> dict[str, Dimension]:
    """Return the space of a method: the keys of ``options`` (--space KEY=...) and no others, or
    without options its own file's, and what is common to all.

    Keys of ``fixed`` have one value for all trials. Raises BenchError, with the file and the key,
    for wrong bounds.
    """
    space: dict[str, Dimension] = {}
    if options:
        for key, text in options.items():
            if key in recipe:  # one of several methods may lack it
                check_searched_key(key, recipe, plugin, f"of {plugin.name}")
                space[key] = parse_dimension(key, text, recipe)
        return {key: space[key] for key in sorted(space) if key not in fixed}
    for folder, name in ((BACKBONES, "backbones"), (plugin.folder, plugin.name)):
        file = f"{folder / 'recipes' / name}.toml"
        for table in read_recipes(folder, name).spaces:
            if not fits_selector(table.setting, setting):
                continue
            if not fits_selector(table.variant, variant):
                continue
            if not fits_selector(table.backbone, backbone):
                continue
            for key, bounds in table.values.items():
                if name != plugin.name and recipe.get(key) is None:
                    continue  # the method lacks this common key
                label = f"{file}: space of {key}"
                check_searched_key(key, recipe, plugin, f"in {label}")
                space[key] = read_dimension(key, bounds, recipe, label)
    return {key: space[key] for key in sorted(space) if key not in fixed}


def check_searched_key(key: str, recipe: Recipe, plugin: Plugin, where: str) -> None:
    """Raise BenchError for a key that the recipe lacks, or that a search may not change."""
    if key not in recipe:
        raise UnknownName("recipe key", key, recipe, where)
    if key in NOT_SEARCHED or key in plugin.cls.places:
        raise BenchError(
            f"recipe key '{key}' {where} cannot be searched: all trials share its value",
            f"--set {key}=VALUE gives all trials one value",
        )


def parse_dimension(key: str, text: str, recipe: Recipe) -> Dimension:
    """Return ``--space KEY=1,2,4``, ``KEY=0.1..0.4`` or ``KEY=log:1e-5..1e-3``.

    Raises BenchError for anything else.
    """
    scale, _, ends = text.rpartition(":")
    low, dots, high = ends.partition("..")
    label, bounds = f"--space {key}={text}", dict[str, Any](source="--space")
    try:
        if dots:
            bounds |= {"low": float(low), "high": float(high), "scale": scale or "uniform"}
        else:
            bounds["values"] = [
                parse_value(key, part.strip(), recipe[key]) for part in text.split(",")
            ]
    except (ValueError, BenchError):
        raise BenchError(f"{label}: expected values like {recipe[key]}", EXAMPLE) from None
    return read_dimension(key, bounds, recipe, label)


def read_dimension(key: str, bounds: Any, recipe: Recipe, label: str) -> Dimension:
    """Return a recipe key with the ``bounds`` of a file's line: values; low, high and scale; or
    factor, which is from the recipe's value divided by it to the value times it. Raises BenchError,
    beginning with ``label``, if they are wrong.
    """
    current = recipe[key]
    whole = key in WHOLE or (isinstance(current, int) and not isinstance(current, bool))
    try:
        axis = msgspec.convert(bounds, Dimension)
        low = axis.low
        high = axis.high
        scale = axis.scale
        if axis.factor is not None:
            if not isinstance(current, int | float):
                raise ValueError(f"a factor needs a number in the recipe, found {current}")
            low = current / axis.factor
            high = current * axis.factor
            scale = "log"
            if whole:
                low = max(1, round(low))
                high = round(high)
        if not axis.values:
            least = 0 if scale == "log" else -math.inf
            if not least < low < high < math.inf:
                raise ValueError(
                    "expected values, or low below high (above 0 on a log scale); "
                    f"found {low:g} to {high:g}"
                )
            kind = int if whole and low == int(low) and high == int(high) else float
            low, high = kind(low), kind(high)
        for value in axis.values or (low, high):
            if reason := wrong_kind(key, value, current):
                raise ValueError(reason)
    except (ValueError, TypeError) as error:  # msgspec's errors are ValueErrors
        hint = '{ values = [1e-5, 3e-5], source = "..." }, or low, high and scale, or factor'
        if label.startswith("--space"):
            hint = EXAMPLE
        raise BenchError(f"{label}: {error}", hint) from None
    return msgspec.structs.replace(axis, low=low, high=high, scale=scale, factor=None)
