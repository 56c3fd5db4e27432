"""A search for recipe values: its space, its trials, and the recipe files that come out.

Spaces are ``[[space]]`` tables in recipe files: those of a method in ``recipes/<method>.toml`` next to it, the common ones in
the backbones' file. A method's own bounds of a key replace the common ones. ::

    [[space]]
    setting = "unsupervised"                     # which recipes: setting, backbone, variant; a name, a list, or left out for all
    backbone = ["roberta-base", "roberta-large"]
    [space.values]
    learning_rate = { values = [1e-5, 3e-5], source = "the paper's grid" }
    temperature = { low = 0.02, high = 0.2, scale = "log", source = "..." }
    queue_size = { factor = 4, source = "..." }  # from a quarter of the recipe's own value to four times that, on a log scale

The trials are an Optuna study per method, all in one journal file that any number of processes share.
``NAME/optuna.log`` is the state: values, dev scores of a pruned training, results. ``NAME/trials/METHOD/003/`` holds the training of
a trial, a run without scores, and the lock of the process that works on it. After a kill the same command continues the trial.
``NAME/search.json`` is the summary that boards and figures read.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from filelock import FileLock, Timeout

from bench.base.errors import BenchError, DataDamaged, Interrupted, RunFailed, UnknownName, one_line
from bench.base.files import write_or_fail, writing
from bench.base.paths import hidden_values, hide_paths, recorded_command, recorded_path
from bench.base.reading import refuse_links
from bench.base.text import list_names, plural
from bench.data.sets.sts import STS_TASKS
from bench.method.contract import STEPS, Recipe, Reporter, Value, budget_of, seed_for
from bench.records.record import dev_test_pairs
from bench.records.searches import (
    AS_ALL_TRIALS,
    FAILED,
    FINISHED,
    PRUNED,
    RECIPE,
    RUNNING,
    SUMMARY,
    Search,
    Searched,
    Study,
    Trial,
    best_trial,
    read_search,
)
from bench.records.sizes import VECTORS
from bench.records.store import CHECKPOINT, RunsFolder
from bench.run.config import RunConfig, toml_lines
from bench.run.corpora import corpus_arguments, name_with_content
from bench.run.execute import execute
from bench.run.plan import PlannedRun, with_fingerprint
from bench.run.plugins import Plugin
from bench.run.recipes import BACKBONES, WHOLE, fits, parse, read, wrong_kind

# --- the space ---

NOT_SEARCHED = (
    "select_on",
    "budget",
    "max_steps",
    "epochs",
    "eval_steps",
    "corpus_column",
    "patience",
)
"""Recipe keys that define the comparison: how long a trial trains, on what, and what selects it. All trials share them."""
EXAMPLE = (
    "--space temperature=0.03,0.05,0.1, --space dropout=0.05..0.2, "
    "or --space learning_rate=log:1e-5..1e-3"
)


class Dimension(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A line of ``[space.values]``: ``values`` to choose from, or a range from ``low`` to ``high``, both included.

    Ends that are ints mean whole numbers only. ``factor`` is how a file may state low and high: see :func:`dimension`.
    """

    source: Annotated[str, msgspec.Meta(pattern=r"\S")]
    values: tuple[Any, ...] = ()
    low: int | float = 0
    high: int | float = 0
    scale: Literal["uniform", "log"] = "uniform"
    factor: float | None = None

    def rounded(self, value: Any) -> Any:
        """A value from a range with three digits, because people read recipes; one of ``values`` unchanged."""
        if self.values or isinstance(self.low, int):
            return value if self.values else round(value)
        return min(max(float(f"{value:.3g}"), self.low), self.high)

    def grid(self) -> tuple[Any, ...]:
        """The values, or both ends and the middle of a range."""
        low, high = self.low, self.high
        middle = math.sqrt(low * high) if self.scale == "log" else (low + high) / 2
        return self.values or tuple(dict.fromkeys(map(self.rounded, (low, middle, high))))

    def distribution(self) -> Any:
        """Optuna's distribution of it."""
        from optuna.distributions import (
            CategoricalDistribution,
            FloatDistribution,
            IntDistribution,
        )

        if self.values:
            return CategoricalDistribution(self.values)
        kind: Any = IntDistribution if isinstance(self.low, int) else FloatDistribution
        return kind(self.low, self.high, log=self.scale == "log")

    def text(self) -> str:
        """ "1e-05, 3e-05", "0.02 to 0.2, log scale" """
        scale = ", log scale" if self.scale == "log" else ""
        return (
            ", ".join(map(short, self.values)) or f"{short(self.low)} to {short(self.high)}{scale}"
        )


