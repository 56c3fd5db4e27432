"""What a command means and needs: its runs, what of it is not here, and getting that, announced in one table."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.base.errors import DataMissing, FetchFailed
from bench.cli.columns import print_columns, say
from bench.cli.options import json_text
from bench.cli.progress import duration
from bench.data.sets import DataFolder, Fetcher, Later, Pending, fetched_folder
from bench.run.corpus_choice import AbsentCorpus
from bench.run.plan import PlannedRun
from bench.run.printed import aim
from bench.runs import RunsFolder

if TYPE_CHECKING:
    from bench.backbones import Reference
    from bench.data.fetching import Report
    from bench.run.plan import Request
    from bench.run.plugins import Registry


@dataclass(frozen=True)
class Planned:
    """The runs of a command, and what is still to be fetched for them."""

    runs: tuple[PlannedRun, ...]
    to_fetch: tuple[Pending, ...] = ()  # what is not here; of a plan that may fetch nothing, what keeps it from being run


Make = Callable[[DataFolder, Callable[["Reference"], "Reference"]], Sequence[PlannedRun]]


def plan_and_fetch(
    request: Request, registry: Registry, data: Path | None, report: Report, *, offline: bool, only_look: bool = False
) -> Planned:
    """The runs of a request, with everything that they need on this machine: see :func:`prepare`."""
    from bench.run import plan

    make = partial(plan.make, request, registry)
    return prepare(make, data, report, offline=offline, only_look=only_look, allow_pickle=request.allow_pickle)


def prepare(make: Make, data: Path | None, report: Report, *, offline: bool, only_look: bool, allow_pickle: bool) -> Planned:
    """The runs that ``make`` plans with a data folder and a way to get backbones, with everything that they need on this machine.

    What is missing is planned with first, and nothing of it is asked for: so the user sees names, sizes and licences of all of it
    before the first byte, and a machine without a network says so at once. ``only_look`` stops there (``--dry-run``). Raises a
    BenchError for what cannot be had.
    """
    from bench.backbones import fetch

    ready: Callable[[Reference], Reference] = partial(fetch, offline=offline, allow_pickle=allow_pickle, say=report.say)
    if offline and not only_look:
        return Planned(tuple(make(DataFolder(data, offline=True), ready)))
    later = Later()
    looked = tuple(make(DataFolder(data, fetcher=later), partial(_noted, later)))
    if only_look or not later.pending:
        return Planned(looked, later.pending)
    announce(later.pending, report, fetched_folder())
    folder = DataFolder(data, fetcher=Fetcher(fetched_folder(), report))
    return Planned(tuple(make(folder, ready)))


def _noted(later: Later, reference: Reference) -> Reference:
    """The reference; where it is not here, it is noted what fetching it would bring."""
    from bench.backbones import hub as models_of_hub

    if reference.path is None and reference.hub:
        later.note(models_of_hub.describe_pending(reference.source or reference.name, reference.sizes()))
    return reference


def announce(pending: Sequence[Pending], report: Report, into: Path) -> None:
    """The table of what is fetched now. Raises FetchFailed, in place of the table, where there is no network."""
    from bench.data.fetching import check_network

    try:
        check_network(url for item in pending for url in item.urls)
    except FetchFailed as error:
        names = ", ".join(item.name for item in pending)
        raise FetchFailed(f"{error.message}; not on this machine: {names}", elsewhere(pending)) from None
    report.say(f"fetched now, data into {into}:" if any(item.kind != "backbone" for item in pending) else "fetched now:")
    for line in table_of(pending):
        report.say(line)


def check_nothing_to_fetch(pending: Sequence[Pending]) -> None:
    """Raises DataMissing where a command that may open no connection would have to."""
    if pending:
        names = ", ".join(item.name for item in pending)
        raise DataMissing(f"{names}: not on this machine, and --offline (or HF_HUB_OFFLINE) forbids fetching", elsewhere(pending))


def table_of(pending: Sequence[Pending]) -> list[str]:
    """Names, sizes and licences, one line each; the sum; then terms that are accepted by fetching, and notes, each said once."""
    rows = [("", "MB", "licence", "from")]
    rows += [(item.name, "?" if item.bytes is None else f"{item.bytes / 1e6:,.1f}", item.licence, item.where) for item in pending]
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    lines = [f"  {name:<{widths[0]}}  {size:>{widths[1]}}  {licence:<{widths[2]}}  {where}" for name, size, licence, where in rows]
    unknown = [item.name for item in pending if item.bytes is None]
    total = f"  about {sum(item.bytes or 0 for item in pending) / 1e6:,.0f} MB in all"
    lines.append(total + (f", and {', '.join(unknown)}, whose size only the hub knows" if unknown else ""))
    terms: dict[str, list[str]] = {}
    archives: dict[str, Sequence[str]] = {}
    for item in pending:
        terms.setdefault(item.terms, []).append(item.name)
        archives |= item.archives
    lines += [f"  terms of {', '.join(names)}, which you accept by fetching: {text}" for text, names in terms.items() if text]
    named = {item.name for item in pending}
    for archive, sets in archives.items():
        if others := [name for name in sets if name not in named]:
            lines.append(f"  {archive} brings {', '.join(others)} along (bench data list NAME: their licences)")
    return lines + [f"  {note}" for note in dict.fromkeys(note for item in pending for note in item.notes)]


def elsewhere(pending: Sequence[Pending]) -> str:
    """How all of it comes to a machine without a network."""
    from bench.backbones.hub import bring_over

    ahead = "where there is a network: "
    sets = [item.name for item in pending if item.kind != "backbone" and ":" not in item.name]
    parts = [f"bench data fetch {' '.join(sets)} --data DIR, then --data DIR here"] if sets else []
    parts += [bring_over(item.name).removeprefix(ahead) for item in pending if item.kind == "backbone"]
    parts += [f"the same command (for {item.name}), then copy its cache" for item in pending if ":" in item.name]
    return ahead + "; ".join(parts)


# --- ``bench run --dry-run``: the runs that a command means, every recipe value with its source, and what they would take ---

# How much of a large matrix product's speed a training step reaches: measured on the built-in backbone, two CPU cores (an
# estimate of 140 s and 493 s at 0.35 took 227 s and 437 s). A GPU's share was never measured.
EFFICIENCY = {"fp32": 0.40, "tf32": 0.40, "bf16": 0.22, "fp16": 0.22}
# Bytes of memory while training all of an encoder. Counted by watching every tensor of a step (tests/training/test_memory_estimate.py):
# at the end of the forward pass there are no gradients yet, at the end of the backward pass no activations any more.
VALUE_AND_MOMENTS, GRADIENT = 12, 4  # of a trained parameter, in float32
# Of each token, layer and hidden number, by the bytes of a product's numbers: as such, and for each inner one.
KEPT = {4: (46, 8), 2: (40, 4)}
PROCESS = {"cpu": 4e8, "cuda": 1e8}  # Python and libraries in a process; a GPU's scratch space


@dataclass(frozen=True)
class Estimate:
    """What a run would take. Seconds and bytes are estimates; ``basis`` says of what kind."""

    steps: int | None
    seconds: float | None
    memory_bytes: int | None
    basis: str


def show_plan(planned: Sequence[PlannedRun], pending: Sequence[Pending], store: RunsFolder, device: str, as_json: bool) -> None:
    """Print the plan, and what it would fetch; nothing is written."""
    earlier = speeds_of_earlier_runs(store, device) if any(run.corpus is not None for run in planned) else {}
    for i, run in enumerate(planned):
        guess = estimate(run, earlier, device)
        if as_json:
            click.echo(json_text(as_dict(run, guess, pending)))
            continue
        if i:
            click.echo()
        unsure = "; its id is known when all of it is here" if run.provisional else ""
        say(f"{run.run_id}  ({i + 1} of {len(planned)}{unsure})", hang=2)
        for note in (*aim(run), *run.notes):
            say(note, indent=2, hang=2)
        seed = "any seed" if run.seed is None else f"seed {run.seed}"
        record = store.get(run.run_id, run.fingerprint)
        state = "finished already" if record is not None and record.status == "finished" else "to do"
        what = f"method {run.method} ({run.plugin.package}), setting {run.setting}, backbone {run.backbone.name}, {seed}: {state}"
        tasks = ", ".join(dict.fromkeys(task.name for task in run.tasks))
        for line in (what, f"corpus {_corpus_words(run)}; precision {run.precision}", f"tasks {tasks} ({run.text} text)"):
            say(line, indent=2, hang=2)
        values = run.recipe.values_with_source().items()
        print_columns([(k, json.dumps(v.value), v.source + (f" ({v.note})" if v.note else "")) for k, v in values], indent=4)
        say(in_words(guess), indent=2, hang=2)
    if pending and not as_json:
        click.echo("\nnot on this machine; without --dry-run this is fetched first")
        for line in table_of(pending):
            say(line[2:], indent=2, hang=4)


def _corpus_words(run: PlannedRun) -> str:
    if run.corpus is None:
        return "none"
    rows = _rows(run)
    return f"{run.corpus.name}, {f'{rows:,}' if rows is not None else 'nobody knows yet how many'} rows"


def _rows(run: PlannedRun) -> int | None:
    """Of the corpus; of one that is only fetched later what its source says."""
    if run.corpus is None:
        return None
    return run.corpus.known_rows if isinstance(run.corpus, AbsentCorpus) else len(run.corpus)


def in_words(guess: Estimate) -> str:
    if guess.steps is None:
        return f"{guess.basis}; then encoding and scoring"
    parts = [f"{guess.steps:,} steps"]
    if guess.seconds is not None:
        parts.append(f"about {duration(guess.seconds)} of training")
    if guess.memory_bytes is not None:
        parts.append(f"about {guess.memory_bytes / 2**30:.1f} GiB")
    return f"estimate: {', '.join(parts)} ({guess.basis})"


def as_dict(run: PlannedRun, guess: Estimate, pending: Sequence[Pending]) -> dict[str, Any]:
    """``pending``: what the whole command would fetch."""
    recipe = {key: asdict(value) for key, value in run.recipe.values_with_source().items()}
    return {
        "run_id": None if run.provisional else run.run_id, "fingerprint": None if run.provisional else run.fingerprint, "method": run.method, "variant": run.variant, "setting": run.setting,
        "backbone": run.backbone.name, "seed": run.seed, "corpus": run.corpus.name if run.corpus else None, "notes": list(run.notes),
        "expect": None if run.expect is None else dict(run.expect), "remark": run.remark,
        "tasks": list(dict.fromkeys(task.name for task in run.tasks)), "text": run.text, "recipe": recipe, "estimate": asdict(guess),
        "to_fetch": [{key: getattr(item, key) for key in ("name", "kind", "bytes", "licence", "where")} for item in pending],
    }  # fmt: skip


def estimate(run: PlannedRun, earlier: Mapping[tuple[str, str, str], float], device: str) -> Estimate:
    """From the speed of an ``earlier`` run of the same method, setting and backbone where there is one; else from arithmetic."""
    if run.corpus is None:
        return Estimate(None, None, None, "nothing is trained")
    from bench.training.horizon import total_steps

    if run.plugin.cls.fitted == "pass":
        rows = _rows(run)
        return Estimate(None, None, None, f"one pass over the corpus, {'all' if rows is None else f'{rows:,}'} sentences are encoded")
    corpus_rows, memory = _rows(run), _memory(run, device)
    if corpus_rows is None and run.recipe.max_steps is None and run.recipe.epochs is not None:
        return Estimate(None, None, memory, f"steps are known when {run.corpus.name} is here")
    steps = total_steps(run.recipe, corpus_rows or 1)
    if steps is None:
        return Estimate(None, None, memory, f"trained until {run.recipe['budget']} are spent")
    rows = steps * run.recipe.batch_size
    if run.recipe.epochs is not None:
        rows = min(rows, round(run.recipe.epochs * corpus_rows)) if corpus_rows else rows
    if speed := earlier.get((run.method, run.setting, run.backbone.name)):
        return Estimate(steps, rows / speed, memory, "time from the speed of an earlier run here")
    if seconds := _seconds(run, rows, device):
        return Estimate(steps, seconds, memory, "time from arithmetic and this machine's matrix speed")
    return Estimate(steps, seconds, memory, "the backbone's sizes are not known yet, so neither are time and memory")


def speeds_of_earlier_runs(store: RunsFolder, device: str) -> dict[tuple[str, str, str], float]:
    """(method, setting, backbone) -> sentences a second that a run of them trained on this device; every record is read once."""
    from bench.base.devices import device_name

    name, speeds = device_name(device), dict[tuple[str, str, str], float]()
    for record in store.records()[0]:
        if record.cost.device == name and (speed := record.cost.train_sentences_per_second):
            speeds.setdefault((record.method, record.setting, record.backbone), speed)
    return speeds


def _encoder_parameters(run: PlannedRun) -> tuple[int, int]:
    """(in the layers, in the embeddings), from the config's shape; (0, 0) where nobody knows it yet."""
    config = run.backbone.sizes()
    hidden, layers = config.get("hidden_size", 0), config.get("num_hidden_layers", 0)
    inner = config.get("intermediate_size", 4 * hidden)
    return layers * (4 * hidden * hidden + 2 * hidden * inner), hidden * config.get("vocab_size", 0)


