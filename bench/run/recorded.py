"""What a record says of a planned run without giving away a folder of this machine: names in the place of absolute paths."""

from __future__ import annotations

import shlex
import sys
from dataclasses import asdict
from pathlib import Path

from bench.base.paths import hide_paths, recorded_command, recorded_path
from bench.base.places import remember_place
from bench.data.sets import fetch_warning
from bench.records.record import BackboneUsed, Code, CorpusUsed, RecipeValue
from bench.run.config import RunConfig
from bench.run.plan import PlannedRun
from bench.run.plugins import Plugin
from bench.score.suites import SuitePlugin


def command_of(config: RunConfig) -> str:
    """The command that made a run, with paths relative to the working directory, or by their names."""
    if not config.command:
        return recorded_command(["bench", *sys.argv[1:]])
    try:
        words = shlex.split(config.command) if config.command.startswith("bench ") else []
    except ValueError:
        words = []
    return recorded_command(words) if words else hide_paths(config.command)


def recipe_of(run: PlannedRun) -> dict[str, RecipeValue]:
    """Every hyperparameter. One that is a file, a folder or a backbone has its name; ``determines`` has its hash."""
    values = {
        key: RecipeValue(**asdict(value)) for key, value in run.recipe.values_with_source().items()
    }
    for key in run.determines["places"]:
        known = values[key]
        if isinstance(known.value, str):
            values[key] = RecipeValue(
                value=recorded_path(known.value), source=known.source, note=known.note
            )
    return {
        key: RecipeValue(
            value=value.value,
            source=hide_paths(value.source),
            note=None if value.note is None else hide_paths(value.note),
        )
        for key, value in values.items()
    }


def backbone_used(run: PlannedRun) -> BackboneUsed:
    """The backbone by name and revision: a hub's commit, or the hash of a folder's weights."""
    return BackboneUsed(
        name=recorded_path(run.backbone.name),
        revision=run.backbone.revision,
    )


def corpus_used(run: PlannedRun) -> CorpusUsed:
    """The training text by name and hash; without a name if nothing was trained."""
    corpus = run.corpus
    if corpus is None:
        return CorpusUsed()
    warnings = dict.fromkeys(fetch_warning(part.path) for part in corpus.parts)
    warnings.pop("", None)
    return CorpusUsed(
        name=recorded_path(corpus.name),
        sha256=corpus.sha256,
        columns=corpus.columns,
        warning=hide_paths("; ".join(warnings)),
    )


def code_of(plugin: Plugin | SuitePlugin) -> Code:
    """A plugin's code. A file is named as a command of the working directory names it."""
    package = plugin.package
    if package.endswith(".py"):
        package = recorded_path(package)
    return Code(package=package, version=plugin.version, sha256=plugin.sha256)


def remember_places(run: PlannedRun, runs: Path) -> None:
    """Note in the runs folder where this machine has the folders and files that the record names."""
    backbone = run.backbone
    if backbone.path is not None and not backbone.hub and backbone.name != "builtin":
        _remember(runs, backbone.revision, backbone.name)
    for key, content in (run.determines.get("places") or {}).items():
        value = run.recipe.get(key)
        if content is not None and isinstance(value, str):
            _remember(runs, content, value)


def _remember(runs: Path, content: str, name: str) -> None:
    place = Path(name).expanduser()
    if place.exists():
        remember_place(runs, content, place)