def short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def space_of(
    plugin: Plugin,
    recipe: Recipe,
    *,
    setting: str,
    backbone: str,
    variant: str,
    options: Mapping[str, str] | None = None,
    fixed: Collection[str] = (),
) -> dict[str, Dimension]:
    """What is searched of a method: ``options`` (--space KEY=...), else the method's own file, else what is common to all.

    Keys of ``fixed`` have one value for all trials. Raises BenchError, with the file and the key, for wrong bounds.
    """
    lines = [
        (f"{folder / 'recipes' / name}.toml: space of {key}", key, bounds)
        for folder, name in ((BACKBONES, "backbones"), (plugin.folder, plugin.name))
        for table in read(folder, name).spaces
        if fits(table.setting, setting) and fits(table.variant, variant)
        if fits(table.backbone, backbone)
        for key, bounds in table.values.items()
        if name == plugin.name or recipe.get(key) is not None  # it may lack a common key
    ]
    space: dict[str, Dimension] = {}
    for label, key, bounds in lines:
        check_key(key, recipe, plugin, f"in {label}")
        space[key] = dimension(key, bounds, recipe, label)
    for key, text in (options or {}).items():
        if key in recipe:  # one of several methods may lack it
            check_key(key, recipe, plugin, f"of {plugin.name}")
            space[key] = parse_dimension(key, text, recipe)
    return {key: space[key] for key in sorted(space) if key not in fixed}


def check_key(key: str, recipe: Recipe, plugin: Plugin, where: str) -> None:
    """Raises BenchError for a key that the recipe lacks, or that a search may not change."""
    if key not in recipe:
        raise UnknownName("recipe key", key, recipe, where)
    if key in NOT_SEARCHED or key in plugin.cls.places:
        raise BenchError(
            f"recipe key '{key}' {where} cannot be searched: all trials share its value",
            "--set KEY=VALUE changes it for all trials",
        )


def parse_dimension(key: str, text: str, recipe: Recipe) -> Dimension:
    """``--space KEY=1,2,4``, ``KEY=0.1..0.4`` or ``KEY=log:1e-5..1e-3``. Raises BenchError for anything else."""
    scale, _, ends = text.rpartition(":")
    low, dots, high = ends.partition("..")
    label, bounds = f"--space {key}={text}", dict[str, Any](source="--space")
    try:
        if dots:
            bounds |= {"low": float(low), "high": float(high), "scale": scale or "uniform"}
        else:
            bounds["values"] = [parse(key, part.strip(), recipe[key]) for part in text.split(",")]
    except (ValueError, BenchError):
        raise BenchError(f"{label}: expected values like {recipe[key]}", EXAMPLE) from None
    return dimension(key, bounds, recipe, label)


def dimension(key: str, bounds: Any, recipe: Recipe, label: str) -> Dimension:
    """A recipe key with the ``bounds`` of a file's line: values; low, high and scale; or factor, which is from the recipe's value divided
    by it to the value times it. Raises BenchError, beginning with ``label``, if they are wrong."""
    current = recipe[key]
    whole = key in WHOLE or (isinstance(current, int) and not isinstance(current, bool))
    try:
        axis = msgspec.convert(bounds, Dimension)
        low, high, scale = axis.low, axis.high, axis.scale
        if axis.factor is not None:
            if not isinstance(current, int | float):
                raise ValueError(f"a factor needs a number in the recipe, found {current}")
            low, high, scale = current / axis.factor, current * axis.factor, "log"
            low, high = (max(1, round(low)), round(high)) if whole else (low, high)
        if not axis.values:
            if not (0 if scale == "log" else -math.inf) < low < high < math.inf:
                raise ValueError(
                    "expected values, or low below high (above 0 on a log scale); "
                    f"found {low:g} to {high:g}"
                )
            kind = int if whole and low == int(low) and high == int(high) else float
            low, high = kind(low), kind(high)
        for value in axis.values or (low, high):
            if reason := wrong_kind(key, value, current):
                raise ValueError(reason)
    except (ValueError, TypeError) as error:  # msgspec's errors are ValueErrors
        raise BenchError(
            f"{label}: {error}",
            EXAMPLE
            if label.startswith("--space")
            else '{ values = [1e-5, 3e-5], source = "..." }, or low, high and scale, or factor',
        ) from None
    return msgspec.structs.replace(axis, low=low, high=high, scale=scale, factor=None)


