"""What wanted runs need and would take, the planned runs that they become, in the order in which they can be done, and their records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from bench.backbones import resolve
from bench.base.errors import BenchError
from bench.data.sets.sts import STS_TASKS
from bench.method.budget import STEPS, budget_of
from bench.run import plan
from bench.run.corpus_choice import RECIPE_CORPORA, TARGET, corpus_file
from bench.run.plan import learns
from bench.run.plugins import Registry
from bench.run.recipes import merge
from bench.run.reproduce.wanted import WantedRun, recipe
from bench.training.horizon import total_steps

if TYPE_CHECKING:
    from bench.backbones import Reference
    from bench.data.sets import DataFolder
    from bench.method import Method, Recipe
    from bench.run.plan import PlannedRun
    from bench.runs import RunRecord, RunsFolder


# --- What a run needs before it can start, and which of it is not on this machine. Judged by name and size, nothing is read ---


FETCHED = "not here yet; fetched from the hub"
DEV_SETS = {"STS-B dev": ("STS-B",), "sts-dev-clean": STS_TASKS}
"""Selection set -> the data sets that it is made of."""


@dataclass(frozen=True)
class Need:
    kind: str  # "data", "corpus", "weights" or "file"
    name: str
    here: bool
    what: str = ""  # where it is, or what gets it

    @property
    def fetched(self) -> bool:
        """Not here, but ``bench run`` fetches it by itself."""
        return not self.here and self.what.startswith(FETCHED)


def needs(run: WantedRun, registry: Registry, data: DataFolder, corpora: Mapping[str, str], text: str) -> list[Need]:
    """Everything that a run needs. ``corpora``: the user's files by the name of the recipe's corpus, "" for all."""
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
        elif Path(str(value)).expanduser().is_file():
            every.append(Need("file", key, True, str(value)))
        else:
            every.append(_weights(str(value), data))
    return every


def asked_corpus(name: str | None, corpora: Mapping[str, str]) -> str | None:
    """The user's file for a recipe's corpus, where there is one."""
    return corpora.get(name or "") or corpora.get("")


def _data(run: WantedRun, merged: Recipe, data: DataFolder, text: str) -> Iterator[Need]:
    from bench.data.sets import data_set
    from bench.score.suites import suite

    names = [name for one in run.suites for task in suite(one).tasks for name in getattr(task, "data", ())]
    names += DEV_SETS.get(str(merged.get("select_on")), ())
    for name in dict.fromkeys(names):
        wanted = data_set(name)
        state = data.look(wanted)
        form = not wanted.forms or text in ("any", *state.forms) or "any" in state.forms or "tokenised" not in wanted.forms
        here = state.status == "unread" or (state.status == "found" and form)
        yield Need("data", name, here, ", ".join(state.places) if here else f"bench data list {name}")


def _corpus(asked: str | None, own: str | None, data: DataFolder) -> Need:
    if asked:
        here = asked in ("builtin", TARGET) or Path(asked).expanduser().is_file()
        return Need("corpus", asked, here, "" if here else "no such file")
    name = RECIPE_CORPORA.get(own, own) if own else "training text"
    try:
        return Need("corpus", name, True, corpus_file(own, data))
    except BenchError:
        return Need("corpus", name, False, f"--corpus {own or ''}{'=' if own else ''}FILE")


def _weights(name: str, data: DataFolder) -> Need:
    try:
        path = resolve(name).path
    except BenchError as error:
        return Need("weights", name, False, error.message)
    if path is not None:
        return Need("weights", name, True, str(path))
    return Need("weights", name, False, "not here, and nothing may be fetched" if data.offline else FETCHED)


# --- What a run would take on a GPU: arithmetic from shapes and step counts, no measurement ---

GPU_SPEED = 100e12
"""Floating point operations a second: a third of what an A100 can do in half precision. Assumed; no GPU was measured."""
STEP_SECONDS = 0.015
"""The least that a training step takes, however small: starting its kernels. Assumed."""
ASSUMED = "arithmetic for one GPU that reaches 100 TFLOP/s and takes 15 ms a step at least; none was measured, scoring is not in it"

ROWS = {
    "wiki1m": (1_000_000, 2),
    "nli": (275_601, 3),
    "nli-labelled": (942_000, 2),
    "target": (89_192, 2),
    "builtin": (10_000, 2),
}
"""Rows of the recipes' corpora, and sentences that a step encodes of each: two views of one, or three of a triplet."""
DEV_SENTENCES = 3_000  # of STS-B dev, scored every ``eval_steps``


