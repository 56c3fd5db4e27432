"""How long a planned training is: what is typed wins over a recipe's limit of steps, and notes say
if it is shorter than its recipe, or if its warm-up never ends.
"""

from __future__ import annotations

from collections.abc import Container

from bench.method.budget import SENTENCES, STEPS, budget_of, total_steps
from bench.method.recipe import Recipe, Value


def with_typed_length(recipe: Recipe, rows: int, typed: Container[str]) -> Recipe:
    """Return the recipe without a limit of steps that would end the training before the budget or
    the epochs that were typed.

    ``rows``: of the corpus, 0 if they are not known yet. ``typed``: the recipe keys that the user
    gave, by options or in a recipe file. A limit that is not reached stays: it names the same run
    as before.
    """
    if "max_steps" in typed or not ("budget" in typed or "epochs" in typed):
        return recipe
    budget = budget_of(recipe)
    # of tokens and seconds nobody knows the steps before
    ends_unknown = budget is not None and budget.unit not in (STEPS, SENTENCES)
    is_cut = _is_cut(recipe, rows, epochs_requested="epochs" in typed)
    if not recipe.get("max_steps") or not (ends_unknown or is_cut):
        return recipe
    unlimited = {"max_steps": Value(None, "what is typed says how long")}
    return Recipe(recipe.values_with_source() | unlimited)


def known_steps(recipe: Recipe, rows: int) -> int | None:
    """Return the optimiser steps for a corpus of ``rows``, 0 if they are not known yet.

    None: tokens or a clock decide, or the rows are not known and no limit of steps is given.
    """
    if rows:
        return total_steps(recipe, rows)
    limit = recipe.get("max_steps")
    budget = budget_of(recipe)
    if budget is not None and budget.unit == STEPS:
        limit = budget.amount
    if limit == 0:
        return 0
    if not limit:
        return None
    # a corpus that is just long enough, so that the limit decides
    return total_steps(recipe, int(limit * recipe.batch_size))


def length_notes(recipe: Recipe, rows: int, *, epochs_requested: bool) -> list[str]:
    """Return a note for each way in which a training is shorter than its recipe says.

    ``rows``: of the corpus, 0 if they are not known yet. ``epochs_requested``: the user named the
    number of epochs; that the limit of a recipe or backbone ends the epochs of a recipe is no news.
    """
    notes = []
    if _is_cut(recipe, rows, epochs_requested):
        wanted = "budget" if budget_of(recipe) else f"{recipe.epochs:g} epochs"
        notes.append(f"max_steps={recipe.max_steps} ends the training before the {wanted}")
    steps = total_steps(recipe, rows) if rows else recipe.get("max_steps")
    schedule = recipe.get("schedule_steps")
    if steps and schedule and schedule < steps and recipe.schedule != "constant":
        notes.append(
            f"schedule_steps={schedule} ends before the training of {steps} steps: the learning "
            "rate is 0 from there"
        )
    warmup = recipe.get("warmup_steps") or 0
    if steps and warmup >= steps:
        notes.append(
            f"warmup_steps={warmup} is as long as the training of {steps} steps or longer: the "
            f"learning rate never reaches {recipe.learning_rate:g}"
        )
    return notes


def _is_cut(recipe: Recipe, rows: int, epochs_requested: bool) -> bool:
    """Return whether max_steps ends the training before its budget, or before the epochs that were
    asked for.
    """
    most = recipe.get("max_steps")
    budget = budget_of(recipe)
    if not most:
        return False
    if budget is not None and budget.unit == STEPS:
        return bool(most < budget.amount)
    if budget is not None and budget.unit == SENTENCES:
        return bool(most * recipe.batch_size < budget.amount)
    if budget is not None or not epochs_requested or not rows:
        return False
    unlimited = {"max_steps": Value(None, "no limit")}
    steps = total_steps(Recipe(recipe.values_with_source() | unlimited), rows)
    return steps is not None and most < steps