def with_values(recipe: Recipe, values: Mapping[str, Any], source: str) -> Recipe:
    """The recipe with these values, which come from ``source``."""
    return Recipe(
        recipe.values_with_source() | {key: Value(value, source) for key, value in values.items()}
    )


# --- the search ---

JOURNAL = "optuna.log"
RESULT = "result"  # Optuna's user attribute with the Trial that ended
STARTUP = 6  # the recipe and five random trials, before TPE and the median pruner use results


@dataclass(frozen=True)
class Job:
    """One method of a search: a run for each seed, without test scores, and what its trials differ in."""

    runs: tuple[PlannedRun, ...]
    space: Mapping[str, Dimension]  # by recipe key

    def trial_runs(self, values: Mapping[str, Any], source: str) -> list[PlannedRun]:
        """The runs of a trial. Raises RunFailed if the method refuses the values."""
        first = self.runs[0]
        recipe = with_values(first.recipe, values, source)
        try:
            first.plugin.cls.check(recipe, first.backbone.path)
        except BenchError as error:
            raise RunFailed(error.message) from None
        return [with_fingerprint(replace(run, recipe=recipe)) for run in self.runs]


def jobs_of(
    planned: Sequence[PlannedRun], spaces: Mapping[str, str], fixed: Collection[str]
) -> dict[str, Job]:
    """The methods of a search by name. ``spaces``: --space; ``fixed``: recipe keys that have one value for all trials. Raises
    BenchError for a method that cannot be searched, and for a --space that no method has."""
    keys = {key for run in planned for key in run.recipe}
    for key in spaces.keys() - keys:
        raise UnknownName("recipe key", key, keys, "of these methods")
    for key in spaces.keys() & fixed:
        raise BenchError(
            f"--space {key}: it has one value for all trials", f"leave --set {key}=... out"
        )
    jobs = {}
    for method in sorted({run.method for run in planned}):
        runs = tuple(
            replace(run, tasks=(), task_data=(), missing=(), expect=None)
            for run in planned
            if run.method == method
        )
        run = runs[0]
        if run.dev is None or run.seed is None:
            raise BenchError(
                f"{method} cannot be searched: {run.recipe.get('select_on', 'none')} gives no dev score here",
                "--data DIR, --select 'captions dev' (in the package), or leave the method out",
            )
        space = space_of(
            run.plugin,
            run.recipe,
            setting=run.setting,
            backbone=run.backbone.model,
            variant=run.variant,
            options=spaces,
            fixed=fixed,
        )
        if not space:
            raise BenchError(
                f"the space of {method} is empty: no recipe file says what to search",
                "--space KEY=A,B,C, or --space KEY=LOW..HIGH",
            )
        jobs[method] = Job(runs, space)
    return jobs


def plan_notes(jobs: Mapping[str, Job]) -> list[str]:
    """The plan's notes on each method, and whether a budget of steps is more training for one method than for another."""
    recipes = [job.runs[0].recipe for job in jobs.values()]
    notes = [f"{method}: {note}" for method, job in jobs.items() for note in job.runs[0].notes]
    budget = budget_of(recipes[0])
    if budget and budget.unit == STEPS and len({recipe.batch_size for recipe in recipes}) > 1:
        notes.append(
            "the methods differ in batch_size, so equal steps are not equal training; "
            "--set batch_size=N or a budget of sentences makes it equal"
        )
    return notes


