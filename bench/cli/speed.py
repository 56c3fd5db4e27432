"""``bench speed``: what encoding takes, of several runs under one condition."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from time import perf_counter

import click
from msgspec.structs import asdict, replace

from bench.base import devices
from bench.cli.options import (
    backbone_offline_option,
    device_option,
    json_option,
    json_text,
    plugin_option,
    runs_option,
    warn,
)
from bench.runs import RunsFolder
from bench.runs.record import EncodingCost


@click.command()
@click.argument("references", metavar="RUN...", nargs=-1, required=True)
@device_option
@backbone_offline_option
@runs_option
@plugin_option
@json_option
def speed(
    references: tuple[str, ...],
    device: str,
    offline: bool,
    runs: Path | None,
    plugins: tuple[Path, ...],
    as_json: bool,
) -> None:
    """How many sentences a second each run encodes, and in how much memory, measured one after the other on this machine.

    RUN is an id, the beginning of several, or a path. Each loads in a process of its own and encodes the same 1,000
    sentences. The result is kept in the run's record, with device, threads, versions and text; bench compare --cost and the
    pages show side by side only what was measured under one condition. Leave the machine alone meanwhile.

    \b
    Example:  bench speed simcse-builtin promcse-builtin
    """
    from bench.run.trained_run import find_run

    store = RunsFolder(runs)
    files = list(
        dict.fromkeys(file for reference in references for file in store.record_files(reference))
    )
    for file in files:  # all of them before the first is measured
        find_run(str(file.parent.absolute()), store, plugins)
    device = devices.choose_device(device)
    if (load := os.getloadavg()[0]) > (cores := os.cpu_count() or 1) / 2:
        warn(
            f"the machine is busy (load {load:.1f} on {cores} cores): measure again when it is not"
        )
    width = max(len(file.parent.name) for file in files)
    for file in files:
        run_id, own = file.parent.name, RunsFolder(file.parent.absolute().parent)
        cost = measure(str(file.parent.absolute()), store, plugins, device, offline=offline)
        with own.lock(run_id):
            record = own.read(run_id)
            own.write(replace(record, cost=replace(record.cost, encoding=cost)))
        if as_json:
            click.echo(json_text({"run": run_id, **asdict(cost)}))
        else:
            click.echo(
                f"{run_id:{width}}  {cost.sentences_per_second:8,.0f} sentences/s  {cost.memory_bytes / 1e6:7,.0f} MB"
            )
    if not as_json:
        click.echo(f"measured on {cost.condition}", err=True)


# --- what encoding takes: every run encodes the same sentences, in a process of its own, under a condition that is recorded ---

SENTENCES, PASSES, PATIENCE = 1000, 5, 60.0
"""What is encoded, and how often: at most so many times, and no further time once so many seconds are spent."""


def measure(
    reference: str, runs: RunsFolder, plugins: Sequence[Path], device: str, *, offline: bool
) -> EncodingCost:
    """Sentences a second and peak memory of the run that ``reference`` means, on ``device``; nothing is written.

    A process of its own loads it, so that no other model's memory is counted. One pass over the sentences comes before those
    that are timed. Raises what :func:`bench.run.trained_run.load_run` raises.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_measure, reference, runs.path, tuple(plugins), device, offline).result()


def _measure(
    reference: str, runs: Path, plugins: Sequence[Path], device: str, offline: bool
) -> EncodingCost:
    import torch

    from bench import __version__
    from bench.run.trained_run import find_run, load_run

    devices.keep_freed_memory()
    method = load_run(
        find_run(reference, RunsFolder(runs), plugins), device=device, offline=offline
    )
    sentences = measured_text()
    devices.reset_peak_memory(device)
    method.encode(sentences)
    seconds: list[float] = []
    while len(seconds) < PASSES and (not seconds or sum(seconds) < PATIENCE):
        start = perf_counter()
        method.encode(sentences)  # vectors on the host: a GPU has ended by then
        seconds.append(perf_counter() - start)
    digest = hashlib.sha256("\n".join(sentences).encode()).hexdigest()[:8]
    return EncodingCost(
        sentences_per_second=round(len(sentences) / median(seconds), 1),
        memory_bytes=devices.peak_memory_bytes(device),
        device=devices.device_name(device),
        threads=torch.get_num_threads(),
        precision="fp32",
        text=f"the first {len(sentences):,} sentences of corpus builtin ({digest})",
        torch=str(torch.__version__),
        bench_version=__version__,
    )


def measured_text() -> list[str]:
    """The sentences that every run encodes."""
    from bench.data.corpora import open_corpus

    return [row[0] for row in islice(open_corpus("builtin").unchanged_rows(), SENTENCES)]
