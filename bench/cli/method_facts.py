"""Everything that is known of one method, as data: what ``bench methods NAME --json`` prints and the terminal lays out."""

from __future__ import annotations

import inspect
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bench.method import Value
    from bench.plugins import Plugin


def describe(plugin: Plugin) -> dict[str, Any]:
    """``keys`` are the recipe keys with their defaults; a recipe's ``values`` are all of it, merged, as a run would have it."""
    from bench.plan import learns
    from bench.recipe_file import read
    from bench.recipes import HELP, TRAINING, merge

    cls = plugin.cls
    trained = any(learns(cls, setting) for setting in cls.settings)
    keys = merge(cls, None, "", {}, trained=trained).values_with_source()
    file = read(plugin.folder, plugin.name)
    recipes = []
    for entry in file.recipes:
        merged = merge(cls, entry, entry.variant, {}, trained=learns(cls, entry.setting)).values_with_source()
        recipes.append({
            "setting": entry.setting, "backbone": entry.backbone, "variant": entry.variant, "corpus": entry.corpus,
            "expect": dict(entry.expect) if entry.expect else None, "note": entry.note, "own": sorted(entry.values),
            "values": {key: asdict(value) for key, value in merged.items()},
            "facts": {key: asdict(value) for key, value in entry.facts.items()},
        })  # fmt: skip
    return {
        "name": plugin.name, "summary": cls.summary, "paper": cls.paper, "settings": list(cls.settings), "trains": cls.trains,
        "from": f"{plugin.package} {plugin.version}".strip(), "about": _about(plugin),
        "variants": {name: {key: _plain(v) for key, v in changes.items()} for name, changes in cls.variants.items()},
        "keys": {
            key: {"default": v.value, "source": v.source, "note": v.note, "help": HELP.get(key), "own": key in cls.defaults}
            for key, v in keys.items() if key in cls.defaults or key in TRAINING
        },
        "recipes": recipes,
        "disagreements": [asdict(d) for d in file.disagreements],
        "references": [asdict(r) for r in _printed(file.printed.get("method", plugin.name))],
        "printed_variants": dict(file.printed.get("variants", {})),
    }  # fmt: skip


def _plain(value: Any | Value) -> Any:
    from bench.method import Value

    return value.value if isinstance(value, Value) else value


def _about(plugin: Plugin) -> str:
    """The class's own words, or else its module's: the paper and the equations."""
    own = plugin.cls.__dict__.get("__doc__")
    return inspect.cleandoc(own or plugin.module.__doc__ or "")


def _printed(method: str) -> tuple[Any, ...]:
    from bench.references import results

    return results(method) if method else ()
