"""Score ready-made encoders that bench did not build.

A model is anything that turns a list of strings into vectors (n, d). A folder, a hub name or a run
is built by an installed method. For the others a method is made here: :mod:`objects` (an object or
a function of this process) and :mod:`stored` (vectors that were computed elsewhere).
Planning, execution, the record and the scores are the same as in ``bench run``.
"""

from bench.run.external.identity import tell_apart
from bench.run.external.planning import (
    Model,
    check_model,
    check_prompts,
    doubt_about,
    find_model,
    plan_model,
)

__all__ = [
    "Model",
    "check_model",
    "check_prompts",
    "doubt_about",
    "find_model",
    "plan_model",
    "tell_apart",
]
