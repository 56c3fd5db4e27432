"""From wanted runs to planned ones, in the order in which they can be done; and their records, found again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from bench.base.errors import BenchError
from bench.run import plan
from bench.run.plan import learns
from bench.run.plugins import Registry
from bench.run.recipes import merge
from bench.run.reproduce.needs import Need, asked_corpus, gpu_hours, needs
from bench.run.reproduce.wanted import WantedRun, recipe

if TYPE_CHECKING:
    from bench.backbones import Reference
    from bench.data.sets import DataFolder
    from bench.method import Recipe
    from bench.run.plan import PlannedRun
    from bench.run.recipes import Entry
    from bench.runs import RunRecord, RunsFolder


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the user chose for all runs."""

    seeds: tuple[int, ...] = (42,)
    text: str = "tokenised"
    corpora: Mapping[str, str] = field(default_factory=dict)  # a recipe's corpus -> the user's file; "": of all
    precision: str = "fp32"
    as_authors: bool = False  # fp16 autocast where the authors had it: this device can, and the user asked for nothing else


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


def jobs(found: Sequence[WantedRun], registry: Registry, data: DataFolder, asked: Asked) -> list[Job]:
    """A job for every wanted run, in the table's order. One that stands on another's encoder knows that one's job as ``first``,
    which is itself in the list where the table has it."""
    listed = {run.identity: _job(run, registry, data, asked) for run in found}
    for run in found:
        if run.on is not None:
            below = run.on.identity
            listed[run.identity].first = listed.get(below) or _job(run.on, registry, data, asked)
    return [listed[run.identity] for run in found]


def in_order(listed: Sequence[Job]) -> list[Job]:
    """Every job that can be run, those that others stand on before them."""
    runnable = [job for job in listed if job.run.method]
    below = {job.first.run.identity: job.first for job in runnable if job.first}
    first = {job.run.identity: job for job in (*below.values(), *(job for job in runnable if job.first is None))}
    return [*first.values(), *(job for job in runnable if job.first)]


def _job(run: WantedRun, registry: Registry, data: DataFolder, asked: Asked) -> Job:
    if not run.method:
        return Job(run)
    merged, entry, note = recipe(run, registry)
    cls, own = registry[run.method].cls, entry.corpus if entry else None
    theirs = asked_corpus(own, asked.corpora)
    defaults = merge(cls, None, "", {}, trained=learns(cls, run.setting))
    return Job(
        run,
        recipe=merged,
        note=note,
        corpus=own,
        in_fp16=_in_fp16(entry),
        needs=tuple(needs(run, registry, data, asked.corpora, asked.text)),
        seeds=(None,) if run.setting in cls.deterministic else asked.seeds,
        set_here=tuple(key for key, value in merged.items() if value != defaults.get(key)),
        hours=gpu_hours(cls, merged, run.backbone, theirs or own) if learns(cls, run.setting) else None,
    )


def _in_fp16(entry: Entry | None) -> bool:
    stated = entry.facts.get("precision") if entry else None
    return stated is not None and stated.value == "fp16 autocast"


def precision_of(job: Job, asked: Asked) -> str:
    """That a job is trained in."""
    return "fp16" if asked.as_authors and job.in_fp16 else asked.precision


def plan_job(
    job: Job, registry: Registry, data: DataFolder, asked: Asked, ready: Callable[[Reference], Reference], store: RunsFolder
) -> list[PlannedRun]:
    """The planned runs of a job. Raises a BenchError as ``bench run`` does, and where the runs that it stands on are not done."""
    corpus, precision = asked_corpus(job.corpus, asked.corpora), precision_of(job, asked)
    if job.first is None:
        return plan.make(job.run.request(asked.seeds, text=asked.text, corpus=corpus, precision=precision), registry, data, ready)
    folders = {record.seed: folder for record, folder in records(job.first, store)}
    if not folders:
        raise BenchError(f"it stands on {job.first.run.name}, of which no run is finished")
    found = []
    for seed in asked.seeds:
        if (folder := folders.get(seed, folders.get(None))) is not None:
            request = job.run.request((seed,), text=asked.text, corpus=corpus, precision=precision, below=str(folder))
            found += plan.make(request, registry, data, ready)
    return found


def records(job: Job, store: RunsFolder) -> list[tuple[RunRecord, Path]]:
    """The finished runs of a job, with their folders."""
    found = []
    for run in job.planned:
        try:
            record = store.read(run.run_id)
        except BenchError:
            continue
        if record.status == "finished" and record.fingerprint == run.fingerprint:
            found.append((record, store.folder(run.run_id)))
    return found
