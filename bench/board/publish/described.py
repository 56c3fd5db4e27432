"""Adds to a board the words of its methods about themselves."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bench.base.errors import BenchError
from bench.board.board import Board, MethodDescription
from bench.method.plugins import Plugin, discover
from bench.method.recipe_files import RecipeFile, read_recipes


def with_descriptions(board: Board, files: Sequence[Path] = ()) -> Board:
    """Add method descriptions to the board, for methods with the code here that their runs used.

    ``files``: plugin files that may define some of the methods.
    """
    plugins = discover(files).plugins
    own = [run.record for run in board.runs if run.record.run_id not in board.senders]
    made_by = {(record.method, record.provenance.plugin.package) for record in own}
    names = {name for name, _ in made_by}
    for run in board.runs:  # a submitted run describes no method of the board's own runs
        if run.record.method not in names:
            made_by.add((run.record.method, run.record.provenance.plugin.package))
    described = {}
    for name, package in made_by:
        if name in plugins and _is_origin(package, plugins[name].package):
            described[name] = _describe_plugin(plugins[name])
    return replace(board, described=described)


def _is_origin(recorded: str | None, here: str) -> bool:
    """Say if the package or file that a record names is the one that is here; a record may name a
    file relative to another folder."""
    if recorded in (None, here):
        return True
    return here.endswith(".py") and Path(str(recorded)).name == Path(here).name


def _describe_plugin(plugin: Plugin) -> MethodDescription:
    cls = plugin.cls
    file = RecipeFile()
    with contextlib.suppress(BenchError):
        file = read_recipes(plugin.folder, plugin.name)
    variants = {}
    for variant, values in {**cls.variants, **file.variants}.items():
        variants[variant] = {key: getattr(value, "value", value) for key, value in values.items()}
    return MethodDescription(
        cls=cls,
        about=inspect.cleandoc(cls.__doc__ or plugin.module.__doc__ or ""),
        variants=variants,
        file=file,
    )
