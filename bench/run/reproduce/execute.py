"""What wanted runs need and would take, the planned runs that they become, in the order in which they can be done, and their records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from bench.backbones import resolve
from bench.backbones.hub import describe_pending
from bench.base.errors import BenchError
from bench.data.corpora.hub import PREFIX, is_here
from bench.data.sets.sources import NotFetchedYet, pending_set, sources_of
from bench.data.sets.sts import STS_TASKS
from bench.run import plan
from bench.run.corpus_choice import (
    RECIPE_CORPORA,
    check_asked,
    corpus_file,
    is_recipe_corpus,
    pending_corpus,
)
from bench.run.estimates import DEFAULT_CARD, STEP_SECONDS, basis_of, training_seconds
from bench.run.plan import learns
from bench.run.plugins import Registry
from bench.run.recipes import merge
from bench.run.reproduce.wanted import WantedRun, recipe

if TYPE_CHECKING:
    from bench.backbones import Reference
    from bench.data.sets import DataFolder
    from bench.method import Method, Recipe
    from bench.run.plan import PlannedRun
    from bench.runs import RunRecord, RunsFolder


# --- What a run needs before it can start, and which of it is not on this machine. Judged by name and size, nothing is read ---


DEV_SETS = {"STS-B dev": ("STS-B",), "sts-dev-clean": STS_TASKS}
"""Selection set -> the data sets that it is made of."""


@dataclass(frozen=True)
class Need:
    kind: str  # "data", "corpus", "weights" or "file"
    name: str
    here: bool
    what: str = ""  # where it is, or what gets it
    fetched: bool = False  # not here, and fetched before the runs start


def needs(
    run: WantedRun, registry: Registry, data: DataFolder, corpora: Mapping[str, str], text: str
) -> list[Need]:
    """Everything that a run needs. ``corpora``: the user's files by the name of the recipe's corpus, "" for all.

    What ``bench run`` would fetch is noted in ``data.later``, where the folder has one; without one it counts as missing.
    """
    merged, entry, _ = recipe(run, registry)
    cls, own = registry[run.method].cls, entry.corpus if entry else None
    every = list(_data(run, merged, data, text))
    if learns(cls, run.setting):
        every.append(_corpus(asked_corpus(own, corpora), own, data))
    if not cls.own_backbone:
        every.append(_weights(run.backbone, data))
    for key in cls.places:
        if run.on is not None and run.on_as == key:
            continue  # a run that is done before
        value = merged.get(key)
        if value is None:
            every.append(Need("file", key, False, f"--set {key}=PATH"))
        elif (vectors := plan.vectors_named(value)) is not None:
            every.append(_data_set((vectors.name,), data, text))
        elif Path(str(value)).expanduser().is_file():
            every.append(Need("file", key, True, str(value)))
        else:
            every.append(_weights(str(value), data))
    return every


def asked_corpus(name: str | None, corpora: Mapping[str, str]) -> str | None:
    """The user's file for a recipe's corpus, where there is one."""
    return corpora.get(name or "") or corpora.get("")


def _data(run: WantedRun, merged: Recipe, data: DataFolder, text: str) -> Iterator[Need]:
    from bench.score.suites import suite

    alternatives = [
        task.data for one in run.suites for task in suite(one).tasks if getattr(task, "data", ())
    ]
    alternatives += [(name,) for name in DEV_SETS.get(str(merged.get("select_on")), ())]
    for names in dict.fromkeys(alternatives):
        yield _data_set(names, data, text)


def _data_set(names: Sequence[str], data: DataFolder, text: str) -> Need:
    """One of these sets is enough: the first that is here, else the first that can be fetched, which is then noted."""
    from bench.data.sets import data_set

    for wanted in map(data_set, names):
        state = data.look(wanted)
        form = (
            not wanted.forms
            or text in ("any", *state.forms)
            or "any" in state.forms
            or "tokenised" not in wanted.forms
        )
        if state.status == "unread" or (state.status == "found" and form):
            return Need("data", wanted.name, True, ", ".join(state.places))
    if data.later is not None and data.fetches:
        for wanted in map(data_set, names):
            if sources_of(wanted, text):
                data.later.note(pending_set(wanted, text))
                return Need("data", wanted.name, False, fetched=True)
    return Need("data", names[0], False, f"bench data list {names[0]}")


def _corpus(asked: str | None, own: str | None, data: DataFolder) -> Need:
    if asked and not is_recipe_corpus(asked):
        try:
            check_asked(asked)
        except BenchError as error:
            return Need("corpus", asked, False, error.message)
        if not asked.startswith(PREFIX) or is_here(asked):
            return Need("corpus", asked, True)
        if data.later is not None:
            data.later.note(pending_corpus(asked))
        return Need(
            "corpus", asked, False, "nothing may be fetched", fetched=data.later is not None
        )
    name = asked or own
    file = RECIPE_CORPORA.get(name, name) if name else "training text"
    try:
        return Need("corpus", file, True, corpus_file(name, data))
    except NotFetchedYet:
        return Need("corpus", file, False, fetched=True)
    except BenchError:
        return Need("corpus", file, False, f"--corpus {own or ''}{'=' if own else ''}FILE")


def _weights(name: str, data: DataFolder) -> Need:
    try:
        reference = resolve(name)
    except BenchError as error:
        return Need("weights", name, False, error.message)
    if reference.path is not None:
        return Need("weights", name, True, str(reference.path))
    if data.later is not None:
        data.later.note(describe_pending(reference.source or reference.name, reference.sizes()))
    return Need(
        "weights",
        name,
        False,
        "not here, and nothing may be fetched",
        fetched=data.later is not None,
    )


# --- What a run would take on a GPU: bench.run.estimates, with what is known of a corpus before it is here ---

CARD, PRECISION = DEFAULT_CARD, "bf16"
ASSUMED = f"arithmetic for one {CARD.name}: {basis_of(CARD, PRECISION)}; scoring is not in it"

ROWS = {
    "wiki1m": (1_000_000, 2),
    "nli": (275_601, 3),
    "nli-labelled": (942_069, 2),
    "stsbenchmark_train_10k_sents_random_sampled.txt": (10_000, 2),
    "target": (89_192, 2),
    "builtin": (10_000, 2),
}
"""Rows of the recipes' corpora, and sentences that a step encodes of each: two views of one, or three of a triplet."""


