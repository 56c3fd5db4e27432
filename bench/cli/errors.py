"""Errors of the command line, a line each on standard error."""

from __future__ import annotations

import re

import click

from bench.base.errors import BenchError, UnknownName, printable

TYPED = "bench.typed"
"""Key in click's ``meta``: the words after "bench"."""


def usage_error(error: click.UsageError) -> BenchError:
    """Return an error of click as one of ours.

    For an option that is a recipe value, such as --lr, the hint says how to set it.
    """
    context = error.ctx
    message = error.format_message()
    if context is None:
        return BenchError(message, "bench --help")
    names = {name for param in context.command.params for name in param.opts}
    options = {name for name in names if name.startswith("--")}
    of_command = f"of {context.command_path}"
    hint = f"{context.command_path} --help"
    if isinstance(error, click.NoSuchOption) and "--set" in options:
        from bench.method.recipe_checks import setter

        command = setter(error.option_name, trains="--corpus" in options)
        if command.partition(" ")[0] in options:
            return BenchError(f"unknown option '{error.option_name}' {of_command}", command)
    if isinstance(error, click.NoSuchOption):
        return UnknownName("option", error.option_name, options, of_command, hint)
    return BenchError(message, hint)


def show_error(error: BenchError, label: str = "error") -> None:
    """Print what is wrong and what to try, a line each, on standard error.

    Control characters in foreign text are made visible.
    """
    for name, text in ((label, error.message), ("try", _complete_hint(error.hint or ""))):
        if text:
            click.echo(f"{name}: {printable(' '.join(text.split()))}", err=True)


def _complete_hint(hint: str) -> str:
    """Add to a hint that is a command which options of the typed command it needs as well."""
    context = click.get_current_context(silent=True)
    named = re.search(r"\bbench ([a-z]+)", hint)
    if context is None or named is None or "--help" in hint:
        return hint
    group = context.find_root().command
    command = group.get_command(context, named[1]) if isinstance(group, click.Group) else None
    if command is None:
        return hint
    known = {name for parameter in command.params for name in parameter.opts}
    typed = {word.partition("=")[0] for word in context.meta.get(TYPED, ())} & known
    same = [name for name in ("--runs", "--plugin") if name in typed and name not in hint]
    if same:
        hint += f" (with the same {' and '.join(same)})"
    return hint
