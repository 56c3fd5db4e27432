"""The recipe of a run: every hyperparameter with its source, and checks of single values."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bench.base.errors import BenchError


@dataclass(frozen=True)
class Value:
    """One recipe value and its source.

        defaults = {"temperature": Value(0.05, "SimCSE, run_unsup_example.sh")}

    Attributes:
        value: The value: a number, a text, True or False, or None.
        source: The paper's section, the file of the authors' code, "ours", "--set", ...
        note: The value that another source gives, if any.
    """

    value: Any
    source: str
    note: str | None = None


class Recipe(Mapping[str, Any]):
    """Every hyperparameter of one run, as attributes and as a mapping.

        recipe.temperature, recipe["temperature"]           # 0.05 twice
        recipe.values_with_source()["temperature"].source   # "SimCSE, run_unsup_example.sh"

    A key that the recipe does not have raises AttributeError, or KeyError.
    """

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = dict(values)

    def __getitem__(self, key: str) -> Any:
        return self._values[key].value

    def __getattr__(self, key: str) -> Any:
        if key.startswith("_"):
            raise AttributeError(key)
        if key in self._values:
            return self._values[key].value
        raise AttributeError(
            f"the recipe has no key '{key}'; declare it in the method's `defaults`"
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def values_with_source(self) -> dict[str, Value]:
        """Return every value with its source."""
        return dict(self._values)


def check_choice(recipe: Recipe, key: str, choices: Collection[str]) -> None:
    """Check that a recipe's value is one of the choices.

    Args:
        recipe: The recipe of the run.
        key: The key of the value.
        choices: The values that it may have.

    Raises:
        BenchError: If it is another.
    """
    if recipe[key] not in choices:
        raise BenchError(f"{key}={recipe[key]} is unknown", f"choose from {', '.join(choices)}")


def check_positive(recipe: Recipe, key: str) -> None:
    """Check that a recipe's number is greater than 0.

    Args:
        recipe: The recipe of the run.
        key: The key of the number.

    Raises:
        BenchError: If it is not.
    """
    if not recipe[key] > 0:
        raise BenchError(f"{key} must be greater than 0, not {recipe[key]}", f"--set {key}=VALUE")
