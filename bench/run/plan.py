"""From a config to its runs, each with its whole recipe, its corpus, the data it needs and a fingerprint.

Nothing is trained or written here: ``bench run --dry-run`` prints this and stops. :func:`find_run` and :func:`load_run` lead from a
finished run back to its method, which encodes.
"""

from __future__ import annotations

import csv
import hashlib
import importlib
import io
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from bench.backbones import KNOWN, Reference, check_stored_prefix, resolve, resolve_recorded
from bench.backbones.direction import is_causal
from bench.backbones.dropout import own_dropout
from bench.backbones.folder import shape
from bench.base.errors import BenchError, DataMissing, NotAModel, UnknownName
from bench.base.files import default_cache, file_sha256, write_whole
from bench.base.paths import find_path
from bench.base.places import recall_place
from bench.base.same_code import code_of
from bench.base.text import list_names
from bench.base.user_code import plugin_code
from bench.data.corpora import Corpus, open_corpus
from bench.data.corpora.columns import KINDS, NUMBERS, columns_to_be
from bench.data.corpora.hub import PREFIX, HubName, hub_corpus, is_here, name_columns
from bench.data.fetching import silent, site
from bench.data.sets import (
    BY_HASH,
    HUB_CORPORA,
    MADE_HERE,
    RECIPE_CORPORA,
    STSB_TRAIN,
    TARGET,
    DataFolder,
    DataSet,
    NotFetchedYet,
    Pending,
    data_sets,
    sources_of,
)
from bench.data.sets.sts import STS_TASKS, read_sts
from bench.method.checks import check_direction, check_last_batch, check_noise
from bench.method.contract import (
    Context,
    Method,
    Recipe,
    Reporter,
    SilentReporter,
    Value,
)
from bench.records.record import BUDGET, SET, RunRecord, fingerprint_of
from bench.records.store import (
    AGAIN,
    AGAIN_FRESH,
    CHECKPOINT,
    UNREADABLE,
    RunsFolder,
    checkpoint_problem,
    read_record,
)
from bench.run.config import RunConfig, series
from bench.run.length import length_notes
from bench.run.plugins import Plugin, Registry, discover
from bench.run.recipes import (
    CustomRecipe,
    Entry,
    check_entries,
    check_overrides,
    check_values,
    merge,
    read,
    read_custom,
    settings_with_recipe,
    whole_entry,
)
from bench.score.suites import (
    KnownTask,
    Task,
    check_suite_name,
    expand_suites,
    suite,
    survey,
    survey_files,
)

NOT_TRAINED = "none"
STSB_DEV = "STS-B dev"
BUILT_IN_DEV = Value(
    "captions dev", "with the package's backbone or corpus, or where STS-B is not at hand"
)
"""The dev set of such a training, in place of STS-B dev. What is scored has no say in it."""
SHARED_TEXT = {
    TARGET: "transductive: trained on the text of the sets that are scored",
    STSB_TRAIN: "trained on rated pairs whose sentences the STS sets share",
}
"""Corpus -> what a reader of its scores should know."""


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    plugin: Plugin
    variant: str
    setting: str
    backbone: Reference
    seed: int | None  # None: no seed changes the result
    recipe: Recipe
    corpus: Corpus | None = None
    tasks: tuple[Task, ...] = ()  # one that is scored in two text forms is there twice
    task_data: tuple[KnownTask, ...] = ()  # what their data is, in the same order
    dev: KnownTask | None = None  # the set on which the checkpoint is selected
    text: str = ""
    precision: str = "fp32"
    fingerprint: str = ""
    notes: tuple[str, ...] = ()
    # the number that the paper prints for exactly this recipe: suite, task, value, source
    expect: Mapping[str, Any] | None = None
    custom: CustomRecipe | None = None  # that its values are from: --recipe
    # what the fingerprint is of, beyond what the record says
    determines: Mapping[str, Any] = field(default_factory=dict)
    missing: tuple[DataMissing, ...] = ()  # requested tasks whose data is not here
    # something that its fingerprint is of is yet to be fetched: a plan to look at, not to execute
    provisional: bool = False

    @property
    def method(self) -> str:
        return self.plugin.name

    @property
    def run_id(self) -> str:
        variant = f"+{self.variant}" if self.variant else ""
        seed = "any" if self.seed is None else f"s{self.seed}"
        return f"{self.method}{variant}-{self.backbone.short}-{seed}-{'unknown' if self.provisional else self.fingerprint[:8]}"


