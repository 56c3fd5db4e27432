"""Notes of a plan on how long a training is: the limit of steps ends it before what was asked for,
or its warm-up never ends.
"""

from __future__ import annotations

from bench.method.budget import SENTENCES, STEPS, budget_of, total_steps
from bench.method.recipe import Recipe, Value


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
