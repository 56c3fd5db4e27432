"""Prompts in words, put around every sentence that is encoded."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

PLACE = "[X]"
"""The sentence's place in a template, written as in PromptBERT (Jiang et al. 2022)."""


def prompted(prompt: str | None, sentences: Sequence[str]) -> list[str]:
    """Put each sentence into the prompt: in the place of [X], or after the prompt without one."""
    if not prompt:
        return list(sentences)
    template = prompt if PLACE in prompt else prompt + PLACE
    return [template.replace(PLACE, sentence) for sentence in sentences]


def task_prompt(recipe: Mapping[str, Any], suite: str, task: str) -> str | None:
    """Return the recipe's prompt for a task, else for its suite, else None."""
    prompts: dict[str, str] = json.loads(recipe.get("prompts") or "{}")
    return prompts.get(task, prompts.get(suite))
