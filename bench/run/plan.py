"""A config -> the runs that it means, each with its whole recipe, the data it needs and a fingerprint.

Nothing is trained or written here: ``bench run --dry-run`` prints this and stops. What is wrong with a config alone is an error before
any method is imported (:func:`check_config`); :func:`make` checks everything.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.backbones import KNOWN, Reference, check_stored_prefix, resolve
from bench.backbones.families import own_dropout, shape
from bench.base.contract import check_files, plugin_code
from bench.base.errors import BenchError, DataMissing, UnknownName
from bench.data.sets.manifest import TARGET, data_sets
from bench.data.sets.sources import NotFetchedYet
from bench.method import Method, Recipe, Value
from bench.method.budget import SENTENCES, STEPS, budget_of
from bench.run.config import RunConfig, series, split_variant
from bench.run.corpus_choice import AbsentCorpus, CorpusShelf, check_asked
from bench.run.plugins import Plugin, Registry, check_name
from bench.run.printed import expected
from bench.run.recipe_file import Entry, LoneRecipe, read, read_all_lone
from bench.run.recipes import (
    check_entries,
    check_overrides,
    check_values,
    merge,
    settings_with_recipe,
    whole_entry,
)
from bench.runs.record import fingerprint_of

if TYPE_CHECKING:
    from bench.data.corpora import Corpus
    from bench.data.sets import DataFolder, DataSet
    from bench.runs.record import RunRecord
    from bench.score.suites import Task
    from bench.score.suites.known import KnownTask

NOT_TRAINED = "none"


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
    expect: Mapping[str, Any] | None = (
        None  # the number that the paper prints for exactly this recipe: suite, task, value, source
    )
    remark: str = ""  # what the recipe file notes on the recipe of this backbone
    given: LoneRecipe | None = None  # that its values are from: --recipe
    determines: Mapping[str, Any] = field(
        default_factory=dict
    )  # what the fingerprint is of, beyond what the record says
    missing: tuple[DataMissing, ...] = ()  # tasks that were asked for and whose data is not here
    provisional: bool = False  # something that its fingerprint is of is yet to be fetched: a plan to look at, not to execute

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
    """Every run that the configs mean, once, in order. Raises a BenchError for the first thing that cannot be.

    ``ready`` may fetch a backbone whose revision is not known yet. All evaluation data is checked here: a run that could not be
    scored is refused before it is trained. A set that is not there is named by every run (``missing``), and the others go on.
    With data that is only fetched later (``data.later``) what is to be fetched is noted there, and such a plan is provisional.
    """
    scored: dict[tuple[tuple[str, ...], str], _TaskData] = {}
    unique: dict[tuple[str, ...], PlannedRun] = {}
    for config in configs:
        check_names(config)
    classes = [registry[name].cls for config in configs for name, _ in config.named]
    trained = any(learns(cls, setting) for cls in classes for setting in cls.settings)
    for config in configs:
        check_overrides(config.values, classes, trained)
        plugins = [registry[name] for name, _ in config.named]
        key = config.suites, config.text
        if key not in scored:
            scored[key] = _task_data(config.suites, data, config.text.split(","))
        shelf = CorpusShelf(config.corpus, data, scored[key].data)
        planner = _Planner(config, scored[key], data, shelf, ready, read_all_lone(config.recipes))
        for plugin, (_, variant) in zip(plugins, config.named, strict=True):
            for backbone in planner.backbones(plugin):
                for overrides in series(config.values):
                    with plugin_code(f"the method {plugin.name}"):
                        runs = planner.runs(plugin, variant, backbone, overrides)
                    for run in runs:
                        name = run.backbone.name if run.provisional else ""
                        unique[run.run_id, run.fingerprint, name] = run
    return list(unique.values())


def check_names(config: RunConfig) -> None:
    """Raises BenchError where nothing is named, for a variant that is named twice, and for a text form or a suite that is none."""
    from bench.score.suites import check_suite, expand_suites

    for names, kind, hint in (
        (config.methods, "method", "bench methods lists them"),
        (config.backbones, "backbone", "bench doctor --backbone NAME says what one is"),
        (config.suites, "suite", "bench suites lists them"),
        (config.seeds, "seed", "--seeds 42, --seeds 1-5, or --seeds 1,3,7-9"),
    ):
        if not names:
            raise BenchError(f"no {kind} was named", hint)
    if config.names and (len(config.names), len(set(config.names))) != (len(config.backbones),) * 2:
        raise BenchError(
            f"names {', '.join(config.names)}: {len(set(config.names))} names for {len(config.backbones)} backbones",
            "one name for each backbone, in their order: --backbone a=A,b=B",
        )
    for name in config.names:
        if name in KNOWN and name not in config.backbones:
            raise BenchError(
                f"--backbone {name}=...: another backbone is called that", "another name"
            )
    for name in config.methods:
        method, variant = split_variant(name)
        if variant and config.variant:
            raise BenchError(
                f"{name} and the variant {config.variant}: both name a variant",
                f"{name}, or {method}+{config.variant}",
            )
        if name.endswith("+"):
            raise BenchError(
                f"--method {name}: no variant stands after the +",
                f"--method {method}; bench methods {method} lists its variants",
            )
    for text in config.text.split(","):
        if not re.fullmatch("tokenised|raw|any|other-[0-9a-f]{8}", text):
            raise UnknownName("text form", text, ["tokenised", "raw", "any", "other-<hash>"])
    for name in expand_suites(config.suites):
        check_suite(name)


def check_methods(names: Sequence[str], files: Sequence[Path]) -> None:
    """Raises UnknownName for a method that is not installed, as far as that is known before methods are loaded, and BenchError
    where a plugin file is missing. ``names``: METHOD or METHOD+VARIANT."""
    check_files(files)
    for name, _ in map(split_variant, names):
        if not files:
            check_name(name)


def check_config(config: RunConfig) -> None:
    """Raises BenchError for a method, suite, corpus file or backbone that does not exist, as far as that is known before methods are
    loaded, which takes seconds; :func:`make` checks everything."""
    check_names(config)
    check_methods(config.methods, [Path(file) for file in config.plugins])
    for name in config.backbones:
        if not Path(name).expanduser().is_dir():  # hashing a folder's weights may take long
            resolve(name)
    if config.corpus is not None:
        check_asked(config.corpus)


@dataclass(frozen=True)
class _TaskData:
    """What the runs of a request will be scored on. ``data`` lacks the last of the tasks where their data is fetched later."""

    tasks: tuple[Task, ...]
    data: tuple[KnownTask, ...]
    missing: tuple[DataMissing, ...]


def _task_data(suites: Sequence[str], data: DataFolder, texts: Sequence[str]) -> _TaskData:
    """Every task in every text form that was asked for; what has only one form is there once. Raises DataMissing for nothing."""
    from bench.score.suites import expand_suites, suite
    from bench.score.suites.known import survey

    there: list[tuple[Task, KnownTask]] = []
    later: list[Task] = []
    missing: dict[str, DataMissing] = {}  # by message: two tasks may have one set
    for task in (task for name in expand_suites(suites) for task in suite(name).tasks):
        forms: dict[str | None, KnownTask] = {}
        for text in texts:
            if None in forms:
                break
            try:
                known_task = survey(task, data, text)
            except DataMissing as error:
                missing[error.message] = error
            except NotFetchedYet:
                later.append(task)
            else:
                forms.setdefault(known_task.form, known_task)
        there += [(task, form) for form in forms.values()]
    if not there and not later:
        raise _all_missing(list(missing.values()))
    return _TaskData(
        (*(task for task, _ in there), *later),
        tuple(one for _, one in there),
        tuple(missing.values()),
    )


def scored_sentences_of(suites: Sequence[str], text: str, data: DataFolder) -> list[str]:
    """The distinct sentences that scoring these suites asks for. Raises DataMissing where a set is not here."""
    scored = _task_data(suites, data, text.split(","))
    if scored.missing:
        raise _all_missing(scored.missing)
    return list(dict.fromkeys(sentence for task in scored.data for sentence in task.task.sentences))


def _all_missing(missing: Sequence[DataMissing]) -> DataMissing:
    """One line for all of them, and the one command that gets them, where there is one."""
    first, others = missing[0], len(missing) - 1
    names = list(dict.fromkeys(error.name for error in missing if error.name))
    hint = first.hint
    if first.name and hint:
        hint = hint.replace(f"bench data fetch {first.name}", f"bench data fetch {' '.join(names)}")
    return DataMissing(first.message + (f"; nor are {others} other sets" if others else ""), hint)


@dataclass(frozen=True)
class _Planner:
    """What all runs of a config share."""

    config: RunConfig
    scored: _TaskData
    data: DataFolder
    corpora: CorpusShelf
    ready: Ready
    recipes: Mapping[str, LoneRecipe]  # by method: --recipe

    def backbones(self, plugin: Plugin) -> list[Reference]:
        """Those that were asked for, or the method's own."""
        request, own = self.config, plugin.cls.own_backbone
        if own:  # of a model that was given itself, its own name is asked for
            return [
                Reference(
                    own,
                    "unknown",
                    None,
                    title=request.names[0] if request.names and request.backbones == (own,) else "",
                )
            ]
        references = [
            self.ready(resolve(name, allow_pickle=request.allow_pickle))
            for name in request.backbones
        ]
        if request.names:
            references = [
                replace(reference, title=title)
                for reference, title in zip(references, request.names, strict=True)
            ]
        return references

    def runs(
        self, plugin: Plugin, variant: str, backbone: Reference, overrides: Mapping[str, str]
    ) -> list[PlannedRun]:
        """One run a seed, with one value for each key of ``overrides``. Raises BenchError for what cannot be."""
        config, cls, recipes = self.config, plugin.cls, read(plugin.folder, plugin.name).recipes
        setting, notes = _setting(plugin, variant, backbone, config.setting, recipes)
        trained = learns(cls, setting)
        check_entries(cls, recipes)
        entry, line = whole_entry(
            cls,
            recipes,
            setting,
            backbone.model,
            variant,
            trained=trained,
            shape=shape(backbone.config()),
        )
        notes += [line] if line else []
        implied = {}
        if setting != NOT_TRAINED and config.suites == ("check",):
            implied = {"select_on": Value("captions dev", "only the suite check is scored")}
        given = self.recipes.get(plugin.name)
        if given is not None:
            check_values(cls, given.values, f"--recipe {given.file}")
            implied |= given.values
            notes += given.check(config.seeds, plugin.sha256)
        recipe = merge(cls, entry, variant, overrides, trained=trained, plan=implied)
        vectors_here = True
        try:
            recipe = with_vectors(recipe, cls.places, self.data)
            cls.check(recipe, backbone.path)
        except NotFetchedYet:
            vectors_here = False
        check_stored_prefix(backbone, cls.reads)
        check_dropout(cls, setting, recipe, backbone)
        if cls.own_backbone:
            backbone = replace(
                backbone, revision=cls.own_revision(recipe) if vectors_here else "unknown"
            )
            if config.backbones != (cls.own_backbone,):
                notes.append(f"{plugin.name} brings its own vectors and ignores --backbone")
        corpus = self.corpora.fitting(plugin, setting, recipe, entry) if trained else None
        if corpus is not None and corpus.name == TARGET:
            notes.append("transductive: trained on the text of the sets that are scored")
        dev, later = (
            None,
            isinstance(corpus, AbsentCorpus) or (backbone.hub and backbone.path is None),
        )
        if trained and setting != NOT_TRAINED:
            try:
                dev = dev_task(str(recipe["select_on"]), self.data)
            except NotFetchedYet:
                later = True
        seeds: tuple[int | None, ...] = (None,) if setting in cls.deterministic else config.seeds
        if len(config.seeds) > len(seeds):
            notes.append(f"{plugin.name} has nothing random: one run stands for all seeds")
        precision = "fp32" if config.precision == "auto" else config.precision  # not settled: a CPU
        by_ranks = _determined_by_ranks(cls, recipe, config.ranks) if trained else ""
        notes += [by_ranks] if by_ranks else []
        notes += ended_early(recipe)
        places: dict[str, str | None] = dict.fromkeys(
            (key for key in cls.places if key in recipe), "unknown"
        )
        if vectors_here:
            places = {
                key: None if recipe[key] is None else content_name(str(recipe[key]), self.ready)
                for key in places
            }
        determines = {
            "places": places,
            "precision": precision if trained else "fp32",
            "dev": dev.sha256 if dev else None,
            **({"ranks": config.ranks} if by_ranks else {}),
        }
        own = (
            entry
            if entry is not None and given is None and entry.backbone == backbone.model
            else None
        )
        return [
            with_fingerprint(
                PlannedRun(
                    plugin=plugin,
                    variant=variant,
                    setting=setting,
                    backbone=backbone,
                    seed=seed,
                    recipe=recipe,
                    corpus=corpus,
                    tasks=self.scored.tasks,
                    task_data=self.scored.data,
                    dev=dev,
                    text=config.text,
                    precision=precision,
                    notes=tuple(notes),
                    expect=expected(cls, own, recipe, corpus),
                    remark=own.note if own else "",
                    given=given,
                    determines=determines,
                    missing=self.scored.missing,
                    provisional=later or "unknown" in places.values(),
                )
            )
            for seed in seeds
        ]