Ready = Callable[[Reference], Reference]


def make(
    config: RunConfig, registry: Registry, data: DataFolder, ready: Ready = lambda known: known
) -> list[PlannedRun]:
    """Every run of one config, see :func:`make_all`."""
    return make_all([config], registry, data, ready)


def make_all(
    configs: Sequence[RunConfig], registry: Registry, data: DataFolder, ready: Ready
) -> list[PlannedRun]:
    """Every run of the configs, once, in order. Raises a BenchError for the first mistake.

    ``ready`` may fetch a backbone whose revision is not known yet. All evaluation data is checked here: a run that could not be
    scored is refused before it is trained. Every run names the sets that are missing (``missing``), and is scored on the others.
    If data is only fetched later (``data.later``), what is to be fetched is noted there, and the plan is provisional.
    """
    scored: dict[tuple[tuple[str, ...], str], _Scored] = {}
    unique: dict[tuple[object, ...], PlannedRun] = {}
    for config in configs:
        check_names(config)
    classes = [registry[name].cls for config in configs for name, _ in config.named]
    trained = any(learns(cls, setting) for cls in classes for setting in cls.settings)
    for config in configs:
        check_overrides(config.values, classes, trained)
        key = config.suites, config.text
        if key not in scored:
            scored[key] = _scored(*key, data)
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
        check_suite_name(name)


@dataclass(frozen=True)
class _Scored:
    """What the runs of a config will be scored on. Tasks whose data is fetched later come last and are not in ``data``."""

    tasks: tuple[Task, ...]
    data: tuple[KnownTask, ...]
    missing: tuple[DataMissing, ...]


def _scored(suites: Sequence[str], text: str, data: DataFolder) -> _Scored:
    """Every task in every requested text form; a task with only one form is there once. Raises DataMissing if no set is here."""
    there: list[tuple[Task, KnownTask]] = []
    later: list[Task] = []
    missing: dict[str, DataMissing] = {}  # by message: two tasks may have one set
    for task in (task for name in expand_suites(suites) for task in suite(name).tasks):
        forms: dict[str | None, KnownTask] = {}
        for form in text.split(","):
            if None in forms:
                break
            try:
                known = survey(task, data, form)
                forms.setdefault(known.form, known)
            except DataMissing as error:
                missing[error.message] = error
            except NotFetchedYet:
                later.append(task)
        there += [(task, known) for known in forms.values()]
    if not there and not later:
        raise _all_missing(list(missing.values()))
    return _Scored(
        (*(task for task, _ in there), *later),
        tuple(known for _, known in there),
        tuple(missing.values()),
    )


def scored_sentences_of(suites: Sequence[str], text: str, data: DataFolder) -> list[str]:
    """The distinct sentences that scoring these suites encodes. Raises DataMissing if a set is not here."""
    scored = _scored(suites, text, data)
    if scored.missing:
        raise _all_missing(scored.missing)
    return list(dict.fromkeys(sentence for task in scored.data for sentence in task.task.sentences))


def _all_missing(missing: Sequence[DataMissing]) -> DataMissing:
    """One line for all of them, with the command that fetches them, if there is one."""
    first, others = missing[0], len(missing) - 1
    names = " ".join(dict.fromkeys(error.name for error in missing if error.name))
    return DataMissing(
        first.message + (f"; nor are {others} other sets" if others else ""),
        (first.hint or "").replace(f"data fetch {first.name}", f"data fetch {names}"),
    )


@dataclass(frozen=True)
class _Planner:
    """What all runs of a config share."""

    config: RunConfig
    scored: _Scored
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
            self.corpora[name] = opened(name, bool(self.config.corpus), self.data, self.scored.data)
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
    """A finished run, to be scored on the suites of ``config`` as well. Raises like :func:`make` if their data is not here."""
    check_names(config)
    scored = _scored(config.suites, config.text, data)
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


def with_fingerprint(run: PlannedRun) -> PlannedRun:
    """The run with the fingerprint of everything that determines its result."""
    return replace(run, fingerprint=fingerprint_of(determinants(run)))