def gpu_hours(cls: type[Method], recipe: Recipe, backbone: str, corpus: str | None) -> float | None:
    """Hours of one training, dev scores included; None where the backbone's shape, or how long it trains, is not known."""
    rows, views = ROWS.get(corpus or "", (None, 2))
    try:
        sizes = resolve(backbone).sizes()
    except (BenchError, OSError, ValueError):
        return None
    seconds = training_seconds(
        cls, recipe, sizes, rows, views, CARD.reached(PRECISION), STEP_SECONDS
    )
    return None if seconds is None else seconds / 3600


# --- Seeds ---

FIRST_SEED = 42
"""That of one run, as everywhere; more runs have the seeds that follow it, so that those of fewer are done already."""


def seeds_of(
    run: WantedRun, cls: type[Method], asked: Sequence[int] | None
) -> tuple[int | None, ...]:
    """The seeds of a run: those that the user asked for, or as many as the printed numbers that it stands for are of.

    One where the print does not say, of a figure, and of a trial, which is not compared with the print. (None,) where nothing
    is random.
    """
    if run.setting in cls.deterministic:
        return (None,)
    if asked is not None:
        return tuple(asked)
    repeats = max((row.first.repeats for row in run.rows), default=1) if run.comparable else 1
    return tuple(range(FIRST_SEED, FIRST_SEED + repeats))


# --- From wanted runs to planned ones, in the order in which they can be done; and their records, found again ---


@dataclass(frozen=True, kw_only=True)
class ReproduceOptions:
    """What the user chose for all runs."""

    seeds: tuple[int, ...] | None = None  # None: as many as the print is of, from FIRST_SEED on
    text: str = "tokenised"
    corpora: Mapping[str, str] = field(
        default_factory=dict
    )  # a recipe's corpus -> the user's file; "": of all
    precision: str = "fp32"
    as_authors: bool = False  # fp16 autocast where the authors had it: this device can, and the user asked for nothing else
    allow_pickle: bool = False  # checkpoints whose weights are a pickle are taken


