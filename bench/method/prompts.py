"""Prompts in words, put around every sentence that is encoded, and the ways of encoding it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

PLACE = "[X]"
"""The sentence's place in a template, written as in PromptBERT (Jiang et al. 2022)."""


class Way(NamedTuple):
    """One way of encoding sentences: what has another one has vectors of its own."""

    prompt: str | None = None
    """In the place of the encoder's own; None keeps that."""
    side: str | None = None
    """A query or a document; None: neither, or to an encoder that knows no sides."""

    @property
    def suffix(self) -> str:
        """The end of the name of its store of vectors; "" for the encoder's own way."""
        if self.side is None and self.prompt is None:
            return ""
        text = self.prompt if self.side is None else f"{self.side} {self.prompt!r}"
        return hashlib.sha256(str(text).encode()).hexdigest()[:8]


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


def way_of(
    recipe: Mapping[str, Any], suite: str, task: str, side: str | None, *, tells_sides: bool
) -> Way:
    """Return the way of encoding one side of a task, or all of its sentences (None).

    The recipe's prompt for a side goes before that for a task. ``tells_sides``: the encoder has a
    way of its own for each side.
    """
    prompt = None if side is None else recipe.get(f"prompt_{side}")
    if prompt is None:
        prompt = task_prompt(recipe, suite, task)
    return Way(prompt, side if tells_sides else None)