def overlap_line(run: PlannedRun, suites: Sequence[str]) -> str:
    """How many pairs of the dev set are test pairs of the suite sts. From hashes: no test data are read."""
    assert run.dev is not None
    name, pairs = run.dev.name, f"{run.dev.name}: {run.dev.n:,} pairs"
    if name == "captions dev":
        return f"{pairs}; it shares no caption and no image with the suite check"
    if "sts" not in suites:
        return pairs
    if (counts := dev_test_pairs(name, run.dev.sha256, STS_TASKS)) is None:
        return f"{pairs}; its overlap with the suite sts is not known"
    shared, n = counts
    return f"{name}: {shared:,} of its {n:,} pairs ({100 * shared / n:.1f} %) are test pairs of the suite sts"


def definition(
    jobs: Mapping[str, Job],
    *,
    name: str | None,
    trials: int,
    sampler: str,
    pruner: str,
    suites: Sequence[str],
    fixed: Sequence[str],
    command: str = "",
) -> Study:
    """What is searched. ``command``: what a record says made it; "": this process's command line. The default name is a hash of everything but the number of trials, so that more trials continue a search.

    Raises BenchError if a grid has fewer points than there are trials: every method gets the same number.
    """
    for method, job in jobs.items():
        points = math.prod(len(axis.grid()) for axis in job.space.values())
        if sampler == "grid" and points < trials:
            raise BenchError(
                f"--sampler grid: the grid of {method} has {points} points, fewer than {trials} trials",
                f"--trials {points}",
            )
    methods = {}
    for method, job in jobs.items():
        run = job.runs[0]
        methods[method] = Searched(
            setting=run.setting,
            variant=run.variant,
            plugin=run.plugin.sha256,
            backbone=recorded_path(run.backbone.name),
            revision=run.backbone.revision,
            corpus="" if run.corpus is None else name_with_content(run.corpus),
            dev=run.dev.sha256 if run.dev else "",
            space=msgspec.to_builtins(job.space),
            recipe={
                key: value for key, value in _named_recipe(run).items() if key not in job.space
            },
        )
    study = Study(
        name=name or "",
        trials=trials,
        seeds=tuple(run.seed or 0 for run in job.runs),
        sampler=sampler,
        pruner=pruner,
        budget=run.recipe.get("budget"),
        select_on=str(run.recipe["select_on"]),
        dev_pairs=run.dev.n if run.dev else 0,
        overlap=overlap_line(run, suites),
        precision=run.precision,
        suites=tuple(suites),
        fixed=tuple(fixed),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        command=command or recorded_command(["bench", *sys.argv[1:]]),
        methods=methods,
    )
    digest = hashlib.sha256(json.dumps(_identity(study), sort_keys=True).encode()).hexdigest()
    return msgspec.structs.replace(study, name=name or f"search-{digest[:8]}")


def _named_recipe(run: PlannedRun) -> dict[str, Any]:
    """The recipe's values, of which files, folders and backbones have their names."""
    values = dict(run.recipe)
    for key in run.determines["places"]:
        if isinstance(values[key], str):
            values[key] = recorded_path(values[key])
    return values


def _identity(study: Study) -> dict[str, Any]:
    """What the commands of one search have in common, as JSON. A search of an earlier bench may hold absolute paths."""
    content = hidden_values(json.loads(msgspec.json.encode(study)))
    content |= {
        f"{method}.{key}": fact
        for method, facts in content.pop("methods").items()
        for key, fact in facts.items()
    }
    return {
        key: content[key]
        for key in content.keys() - {"name", "trials", "created", "command", "overlap", "suites"}
    }


# --- its trials ---


class Pruned(Interrupted):
    """The pruner ended a training."""


class JournalLock(FileLock):
    """The lock of Optuna's journal. The kernel releases it when its process dies; for Optuna's own, others would wait 30 s."""

    def acquire(self, *args: Any, **options: Any) -> Any:
        """Wait for the lock, and cut off a last line that a kill or a full disk left unfinished."""
        acquired = super().acquire(*args, **options)
        journal = Path(self.lock_file).with_name(JOURNAL)
        content = journal.read_bytes()
        if content and not content.endswith(b"\n"):
            os.truncate(journal, content.rfind(b"\n") + 1)
        return acquired


