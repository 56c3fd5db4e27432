"""Commands in hints repeat the runs folder and the plugin files of the command that was typed, so that they can be copied."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

import click

TYPED = "bench.typed"  # in click's meta: the words after "bench"
REPEATED = ("--runs", "--plugin")
COMMAND = re.compile(r"\bbench ([a-z]+)\b")
END = re.compile(r"[,;:()]| or |$")  # of a command in a sentence


def repeated_options(words: Sequence[str]) -> list[tuple[str, str]]:
    """(option, value) of REPEATED in a command line; a file that ``bench run`` takes without an option is a plugin file."""
    found, i = [], 0
    while i < len(words):
        option, equals, value = words[i].partition("=")
        if option in REPEATED and (equals or i + 1 < len(words)):
            found.append((option, value if equals else words[i + 1]))
            i += not equals
        elif words[0] == "run" and i and words[i].endswith(".py") and words[i - 1][:1] != "-":
            found.append(("--plugin", words[i]))
        i += 1
    return found


def repeat_options(text: str) -> str:
    """The text, each command of it with the repeated options that it takes and lacks."""
    context = click.get_current_context(silent=True)
    typed = repeated_options(context.meta.get(TYPED, ())) if context else []
    if context is None or not typed:
        return text
    group = context.find_root().command

    def complete(match: re.Match[str]) -> str:
        verb = group.get_command(context, match[1]) if isinstance(group, click.Group) else None
        end = END.search(text, match.end())
        rest = text[match.end() : end.start() if end else None]
        takes = {name for param in verb.params for name in param.opts} if verb else set()
        words = [f"{k} {shlex.quote(v)}" for k, v in typed if k in takes and k not in rest]
        return " ".join([match[0], *words])

    return COMMAND.sub(complete, text)
