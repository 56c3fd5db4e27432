"""The runs of a table in the order in which they can be done: seeds, planned runs, records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from bench.backbones import Reference
from bench.base.errors import BenchError
from bench.data.sets import DataFolder
from bench.method import Method
from bench.run import plan
from bench.run.plan import PlannedRun
from bench.run.plugins import Registry
from bench.run.reproduce.table import TableRun, recipe_of
from bench.runs import Run, RunsFolder

FIRST_SEED = 42
"""That of one run, as everywhere; more runs have the seeds that follow it, so that those of fewer are done already."""


@dataclass(frozen=True, kw_only=True)
class ReproduceOptions:
    """What the user chose for all runs."""

    seeds: tuple[int, ...] | None = None  # None: as many as the print is of, from FIRST_SEED on
    text: str = "tokenised"
    corpora: Mapping[str, str] = field(default_factory=dict)  # the recipe's name -> the user's file
    precision: str = "fp32"
    as_authors: bool = False  # fp16 autocast where the authors had it
    allow_pickle: bool = False


@dataclass(eq=False)
class Job:
    """One run of every seed, and later how it went."""

    run: TableRun
    corpus: str | None = None  # as the recipe names it
    in_fp16: bool = False  # the authors trained in fp16 autocast
    seeds: tuple[int | None, ...] = ()  # (None,) where nothing is random: one run stands for all
    first: Job | None = None  # whose runs it stands on
    planned: tuple[PlannedRun, ...] = ()
    error: BenchError | None = None  # why it was left out


def jobs(
    runs: Sequence[TableRun], registry: Registry, options: ReproduceOptions
) -> tuple[Job, ...]:
    """A job for every run, in the table's order. One that stands on another's encoder has that one's job as ``first``, which is
    itself in the list where the table has it."""
    by_identity: dict[object, Job] = {}
    for run in (*runs, *(run.on for run in runs if run.on)):
        by_identity.setdefault(run.identity, _job(run, registry, options))
    for run in runs:
        if run.on is not None:
            job, first = by_identity[run.identity], by_identity[run.on.identity]
            job.first = first
            if len(first.seeds) < len(job.seeds) and first.seeds != (None,):
                first.seeds = job.seeds
    return tuple(by_identity[run.identity] for run in runs)


def in_order(listed: Sequence[Job]) -> list[Job]:
    """Every job that can be run, those that others stand on before them."""
    runnable = [job for job in listed if job.run.method]
    below = [job.first for job in runnable if job.first]
    return list(dict.fromkeys([*below, *(job for job in runnable if not job.first), *runnable]))


def _job(run: TableRun, registry: Registry, options: ReproduceOptions) -> Job:
    if not run.method:
        return Job(run)
    entry = recipe_of(run, registry)[1]
    stated = entry.facts.get("precision") if entry else None
    return Job(
        run,
        corpus=entry.corpus if entry else None,
        in_fp16=stated is not None and stated.value == "fp16 autocast",
        seeds=_seeds(run, registry[run.method].cls, options.seeds),
    )


def _seeds(run: TableRun, cls: type[Method], given: Sequence[int] | None) -> tuple[int | None, ...]:
    """The user's, or as many as the printed numbers are of; one where the print does not say, of a figure, and of a trial, which is
    not compared with the print. (None,) where nothing is random."""
    if run.setting in cls.deterministic:
        return (None,)
    if given is not None:
        return tuple(given)
    meant = [row.first.repeats for row in run.rows if not run.differs_from(row.first)]
    return tuple(range(FIRST_SEED, FIRST_SEED + max(meant, default=1)))


def plan_job(
    job: Job,
    registry: Registry,
    data: DataFolder,
    options: ReproduceOptions,
    ready: Callable[[Reference], Reference],
    store: RunsFolder,
) -> list[PlannedRun]:
    """The planned runs of a job. Raises a BenchError as ``bench run`` does, and where the runs that it stands on are not done."""
    below: dict[int | None, str] = {None: ""}
    if job.first is not None:
        below = {record.seed: str(folder) for record, folder in records(job.first, store)}
        if not below:
            raise BenchError(f"it stands on {job.first.run.name}, which has no finished run")
    job_seeds = [FIRST_SEED if seed is None else seed for seed in job.seeds]
    folders = {seed: below.get(seed, below.get(None)) for seed in job_seeds}
    planned = []
    for folder in dict.fromkeys(folder for folder in folders.values() if folder is not None):
        seeds = tuple(seed for seed in job_seeds if folders[seed] == folder)
        request = job.run.request(
            seeds,
            below=folder,
            text=options.text,
            corpus=options.corpora.get(job.corpus or "") or options.corpora.get(""),
            precision="fp16" if options.as_authors and job.in_fp16 else options.precision,
            allow_pickle=options.allow_pickle,
        )
        planned += plan.make(request, registry, data, ready)
    return planned


def records(job: Job, store: RunsFolder) -> list[Run]:
    """The finished runs of a job, with their folders."""
    stored = ((store.get(run.run_id, run.fingerprint), run.run_id) for run in job.planned)
    return [
        Run(record, store.folder(run_id))
        for record, run_id in stored
        if record is not None and record.status == "finished"
    ]
