"""Makes runs of configs, each with its complete recipe, its corpus, the data it needs and a
fingerprint.

Nothing is trained or written here: ``bench run --dry-run`` prints this and stops.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path

from bench.backbones import Reference
from bench.backbones.known_models import KNOWN
from bench.base.errors import BenchError
from bench.base.user_code import plugin_code
from bench.data.sets import DataFolder
from bench.method.config import RunConfig
from bench.method.contract import how_fitted
from bench.method.plugins import Plugin, Registry
from bench.method.recipe import Recipe
from bench.method.recipe_checks import check_overrides, trains_nothing
from bench.method.recipe_files import CustomRecipe, read_custom
from bench.records.record import RunRecord
from bench.run.options import combinations_of
from bench.run.planned import PlannedRun, learns
from bench.run.planner import Planner
from bench.run.scored_tasks import ScoredTasks, find_scored_tasks
from bench.score.suites import check_suite_name, expand_suites

Ready = Callable[[Reference], Reference]


def plan_configs(
    configs: Sequence[RunConfig],
    registry: Registry,
    data: DataFolder,
    ready: Ready = lambda known: known,
) -> list[PlannedRun]:
    """Plan every run of the configs, once, in order. Raises a BenchError for the first mistake.

    All evaluation data is checked here: a run that could not be scored is refused before it is
    trained. Every run names the missing sets (``missing``), and is scored on the others.
    If data is only fetched later (``data.later``), what is to be fetched is noted there, and the
    plan is provisional. ``ready``: may fetch a backbone of unknown revision.
    """
    for config in configs:
        check_config(config)
    named = [name for config in configs for name, _ in config.named]
    classes = list(dict.fromkeys(registry[name].cls for name in named))
    learning = [cls for cls in classes if any(learns(cls, setting) for setting in cls.settings)]
    trained = bool(learning)
    takes_steps = any(how_fitted(cls) != "pass" for cls in learning)
    scored: dict[tuple[str, ...], ScoredTasks] = {}
    planned: list[PlannedRun] = []
    for config in configs:
        check_overrides(config.recipe_values, classes, trained)
        if not trained and config.corpus is not None:
            raise trains_nothing("--corpus", [cls.name for cls in classes])
        if not takes_steps and config.chunk is not None:
            raise trains_nothing("--chunk", [cls.name for cls in classes])
        if config.suites not in scored:
            scored[config.suites] = find_scored_tasks(config.suites, data)
        recipes = read_recipe_files(config.recipes, named)
        planned += _runs_of(Planner(config, scored[config.suites], data, ready, recipes), registry)
    return _each_once(planned)


def read_recipe_files(files: Sequence[str], methods: Collection[str]) -> dict[str, CustomRecipe]:
    """Return the recipes of these files by their methods.

    ``methods``: of all runs. Raises BenchError for a recipe of another method, and for a second one
    of the same.
    """
    recipes: dict[str, CustomRecipe] = {}
    for file in files:
        custom = read_custom(Path(file))
        if custom.method not in methods:
            raise BenchError(
                f"--recipe {file} is for {custom.method}, and no run is of that method",
                "name the method, too, or leave the file out",
            )
        if custom.method in recipes:
            raise BenchError(
                f"--recipe {file}: the second recipe for {custom.method} in one plan",
                "leave one of them out",
            )
        recipes[custom.method] = custom
    return recipes


def _runs_of(planner: Planner, registry: Registry) -> Iterator[PlannedRun]:
    """Yield every combination of the methods, backbones, values and seeds of a config."""
    config = planner.config
    for name, variant in config.named:
        plugin = registry[name]
        for backbone in planner.backbones(plugin):
            for overrides in combinations_of(config.recipe_values):
                with plugin_code(f"the method {name}"):
                    runs = planner.plan(plugin, variant, backbone, overrides)
                yield from runs


def _each_once(planned: Iterable[PlannedRun]) -> list[PlannedRun]:
    """Return each run once, at its first place."""
    unique: dict[tuple[object, ...], PlannedRun] = {}
    for run in planned:
        # a provisional id does not know the backbone's revision
        backbone = run.backbone.name if run.provisional else ""
        unique[run.run_id, run.fingerprint, backbone] = run
    return list(unique.values())


NAMED = {
    "methods": "bench methods lists them",
    "backbones": "--backbone builtin",
    "suites": "bench suites lists them",
    "seeds": "--seeds 1-3",
}
"""What a plan needs at least one of -> what helps if it has none."""


def check_config(config: RunConfig) -> None:
    """Raise BenchError if nothing is named, and for a backbone's name or a suite that is not
    valid.
    """
    for kind, helps in NAMED.items():
        if not getattr(config, kind):
            raise BenchError(f"no {kind} were named", helps)
    names = config.names
    if names and not len(names) == len(set(names)) == len(config.backbones):
        raise BenchError(
            f"names {', '.join(names)}: "
            f"expected a different name for each of {', '.join(config.backbones)}",
            "--backbone a=A,b=B",
        )
    taken = set(names) & (KNOWN.keys() - set(config.backbones))
    if taken:
        raise BenchError(
            f"--backbone {min(taken)}=...: that is the name of another backbone",
            "choose another name",
        )
    for name in expand_suites(config.suites):
        check_suite_name(name)


def plan_rescoring(
    record: RunRecord,
    plugin: Plugin,
    recipe: Recipe,
    backbone: Reference,
    config: RunConfig,
    data: DataFolder,
) -> PlannedRun:
    """Plan to score a finished run on the suites of ``config`` as well.

    Raises DataMissing if their data is not here.
    """
    check_config(config)
    scored = find_scored_tasks(config.suites, data)
    return PlannedRun(
        plugin=plugin,
        variant=record.variant,
        setting=record.setting,
        backbone=backbone,
        seed=record.seed,
        recipe=recipe,
        tasks=scored.tasks,
        task_data=scored.data,
        fingerprint=record.fingerprint,
        missing=scored.missing,
        notes=tuple(note for known in scored.data for note in known.notes),
        determines=record.provenance.determines or {},
    )
