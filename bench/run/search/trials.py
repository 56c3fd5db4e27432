"""A search: what its options define, its trials, and the recipe files that come out.

The trials are an Optuna study per method, all in one journal file, worked on by as many processes as share the folder.
``NAME/optuna.log`` is the state: values, dev scores of a pruned training, results. ``NAME/trials/METHOD/003/`` holds the training of
a trial, a run without scores, and the lock of the process that works on it. A killed process leaves a trial that the same command
continues. ``NAME/search.json`` is the summary that boards and figures read.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shlex
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import optuna
from filelock import FileLock, Timeout
from msgspec import structs
from optuna import distributions, samplers
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState

from bench.base.errors import BenchError, Interrupted, RunFailed, UnknownName
from bench.base.files import write_or_fail
from bench.base.text import list_names, plural
from bench.data.sets import BY_HASH, MADE_HERE, RECIPE_CORPORA
from bench.data.sets.sts import STS_TASKS
from bench.method import seed_for
from bench.method.contract import STEPS, budget_of
from bench.run.config import toml_lines
from bench.run.execute import VECTORS, execute
from bench.run.plan import PlannedRun, with_fingerprint
from bench.run.search.space import Dimension, Space, space_of, with_values
from bench.runs import RunsFolder
from bench.runs.record import dev_test_pairs
from bench.runs.searches import (
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
from bench.runs.store import CHECKPOINT

if TYPE_CHECKING:
    from bench.method import Reporter
    from bench.run.config import RunConfig

JOURNAL = "optuna.log"
RESULT = "result"  # Optuna's user attribute with the Trial that ended
STATES = {FINISHED: TrialState.COMPLETE, FAILED: TrialState.FAIL, PRUNED: TrialState.PRUNED}
STARTUP = 6  # the recipe and five random trials, before TPE and the median pruner use what is known
PRUNERS: Mapping[str, Callable[[], optuna.pruners.BasePruner]] = {
    "none": optuna.pruners.NopPruner,
    "median": lambda: optuna.pruners.MedianPruner(n_startup_trials=STARTUP),
    "halving": optuna.pruners.SuccessiveHalvingPruner,
}
UNEQUAL_STEPS = (
    "the methods differ in batch_size, so that equal steps are not equal training; "
    "--set batch_size=N or a budget of sentences makes it equal"
)


@dataclass(frozen=True)
class Job:
    """One method of a search: a run for each seed, without test scores, and what its trials differ in."""

    runs: tuple[PlannedRun, ...]
    space: Space

    def trial_runs(self, values: Mapping[str, Any], source: str) -> list[PlannedRun]:
        """The runs of a trial. Raises RunFailed where the method refuses the values."""
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
    BenchError for a method that cannot be searched, and for a --space of no method."""
    keys = {key for run in planned for key in run.recipe}
    for key in spaces.keys() - keys:
        raise UnknownName("recipe key", key, keys, "of these methods")
    for key in spaces.keys() & fixed:
        raise BenchError(f"--space {key}: it has one value for all trials", "no --set of that key")
    unscored = [replace(r, tasks=(), task_data=(), missing=(), expect=None) for r in planned]
    return {
        method: _job(tuple(run for run in unscored if run.method == method), spaces, fixed)
        for method in sorted({run.method for run in unscored})
    }


def _job(runs: tuple[PlannedRun, ...], spaces: Mapping[str, str], fixed: Collection[str]) -> Job:
    run = runs[0]
    if run.dev is None or run.seed is None:
        dev = run.recipe.get("select_on", "none")
        raise BenchError(
            f"{run.method} cannot be searched: {dev} gives no dev score here",
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
            f"the space of {run.method} is empty: no recipe file says what is searched",
            "--space KEY=A,B,C, or --space KEY=LOW..HIGH",
        )
    return Job(runs, space)


def plan_notes(jobs: Mapping[str, Job]) -> list[str]:
    """The plan's notes on each method, and whether a budget of steps is more training for one method than for another."""
    recipes = [job.runs[0].recipe for job in jobs.values()]
    notes = [f"{method}: {note}" for method, job in jobs.items() for note in job.runs[0].notes]
    budget = budget_of(recipes[0])
    if budget and budget.unit == STEPS and len({recipe.batch_size for recipe in recipes}) > 1:
        notes.append(UNEQUAL_STEPS)
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
    share = f"{counts[0]:,} of its {counts[1]:,} pairs ({100 * counts[0] / counts[1]:.1f} %)"
    return f"{name}: {share} are test pairs of the suite sts"


