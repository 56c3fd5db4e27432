"""The runs of one config: from a method, a backbone and recipe values to a planned run for each
seed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.backbones import Reference, check_stored_prefix, resolve
from bench.backbones.direction import is_causal
from bench.backbones.dropout import own_dropout
from bench.backbones.families import find_architecture
from bench.base.devices import Precision
from bench.base.errors import BenchError, DataMissing, UnknownName
from bench.base.files import expand_home
from bench.base.hashes import file_sha256
from bench.data.corpora import Corpus
from bench.data.sets import DataFolder, DataSet, NotFetchedYet, data_sets
from bench.method.checks import check_direction, check_noise
from bench.method.config import RunConfig
from bench.method.contract import FAITHFUL, Method, how_fitted
from bench.method.encoder_recipe import check_four_bit_ranks, with_adapter_of_run
from bench.method.encoder_values import BOTH_WAYS, check_encoder_values
from bench.method.finished import reads_of
from bench.method.own_vectors import OwnVectors, own_backbone
from bench.method.plugins import Plugin
from bench.method.recipe import Recipe, Value
from bench.method.recipe_checks import check_entries, check_values, trains_nothing
from bench.method.recipe_files import CustomRecipe, Entry, read_recipes
from bench.method.recipes import merge_recipe, settings_with_recipe, whole_entry
from bench.records.record import BUDGET, CORPUS_PARTS, SET
from bench.run.corpora import (
    AbsentCorpus,
    corpus_arguments,
    describe_corpus,
    is_composed,
    open_corpus,
)
from bench.run.dev_sets import BUILT_IN_DEV, STSB_DEV, open_dev_task
from bench.run.length import known_steps, length_notes, with_typed_length
from bench.run.planned import NOT_TRAINED, PlannedRun, learns, with_fingerprint
from bench.run.scored_tasks import ScoredTasks
from bench.run.target import parse_target
from bench.score.suites import KnownTask

ABSENT = "unknown"
"""The name of content that is not fetched yet."""


@dataclass(frozen=True)
class TrainingInputs:
    """The corpus that a run trains on, and the dev set that chooses its checkpoint."""

    # None: nothing is trained
    corpus: Corpus | None = None
    # None: no checkpoint is chosen, or the set is not fetched yet
    dev: KnownTask | None = None
    dev_is_absent: bool = False


@dataclass(frozen=True)
class Planner:
    """Plans the runs of a config from the parts that all of them share."""

    config: RunConfig
    scored: ScoredTasks
    data: DataFolder
    # gets a backbone onto this machine; it may fetch one, if its revision is not known yet
    ready: Callable[[Reference], Reference]
    # method -> its recipe of --recipe
    recipes: Mapping[str, CustomRecipe]
    # name -> the corpus, each opened once
    corpora: dict[str | tuple[str, ...], Corpus] = field(default_factory=dict)

    def backbones(self, plugin: Plugin) -> list[Reference]:
        """Return the backbones of the config, or the one that the method brings."""
        names = self.config.names
        brought = own_backbone(plugin.cls)
        if brought:
            # a ready-made encoder may have a title
            title = names[0] if names and self.config.backbones == (brought,) else ""
            return [Reference(name=brought, revision=ABSENT, path=None, title=title)]
        references = [self._reference(name) for name in self.config.backbones]
        if not names:
            return references
        return [
            replace(reference, title=title)
            for reference, title in zip(references, names, strict=True)
        ]

    def _reference(self, name: str) -> Reference:
        return self.ready(resolve(name, allow_pickle=self.config.allow_pickle))

    def plan(
        self, plugin: Plugin, variant: str, backbone: Reference, overrides: Mapping[str, str]
    ) -> list[PlannedRun]:
        """Plan one run for each seed. Raises BenchError for a mistake.

        ``overrides``: recipe key -> the value that the user gave.
        """
        cls = plugin.cls
        notes = [note for known in self.scored.data for note in known.notes]
        setting, entry = self._setting_and_entry(plugin, variant, backbone, notes)
        trained = learns(cls, setting)
        custom = self._custom_recipe(plugin, notes)
        recipe = self.build_recipe(plugin, setting, backbone, variant, overrides, entry)
        recipe = with_adapter_of_run(recipe, backbone)
        check_encoder_values(cls, recipe, learns=trained)
        check_four_bit_ranks(recipe, parse_target(self.config.on).ranks)
        printed = None
        if entry and custom is None and entry.backbone == backbone.model:
            printed = entry
        if printed and printed.note:
            notes.append(printed.note)

        recipe, places = self._with_vectors(cls, recipe, backbone)
        backbone = self._fitting_backbone(plugin, setting, recipe, backbone, places, notes)
        inputs = self._training_inputs(plugin, setting, recipe, entry, notes)
        typed = {*overrides, *(custom.values if custom is not None else ())}
        if inputs.corpus is not None:
            recipe = with_typed_length(recipe, len(inputs.corpus), typed)
        seeds = self._seeds(plugin, setting, notes)
        determines = self._determines(plugin, setting, recipe, places, inputs, notes)
        if inputs.corpus is not None and setting != NOT_TRAINED:
            requested = "epochs" in typed
            notes += length_notes(recipe, len(inputs.corpus), epochs_requested=requested)
        run = PlannedRun(
            plugin=plugin,
            variant=variant,
            setting=setting,
            backbone=backbone,
            seed=None,
            recipe=recipe,
            corpus=inputs.corpus,
            tasks=self.scored.tasks,
            task_data=self.scored.data,
            dev=inputs.dev,
            precision=self._planned_precision(),
            notes=tuple(notes),
            expect=printed_number(cls, printed, recipe, self.config.corpus, trained),
            custom=custom,
            determines=determines,
            whole_steps=self._whole_steps(
                plugin, setting, backbone, variant, overrides, entry, inputs.corpus
            ),
            missing=self.scored.missing,
            provisional=is_provisional(backbone, places, inputs),
        )
        return [with_fingerprint(replace(run, seed=seed)) for seed in seeds]

    def _whole_steps(
        self,
        plugin: Plugin,
        setting: str,
        backbone: Reference,
        variant: str,
        overrides: Mapping[str, str],
        entry: Entry | None,
        corpus: Corpus | None,
    ) -> int | None:
        """Return the steps of a training without the budget that was typed.

        None: none was typed, they are not known, or the method reads its text in one pass.
        """
        if corpus is None or "budget" not in overrides or how_fitted(plugin.cls) == "pass":
            return None
        others = {key: text for key, text in overrides.items() if key != "budget"}
        recipe = self.build_recipe(plugin, setting, backbone, variant, others, entry)
        return known_steps(recipe, len(corpus))

    def _training_inputs(
        self,
        plugin: Plugin,
        setting: str,
        recipe: Recipe,
        entry: Entry | None,
        notes: list[str],
    ) -> TrainingInputs:
        """Open the corpus and the dev set of a run, as far as it needs them.

        Raises BenchError if they do not fit the method, or are not on this machine.
        """
        cls = plugin.cls
        if not learns(cls, setting):
            return TrainingInputs()
        corpus = self._corpus(plugin, setting, recipe, entry)
        notes += describe_corpus(corpus, duplicates=recipe.get("duplicates", "keep"))
        if setting == NOT_TRAINED:
            return TrainingInputs(corpus)
        try:
            return TrainingInputs(corpus, open_dev_task(str(recipe["select_on"]), self.data))
        except NotFetchedYet:
            return TrainingInputs(corpus, dev_is_absent=True)

    def _planned_precision(self) -> Precision:
        """Return the precision to plan with: a device that is not settled yet counts as a CPU."""
        return "fp32" if self.config.precision == "auto" else self.config.precision

    def _custom_recipe(self, plugin: Plugin, notes: list[str]) -> CustomRecipe | None:
        """Return the method's recipe of --recipe, if there is one. Raises BenchError for a mistake
        in it.
        """
        custom = self.recipes.get(plugin.name)
        if custom is not None:
            check_values(plugin.cls, custom.values, f"--recipe {custom.file}")
            notes += custom.check(self.config.seeds, plugin.code.identity)
        return custom

    def _setting_and_entry(
        self, plugin: Plugin, variant: str, backbone: Reference, notes: list[str]
    ) -> tuple[str, Entry | None]:
        """Choose the setting, and the paper's recipe for it, if there is one.

        Adds a note for each choice that the user did not make.
        """
        cls = plugin.cls
        recipes = read_recipes(plugin.folder, plugin.name).recipes
        check_entries(cls, recipes)
        setting = choose_setting(plugin, recipes, self.config.setting, backbone.model, variant)
        entry = whole_entry(
            cls,
            recipes,
            setting,
            backbone.model,
            variant,
            trained=learns(cls, setting),
            shape=find_architecture(backbone.config()),
        )
        if entry and entry.backbone != backbone.model:
            notes.append(f"no recipe for {backbone.model}: using the one for {entry.backbone}")
        if self.config.setting is None and len(cls.settings) > 1:
            notes.append(f"setting {setting} (no --setting was given)")
        return setting, entry

    def _fitting_backbone(
        self,
        plugin: Plugin,
        setting: str,
        recipe: Recipe,
        backbone: Reference,
        places: Mapping[str, str | None],
        notes: list[str],
    ) -> Reference:
        """Return the backbone, with the revision that a method gives to its own vectors.

        Raises BenchError if the method cannot use it.
        """
        cls = plugin.cls
        check_stored_prefix(backbone, reads_of(cls))
        causal = is_causal(backbone.config()) and recipe.get("attention") != BOTH_WAYS
        check_direction(cls, recipe, backbone.name, causal=causal)
        if own_dropout(backbone.config()) == 0:
            check_noise(cls, setting, recipe, backbone.name, dropout=0)
        if not issubclass(cls, OwnVectors):
            return backbone
        if self.config.backbones != (cls.own_backbone,):
            notes.append(f"{plugin.name} brings its own vectors and ignores --backbone")
        revision = ABSENT if ABSENT in places.values() else cls.own_revision(recipe)
        return replace(backbone, revision=revision)

    def _seeds(self, plugin: Plugin, setting: str, notes: list[str]) -> tuple[int | None, ...]:
        """Return the seeds of the config; (None,) if the method has nothing random."""
        seeds = self.config.seeds
        if setting not in plugin.cls.deterministic:
            return seeds
        if len(seeds) > 1:
            notes.append(f"{plugin.name} has nothing random: one run stands for all seeds")
        return (None,)

    def _determines(
        self,
        plugin: Plugin,
        setting: str,
        recipe: Recipe,
        places: Mapping[str, str | None],
        inputs: TrainingInputs,
        notes: list[str],
    ) -> dict[str, Any]:
        """Return the facts that change the result of a run, but are not in its recipe or in a field
        of the plan.

        ``places``: recipe key -> the name of its file's content.
        """
        trained = learns(plugin.cls, setting)
        facts: dict[str, Any] = {
            "places": places,
            "precision": self._planned_precision() if trained else "fp32",
            "dev": inputs.dev.sha256 if inputs.dev else None,
        }
        ranks = parse_target(self.config.on).ranks
        one_process = ranks == 1 or how_fitted(plugin.cls) == "pass"
        if trained and recipe.get(FAITHFUL) and not one_process:
            facts["ranks"] = ranks
            notes.append(f"{plugin.name} trains differently on {ranks} processes than on one")
        corpus = inputs.corpus
        if corpus is not None and not isinstance(corpus, AbsentCorpus) and is_composed(corpus):
            facts[CORPUS_PARTS] = list(corpus_arguments(corpus))
        return facts

    def build_recipe(
        self,
        plugin: Plugin,
        setting: str,
        backbone: Reference,
        variant: str,
        overrides: Mapping[str, str],
        entry: Entry | None,
    ) -> Recipe:
        """Merge all layers of recipe values.

        Raises BenchError for a key or a value that is not valid.

        The dev set is the built-in one if nobody named another, and the backbone or the corpus is
        built in, or STS-B is not available.
        """
        cls = plugin.cls
        trained = learns(cls, setting)
        custom = self.recipes.get(plugin.name)
        implied: dict[str, Value] = {}
        if custom is not None:
            implied.update(custom.values)
        recipe = merge_recipe(cls, entry, variant, overrides, trained=trained, plan=implied)
        asked = "select_on" in overrides or "select_on" in implied
        if setting != NOT_TRAINED and not asked and recipe["select_on"] == STSB_DEV:
            corpus = self._corpus_name(entry)
            if "builtin" in (backbone.name, corpus) or self._lacks_stsb():
                implied["select_on"] = BUILT_IN_DEV
                recipe = merge_recipe(cls, entry, variant, overrides, trained=trained, plan=implied)
        return with_budget_source(recipe, self.config)

    def _lacks_stsb(self) -> bool:
        """Return True if STS-B dev is not on this machine and cannot be fetched."""
        try:
            open_dev_task(STSB_DEV, self.data)
        except NotFetchedYet:
            return False
        except DataMissing:
            return True
        return False

    def _corpus_name(self, entry: Entry | None) -> str | tuple[str, ...] | None:
        """Return the name that --corpus gives, else the one of the paper's recipe."""
        if self.config.corpus:
            return self.config.corpus
        return entry.corpus if entry else None

    def _corpus(self, plugin: Plugin, setting: str, recipe: Recipe, entry: Entry | None) -> Corpus:
        """Open the corpus of one run.

        Raises DataMissing if it is not on this machine, BenchError if it is not of the kind that
        the method needs.
        """
        name = self._corpus_name(entry)
        if name is None:
            raise DataMissing(f"the recipes of {plugin.name} name no corpus", "--corpus FILE")
        if name not in self.corpora:
            requested = bool(self.config.corpus)
            self.corpora[name] = open_corpus(name, requested, self.data, self.scored.data)
        corpus = self.corpora[name]
        if recipe["corpus_column"] is not None and len(corpus.columns) > 1:
            corpus = corpus.only(str(recipe["corpus_column"]))
        check_kind(corpus, plugin, setting, recipe)
        return corpus

    def _with_vectors(
        self, cls: type[Method], recipe: Recipe, backbone: Reference
    ) -> tuple[Recipe, dict[str, str | None]]:
        """Check the recipe, and put the files of word vectors into it.

        Also returns, for each key that names a file, a folder or a backbone, the hash or revision
        of its content: ABSENT if it is not fetched yet, None if the recipe gives none.
        """
        keys = [key for key in cls.places if key in recipe]
        values = recipe.values_with_source()
        try:
            for key in keys:
                wanted = vectors_named(recipe[key])
                if wanted is not None:
                    values[key] = replace(values[key], value=str(self.data.vectors(wanted)))
            recipe = Recipe(values)
            cls.check(recipe, backbone.path)
        except NotFetchedYet:
            return recipe, dict.fromkeys(keys, ABSENT)
        contents: dict[str, str | None] = {}
        for key in keys:
            value = recipe[key]
            contents[key] = None if value is None else self._content_name(str(value))
        return recipe, contents

    def _content_name(self, place: str) -> str:
        """Return the hash or the revision of the file, folder or backbone that a recipe value
        names.
        """
        path = expand_home(place)
        if path.is_file():
            return file_sha256(path)
        return self._reference(place).revision


