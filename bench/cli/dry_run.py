"""``bench run --dry-run``: the runs that a command means, every recipe value with its source, and what they would take."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import click

from bench.cli.columns import print_columns
from bench.cli.planning import table_of
from bench.corpus_shelf import AbsentCorpus
from bench.datasets import Pending
from bench.errors import BenchError
from bench.plan import PlannedRun
from bench.runs import RunsFolder

# How much of a large matrix product's speed a training step reaches: measured on the built-in backbone, two CPU cores (an
# estimate of 140 s and 493 s at 0.35 took 227 s and 437 s). A GPU's share was never measured.
EFFICIENCY = {"fp32": 0.40, "tf32": 0.40, "bf16": 0.22, "fp16": 0.22}
# Bytes of memory while training all of an encoder. Counted by watching every tensor of a step (tests/training/test_memory_estimate.py):
# at the end of the forward pass there are no gradients yet, at the end of the backward pass no activations any more.
VALUE_AND_MOMENTS, GRADIENT = 12, 4  # of a trained parameter, in float32
KEPT = {
    4: (46, 8),
    2: (40, 4),
}  # of each token, layer and hidden number, by the bytes of a product's numbers: as such, and for each inner one
ELSEWHERE = {"cpu": 4e8, "cuda": 1e8}  # Python and libraries in a process; a GPU's scratch space


@dataclass(frozen=True)
class Estimate:
    """What a run would take. Seconds and bytes are estimates; ``basis`` says of what kind."""

    steps: int | None
    seconds: float | None
    memory_bytes: int | None
    basis: str


def show_plan(planned: Sequence[PlannedRun], pending: Sequence[Pending], store: RunsFolder, device: str, as_json: bool) -> None:
    """Print the plan, and what it would fetch; nothing is written."""
    for i, run in enumerate(planned):
        guess = estimate(run, store, device)
        if as_json:
            click.echo(json.dumps(as_dict(run, guess, pending)))
            continue
        if i:
            click.echo()
        unsure = "; its id is known when all of it is here" if run.provisional else ""
        click.echo(f"{run.run_id}  ({i + 1} of {len(planned)}{unsure})")
        for note in run.notes:
            click.echo(f"  {note}")
        seed = "any seed" if run.seed is None else f"seed {run.seed}"
        state = "finished already" if _finished(run, store) else "to do"
        click.echo(
            f"  method {run.method} ({run.plugin.package}), setting {run.setting}, backbone {run.backbone.name}, {seed}: {state}"
        )
        click.echo(f"  corpus {_corpus_words(run)}; precision {run.precision}")
        click.echo(f"  tasks {', '.join(dict.fromkeys(task.name for task in run.tasks))} ({run.text} text)")
        values = run.recipe.values_with_source().items()
        print_columns([(k, json.dumps(v.value), v.source + (f" ({v.note})" if v.note else "")) for k, v in values], indent=4)
        click.echo("  " + in_words(guess))
    if pending and not as_json:
        click.echo("\nnot on this machine; without --dry-run this is fetched first")
        for line in table_of(pending):
            click.echo(line)


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


def _finished(run: PlannedRun, store: RunsFolder) -> bool:
    try:
        record = store.read(run.run_id)
    except BenchError:
        return False
    return record.fingerprint == run.fingerprint and record.status == "finished"


def in_words(guess: Estimate) -> str:
    if guess.steps is None:
        return f"{guess.basis}; then encoding and scoring"
    parts = [f"{guess.steps:,} steps"]
    if guess.seconds is not None:
        parts.append(f"about {_duration(guess.seconds)} of training")
    if guess.memory_bytes is not None:
        parts.append(f"about {guess.memory_bytes / 2**30:.1f} GiB")
    return f"estimate: {', '.join(parts)} ({guess.basis})"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def as_dict(run: PlannedRun, guess: Estimate, pending: Sequence[Pending] = ()) -> dict[str, Any]:
    """``pending``: what the whole command would fetch."""
    recipe = {key: asdict(value) for key, value in run.recipe.values_with_source().items()}
    return {
        "run_id": None if run.provisional else run.run_id, "fingerprint": None if run.provisional else run.fingerprint, "method": run.method, "variant": run.variant, "setting": run.setting,
        "backbone": run.backbone.name, "seed": run.seed, "corpus": run.corpus.name if run.corpus else None, "notes": list(run.notes),
        "tasks": list(dict.fromkeys(task.name for task in run.tasks)), "text": run.text, "recipe": recipe, "estimate": asdict(guess),
        "to_fetch": [{key: getattr(one, key) for key in ("name", "kind", "bytes", "licence", "where")} for one in pending],
    }  # fmt: skip


def estimate(run: PlannedRun, store: RunsFolder, device: str) -> Estimate:
    """From an earlier run of the same method, backbone and device where there is one; else from arithmetic."""
    if run.corpus is None:
        return Estimate(None, None, None, "nothing is trained")
    from bench.training import total_steps

    if run.plugin.cls.fitted == "pass":
        rows = _rows(run)
        return Estimate(
            None, None, None, f"one pass over the corpus, {'all' if rows is None else f'{rows:,}'} sentences are encoded"
        )
    corpus_rows, memory = _rows(run), _memory(run, device)
    if corpus_rows is None and run.recipe.max_steps is None and run.recipe.epochs is not None:
        return Estimate(None, None, memory, f"steps are known when {run.corpus.name} is here")
    steps = total_steps(run.recipe, corpus_rows or 1)
    if steps is None:
        return Estimate(None, None, memory, f"trained until {run.recipe['budget']} are spent")
    rows = steps * run.recipe.batch_size
    if run.recipe.epochs is not None:
        rows = min(rows, round(run.recipe.epochs * corpus_rows)) if corpus_rows else rows
    earlier = _speed_of_earlier_runs(run, store, device)
    if earlier:
        return Estimate(steps, rows / earlier, memory, "time from the speed of an earlier run here")
    seconds = _seconds(run, rows, device)
    return Estimate(
        steps,
        seconds,
        memory,
        "time from arithmetic and this machine's matrix speed"
        if seconds
        else "the backbone's sizes are not known yet, so neither are time and memory",
    )


def _speed_of_earlier_runs(run: PlannedRun, store: RunsFolder, device: str) -> float | None:
    from bench.devices import device_name

    name = device_name(device)
    for record in store.records()[0]:
        same = (record.method, record.setting, record.backbone, record.cost.device) == (
            run.method,
            run.setting,
            run.backbone.name,
            name,
        )
        if same and record.cost.train_sentences_per_second:
            return record.cost.train_sentences_per_second
    return None


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
    import torch

    kind = torch.bfloat16 if run.precision == "bf16" else torch.float32
    a = torch.ones(1024, 1024, dtype=kind, device=device)
    for _ in range(2):
        a @ a
    began, count = time.perf_counter(), 0
    while time.perf_counter() - began < 0.3:
        (a @ a)[0, 0].item()
        count += 1
    speed = count * 2 * 1024**3 / (time.perf_counter() - began)
    tokens = rows * _columns(run) * run.recipe.max_seq_length * 0.8
    return 6 * layers * tokens / (EFFICIENCY[run.precision] * speed)


def _memory(run: PlannedRun, device: str) -> int | None:
    layers, embeddings = _encoder_parameters(run)
    if not layers:
        return None
    config = run.backbone.sizes()
    hidden = config["hidden_size"]
    width = 2 if run.precision in ("bf16", "fp16") else 4
    tokens = run.recipe.batch_size * _columns(run) * run.recipe.max_seq_length
    of_itself, of_inner = KEPT[width]
    activations = (
        tokens * config["num_hidden_layers"] * (of_itself * hidden + of_inner * config.get("intermediate_size", 4 * hidden))
    )
    copies = 2 * layers if width == 2 else 0  # autocast's, of the weights
    trained = layers + embeddings
    most = VALUE_AND_MOMENTS * trained + max(activations + copies, GRADIENT * trained)
    return int(most + ELSEWHERE["cuda" if device.startswith("cuda") else "cpu"])
