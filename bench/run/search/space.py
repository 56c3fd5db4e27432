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
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from bench.base.errors import BenchError, UnknownName
from bench.method import Recipe, Value
from bench.run.recipe_file import fits, read
from bench.run.recipes import BACKBONES, MAY_BE_NONE, WHOLE, parse

UNIFORM, LOG = "uniform", "log"
NOT_SEARCHED = ("select_on", "budget", "max_steps", "epochs", "eval_steps", "corpus_column", "patience")
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
        ratio, width = self.high / self.low if self.scale == LOG else 1.0, self.high - self.low
        return self.rounded(self.low * ratio**share if self.scale == LOG else self.low + width * share)

    def rounded(self, value: float) -> Any:
        """With three digits, and never outside."""
        if self.whole:
            return round(value)
        return min(max(float(f"{value:.{DIGITS}g}"), self.low), self.high)

    def grid(self) -> tuple[Any, ...]:
        if self.values:
            return self.values
        ends = [self.rounded(self.low), *(self.at(i / (POINTS - 1)) for i in range(1, POINTS - 1)), self.rounded(self.high)]
        return tuple(dict.fromkeys(ends))

    def words(self) -> str:
        """ "1e-05, 3e-05", "0.02 to 0.2, in equal ratios" """
        if self.values:
            return ", ".join(map(short, self.values))
        return f"{short(self.low)} to {short(self.high)}" + (", in equal ratios" if self.scale == LOG else "")

    def to_json(self) -> dict[str, Any]:
        bounds = {"values": list(self.values)} if self.values else {"low": self.low, "high": self.high, "scale": self.scale}
        return {**bounds, "source": self.source}


Space = tuple[Dimension, ...]


def short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def drawn(space: Space, seed: str, number: int) -> dict[str, Any]:
    """The values of a random trial: of two methods that share a dimension the same, whatever else each of them has."""
    return {axis.key: axis.at(_share(f"{seed}/{number}/{axis.key}")) for axis in space}


def grid(space: Space, seed: str) -> list[dict[str, Any]]:
    """Every combination, in an order that the seed shuffles: its first part is a fair sample of all."""
    points = [dict(zip((axis.key for axis in space), values, strict=True)) for values in product(*(one.grid() for one in space))]
    return sorted(points, key=lambda point: hashlib.sha256(f"{seed}/{sorted(point.items())}".encode()).digest())


def _share(text: str) -> float:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**48


# --- where it is said ---


def space_of(
    folder: Path, method: str, *, setting: str, backbone: str, variant: str, recipe: Recipe, places: Collection[str] = (),
    given: Mapping[str, str] | None = None, fixed: Collection[str] = (),
) -> Space:  # fmt: skip
    """What is searched of a method: ``given`` (--space KEY=...) before what lies beside it before what is common.

    Keys of ``fixed`` were set by hand and are not searched. Raises BenchError, naming the file and the key, for a space that is none.
    """
    which = {"setting": setting, "backbone": backbone, "variant": variant}
    found: dict[str, Dimension] = {}
    for where, name, own in ((BACKBONES, "backbones", False), (folder, method, True)):
        file = where / "recipes" / f"{name}.toml"
        for table in read(where, name).spaces:
            if not all(fits(table.get(key), of) for key, of in which.items()):
                continue
            if not isinstance(table.get("values"), Mapping) or not table["values"]:
                raise BenchError(
                    f"{file}: a [[space]] is empty: nothing of {method} is searched", "[space.values] with a line for each key"
                )
            for key, bounds in table["values"].items():
                if own:
                    check_key(key, recipe, places, f"in a space of {method} ({file})")
                elif key not in recipe or recipe[key] is None:
                    continue
                found[key] = dimension(key, bounds, recipe, f"{file}: space of {key}")
    for key, text in (given or {}).items():
        if key in recipe:  # of several methods one may lack it
            check_key(key, recipe, places, f"of {method}")
            found[key] = typed(key, text, recipe)
    return tuple(found[key] for key in sorted(found) if key not in fixed)


def check_key(key: str, recipe: Recipe, places: Collection[str], where: str) -> None:
    """Raises BenchError for a key that the recipe lacks, or that no search may change."""
    if key not in recipe:
        raise UnknownName("recipe key", key, recipe, where)
    if key in NOT_SEARCHED or key in places:
        why = "it names what lies elsewhere" if key in places else "it says how trials are compared"
        raise BenchError(f"recipe key '{key}' is not searched {where}: {why}", "--set gives it one value for all trials")