def definition(
    jobs: Mapping[str, Job],
    *,
    name: str | None,
    trials: int,
    sampler: str,
    pruner: str,
    suites: Sequence[str],
    fixed: Sequence[str],
) -> Study:
    """What is searched; without a name, named by a hash of everything but the number of trials, so that more trials continue a search.

    Raises BenchError where a grid has fewer points than there are trials: each method gets as many as every other.
    """
    for method, job in jobs.items():
        points = math.prod(len(axis.grid()) for axis in job.space.values())
        if sampler == "grid" and points < trials:
            text = f"--sampler grid: the grid of {method} has {points} points"
            raise BenchError(f"{text}, fewer than {trials} trials", f"--trials {points}")
    runs = next(iter(jobs.values())).runs
    first = runs[0]
    study = Study(
        name=name or "",
        trials=trials,
        seeds=tuple(run.seed or 0 for run in runs),
        sampler=sampler,
        pruner=pruner,
        budget=first.recipe.get("budget"),
        select_on=str(first.recipe["select_on"]),
        dev_pairs=first.dev.n if first.dev else 0,
        overlap=overlap_line(first, suites),
        precision=first.precision,
        suites=tuple(suites),
        fixed=tuple(fixed),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        command=shlex.join(["bench", *sys.argv[1:]]),
        methods={method: _searched(job) for method, job in jobs.items()},
    )
    digest = hashlib.sha256(json.dumps(_identity(study), sort_keys=True).encode()).hexdigest()
    return structs.replace(study, name=name or f"search-{digest[:8]}")


def _searched(job: Job) -> Searched:
    run = job.runs[0]
    return Searched(
        setting=run.setting,
        variant=run.variant,
        plugin=run.plugin.sha256,
        backbone=run.backbone.name,
        revision=run.backbone.revision,
        corpus="" if run.corpus is None else f"{run.corpus.name}@{run.corpus.sha256}",
        dev=run.dev.sha256 if run.dev else "",
        space=msgspec.to_builtins(job.space),
        recipe={key: value for key, value in run.recipe.items() if key not in job.space},
    )


def _identity(study: Study) -> dict[str, Any]:
    """What the commands of one search have in common, as JSON has it."""
    differing = ("name", "trials", "created", "command", "overlap", "suites")
    content = json.loads(msgspec.json.encode(study))
    for method, facts in content.pop("methods").items():
        content |= {f"{method}.{key}": fact for key, fact in facts.items()}
    return {key: value for key, value in content.items() if key not in differing}


def continued(before: Study, now: Study, folder: Path) -> Study:
    """The search in the folder, with more trials where there are more now. Raises BenchError where it is another search."""
    old, new = _identity(before), _identity(now)
    if differing := sorted(key for key in old | new if old.get(key) != new.get(key)):
        raise BenchError(
            f"{folder} holds another search: what differs is {list_names(differing)}",
            f"--name NEW begins another one; {SUMMARY} in the folder has its values",
        )
    return structs.replace(before, trials=max(before.trials, now.trials))


# --- The trials ---


class Pruned(Interrupted):
    """The pruner ended a training."""


class JournalLock(FileLock):
    """The lock of Optuna's journal. The kernel releases it when its process dies, unlike Optuna's own, which others wait 30 s for."""

    def acquire(self, *args: Any, **options: Any) -> Any:
        """Wait for the lock, and cut off a last line that a kill or a full disk left unfinished."""
        acquired = super().acquire(*args, **options)
        journal = Path(self.lock_file).with_name(JOURNAL)
        content = journal.read_bytes()
        if content and not content.endswith(b"\n"):
            os.truncate(journal, content.rfind(b"\n") + 1)
        return acquired