def of_run(
    record: RunRecord,
    plugin: Plugin,
    recipe: Recipe,
    backbone: Reference,
    config: RunConfig,
    data: DataFolder,
) -> PlannedRun:
    """A finished run, to be scored on the suites of ``config`` too. Raises as :func:`make` where their data is not here."""
    check_names(config)
    scored = _task_data(config.suites, data, config.text.split(","))
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
        determines=record.provenance.determines or {},
    )


def _determined_by_ranks(cls: type[Method], recipe: Recipe, ranks: int) -> str:
    """Why the number of processes makes another run of it, as a line; "" where it does not."""
    if ranks > 1 and recipe.get("faithful", False):  # their number divides the gradient
        return f"faithful: {ranks} processes, which divide the gradient, make another run than one"
    if ranks > 1 and cls.fitted != "pass" and not cls.is_split():
        return f"{cls.name} defines forward(batch) as a whole: {ranks} processes make another run than one"
    return ""


def ended_early(recipe: Recipe) -> list[str]:
    """A line where a limit of steps that nobody typed ends the training before its budget of steps or sentences does."""
    budget, limit = budget_of(recipe), recipe.values_with_source().get("max_steps")
    if budget is None or limit is None or limit.value is None or limit.source == "--set":
        return []
    rows = {STEPS: 1, SENTENCES: recipe.batch_size}.get(
        budget.unit
    )  # of the unit in a step; nobody knows of tokens and time
    if rows is None or limit.value * rows >= budget.amount:
        return []
    needed = math.ceil(budget.amount / rows)
    return [
        f"the recipe ends after {limit.value:,} steps, before the budget of {budget} does; to use it up: --set max_steps={needed}"
    ]


