"""What a method says about itself, for pages."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from bench.base.errors import BenchError
from bench.board.board import Board, MethodDescription
from bench.run import recipe_file
from bench.run.recipe_file import RecipeFile

if TYPE_CHECKING:
    from bench.run.plugins import Plugin


def describe(board: Board) -> Board:
    """The board with what its methods say of themselves: of those that are installed from where its runs had them, as far as the records say."""
    known = {}
    for run in reversed(board.runs):
        package, method = run.record.provenance.plugin.package, run.record.method
        installed = method_description(method)
        if installed is not None and package in (None, installed.package):
            known[method] = installed
    return replace(board, described=known)


@cache
def method_description(name: str) -> MethodDescription | None:
    """Of the installed method with that name; None where none is installed."""
    plugin = _installed().get(name)
    if plugin is None:
        return None
    cls = plugin.cls
    variants: Mapping[str, Mapping[str, Any]]
    try:
        file = recipe_file.read(plugin.folder, name)
        variants = recipe_file.with_file_variants(cls.variants, plugin.folder, name)
    except BenchError:
        file, variants = RecipeFile(), cls.variants
    return MethodDescription(
        name=name,
        package=plugin.package,
        summary=cls.summary,
        paper=cls.paper,
        settings=cls.settings,
        trains=cls.trains,
        about=inspect.cleandoc(cls.__doc__ or plugin.module.__doc__ or ""),
        variants={
            variant: {key: getattr(value, "value", value) for key, value in values.items()}
            for variant, values in variants.items()
        },
        file=file,
    )


@cache
def _installed() -> Mapping[str, Plugin]:
    """The installed methods, loaded once per process, which takes seconds."""
    from bench.run.plugins import discover

    return discover().plugins