@dataclass
class Job:
    """A wanted run, what it needs and takes, and later how it went."""

    run: WantedRun
    recipe: Recipe | None = None
    note: str = ""  # where the recipe is not this backbone's own
    corpus: str | None = None  # as the recipe names it
    in_fp16: bool = False  # the authors trained in fp16 autocast
    needs: tuple[Need, ...] = ()
    seeds: tuple[int | None, ...] = ()  # (None,) where nothing is random: one run stands for all
    set_here: tuple[str, ...] = ()  # recipe keys whose value is not the default
    hours: float | None = None  # on a GPU, of one seed
    first: Job | None = None  # whose runs it stands on
    planned: tuple[PlannedRun, ...] = ()
    error: BenchError | None = None  # why it was left out

    @property
    def missing(self) -> tuple[Need, ...]:
        return tuple(need for need in self.needs if not need.here)


def jobs(
    runs: Sequence[WantedRun], registry: Registry, data: DataFolder, asked: ReproduceOptions
) -> list[Job]:
    """A job for every wanted run, in the table's order. One that stands on another's encoder knows that one's job as ``first``,
    which is itself in the list where the table has it."""
    listed = {run.identity: _job(run, registry, data, asked) for run in runs}
    others: dict[object, Job] = {}  # that no row of the table is
    for run in runs:
        if run.on is not None:
            below, job = run.on.identity, listed[run.identity]
            first = listed.get(below) or others.setdefault(
                below, _job(run.on, registry, data, asked)
            )
            job.first = first
            if len(first.seeds) < len(job.seeds) and first.seeds != (None,):
                first.seeds = job.seeds
    return [listed[run.identity] for run in runs]


def in_order(listed: Sequence[Job]) -> list[Job]:
    """Every job that can be run, those that others stand on before them."""
    runnable = [job for job in listed if job.run.method]
    below = {job.first.run.identity: job.first for job in runnable if job.first}
    first = {
        job.run.identity: job
        for job in (*below.values(), *(job for job in runnable if job.first is None))
    }
    return [*first.values(), *(job for job in runnable if job.first)]


def _job(run: WantedRun, registry: Registry, data: DataFolder, asked: ReproduceOptions) -> Job:
    if not run.method:
        return Job(run)
    merged, entry, note = recipe(run, registry)
    cls, own = registry[run.method].cls, entry.corpus if entry else None
    trained, stated = learns(cls, run.setting), entry.facts.get("precision") if entry else None
    defaults = merge(cls, None, "", {}, trained=trained)
    return Job(
        run,
        recipe=merged,
        note=note,
        corpus=own,
        in_fp16=stated is not None and stated.value == "fp16 autocast",
        needs=tuple(needs(run, registry, data, asked.corpora, asked.text)),
        seeds=seeds_of(run, cls, asked.seeds),
        set_here=tuple(key for key, value in merged.items() if value != defaults.get(key)),
        hours=gpu_hours(cls, merged, run.backbone, asked_corpus(own, asked.corpora) or own)
        if trained
        else None,
    )


def precision_of(job: Job, asked: ReproduceOptions) -> str:
    """That a job is trained in."""
    return "fp16" if asked.as_authors and job.in_fp16 else asked.precision


def plan_job(
    job: Job,
    registry: Registry,
    data: DataFolder,
    asked: ReproduceOptions,
    ready: Callable[[Reference], Reference],
    store: RunsFolder,
) -> list[PlannedRun]:
    """The planned runs of a job. Raises a BenchError as ``bench run`` does, and where the runs that it stands on are not done."""
    corpus, precision = asked_corpus(job.corpus, asked.corpora), precision_of(job, asked)
    seeds = tuple(seed for seed in job.seeds if seed is not None) or (FIRST_SEED,)
    if job.first is None:
        request = job.run.request(
            seeds,
            text=asked.text,
            corpus=corpus,
            precision=precision,
            allow_pickle=asked.allow_pickle,
        )
        return plan.make(request, registry, data, ready)
    folders = {record.seed: folder for record, folder in records(job.first, store)}
    if not folders:
        raise BenchError(f"it stands on {job.first.run.name}, of which no run is finished")
    planned = []
    for seed in seeds:
        if (folder := folders.get(seed, folders.get(None))) is not None:
            request = job.run.request(
                (seed,), text=asked.text, corpus=corpus, precision=precision, below=str(folder)
            )
            planned += plan.make(request, registry, data, ready)
    return planned


def records(job: Job, store: RunsFolder) -> list[tuple[RunRecord, Path]]:
    """The finished runs of a job, with their folders."""
    stored = [
        (store.get(run.run_id, run.fingerprint), store.folder(run.run_id)) for run in job.planned
    ]
    return [
        (record, folder)
        for record, folder in stored
        if record is not None and record.status == "finished"
    ]