def gpu_hours(cls: type[Method], recipe: Recipe, backbone: str, corpus: str | None) -> float | None:
    """Hours of one training, dev scores included; None where the backbone's shape, or how long it trains, is not known."""
    shape = _shape(backbone)
    rows, views = ROWS.get(corpus or "", (None, 2))
    budget = budget_of(recipe)
    limit = budget.amount if budget is not None and budget.unit == STEPS else recipe.get("max_steps")
    if rows is None and limit:
        rows = int(limit * recipe["batch_size"])
    if shape is None or rows is None or "max_seq_length" not in recipe:
        return None
    layers, hidden, inner = shape
    parameters = layers * (4 * hidden * hidden + 2 * hidden * inner)
    tokens = views * recipe.max_seq_length
    if cls.fitted == "pass":
        return 2 * parameters * rows * tokens / GPU_SPEED / 3600
    if budget is not None and budget.timed:
        return budget.amount / 3600
    steps = total_steps(recipe, rows)
    if steps is None:  # as long as a number of tokens lasts
        return None
    training = 6 * parameters * steps * recipe.batch_size * tokens / GPU_SPEED
    scoring = 0.0
    if recipe.select_on != "last":
        scoring = steps / recipe.eval_steps * 2 * parameters * DEV_SENTENCES * recipe.max_seq_length / GPU_SPEED
    return (max(training, steps * STEP_SECONDS) + scoring) / 3600


def _shape(backbone: str) -> tuple[int, int, int] | None:
    try:
        config = resolve(backbone).sizes()
    except (BenchError, OSError, ValueError):
        return None
    if "num_hidden_layers" not in config or "hidden_size" not in config:
        return None
    hidden = int(config["hidden_size"])
    return int(config["num_hidden_layers"]), hidden, int(config.get("intermediate_size", 4 * hidden))


# --- From wanted runs to planned ones, in the order in which they can be done; and their records, found again ---


@dataclass(frozen=True, kw_only=True)
class ReproduceOptions:
    """What the user chose for all runs."""

    seeds: tuple[int, ...] = (42,)
    text: str = "tokenised"
    corpora: Mapping[str, str] = field(default_factory=dict)  # a recipe's corpus -> the user's file; "": of all
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


def jobs(runs: Sequence[WantedRun], registry: Registry, data: DataFolder, asked: ReproduceOptions) -> list[Job]:
    """A job for every wanted run, in the table's order. One that stands on another's encoder knows that one's job as ``first``,
    which is itself in the list where the table has it."""
    listed = {run.identity: _job(run, registry, data, asked) for run in runs}
    for run in runs:
        if run.on is not None:
            below = run.on.identity
            listed[run.identity].first = listed.get(below) or _job(run.on, registry, data, asked)
    return [listed[run.identity] for run in runs]


def in_order(listed: Sequence[Job]) -> list[Job]:
    """Every job that can be run, those that others stand on before them."""
    runnable = [job for job in listed if job.run.method]
    below = {job.first.run.identity: job.first for job in runnable if job.first}
    first = {job.run.identity: job for job in (*below.values(), *(job for job in runnable if job.first is None))}
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
        seeds=(None,) if run.setting in cls.deterministic else asked.seeds,
        set_here=tuple(key for key, value in merged.items() if value != defaults.get(key)),
        hours=gpu_hours(cls, merged, run.backbone, asked_corpus(own, asked.corpora) or own) if trained else None,
    )


def precision_of(job: Job, asked: ReproduceOptions) -> str:
    """That a job is trained in."""
    return "fp16" if asked.as_authors and job.in_fp16 else asked.precision


def plan_job(
    job: Job, registry: Registry, data: DataFolder, asked: ReproduceOptions, ready: Callable[[Reference], Reference], store: RunsFolder
) -> list[PlannedRun]:
    """The planned runs of a job. Raises a BenchError as ``bench run`` does, and where the runs that it stands on are not done."""
    corpus, precision = asked_corpus(job.corpus, asked.corpora), precision_of(job, asked)
    if job.first is None:
        request = job.run.request(asked.seeds, text=asked.text, corpus=corpus, precision=precision, allow_pickle=asked.allow_pickle)
        return plan.make(request, registry, data, ready)
    folders = {record.seed: folder for record, folder in records(job.first, store)}
    if not folders:
        raise BenchError(f"it stands on {job.first.run.name}, of which no run is finished")
    planned = []
    for seed in asked.seeds:
        if (folder := folders.get(seed, folders.get(None))) is not None:
            request = job.run.request((seed,), text=asked.text, corpus=corpus, precision=precision, below=str(folder))
            planned += plan.make(request, registry, data, ready)
    return planned


def records(job: Job, store: RunsFolder) -> list[tuple[RunRecord, Path]]:
    """The finished runs of a job, with their folders."""
    stored = [(store.get(run.run_id, run.fingerprint), store.folder(run.run_id)) for run in job.planned]
    return [(record, folder) for record, folder in stored if record is not None and record.status == "finished"]
