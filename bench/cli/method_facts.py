"""Everything about a method as data: what ``bench methods NAME --json`` prints."""

from __future__ import annotations

import inspect
from dataclasses import asdict
from typing import Any

from bench.method import Method
from bench.method.plugins import Plugin
from bench.method.recipe_defaults import HELP, TRAINING
from bench.method.recipe_files import Entry, read_recipes
from bench.method.recipes import merge_recipe, sourced, variants_of, whole_entry
from bench.run.planned import learns


def describe_method(plugin: Plugin) -> dict[str, Any]:
    """Return everything about a method.

    ``about`` is the docstring of the class, or else of its module; ``keys`` are the recipe keys
    with their defaults; the ``values`` of a recipe are complete, merged as for a run.
    """
    cls = plugin.cls
    file = read_recipes(plugin.folder, plugin.name)
    return {
        "name": plugin.name,
        "summary": cls.summary,
        "paper": cls.paper,
        "settings": list(cls.settings),
        "trains": cls.trains,
        "code_version": cls.code_version,
        "from": f"{plugin.package} {plugin.version}".strip(),
        "about": inspect.cleandoc(cls.__dict__.get("__doc__") or plugin.module.__doc__ or ""),
        "variants": _describe_variants(cls),
        "keys": _describe_keys(cls),
        "recipes": [_describe_recipe(cls, entry) for entry in file.recipes],
        "disagreements": [asdict(disagreement) for disagreement in file.disagreements],
    }


def _describe_variants(cls: type[Method]) -> dict[str, dict[str, Any]]:
    """Return variant -> recipe key -> the value that the variant gives it."""
    described = {}
    for name, changes in variants_of(cls).items():
        values = {key: getattr(value, "value", value) for key, value in changes.items()}
        described[name] = values
    return described


def _describe_keys(cls: type[Method]) -> dict[str, dict[str, Any]]:
    """Return recipe key -> its default and meaning; keys that every training has, and its own."""
    is_trained = any(learns(cls, setting) for setting in cls.settings)
    merged = merge_recipe(cls, None, "", {}, trained=is_trained).values_with_source()
    values = {**merged, **sourced(cls.optional, f"{cls.name}'s default")}
    described = {}
    for key, value in values.items():
        own = key in cls.defaults or key in cls.optional
        if own or key in TRAINING:
            described[key] = {
                "default": value.value,
                "source": value.source,
                "note": value.note,
                "help": HELP.get(key),
                "own": own,
            }
    return described


def _describe_recipe(cls: type[Method], entry: Entry) -> dict[str, Any]:
    """Return a recipe, merged as for a run."""
    is_trained = learns(cls, entry.setting)
    whole = whole_entry(
        cls, [entry], entry.setting, entry.backbone, entry.variant, trained=is_trained
    )
    merged = merge_recipe(cls, whole, entry.variant, {}, trained=is_trained)
    return {
        "setting": entry.setting,
        "backbone": entry.backbone,
        "variant": entry.variant,
        "corpus": entry.corpus,
        "expect": dict(entry.expect) if entry.expect else None,
        "note": entry.note,
        "own": sorted(entry.values),
        "values": {key: asdict(value) for key, value in merged.values_with_source().items()},
        "facts": {key: asdict(value) for key, value in entry.facts.items()},
    }