def _columns(run: PlannedRun) -> int:
    return max(2, len(run.corpus.columns)) if run.corpus else 2


def _seconds(run: PlannedRun, rows: int, device: str) -> float | None:
    """6 x parameters x tokens floating point operations, at a fraction of what a matrix product reaches now."""
    layers, _ = _encoder_parameters(run)
    if not layers:
        return None
    tokens = rows * _columns(run) * run.recipe.max_seq_length * 0.8
    return 6 * layers * tokens / (EFFICIENCY[run.precision] * matrix_speed(run.precision, device))


@lru_cache
def matrix_speed(precision: str, device: str) -> float:
    """Floating point operations a second that a matrix product reaches now."""
    import torch

    kind = torch.bfloat16 if precision == "bf16" else torch.float32
    a = torch.ones(1024, 1024, dtype=kind, device=device)
    for _ in range(2):
        a @ a
    began, count = time.perf_counter(), 0
    while time.perf_counter() - began < 0.3:
        (a @ a)[0, 0].item()
        count += 1
    return count * 2 * 1024**3 / (time.perf_counter() - began)


def _memory(run: PlannedRun, device: str) -> int | None:
    layers, embeddings = _encoder_parameters(run)
    if not layers:
        return None
    config = run.backbone.sizes()
    hidden = config["hidden_size"]
    width = 2 if run.precision in ("bf16", "fp16") else 4
    tokens = run.recipe.batch_size * _columns(run) * run.recipe.max_seq_length
    of_itself, of_inner = KEPT[width]
    activations = tokens * config["num_hidden_layers"] * (of_itself * hidden + of_inner * config.get("intermediate_size", 4 * hidden))
    copies = 2 * layers if width == 2 else 0  # autocast's, of the weights
    trained = layers + embeddings
    most = VALUE_AND_MOMENTS * trained + max(activations + copies, GRADIENT * trained)
    return int(most + PROCESS["cuda" if device.startswith("cuda") else "cpu"])
