"""Types of options: a wrong value is one line, in the words that Python and plans use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args, get_origin

import click

from bench.base.errors import BenchError
from bench.base.typed import convert_typed


class Typed(click.ParamType):
    """The type of an option that ``parse`` reads; ``parse`` raises ValueError for a wrong text."""

    name = "text"

    def __init__(self, parse: Callable[[str], Any], choices: tuple[str, ...] = ()) -> None:
        self.parse = parse
        self.choices = choices

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        return f"[{'|'.join(self.choices)}]" if self.choices else None

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):  # the default of an option
            return value
        try:
            return self.parse(value)
        except ValueError as error:
            option = param.opts[0] if param is not None else ""
            raise BenchError(f"{option} {value}: {error}", _help_of(ctx)) from None


def _help_of(ctx: click.Context | None) -> str:
    return f"{ctx.command_path} --help" if ctx is not None else ""


def typed(kind: Any) -> Typed:
    """Return the type of an option that has the values of a type of msgspec."""

    def parse(text: str) -> Any:
        return convert_typed(text, kind, strict=False)

    choices = get_args(kind) if get_origin(kind) is Literal else ()
    return Typed(parse, choices)