def with_fingerprint(run: PlannedRun) -> PlannedRun:
    """The run under the name that everything gives it that determines its result."""
    return replace(run, fingerprint=fingerprint_of(determinants(run)))


def determinants(run: PlannedRun) -> dict[str, Any]:
    """Everything that determines a run's result: what its fingerprint is of."""
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
    """The run with another recipe value, which makes it another run."""
    return with_fingerprint(
        replace(run, recipe=Recipe(run.recipe.values_with_source() | {key: value}), expect=None)
    )


def learns(cls: type[Method], setting: str) -> bool:
    """Whether a method takes a corpus in a setting: it is trained, or fitted."""
    return setting != NOT_TRAINED or cls.fitted is not None


def check_dropout(cls: type[Method], setting: str, recipe: Recipe, backbone: Reference) -> None:
    """Raises BenchError where dropout is to make two views of a sentence differ, and the backbone has none of its own."""
    if (
        setting not in cls.by_dropout
        or recipe["dropout"] is not None
        or own_dropout(backbone.config()) != 0
    ):
        return
    raise BenchError(
        f"the dropout of {backbone.name} is 0, and {cls.name} needs some: it makes the two views of a sentence differ",
        "--set dropout=0.1 (0 is taken only where it is said: --set dropout=0)",
    )


