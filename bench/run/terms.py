"""Options in the words of a caller: keywords of Python, keys of a plan.

The errors of bench name options as the command line has them: ``--device tpu``.
"""

from __future__ import annotations

import re
from collections.abc import Callable

OPTION = re.compile(r"(--[a-z][a-z-]*)(?: (?=([^\s-]\S*)))?")
"""An option, and the word that follows it."""
COMMAND = re.compile(r"\bbench [a-z]")


def rename_options(text: str, words_for: Callable[[str, str], str | None]) -> str:
    """Return a text with other words instead of options, except for the options of a command.

    ``words_for`` takes an option and the next word, "" if there is none, and returns the words to
    put before that word; None leaves the option.
    """

    def renamed(found: re.Match[str]) -> str:
        option, value = found.groups()
        words = words_for(option, value or "")
        return found[0] if words is None else words

    parts = []
    for part in re.split("(; |, or )", text):
        command = COMMAND.search(part)
        end = command.start() if command else len(part)
        parts.append(OPTION.sub(renamed, part[:end]) + part[end:])
    return "".join(parts)
