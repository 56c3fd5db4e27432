"""A mistake in a call, in the terms of Python.

The rest of bench names options as the command line has them: ``--set batch_size=0``,
``--device tpu``. In an error of a call these are the arguments of the call.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import ParamSpec, TypeVar

from bench.base.errors import BenchError

P = ParamSpec("P")
T = TypeVar("T")

ARGUMENTS: Mapping[str, str] = {
    "--method": "method",
    "--backbone": "backbone",
    "--corpus": "corpus",
    "--suite": "suites",
    "--seeds": "seeds",
    "--setting": "setting",
    "--budget": "budget",
    "--precision": "precision",
    "--device": "device",
    "--chunk": "chunk",
    "--plugin": "plugins",
    "--data": "data",
    "--runs": "runs",
    "--prefix": "prefix",
    "--select": "select",
    "--space": "space",
    "--out": "out",
    "--baseline": "baseline",
}
SWITCHES: Mapping[str, str] = {
    "--fresh": "fresh=True",
    "--offline": "offline=True",
    "--allow-pickle": "allow_pickle=True",
}
OPTION = re.compile(r"(--[a-z][a-z-]*)( (?=[^\s-]))?")
COMMAND = re.compile(r"\bbench [a-z]")


def in_python_terms(function: Callable[P, T]) -> Callable[P, T]:
    """Let the errors of a function name its arguments, where they name options."""

    @functools.wraps(function)
    def call(*args: P.args, **keywords: P.kwargs) -> T:
        try:
            return function(*args, **keywords)
        except BenchError as error:
            error.message = with_arguments(error.message)
            error.hint = error.hint and with_arguments(error.hint)
            raise

    return call


def with_arguments(text: str) -> str:
    """Return a text with arguments in the place of options, but for the options of a command."""
    return "".join(_part_with_arguments(part) for part in re.split("(; |, or )", text))


def _part_with_arguments(text: str) -> str:
    command = COMMAND.search(text)
    end = command.start() if command else len(text)
    said = text[:end].replace("--set ", "")
    return OPTION.sub(_argument, said) + text[end:]


def _argument(option: re.Match[str]) -> str:
    name, blank = option.groups()
    if name in SWITCHES:
        return SWITCHES[name] + (blank or "")
    if name not in ARGUMENTS:
        return option[0]
    return ARGUMENTS[name] + ("=" if blank else "")