def vectors_named(value: object) -> DataSet | None:
    """The set of word vectors that a recipe value names, where it is no file of that name."""
    known = data_sets().get(str(value))
    return (
        known
        if known is not None and known.kind == "vectors" and not Path(str(value)).is_file()
        else None
    )


def with_vectors(recipe: Recipe, keys: Sequence[str], data: DataFolder) -> Recipe:
    """The recipe with the file of a set of word vectors where it has the set's name. Raises DataMissing, NotFetchedYet."""
    values = dict(recipe.values_with_source())
    for key in keys:
        if (wanted := vectors_named(recipe.get(key))) is not None:
            values[key] = replace(values[key], value=str(data.vectors(wanted)))
    return Recipe(values)


def content_name(
    place: str, ready: Callable[[Reference], Reference] = lambda reference: reference
) -> str:
    """What names the content behind a recipe value that is a file, a folder or a backbone; ``ready`` may fetch the latter."""
    path = Path(place).expanduser()
    return (
        hashlib.sha256(path.read_bytes()).hexdigest()
        if path.is_file()
        else ready(resolve(place)).revision
    )


def _setting(
    plugin: Plugin, variant: str, backbone: Reference, asked: str | None, recipes: Sequence[Entry]
) -> tuple[str, list[str]]:
    """The setting that was asked for, or the one that the paper prints on this backbone, or that has a recipe; and a line."""
    offered = plugin.cls.settings
    if asked is not None:
        if asked not in offered:
            raise UnknownName("setting", asked, offered, f"of {plugin.name}")
        return asked, []
    if len(offered) == 1:
        return offered[0], []
    with_recipe = [
        s for s in settings_with_recipe(recipes, backbone.model, variant) if s in offered
    ]
    chosen, *others = with_recipe or [s for s in offered if s != NOT_TRAINED]
    here = [e for e in recipes if e.backbone == backbone.model and e.variant in ("", variant)]
    why = ""
    if any(e.setting == chosen for e in here):
        why = f": {plugin.name} has its recipe for {backbone.model} there"
        why += (
            f"; --setting {others[0]} has one, too"
            if any(e.setting in others for e in here)
            else ""
        )
    return chosen, [f"setting {chosen} (no --setting was given){why}"]


def dev_task(select_on: str, data: DataFolder) -> KnownTask | None:
    """The set on which checkpoints are selected; None for "last". Raises DataMissing, DataDamaged."""
    from bench.score.suites.known import survey_files

    if select_on == "last":
        return None
    if select_on == "captions dev":
        from bench.score.suites.check import check_dev_task

        return survey_files(select_on, (), data, "any", check_dev_task)
    if select_on == "STS-B dev":
        from bench.score.suites.sts import dev_task as sts_dev_task

        return survey_files(select_on, ("STS-B",), data, "any", lambda: sts_dev_task(data))
    if select_on == "sts-dev-clean":
        from bench.data.sets.sts import STS_TASKS
        from bench.score.suites.sts import clean_dev_task

        return survey_files(select_on, STS_TASKS, data, "any", lambda: clean_dev_task(data))
    names = ["STS-B dev", "sts-dev-clean", "captions dev", "last"]
    raise UnknownName("selection set", select_on, names, "of recipe key select_on")