class SeededByKey(samplers.RandomSampler):
    """Random values that follow from seed, trial and key: two methods with one dimension in common get the same values of it."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.seed = seed

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param: str,
        distribution: distributions.BaseDistribution,
    ) -> Any:
        seed = seed_for(self.seed, "search", trial.number, param) % 2**32
        return samplers.RandomSampler(seed).sample_independent(study, trial, param, distribution)


def distribution(axis: Dimension) -> distributions.BaseDistribution:
    if axis.values:
        return distributions.CategoricalDistribution(axis.values)
    log = axis.scale == "log"
    if isinstance(axis.low, int):
        return distributions.IntDistribution(axis.low, int(axis.high), log=log)
    return distributions.FloatDistribution(axis.low, axis.high, log=log)


class Worker:
    """One process that works on a search."""

    def __init__(
        self, folder: Path, study: Study, jobs: Mapping[str, Job], options: RunConfig
    ) -> None:
        """Begins the search, or continues the one in the folder. Raises BenchError where the folder holds another one."""
        self.folder, self.jobs, self.options = folder, jobs, options
        self.seed = seed_for(0, "search", *study.seeds) % 2**32
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        folder.mkdir(parents=True, exist_ok=True)
        self.lock = FileLock(folder / ".lock")
        with self.lock:
            before = read_search(folder / SUMMARY)
            self.study = continued(before.study, study, folder) if before else study
            lock: Any = JournalLock(folder / f"{JOURNAL}.lock")
            storage = JournalStorage(JournalFileBackend(str(folder / JOURNAL), lock))
            self.studies = {
                method: optuna.create_study(
                    storage=storage,
                    study_name=method,
                    direction="maximize",
                    load_if_exists=True,
                    pruner=PRUNERS[study.pruner](),
                )
                for method in jobs
            }
            self.write()

    def write(self) -> Search:
        """Write all trials as they stand into the summary."""
        trials = {
            method: tuple(self._trial(method, state) for state in study.get_trials(deepcopy=False))
            for method, study in self.studies.items()
        }
        search = Search(study=self.study, trials=trials)
        write_or_fail(self.folder / SUMMARY, search.encode())
        return search

    def order(self) -> list[tuple[str, int]]:
        """The first trial of every method comes before the second of any: a search that is stopped has treated all alike."""
        return [(method, n) for n in range(self.study.trials + 1) for method in self.jobs]

    @contextmanager
    def claimed(self, method: str, number: int) -> Iterator[Trial | None]:
        """A trial, which is this process's while open; None where it has ended or another process works on it."""
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
        """Train a trial with every seed; its result is on the disk when this returns. Raises Interrupted, after which the same command
        continues the trial, and BenchError for what was wrong before anything was trained."""
        began = time.perf_counter()
        store = RunsFolder(self.trial_folder(trial.method, trial.number))
        dev, runs = list[float](), list[PlannedRun]()
        steps, spent, state, error = 0, 0.0, FINISHED, None
        try:
            source = f"{self.study.name}, trial {trial.number}"
            runs = self.jobs[trial.method].trial_runs(trial.values, source)
            watch: Reporter = reporter
            if self.study.pruner != "none" and trial.number != RECIPE:
                watch = PruningReporter(reporter, self._open(trial.method, trial.number))
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
        ended = structs.replace(
            trial,
            state=state,
            dev=tuple(dev),
            steps=steps,
            seconds=round(max(spent, time.perf_counter() - began), 2),
            error=error,
            runs=tuple(run.run_id for run in runs),
        )
        self._end(ended)
        self._remove_weights(ended)
        return ended

    def trial_folder(self, method: str, number: int) -> Path:
        return self.folder / "trials" / method / f"{number:03d}"

    def _open(self, method: str, number: int) -> optuna.Trial:
        study = self.studies[method]
        return optuna.Trial(study, study.get_trials(deepcopy=False)[number]._trial_id)

    def _draw(self, method: str, number: int) -> None:
        """A new trial. Its values are drawn in a copy of the study and written in one line: a kill leaves all of them or none."""
        study, space = self.studies[method], self.jobs[method].space
        copy = optuna.create_study(direction="maximize", sampler=self._sampler(method, number))
        copy.add_trials(study.get_trials())
        copy.ask({key: distribution(axis) for key, axis in space.items() if number != RECIPE})
        study.add_trial(copy.trials[number])

    def _sampler(self, method: str, number: int) -> samplers.BaseSampler:
        """Seeded for each trial anew: a search that was killed draws what it would have drawn."""
        if self.study.sampler == "grid" and number != RECIPE:
            grid = {key: axis.grid() for key, axis in self.jobs[method].space.items()}
            return samplers.GridSampler(grid, seed=self.seed)
        if self.study.sampler == "tpe":
            seed = seed_for(self.seed, "search", method, number) % 2**32
            return samplers.TPESampler(seed=seed, n_startup_trials=STARTUP)
        return SeededByKey(self.seed)

    def _trial(self, method: str, state: FrozenTrial) -> Trial:
        if state.state.is_finished():
            return msgspec.convert(state.user_attrs[RESULT], Trial)
        space = self.jobs[method].space
        values = {key: space[key].rounded(value) for key, value in state.params.items()}
        return Trial(method=method, number=state.number, values=values)

    def _end(self, trial: Trial) -> None:
        """The end of a trial; its facts come first, so that every trial that ended has them."""
        with self.lock:
            facts = msgspec.to_builtins(trial)
            self._open(trial.method, trial.number).set_user_attr(RESULT, facts)
            self.studies[trial.method].tell(trial.number, trial.score, state=STATES[trial.state])
            self.write()

    def _remove_weights(self, trial: Trial) -> None:
        """Remove what an ended trial trained: nobody uses it, and it is as large as the model."""
        folder = self.trial_folder(trial.method, trial.number)
        for run_id, name in product(trial.runs, (CHECKPOINT, VECTORS, "state")):
            shutil.rmtree(folder / run_id / name, ignore_errors=True)


