"""The recipes that lie beside a method: what is the same for all backbones, what differs, and where each value is from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bench.method_source import Stated
from bench.pages.says import says
from bench.pages.words import value_words
from bench.recipe_file import Entry

EXPECT = "paper's Avg."
LONGEST = 24  # characters of a value that fits into a column


@dataclass(frozen=True, kw_only=True)
class Sourced:
    """A value of some recipes."""

    key: str = field(metadata=says("the recipe key; empty where it stands in the line above"))
    value: str = field(metadata=says("what those recipes have"))
    of: str = field(metadata=says("their backbones; empty where all have it"))
    source: str = field(metadata=says("where the value is from"))
    note: str = field(metadata=says("what another source says; may be empty"))


@dataclass(frozen=True, kw_only=True)
class Recipes:
    """Those of one setting."""

    setting: str = field(metadata=says("setting in words"))
    names: tuple[str, ...] = field(metadata=says("backbone and variant of each recipe"))
    differing: tuple[tuple[str, tuple[str, ...]], ...] = field(metadata=says("(key, one value per recipe)"))
    same: tuple[tuple[str, str], ...] = field(metadata=says("(key, value) where all recipes have one value"))
    sources: tuple[Sourced, ...] = field(metadata=says("every value with its source"))
    facts: tuple[Sourced, ...] = field(metadata=says("what the sources state, and no recipe key changes"))
    notes: tuple[str, ...] = field(metadata=says("about whole recipes"))


def recipes(source: Stated | None) -> tuple[Recipes, ...]:
    """One per setting; none where the method has no recipe file, or its source is not installed."""
    entries = source.file.recipes if source is not None else ()
    return tuple(_recipes([one for one in entries if one.setting == setting], setting)
                 for setting in dict.fromkeys(one.setting for one in entries))  # fmt: skip


def _recipes(entries: Sequence[Entry], setting: str) -> Recipes:
    entries = sorted(entries, key=lambda one: one.backbone == "builtin")
    keys = dict.fromkeys(key for one in entries for key in one.values)
    rows: dict[str, list[str]] = {"corpus": [one.corpus or "" for one in entries]}
    rows |= {key: [value_words(one.values[key].value) if key in one.values else "" for one in entries] for key in keys}
    rows[EXPECT] = [f"{one.expect['value']:.2f}" if one.expect else "" for one in entries]
    differing = {key: cells for key, cells in rows.items() if len(set(cells)) > 1}
    return Recipes(
        setting="nothing trained" if setting == "none" else setting, names=tuple(map(_name, entries)),
        differing=tuple((key, tuple(cells)) for key, cells in differing.items() if max(map(len, cells)) <= LONGEST),
        same=tuple((key, cells[0]) for key, cells in rows.items() if key not in differing and cells[0]),
        sources=tuple(_sourced(keys, entries, lambda one: one.values)), notes=_notes(entries),
        facts=tuple(_sourced(dict.fromkeys(key for one in entries for key in one.facts), entries, lambda one: one.facts)),
    )  # fmt: skip


def _notes(entries: Sequence[Entry]) -> tuple[str, ...]:
    """Each with the recipes that it is about, where these are not all."""
    found: dict[str, list[Entry]] = {}
    for one in entries:
        if one.note:
            found.setdefault(one.note, []).append(one)
    return tuple(note if len(who) == len(entries) else f"{', '.join(map(_name, who))}: {note}" for note, who in found.items())


def _name(entry: Entry) -> str:
    return entry.backbone + (f" +{entry.variant}" if entry.variant else "")


def _sourced(keys: Iterable[str], entries: Sequence[Entry], values: Callable[[Entry], Mapping[str, object]]) -> Iterable[Sourced]:
    """One line for each value that comes from one source; the recipes that share it together."""
    for key in keys:
        found: dict[tuple[str, str, str], list[Entry]] = {}
        for one in entries:
            if (value := values(one).get(key)) is not None:
                said = (
                    value_words(getattr(value, "value", None)),
                    getattr(value, "source", ""),
                    getattr(value, "note", None) or "",
                )
                found.setdefault(said, []).append(one)
        for i, ((value_text, source, note), who) in enumerate(found.items()):
            of = "" if len(who) == len(entries) else ", ".join(map(_name, who))
            yield Sourced(key=key if i == 0 else "", value=value_text, of=of, source=source, note=note)
