"""The plan of a printed table or figure, as ``bench run --paper promcse:2`` runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace as replace_config

from bench.base.errors import BenchError
from bench.base.text import list_names
from bench.method.config import RunConfig
from bench.method.own_vectors import own_backbone
from bench.method.plugins import Registry, discover
from bench.papers import PaperPart, find_checkpoint, meaning, printed_names, results, rows
from bench.run.plan_toml import Plan, of_methods

CHOOSING = ("methods", "setting", "backbones", "names")
"""Fields that choose runs of the table; all others replace the values of its plan."""


def plan_of_part(part: PaperPart, fields: Mapping[str, Any]) -> Plan:
    """Return the plan of a table or figure, with the fields of RunConfig that a command gives.

    ``methods`` and ``setting`` choose runs: a method with all its variants, or METHOD+VARIANT.
    ``backbones`` choose, too, if the table has them; any other backbone replaces them all, and then
    released checkpoints are left out. Raises BenchError if nothing is to be run, or chosen.
    """
    if part.plan is None:
        why = part.why or _why_not(part) or f"it shows {part.shows}, and no run"
        raise BenchError(
            f"--paper {part.name} cannot be run: {why}", f"bench papers {part.paper}: what can be"
        )
    plan = Plan.read(part.plan)
    runs = _chosen_runs(plan.runs, fields)
    if not runs:
        names = [name for config in plan.runs for name in config.methods]
        raise BenchError(
            f"--paper {part.name}: no run of it fits the methods, setting and backbone of this "
            f"command; it has {list_names(dict.fromkeys(names), most=20)}",
            f"bench run --paper {part.name} --dry-run",
        )
    others = {name: value for name, value in fields.items() if name not in CHOOSING}
    return Plan(tuple(runs)).with_given(others)


def _why_not(part: PaperPart) -> str:
    """Return why nothing runs the rows of a table of scores; "" for any other part."""
    reasons: dict[str, None] = {}
    for row in rows(results(paper=part.paper, table=part.short)):
        first = row.first
        reasons[meaning(first.method, first.variant, first.setting, first.backbone).why_not] = None
    return "; ".join(filter(None, reasons))


def _chosen_runs(configs: Sequence[RunConfig], fields: Mapping[str, Any]) -> list[RunConfig]:
    """Return the configs of a plan with the chosen methods, setting and backbones."""
    registry = discover()
    in_plan: set[str] = set()
    for config in configs:
        in_plan.update(*map(printed_names, config.backbones))
    chosen = []
    for config in configs:
        if fields.get("setting", config.setting) != config.setting:
            continue
        config = of_methods(config, fields.get("methods", ()))
        config = _on_backbones(config, fields, in_plan, registry)
        if config.methods and config.backbones:
            chosen.append(config)
    return chosen


def _on_backbones(
    config: RunConfig, fields: Mapping[str, Any], in_plan: set[str], registry: Registry
) -> RunConfig:
    """Return a config with those of its backbones that are named, and with replacements."""
    if "backbones" not in fields:
        return config
    given = list(zip(fields["backbones"], fields.get("names") or fields["backbones"], strict=True))
    brings_vectors = [own_backbone(registry[name].cls) for name, _ in config.named]
    if any(brings_vectors):
        return config
    of_config = {last for name in config.backbones for last in printed_names(name)}
    released = any(find_checkpoint(name) for name in config.backbones)
    kept = []
    for place, name in given:
        of_place = printed_names(place)
        stands_in = of_place.isdisjoint(in_plan) and not released
        if stands_in or not of_place.isdisjoint(of_config):
            kept.append((place, name))
    names = tuple(name for _, name in kept) if fields.get("names") else ()
    return replace_config(config, backbones=tuple(place for place, _ in kept), names=names)