ANEW = f"put back a copy of the file, or begin the search anew with --name NEW; finished trials stand in {SUMMARY}"


def check_journal(journal: Path) -> None:
    """Raise DataDamaged if a whole line of the journal is no entry of Optuna's, naming the line; an unfinished last line is cut off later."""
    if not journal.is_file():
        return
    for number, line in enumerate(journal.read_bytes().split(b"\n")[:-1], start=1):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            entry = None
        if not (isinstance(entry, dict) and isinstance(entry.get("op_code"), int)):
            raise DataDamaged(f"{journal}: line {number} is damaged", ANEW)


class Worker:
    """One process that works on a search."""

    def __init__(
        self, folder: Path, study: Study, jobs: Mapping[str, Job], options: RunConfig
    ) -> None:
        """Begins the search, or continues the one in the folder. Raises BenchError if the folder holds another one."""
        import optuna
        from optuna.storages.journal import JournalFileBackend

        pruners: dict[str, optuna.pruners.BasePruner] = {
            "none": optuna.pruners.NopPruner(),
            "median": optuna.pruners.MedianPruner(n_startup_trials=STARTUP),
            "halving": optuna.pruners.SuccessiveHalvingPruner(),
        }
        self.folder, self.jobs, self.options = folder, jobs, options
        self.seed = seed_for(0, "search", *study.seeds) % 2**32
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        refuse_links(folder)
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        self.lock = FileLock(folder / ".lock")
        with self.lock:
            if before := read_search(folder / SUMMARY):
                old, new = _identity(before.study), _identity(study)
                if others := sorted(key for key in old | new if old.get(key) != new.get(key)):
                    raise BenchError(
                        f"{folder} holds another search, with another {list_names(others)}",
                        f"--name NEW begins another one; {SUMMARY} in the folder has its values",
                    )
                study = msgspec.structs.replace(
                    before.study, trials=max(before.study.trials, study.trials)
                )
            self.study = study
            lock: Any = JournalLock(folder / f"{JOURNAL}.lock")
            check_journal(folder / JOURNAL)
            try:
                storage = optuna.storages.JournalStorage(
                    JournalFileBackend(str(folder / JOURNAL), lock)
                )
                self.studies = {
                    method: optuna.create_study(
                        storage=storage,
                        study_name=method,
                        direction="maximize",
                        load_if_exists=True,
                        pruner=pruners[study.pruner],
                    )
                    for method in jobs
                }
            except (LookupError, TypeError, ValueError, AssertionError) as error:
                raise DataDamaged(
                    f"{folder / JOURNAL}: its entries do not fit together ({one_line(error)})", ANEW
                ) from None
            self.write()

    def write(self) -> Search:
        """Write the summary: all trials in their present state. The caller holds the lock, under which all files beside it are written."""
        for leftover in self.folder.glob(".*.tmp"):  # of a process that was killed
            leftover.unlink(missing_ok=True)
        search = Search(
            study=self.study,
            trials={
                method: tuple(self._trial(method, one) for one in study.get_trials(deepcopy=False))
                for method, study in self.studies.items()
            },
        )
        write_or_fail(self.folder / SUMMARY, search.encode())
        return search

    @contextmanager
    def claimed(self, method: str, number: int) -> Iterator[Trial | None]:
        """A trial, which belongs to this process while open; None if it has ended or another process works on it."""
        folder, study = self.trial_folder(method, number), self.studies[method]
        lock = FileLock(folder / ".lock")
        with self.lock:
            folder.mkdir(parents=True, exist_ok=True)
            with suppress(Timeout):
                lock.acquire(timeout=0)
            if lock.is_locked and number == len(study.get_trials(deepcopy=False)):
                self._draw(method, number)
                self.write()
            trial = self._trial(method, study.get_trials(deepcopy=False)[number])
        if trial.state != RUNNING:
            self._remove_weights(trial)  # a process may have been killed before it did this
        try:
            yield trial if lock.is_locked and trial.state == RUNNING else None
        finally:
            lock.release()

    def run(self, trial: Trial, reporter: Reporter) -> Trial:
        """Train a trial with every seed and store its result. Raises Interrupted, after which the same command continues the trial, and
        BenchError for what was wrong before anything was trained."""
        began = time.perf_counter()
        store = RunsFolder(self.trial_folder(trial.method, trial.number))
        dev, runs = list[float](), list[PlannedRun]()
        steps, spent, state, error = 0, 0.0, FINISHED, None
        try:
            runs = self.jobs[trial.method].trial_runs(
                trial.values, f"{self.study.name}, trial {trial.number}"
            )
            watch: Reporter = (
                PruningReporter(reporter, self._open(trial))
                if self.study.pruner != "none" and trial.number != RECIPE
                else reporter
            )
            for run in runs:
                record, _ = execute(run, store, self.options, watch)
                watch = reporter  # the pruner sees the first seed
                done = record.training
                if done is None or done.dev_score is None or not math.isfinite(done.dev_score):
                    raise RunFailed("it has no dev score")
                dev, steps = [*dev, done.dev_score], steps + done.steps
                spent += (record.cost.train_seconds or 0.0) + (record.cost.dev_seconds or 0.0)
        except Pruned:
            seen = self.studies[trial.method].trials[trial.number].intermediate_values
            dev, steps, state = [max(seen.values())], max(seen), PRUNED
        except RunFailed as failed:
            state, error = FAILED, failed.message
        ended = msgspec.structs.replace(
            trial,
            state=state,
            dev=tuple(dev),
            steps=steps,
            seconds=round(max(spent, time.perf_counter() - began), 2),
            error=None if error is None else hide_paths(error),
            runs=tuple(run.run_id for run in runs),
        )
        self._end(ended)
        self._remove_weights(ended)
        return ended

    def trial_folder(self, method: str, number: int) -> Path:
        return self.folder / "trials" / method / f"{number:03d}"

    def _draw(self, method: str, number: int) -> None:
        """A new trial. Its values are drawn in a copy of the study and written in one line: a kill leaves all of them or none.

        The seed is new for each trial, so that a search that was killed draws the values that it would have drawn. Random values follow
        from seed, trial and key: two methods with a dimension in common get the same values of it.
        """
        import optuna

        study = self.studies[method]
        space = {} if number == RECIPE else self.jobs[method].space
        distributions = {key: axis.distribution() for key, axis in space.items()}
        copy = optuna.create_study(direction="maximize")
        copy.add_trials(study.get_trials())
        if self.study.sampler == "grid" and space:
            copy.sampler = optuna.samplers.GridSampler(
                {key: axis.grid() for key, axis in space.items()}, seed=self.seed
            )
        elif self.study.sampler == "tpe":
            seed = seed_for(self.seed, "search", method, number) % 2**32
            copy.sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=STARTUP)
        else:
            values = {}
            for key, axis in distributions.items():
                seed = seed_for(self.seed, "search", number, key) % 2**32
                one = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed))
                values[key] = one.ask({key: axis}).params[key]
            copy.enqueue_trial(values)
        copy.ask(distributions)
        study.add_trial(copy.trials[number])

    def _trial(self, method: str, state: Any) -> Trial:
        if state.state.is_finished():
            return msgspec.convert(state.user_attrs[RESULT], Trial)
        space = self.jobs[method].space
        return Trial(
            method=method,
            number=state.number,
            values={key: space[key].rounded(value) for key, value in state.params.items()},
        )

    def _open(self, trial: Trial) -> Any:
        """Optuna's object of a trial."""
        import optuna

        study = self.studies[trial.method]
        return optuna.Trial(study, study.get_trials(deepcopy=False)[trial.number]._trial_id)

    def _end(self, trial: Trial) -> None:
        """The end of a trial; its facts come first, so that every trial that ended has them."""
        from optuna.trial import TrialState as State

        states = {FINISHED: State.COMPLETE, FAILED: State.FAIL, PRUNED: State.PRUNED}
        with self.lock:
            self._open(trial).set_user_attr(RESULT, msgspec.to_builtins(trial))
            self.studies[trial.method].tell(trial.number, trial.score, state=states[trial.state])
            self.write()

    def _remove_weights(self, trial: Trial) -> None:
        """Remove what an ended trial trained: it is not used again, and it is as large as the model."""
        for run_id, name in product(trial.runs, (CHECKPOINT, VECTORS, "state")):
            shutil.rmtree(
                self.trial_folder(trial.method, trial.number) / run_id / name, ignore_errors=True
            )


