"""A mistake in a call, in the terms of Python: ``device='tpu'`` for ``--device tpu``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from bench.base.errors import BenchError
from bench.run.terms import rename_options

P = ParamSpec("P")
T = TypeVar("T")


def in_python_terms(function: Callable[P, T]) -> Callable[P, T]:
    """Let the errors of a function name its arguments instead of options."""
    parameters = inspect.signature(function).parameters

    def words_for(option: str, value: str) -> str | None:
        if option == "--set":
            return "" if value else None
        name = option.removeprefix("--").replace("-", "_")
        if name not in parameters:
            name += "s"  # --suite: suites
        if name not in parameters:
            return None
        if parameters[name].default is False:
            return f"{name}=True" + (" " if value else "")
        return name + ("=" if value else "")

    @functools.wraps(function)
    def call(*args: P.args, **keywords: P.kwargs) -> T:
        try:
            return function(*args, **keywords)
        except BenchError as error:
            error.message = rename_options(error.message, words_for)
            error.hint = error.hint and rename_options(error.hint, words_for)
            raise

    return call