def check_kind(corpus: Corpus, plugin: Plugin, setting: str, recipe: Recipe) -> None:
    """Raise BenchError if a corpus does not have the columns that the method trains on."""
    needed = plugin.cls.needs(setting, recipe)
    if corpus.kind == "n-tuples" and "triplets" in needed:
        if plugin.cls.several_negatives:
            return
        raise BenchError(
            f"{plugin.name} takes one hard negative per row; "
            f"{corpus.name} has {len(corpus.columns) - 2}",
            "write a row for each of them: sent0, sent1, hard_neg",
        )
    if corpus.kind not in needed:
        helps = "docs/data.md lists the columns of each kind"
        if "sentences" in needed:
            helps = "--set corpus_column=all, or the name of a column, trains on it as sentences"
        raise BenchError(
            f"{plugin.name} in the {setting} setting needs {' or '.join(needed)}; "
            f"{corpus.name} has the columns {', '.join(corpus.columns)}",
            helps,
        )


def choose_setting(
    plugin: Plugin, recipes: Sequence[Entry], requested: str | None, backbone: str, variant: str
) -> str:
    """Return the requested setting, else the first that trains; settings with a recipe for the
    backbone come first.

    Raises BenchError if the method has no such setting.
    """
    settings = plugin.cls.settings
    setting = requested or ""
    if not setting:
        usual = [*settings_with_recipe(recipes, backbone, variant), *settings]
        training = [name for name in usual if name != NOT_TRAINED]
        setting = training[0] if training else NOT_TRAINED
    if setting not in settings and {*settings} == {NOT_TRAINED}:
        raise trains_nothing(f"--setting {setting}", [plugin.name])
    if setting not in settings:
        raise UnknownName("setting", setting, settings, f"of {plugin.name}")
    return setting