@dataclass
class PruningReporter:
    """Passes everything on to a reporter, and asks the pruner at each new dev score whether to go on."""

    reporter: Reporter
    trial: Any  # Optuna's
    scored: bool = False  # since the last report to the pruner

    def phase(self, name: str, total: int | None = None) -> None:
        self.scored = self.scored or name == "dev"
        self.reporter.phase(name, total)

    def advance(self, done: int, **fields: Any) -> None:
        self.reporter.advance(done, **fields)
        if self.scored and "dev_score" in fields:
            self.scored = False
            self.trial.report(fields["dev_score"], done)
            if self.trial.should_prune():
                raise Pruned(f"pruned at step {done}: dev score {fields['dev_score']:.2f}")

    def note(self, text: str) -> None:
        self.reporter.note(text)


# --- its results as recipe files: one per method, each value with its source; ``bench run`` takes them ---


def search_facts(search: Search, method: str) -> dict[str, Any]:
    """What a record stores about the search that its values come from. ``seconds`` includes the unchanged recipe."""
    study, trials = search.study, search.trials[method]
    best = best_trial(trials)
    states = Counter(trial.state for trial in trials if trial.number != RECIPE)
    return {
        "name": study.name,
        "trials": study.trials,
        **{state: states[state] for state in (FINISHED, FAILED, PRUNED)},
        "sampler": study.sampler,
        "pruner": study.pruner,
        "seeds": list(study.seeds),
        "budget": study.budget,
        "select_on": study.select_on,
        "dev_pairs": study.dev_pairs,
        "overlap": study.overlap,
        "dev": None if best is None else best.score,
        "trial": None if best is None else best.number,
        "recipe_dev": next((trial.score for trial in trials if trial.number == RECIPE), None),
        "seconds": round(sum(trial.seconds for trial in trials), 1),
        "steps": sum(trial.steps for trial in trials),
        "plugin": study.methods[method].plugin,
    }