def typed(key: str, text: str, recipe: Recipe) -> Dimension:
    """``--space KEY=1,2,4``, ``KEY=0.1..0.4`` or ``KEY=log:1e-5..1e-3``."""
    label = f"--space {key}={text}"
    scale, colon, rest = text.partition(":")
    ends = (rest if colon and scale == LOG else text).split("..")
    if len(ends) == 2:
        try:
            bounds: dict[str, Any] = {"low": float(ends[0]), "high": float(ends[1])}
        except ValueError:
            raise BenchError(f"{label}: expected numbers", EXAMPLE) from None
        return dimension(key, {**bounds, "scale": LOG if colon and scale == LOG else UNIFORM, "source": "--space"}, recipe, label)
    try:
        values = [parse(key, part.strip(), recipe[key]) for part in text.split(",") if part.strip()]
    except BenchError as error:
        raise BenchError(error.message.replace("--set", "--space"), EXAMPLE) from None
    return dimension(key, {"values": values, "source": "--space"}, recipe, label)


EXAMPLE = "--space temperature=0.03,0.05,0.1, --space dropout=0.05..0.2, or --space learning_rate=log:1e-5..1e-3"


def dimension(key: str, bounds: Any, recipe: Recipe, label: str) -> Dimension:
    """Raises BenchError, beginning with ``label``, where ``bounds`` do not say what the key may be."""

    def wrong(what: str) -> BenchError:
        return BenchError(f"{label}: {what}", 'as { values = [1e-5, 3e-5], source = "..." }, or low, high and scale, or factor')

    if label.startswith("--space"):
        wrong = lambda what: BenchError(f"{label}: {what}", EXAMPLE)  # noqa: E731
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
            _check_kind(key, value, like, wrong)
        if len({str(value) for value in values}) < len(values):
            raise wrong("a value stands there twice")
        return Dimension(key=key, source=source, values=tuple(values))
    if isinstance(like, bool | str):
        raise wrong(f"{key} is {'true or false' if isinstance(like, bool) else 'a word'}: a range has no meaning, values = [...] has")
    scale = bounds.get("scale", UNIFORM)
    if "factor" in bounds:
        factor = bounds["factor"]
        if isinstance(factor, bool) or not isinstance(factor, int | float) or not math.isfinite(factor) or factor <= 1:
            raise wrong(f"factor {factor!r}: expected a number above 1")
        if not isinstance(like, int | float) or like <= 0:
            raise wrong(f"factor: the recipe's own value is {like}, and only a positive number has multiples")
        low, high, scale = like / factor, like * factor, LOG
    else:
        low, high = bounds.get("low"), bounds.get("high")  # type: ignore[assignment]
    whole = key in WHOLE or (isinstance(like, int) and not isinstance(like, bool))
    for end in (low, high):
        if isinstance(end, bool) or not isinstance(end, int | float) or not math.isfinite(end):
            raise wrong(f"expected numbers for low and high, found {end!r}")
        if not whole or "factor" not in bounds:
            _check_kind(key, int(end) if whole and end == int(end) else end, like, wrong)
    if whole:
        low, high = max(1, round(low)), round(high)
    if low >= high:
        raise wrong(f"it is empty: low {short(low)} is not below high {short(high)}")
    if scale not in (UNIFORM, LOG) or (scale == LOG and low <= 0):
        raise wrong(f"scale {scale!r}: {UNIFORM}, or {LOG} for bounds above 0")
    return Dimension(key=key, source=source, low=low, high=high, scale=scale, whole=whole)


def _check_kind(key: str, value: Any, like: Any, wrong: Any) -> None:
    """Is it of the recipe value's kind, and sensible? As ``--set`` would be asked, but for that no text stands for a number here."""
    kinds = (bool, "true or false") if isinstance(like, bool) else (str, "a word") if isinstance(like, str) else ((int, float), "a number")
    if (value is None and key in MAY_BE_NONE) or (like is None and key not in WHOLE):
        return
    if not isinstance(value, kinds[0]) or (isinstance(value, bool) and not isinstance(like, bool)):
        raise wrong(f"expected {kinds[1]}, found {value!r}")
    try:
        parse(key, str(value), like)
    except BenchError as error:
        raise wrong(error.message.partition(": ")[2]) from None


def with_values(recipe: Recipe, values: Mapping[str, Any], source: str) -> Recipe:
    return Recipe(recipe.values_with_source() | {key: Value(value, source) for key, value in values.items()})
