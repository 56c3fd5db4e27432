"""From a config to its runs, each with its whole recipe, its corpus, the data it needs and a fingerprint.

Nothing is trained or written here: ``bench run --dry-run`` prints this and stops. :func:`find_run` and :func:`load_run` lead from a
finished run back to its method, which encodes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.backbones import KNOWN, Reference, check_stored_prefix, resolve
from bench.backbones.direction import is_causal
from bench.backbones.dropout import own_dropout
from bench.backbones.folder import shape
from bench.base.errors import BenchError, DataMissing, UnknownName
from bench.base.files import file_sha256
from bench.base.text import list_names
from bench.base.user_code import plugin_code
from bench.data.corpora import Corpus
from bench.data.sets import STSB_TRAIN, TARGET, DataFolder, DataSet, NotFetchedYet, data_sets
from bench.method.checks import check_direction, check_last_batch, check_noise
from bench.method.contract import Method, Recipe, Value
from bench.records.record import BUDGET, SET, RunRecord
from bench.run.config import RunConfig, series
from bench.run.corpora import AbsentCorpus, open_corpus
from bench.run.dev_sets import BUILT_IN_DEV, STSB_DEV, dev_task
from bench.run.length import length_notes
from bench.run.planned import NOT_TRAINED, PlannedRun, learns, with_fingerprint
from bench.run.plugins import Plugin, Registry
from bench.run.recipe_checks import check_entries, check_overrides, check_values
from bench.run.recipe_files import CustomRecipe, Entry, read, read_custom
from bench.run.recipes import merge, settings_with_recipe, whole_entry
from bench.run.scored_tasks import ScoredTasks, find_scored_tasks
from bench.score.suites import check_suite, expand_suites

SHARED_TEXT = {
    TARGET: "transductive: trained on the text of the sets that are scored",
    STSB_TRAIN: "trained on rated pairs whose sentences the STS sets share",
}
"""Corpus -> what a reader of its scores should know."""
Ready = Callable[[Reference], Reference]


def plan_config(
    config: RunConfig, registry: Registry, data: DataFolder, ready: Ready = lambda known: known
) -> list[PlannedRun]:
    """Every run of one config, see :func:`plan_configs`."""
    return plan_configs([config], registry, data, ready)


def plan_configs(
    configs: Sequence[RunConfig], registry: Registry, data: DataFolder, ready: Ready
) -> list[PlannedRun]:
    """Every run of the configs, once, in order. Raises a BenchError for the first mistake.

    ``ready`` may fetch a backbone whose revision is not known yet. All evaluation data is checked here: a run that could not be
    scored is refused before it is trained. Every run names the sets that are missing (``missing``), and is scored on the others.
    If data is only fetched later (``data.later``), what is to be fetched is noted there, and the plan is provisional.
    """
    scored: dict[tuple[tuple[str, ...], str], ScoredTasks] = {}
    unique: dict[tuple[object, ...], PlannedRun] = {}
    for config in configs:
        check_names(config)
    classes = [registry[name].cls for config in configs for name, _ in config.named]
    trained = any(learns(cls, setting) for cls in classes for setting in cls.settings)
    for config in configs:
        check_overrides(config.values, classes, trained)
        key = config.suites, config.text
        if key not in scored:
            scored[key] = find_scored_tasks(*key, data)
        planner = _Planner(
            config,
            scored[key],
            data,
            ready,
            recipes={one.method: one for one in map(read_custom, map(Path, config.recipes))},
        )
        for name, variant in config.named:
            plugin = registry[name]
            for backbone in planner.backbones(plugin):
                for overrides in series(config.values):
                    with plugin_code(f"the method {name}"):
                        for run in planner.runs(plugin, variant, backbone, overrides):
                            unique[
                                run.run_id, run.fingerprint, run.provisional and run.backbone.name
                            ] = run
    return list(unique.values())


def check_names(config: RunConfig) -> None:
    """Raises BenchError if nothing is named, and for a backbone's name, a text form or a suite that is not valid."""
    for kind in ("methods", "backbones", "suites", "seeds"):
        if not getattr(config, kind):
            raise BenchError(f"no {kind} were named", "bench run --help")
    if config.names and not len(config.names) == len(set(config.names)) == len(config.backbones):
        raise BenchError(
            f"names {', '.join(config.names)}: expected a different name for each of {', '.join(config.backbones)}",
            "--backbone a=A,b=B",
        )
    if taken := set(config.names) & (KNOWN.keys() - set(config.backbones)):
        raise BenchError(
            f"--backbone {min(taken)}=...: that is the name of another backbone",
            "choose another name",
        )
    for text in config.text.split(","):
        if not re.fullmatch("tokenised|raw|any|other-[0-9a-f]{8}", text):
            raise UnknownName("text form", text, ["tokenised", "raw", "any", "other-<hash>"])
    for name in expand_suites(config.suites):
        check_suite(name)