def write_recipe(folder: Path, search: Search, method: str, planned: PlannedRun) -> Path | None:
    """``METHOD.toml`` in the search's folder; None if no trial of the method has a score. ``planned``: a run of the search, which knows the
    folders that the search has only by name; this file is for this machine."""
    study, best = search.study, best_trial(search.trials[method])
    if best is None:
        return None
    of, name = study.methods[method], study.name.removeprefix("search-")
    source = f"search {name}, {plural(study.trials, 'trial')}, {study.select_on} {best.score:.2f}"
    sources = {key: source + AS_ALL_TRIALS for key in study.fixed if key in of.recipe}
    sources |= dict.fromkeys(best.values, source)
    found = {**of.recipe, **best.values}
    found |= {key: planned.recipe[key] for key in planned.determines["places"] if key in found}
    corpus: str | tuple[str, ...] | None = None
    if planned.corpus is not None:
        corpus = corpus_arguments(planned.corpus)
        if len(corpus) == 1:
            corpus = corpus[0]
    lines = [
        f"# The values that {study.name} found for {method}, for bench run --recipe.",
        *toml_lines(
            {
                "method": method,
                "setting": of.setting,
                "variant": of.variant,
                "backbone": planned.backbone.name,
                "corpus": corpus,
            }
        ),
        "",
        "[values]",
        *toml_lines(
            {key: {"value": found[key], "source": source} for key, source in sources.items()}
        ),
        *(["# no trial was better than the unchanged recipe"] if best.number == RECIPE else []),
        "",
        "[search]",
        *toml_lines(search_facts(search, method)),
    ]
    path = folder / f"{method}.toml"
    write_or_fail(path, ("\n".join(lines) + "\n").encode())
    return path
