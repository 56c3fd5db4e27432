"""What encoding takes: every run encodes the same sentences, in a process of its own, under a condition that is recorded."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from time import perf_counter

from bench.base import devices
from bench.runs import RunsFolder
from bench.runs.record import EncodingCost

SENTENCES, PASSES, PATIENCE = 1000, 5, 60.0
"""What is encoded, and how often: at most so many times, and no further time once so many seconds are spent."""


def measure(reference: str, runs: RunsFolder, plugins: Sequence[Path], device: str, *, offline: bool) -> EncodingCost:
    """Sentences a second and peak memory of the run that ``reference`` means, on ``device``; nothing is written.

    A process of its own loads it, so that no other model's memory is counted. One pass over the sentences comes before those
    that are timed. Raises what :func:`bench.run.trained_run.load_run` raises.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_measure, reference, runs.path, tuple(plugins), device, offline).result()


def _measure(reference: str, runs: Path, plugins: Sequence[Path], device: str, offline: bool) -> EncodingCost:
    import torch

    from bench import __version__
    from bench.run.trained_run import find_run, load_run

    devices.keep_freed_memory()
    method = load_run(find_run(reference, RunsFolder(runs), plugins), device=device, offline=offline)
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