def determinants(run: PlannedRun) -> dict[str, Any]:
    """Everything that determines a run's result; the fingerprint is made of it."""
    places = run.determines["places"]
    return {
        "method": run.method,
        "plugin": run.plugin.sha256,
        "variant": run.variant,
        "setting": run.setting,
        "seed": run.seed,
        "backbone": run.backbone.revision,
        "recipe": {key: value for key, value in run.recipe.items() if key not in places},
        "corpus": run.corpus.sha256 if run.corpus else None,
        **run.determines,
        "places": {key: name for key, name in places.items() if name is not None},
    }


def with_value(run: PlannedRun, key: str, value: Value) -> PlannedRun:
    """A new run: this one with another recipe value."""
    return with_fingerprint(
        replace(run, recipe=Recipe(run.recipe.values_with_source() | {key: value}), expect=None)
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


def learns(cls: type[Method], setting: str) -> bool:
    """Does a method take a corpus in a setting, to be trained or fitted?"""
    return setting != NOT_TRAINED or cls.fitted is not None


def check_dropout(cls: type[Method], setting: str, recipe: Recipe, backbone: Reference) -> None:
    """Raises BenchError if dropout should make two views of a sentence differ, but the backbone has none."""
    if own_dropout(backbone.config()) == 0:
        check_noise(cls, setting, recipe, backbone.name, dropout=0)


def vectors_named(value: object) -> DataSet | None:
    """The set of word vectors that a recipe value names, unless there is a file of that name."""
    known = data_sets().get(str(value))
    return known if known and known.kind == "vectors" and not Path(str(value)).is_file() else None


DEV_SETS: Mapping[str, tuple[str, str, Sequence[str]]] = {
    "captions dev": ("bench.score.suites.check", "check_dev_task", ()),
    STSB_DEV: ("bench.score.suites.sts", "dev_task", ("STS-B",)),
    "sts-dev-clean": ("bench.score.suites.sts", "clean_dev_task", STS_TASKS),
}
"""Name in recipes -> module and function that read it from a data folder, and its sets in the manifest."""


def dev_task(select_on: str, data: DataFolder) -> KnownTask | None:
    """The set that selects the checkpoint; None for "last". Raises DataMissing, DataDamaged."""
    if select_on == "last":
        return None
    if select_on not in DEV_SETS:
        raise UnknownName(
            "selection set", select_on, [*DEV_SETS, "last"], "of recipe key select_on"
        )
    module, function, sets = DEV_SETS[select_on]
    read_task = getattr(importlib.import_module(module), function)
    try:
        return survey_files(select_on, sets, data, "any", partial(read_task, data))
    except DataMissing as error:
        raise DataMissing(
            f"{error.message}; the checkpoint is selected on {select_on}",
            f"{error.hint}; or --set 'select_on=captions dev', which is in the package, or --set select_on=last",
            error.name,
        ) from None


COLUMNS_OF = {kind: columns for columns, kind in KINDS.items()}
NAMES = ("builtin", *MADE_HERE, *RECIPE_CORPORA, *HUB_CORPORA)


class AbsentCorpus(Corpus):
    """A corpus of a plan that is only fetched later: its columns and its number of rows, 0 if that is not known."""

    def __init__(self, name: str, columns: tuple[str, ...], rows: int) -> None:
        self.name, self.columns, self._facts = name, columns, ("unknown", rows)
        self.unread = ()

    def only(self, column: str | None) -> AbsentCorpus:
        texts = len({*self.columns} - {*NUMBERS}) if column == "all" else 1
        return AbsentCorpus(self.name, ("sentence",), len(self) * texts)


def opened(name: str, requested: bool, data: DataFolder, scored: Sequence[KnownTask]) -> Corpus:
    """The corpus of that name. ``requested``: --corpus names it, which may be a file, and not a recipe. Raises DataMissing if it is not
    on this machine."""
    name = HUB_CORPORA.get(name, name)
    if name == TARGET:
        return (
            AbsentCorpus(TARGET, ("sentence",), 0)
            if data.later is not None and data.later.pending
            else target_corpus(scored)
        )
    if name == STSB_TRAIN:
        return stsb_train(data)
    if name.startswith(PREFIX):
        return _of_hub(name, data)
    if name.startswith(BY_HASH):
        return open_corpus(found_by_hash(name, data))
    if name == "builtin" or (requested and Path(name).expanduser().exists()):
        return open_corpus(name)
    if name not in RECIPE_CORPORA and requested:
        raise DataMissing(f"no corpus at {name}", f"--corpus FILE, or {', '.join(NAMES)}")
    return _of_recipes(RECIPE_CORPORA.get(name, name), data)


def stsb_train(data: DataFolder) -> Corpus:
    """The pairs of STS-B's train split, with scores divided by 5 as on the hub."""
    try:
        pairs = read_sts(data, "STS-B", text="any", split="train")
    except NotFetchedYet:
        return AbsentCorpus(STSB_TRAIN, COLUMNS_OF["graded"], 5_749)
    table = io.StringIO()
    csv.writer(table, lineterminator="\n").writerows(
        [
            COLUMNS_OF["graded"],
            *zip(pairs.sentences1, pairs.sentences2, (pairs.gold / 5).tolist(), strict=True),
        ]
    )
    return written_corpus(STSB_TRAIN, ".csv", table.getvalue())


def _of_hub(name: str, data: DataFolder) -> Corpus:
    if data.later is None or is_here(name):
        return Corpus(
            *hub_corpus(name, offline=data.offline, say=getattr(data.fetcher, "say", silent)),
            default_cache(),
        )
    wanted = HubName.of(name)
    data.later.note(
        Pending(
            name=name,
            kind="corpus",
            where=f"hub data set {wanted.repo}",
            urls=(site("hub", wanted.repo, wanted.revision or "main", "").url,),
        )
    )
    columns = columns_to_be(name_columns(wanted.columns or ("text",)))
    return AbsentCorpus(name, columns, wanted.limit or 0)


def _of_recipes(file: str, data: DataFolder) -> Corpus:
    """A corpus that recipes name: from train/ of the data folder, or fetched."""
    known = next((one for one in data_sets().values() if one.files[0].name == file), None)
    try:
        path = data.corpus(file)
    except NotFetchedYet:
        assert known is not None
        return AbsentCorpus(file, COLUMNS_OF[known.unit], sum(known.items.values()))
    if path is not None:
        return open_corpus(path)
    root = f" --data {data.root}" if data.root else ""
    fetch = f"bench data fetch {known.name}{root}; " if known and sources_of(known) else ""
    raise DataMissing(f"the recipe's corpus {file} is not on this machine", f"{fetch}--corpus FILE")


def found_by_hash(requested: str, data: DataFolder) -> Path:
    """The file with the text of that sha256 (of its decompressed content), here or in train/ of the data folders.

    Raises DataMissing if no file has it. A file that is not a corpus is skipped; hashes are cached.
    """
    folders = [Path(), *(root / "train" for root in data.roots)]
    for path in (path for folder in folders for path in sorted(folder.glob("*"))):
        with suppress(BenchError):
            if BY_HASH + open_corpus(path).sha256 == requested.lower():
                return path
    raise DataMissing(
        f"no text with {requested} in {', '.join(str(folder.resolve()) for folder in folders)}",
        "put the file there under any name, or use another text: --corpus FILE",
    )


def target_corpus(scored: Sequence[KnownTask]) -> Corpus:
    """All distinct sentences of the tasks that are scored, in their order: what the papers' transductive rows were trained on.

    If a task also scores sentences that it makes (with words removed), only those of the data count (``original``).
    """
    sentences = dict.fromkeys(
        " ".join(sentence.split()) or " "
        for known in scored
        for sentence in getattr(known.task, "original", known.task.sentences)
    )
    return written_corpus(TARGET, ".txt", "".join(f"{s}\n" for s in sentences))


def written_corpus(name: str, suffix: str, text: str) -> Corpus:
    """A text as a corpus with that name: a file in the cache."""
    cache, key = default_cache(), hashlib.sha256(text.encode()).hexdigest()[:16]
    path = cache / name / f"{key}{suffix}"
    if not path.exists():
        write_whole(path, text.encode())
    return Corpus(path, name, cache)


# --- finished runs ---


@dataclass(frozen=True)
class TrainedRun:
    """A finished run, as :func:`find_run` returns it: described, but not loaded yet."""

    record: RunRecord
    folder: Path
    plugin: Plugin
    recipe: Recipe
    notes: tuple[str, ...] = ()  # for the user, such as that the method's code has changed since

    @property
    def checkpoint(self) -> Path:
        return self.folder / CHECKPOINT


def find_run(reference: str, runs: RunsFolder, plugins: Sequence[Path] = ()) -> TrainedRun:
    """The run that an id, the beginning of an id, or a path names.

    ``plugins`` are files given with --plugin. Raises UnknownName for an unknown run or method, RecordDamaged, and NotAModel
    if the run has no finished checkpoint.
    """
    file = runs.record_file(reference)
    record, folder = read_record(file), file.parent
    kind = record.provenance.backbone.model.get("kind")
    if kind in ("object", "function", "vectors", "server") and record.model_name:
        raise NotAModel(
            f"{record.run_id} scored a model of kind '{kind}': its predictions are stored, the model is not",
            "bench verify computes its scores again",
        )
    made_by, registry = record.provenance.plugin, discover(plugins)
    plugin = registry.of_run(record.run_id, record.method, made_by)
    trains = learns(plugin.cls, record.setting)
    problem = (
        f"it has no finished checkpoint (status {record.status})"
        if trains and record.training is None
        else checkpoint_problem(record, folder)
    )
    if problem is not None:
        hint = AGAIN
        if UNREADABLE in problem:  # it may be somebody else's run
            hint = f"ask its owner: chmod -R a+rX {folder}"
        elif trains and record.training is not None:
            hint = AGAIN_FRESH
        raise NotAModel(f"{record.run_id}: {problem}", hint)
    changed = code_of(made_by.sha256) not in (None, code_of(plugin.sha256))
    note = f"the code of {plugin.name} has changed since this run was made; its vectors may differ"
    return TrainedRun(
        record,
        folder,
        plugin,
        recipe_of(record, plugin, folder.absolute().parent),
        registry.warnings + ((note,) if changed else ()),
    )


def recipe_of(record: RunRecord, plugin: Plugin, runs: Path) -> Recipe:
    """The recipe of a finished run, in which files and folders stand where this machine has them, as the runs folder knows."""
    contents = (record.provenance.determines or {}).get("places") or {}
    values = {key: Value(one.value, one.source, one.note) for key, one in record.recipe.items()}
    for key in plugin.cls.places:
        known = values.get(key)
        if known is None or not isinstance(known.value, str) or find_path(known.value):
            continue  # records of an earlier bench hold absolute paths
        place = recall_place(runs, contents.get(key))
        if place is not None:
            values[key] = replace(values[key], value=str(place))
    return Recipe(values)


def backbone_of(record: RunRecord, plugin: Plugin, runs: Path | None = None) -> Reference:
    """The backbone that a run was made with; from the hub, the same commit. ``runs``: the folder of the run's folder, which knows where
    this machine has it. Raises NotAModel if a folder has changed since, or is not here."""
    known = record.provenance.backbone
    name, revision = known.name or record.backbone, str(known.revision)
    if plugin.cls.own_backbone is not None:
        return Reference(name=name, revision=revision, path=None)
    reference = resolve_recorded(name, known.revision, runs)
    if reference.path is not None and known.revision not in (None, reference.revision):
        raise NotAModel(
            f"{record.run_id} was made with {name} revision {revision[:12]}; here it is {reference.revision[:12]}",
            "restore that revision of the backbone",
        )
    return reference


def load_run(
    run: TrainedRun,
    *,
    device: str = "cpu",
    offline: bool = False,
    reporter: Reporter | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Method:
    """The run's method, in evaluation mode on ``device``, ready to ``encode``. Nothing is written to the run's folder.

    Raises NotAModel if the backbone is not available, BenchError if checkpoint, backbone and recipe do not fit together.
    """
    from bench.method.torch_method import build_method

    record, cls = run.record, run.plugin.cls
    context = Context(
        device=device,
        seed=record.seed or 0,
        folder=run.folder,
        offline=offline,
        reporter=reporter or SilentReporter(),
        should_stop=should_stop,
    )
    backbone = backbone_of(record, run.plugin, run.folder.absolute().parent)
    trains = learns(cls, record.setting)
    try:
        method = build_method(cls, backbone, run.recipe, context, learns=trains)
    except (KeyError, AttributeError) as error:  # a recipe of an older version of the method
        if not set(cls.defaults) - set(run.recipe):
            raise
        raise BenchError(
            f"{record.run_id}: its recipe lacks a value that {record.method} needs now: {error}",
            "its command makes a new run, with today's recipe",
        ) from error
    method.load(run.checkpoint)
    return method
