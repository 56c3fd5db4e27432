"""Checks of the numbers in a recipe, with one wording for all methods."""

from __future__ import annotations

from bench.method import BenchError, Recipe


def check_at_least(recipe: Recipe, least: int, *keys: str) -> None:
    """Raise BenchError for a number that is below ``least``."""
    for key in keys:
        if not recipe[key] >= least:
            raise BenchError(f"{key}={recipe[key]}: at least {least}", f"--set {key}={least}")


def check_share(
    recipe: Recipe, key: str, *, above_zero: bool = False, below_one: bool = True
) -> None:
    """Raise BenchError for a number that is no share; 0 is one and 1 is none, unless a method says
    so.
    """
    value = recipe[key]
    enough = value > 0 if above_zero else value >= 0
    if enough and (value < 1 if below_one else value <= 1):
        return
    first = "above 0" if above_zero else "at least 0"
    last = "below 1" if below_one else "at most 1"
    raise BenchError(f"{key}={value}: expected a share, {first} and {last}", f"--set {key}=0.2")


USUAL_SCHEDULE = {
    "schedule": "linear",
    "warmup_steps": 0,
    "warmup_ratio": 0.0,
    "schedule_steps": None,
}


def check_usual_schedule(name: str, recipe: Recipe) -> None:
    """Raise BenchError for a schedule that a method with a schedule of its own would not follow."""
    for key, usual in USUAL_SCHEDULE.items():
        if recipe.get(key, usual) != usual:
            raise BenchError(
                f"{key}={recipe[key]}: the learning rate of {name} has a schedule of its own",
                f"leave {key} out",
            )