@dataclass(frozen=True)
class _Planner:
    """What all runs of a config share."""

    config: RunConfig
    scored: ScoredTasks
    data: DataFolder
    ready: Ready
    recipes: Mapping[str, CustomRecipe]  # by method: --recipe
    corpora: dict[str, Corpus] = field(default_factory=dict)  # by name, each opened once

    def backbones(self, plugin: Plugin) -> list[Reference]:
        """Those of the config, or the one that the method brings."""
        config, brought = self.config, plugin.cls.own_backbone
        if brought:  # a finished encoder may have a title
            title = config.names[0] if config.names and config.backbones == (brought,) else ""
            return [Reference(name=brought, revision="unknown", path=None, title=title)]
        references = list(map(self._reference, config.backbones))
        return (
            [replace(one, title=title) for one, title in zip(references, config.names, strict=True)]
            if config.names
            else references
        )

    def _lacks_stsb(self) -> bool:
        """Tell whether STS-B dev is neither on this machine nor to be fetched."""
        try:
            dev_task(STSB_DEV, self.data)
        except NotFetchedYet:
            return False
        except DataMissing:
            return True
        return False

    def _reference(self, name: str) -> Reference:
        return self.ready(resolve(name, allow_pickle=self.config.allow_pickle))

    def runs(
        self, plugin: Plugin, variant: str, backbone: Reference, overrides: Mapping[str, str]
    ) -> list[PlannedRun]:
        """One run for each seed, with one value for each key of ``overrides``. Raises BenchError for a mistake."""
        config, cls, recipes = self.config, plugin.cls, read(plugin.folder, plugin.name).recipes
        check_entries(cls, recipes)
        usual = (*settings_with_recipe(recipes, backbone.model, variant), *cls.settings)
        setting = config.setting or next((s for s in usual if s != NOT_TRAINED), NOT_TRAINED)
        if setting not in cls.settings:
            raise UnknownName("setting", setting, cls.settings, f"of {plugin.name}")
        trained, custom = learns(cls, setting), self.recipes.get(plugin.name)
        entry = whole_entry(
            cls,
            recipes,
            setting,
            backbone.model,
            variant,
            trained=trained,
            shape=shape(backbone.config()),
        )
        notes = [note for known in self.scored.data for note in known.notes]
        if entry and entry.backbone != backbone.model:
            notes.append(f"no recipe for {backbone.model}: using the one for {entry.backbone}")
        if config.setting is None and len(cls.settings) > 1:
            notes.append(f"setting {setting} (no --setting was given)")
        implied = dict[str, Value]()
        if custom is not None:
            check_values(cls, custom.values, f"--recipe {custom.file}")
            implied.update(custom.values)
            notes += custom.check(config.seeds, plugin.sha256)
        recipe = merge(cls, entry, variant, overrides, trained=trained, plan=implied)
        asked = "select_on" in overrides or "select_on" in implied
        if setting != NOT_TRAINED and recipe["select_on"] == STSB_DEV and not asked:
            corpus_name = config.corpus or (entry.corpus if entry else None)
            if "builtin" in (backbone.name, corpus_name) or self._lacks_stsb():
                implied["select_on"] = BUILT_IN_DEV
                recipe = merge(cls, entry, variant, overrides, trained=trained, plan=implied)
        recipe = with_budget_source(recipe, config)
        printed = entry if entry and custom is None and entry.backbone == backbone.model else None
        notes += [printed.note] if printed and printed.note else []
        recipe, places = self._vectors(cls, recipe, backbone)
        absent = "unknown" in places.values()
        check_stored_prefix(backbone, cls.reads)
        check_direction(cls, recipe, backbone.name, causal=is_causal(backbone.config()))
        check_dropout(cls, setting, recipe, backbone)
        if cls.own_backbone:
            backbone = replace(backbone, revision="unknown" if absent else cls.own_revision(recipe))
            if config.backbones != (cls.own_backbone,):
                notes.append(f"{plugin.name} brings its own vectors and ignores --backbone")
        corpus = self._corpus(plugin, setting, recipe, entry) if trained else None
        if corpus is not None and not isinstance(corpus, AbsentCorpus):
            check_last_batch(cls, recipe, len(corpus))
        if corpus is not None and corpus.name in SHARED_TEXT:
            notes.append(SHARED_TEXT[corpus.name])
        if corpus is not None and corpus.unread:
            notes.append(f"{corpus.name}: columns that are not read: {list_names(corpus.unread)}")
        absent |= isinstance(corpus, AbsentCorpus) or (backbone.hub and backbone.path is None)
        dev = None
        if trained and setting != NOT_TRAINED:
            try:
                dev = dev_task(str(recipe["select_on"]), self.data)
            except NotFetchedYet:
                absent = True
        seeds: tuple[int | None, ...] = (None,) if setting in cls.deterministic else config.seeds
        if len(config.seeds) > len(seeds):
            notes.append(f"{plugin.name} has nothing random: one run stands for all seeds")
        precision = "fp32" if config.precision == "auto" else config.precision  # not settled: a CPU
        determines: dict[str, Any] = {
            "places": places,
            "precision": precision if trained else "fp32",
            "dev": dev.sha256 if dev else None,
        }
        # faithful: their number divides the gradient. A whole forward(batch) sees only the rows of its process
        if (trained and config.ranks > 1) and (
            recipe.get("faithful") or (cls.fitted != "pass" and not cls.is_split())
        ):
            determines["ranks"] = config.ranks
            notes.append(
                f"{plugin.name} trains differently on {config.ranks} processes than on one"
            )
        if corpus is not None and setting != NOT_TRAINED:
            requested = "epochs" in overrides or (custom is not None and "epochs" in custom.values)
            notes += length_notes(recipe, len(corpus), epochs_requested=requested)
        expect = (  # the number that the paper prints, where recipe and corpus are just those of its entry
            printed.expect
            if printed
            and not (trained and config.corpus not in (None, printed.corpus))
            and dict(recipe) == dict(merge(cls, printed, printed.variant, {}, trained=trained))
            else None
        )
        run = PlannedRun(
            plugin=plugin,
            variant=variant,
            setting=setting,
            backbone=backbone,
            seed=None,
            recipe=recipe,
            corpus=corpus,
            tasks=self.scored.tasks,
            task_data=self.scored.data,
            dev=dev,
            text=config.text,
            precision=precision,
            notes=tuple(notes),
            expect=expect,
            custom=custom,
            determines=determines,
            missing=self.scored.missing,
            provisional=absent,
        )
        return [with_fingerprint(replace(run, seed=seed)) for seed in seeds]

    def _corpus(self, plugin: Plugin, setting: str, recipe: Recipe, entry: Entry | None) -> Corpus:
        """The corpus of one run. Raises DataMissing if it is not on this machine, BenchError if it is not of the kind that the
        method needs."""
        needed = plugin.cls.needs(setting, recipe)
        name = self.config.corpus or (entry.corpus if entry else None)
        if name is None:
            raise DataMissing("this method's recipes name no corpus", "--corpus FILE")
        if name not in self.corpora:
            self.corpora[name] = open_corpus(
                name, bool(self.config.corpus), self.data, self.scored.data
            )
        corpus = self.corpora[name]
        if recipe["corpus_column"] is not None and len(corpus.columns) > 1:
            corpus = corpus.only(str(recipe["corpus_column"]))
        several = corpus.kind == "n-tuples" and "triplets" in needed
        if several and not plugin.cls.several_negatives:
            raise BenchError(
                f"{plugin.name} takes one hard negative a row; {corpus.name} has {len(corpus.columns) - 2}",
                "write a row for each of them: sent0, sent1, hard_neg",
            )
        if corpus.kind not in needed and not several:
            raise BenchError(
                f"{plugin.name} in the {setting} setting needs {' or '.join(needed)}; {corpus.name} has the columns {', '.join(corpus.columns)}",
                "docs/data.md lists the columns of each kind; --set corpus_column=all, or the name of a column, uses a wider file as sentences",
            )
        return corpus

    def _vectors(
        self, cls: type[Method], recipe: Recipe, backbone: Reference
    ) -> tuple[Recipe, dict[str, str | None]]:
        """The checked recipe with the files of word vectors in it, and key -> what names the content behind a value that is a file, a
        folder or a backbone: "unknown" where it is yet to be fetched."""
        keys = [key for key in cls.places if key in recipe]
        values = recipe.values_with_source()
        try:
            for key in keys:
                if (wanted := vectors_named(recipe[key])) is not None:
                    values[key] = replace(values[key], value=str(self.data.vectors(wanted)))
            recipe = Recipe(values)
            cls.check(recipe, backbone.path)
        except NotFetchedYet:
            return recipe, dict.fromkeys(keys, "unknown")
        return recipe, {
            key: None if recipe[key] is None else self._content_name(str(recipe[key]))
            for key in keys
        }

    def _content_name(self, place: str) -> str:
        """The hash or revision of the file, folder or backbone that a recipe value names."""
        path = Path(place).expanduser()
        return file_sha256(path) if path.is_file() else self._reference(place).revision