class PruningReporter:
    """Passes everything on to a reporter, and asks the pruner at each new dev score whether the trial goes on."""

    def __init__(self, reporter: Reporter, trial: optuna.Trial) -> None:
        self.reporter, self.trial = reporter, trial
        self.scored = False  # since the last report to the pruner

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


# --- The results as recipe files: one per method, each value with its source; ``bench run --recipe`` takes them ---


def search_facts(search: Search, method: str) -> dict[str, Any]:
    """What a record keeps of the search that its values come from. ``seconds`` counts the recipe as it is, too."""
    study, trials = search.study, search.trials[method]
    best = best_trial(trials)
    recipe = next((trial for trial in trials if trial.number == RECIPE), None)
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
        "recipe_dev": None if recipe is None else recipe.score,
        "seconds": round(sum(trial.seconds for trial in trials), 1),
        "steps": sum(trial.steps for trial in trials),
        "plugin": study.methods[method].plugin,
    }


def write_recipe(folder: Path, search: Search, method: str) -> Path | None:
    """``METHOD.toml`` in the search's folder; None where no trial of the method has a score."""
    study, best = search.study, best_trial(search.trials[method])
    if best is None:
        return None
    of, name = study.methods[method], study.name.removeprefix("search-")
    source = f"search {name}, {plural(study.trials, 'trial')}, {study.select_on} {best.score:.2f}"
    shared = {key: of.recipe[key] for key in study.fixed if key in of.recipe}
    values = {
        **{
            key: {"value": value, "source": source + AS_ALL_TRIALS} for key, value in shared.items()
        },
        **{key: {"value": value, "source": source} for key, value in best.values.items()},
    }
    head = {
        "method": method,
        "setting": of.setting,
        "variant": of.variant,
        "backbone": of.backbone,
        "corpus": _corpus(of.corpus) if of.corpus else None,
    }
    lines = [
        f"# The values that {study.name} found for {method}, for bench run --recipe.",
        *toml_lines(head),
        "",
        "[values]",
        *toml_lines(values),
        *(["# no trial was better than the recipe as it is"] if best.number == RECIPE else []),
        "",
        "[search]",
        *toml_lines(search_facts(search, method)),
    ]
    path = folder / f"{method}.toml"
    write_or_fail(path, ("\n".join(lines) + "\n").encode())
    return path


def _corpus(label: str) -> str:
    """The corpus as ``--corpus`` takes it anywhere: by its name if recipes know it, else by its hash."""
    name, _, sha256 = label.rpartition("@")
    return name if name in ("builtin", *MADE_HERE, *RECIPE_CORPORA) else f"{BY_HASH}{sha256}"