def is_provisional(
    backbone: Reference, places: Mapping[str, str | None], inputs: TrainingInputs
) -> bool:
    """Return True if part of the fingerprint's input is not fetched yet."""
    return (
        inputs.dev_is_absent
        or ABSENT in places.values()
        or (backbone.hub and backbone.path is None)
        or isinstance(inputs.corpus, AbsentCorpus)
    )


def with_budget_source(recipe: Recipe, config: RunConfig) -> Recipe:
    """Return the recipe, with --budget as the source of the value that it gave."""
    if config.budget is None:
        return recipe
    values = recipe.values_with_source()
    key = config.budget_key
    if key in values and values[key].source == SET:
        values[key] = replace(values[key], source=f"{BUDGET} {config.budget}")
    return Recipe(values)


def printed_number(
    cls: type[Method],
    entry: Entry | None,
    recipe: Recipe,
    corpus: str | tuple[str, ...] | None,
    trained: bool,
) -> Mapping[str, Any] | None:
    """Return the number that the paper prints, if recipe and corpus equal its entry; else None.

    ``corpus``: the value of --corpus.
    """
    if entry is None:
        return None
    if trained and corpus not in (None, entry.corpus):
        return None
    whole = merge_recipe(cls, entry, entry.variant, {}, trained=trained)
    return entry.expect if dict(recipe) == dict(whole) else None


def vectors_named(value: object) -> DataSet | None:
    """Return the set of word vectors that a recipe value names, unless there is a file of that
    name.
    """
    known = data_sets().get(str(value))
    if known is None or known.kind != "vectors" or Path(str(value)).is_file():
        return None
    return known