def of_run(
    record: RunRecord,
    plugin: Plugin,
    recipe: Recipe,
    backbone: Reference,
    config: RunConfig,
    data: DataFolder,
) -> PlannedRun:
    """A finished run, to be scored on the suites of ``config`` as well. Raises like :func:`plan_config` if their data is not here."""
    check_names(config)
    scored = find_scored_tasks(config.suites, config.text, data)
    return PlannedRun(
        plugin=plugin,
        variant=record.variant,
        setting=record.setting,
        backbone=backbone,
        seed=record.seed,
        recipe=recipe,
        tasks=scored.tasks,
        task_data=scored.data,
        text=config.text,
        fingerprint=record.fingerprint,
        missing=scored.missing,
        notes=tuple(note for known in scored.data for note in known.notes),
        determines=record.provenance.determines or {},
    )


def with_budget_source(recipe: Recipe, config: RunConfig) -> Recipe:
    """The recipe, which says of the value that --budget gave where it is from."""
    if config.budget is None:
        return recipe
    values = recipe.values_with_source()
    key = config.budget_key
    if key in values and values[key].source == SET:
        values[key] = replace(values[key], source=f"{BUDGET} {config.budget}")
    return Recipe(values)


def check_dropout(cls: type[Method], setting: str, recipe: Recipe, backbone: Reference) -> None:
    """Raises BenchError if dropout should make two views of a sentence differ, but the backbone has none."""
    if own_dropout(backbone.config()) == 0:
        check_noise(cls, setting, recipe, backbone.name, dropout=0)


def vectors_named(value: object) -> DataSet | None:
    """The set of word vectors that a recipe value names, unless there is a file of that name."""
    known = data_sets().get(str(value))
    return known if known and known.kind == "vectors" and not Path(str(value)).is_file() else None
