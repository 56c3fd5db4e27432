"""Prompts in words, put around every sentence that is encoded."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

PLACE = "[X]"  # of the sentence in a template, as in Jiang et al. 2022 (PromptBERT)


def prompted(prompt: str | None, sentences: Sequence[str]) -> list[str]:
    """Each sentence in its prompt: instead of [X] where the prompt is a template, after the prompt otherwise."""
    if not prompt:
        return list(sentences)
    template = prompt if PLACE in prompt else prompt + PLACE
    return [template.replace(PLACE, sentence) for sentence in sentences]


def task_prompt(recipe: Mapping[str, Any], suite: str, task: str) -> str | None:
    """The recipe's prompt for a task, or else for its suite; None where it has neither."""
    prompts: dict[str, str] = json.loads(recipe.get("prompts") or "{}")
    return prompts.get(task, prompts.get(suite))
