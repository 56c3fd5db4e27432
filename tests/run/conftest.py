"""A tiny plan, its runs if nothing disturbs them, and a real Slurm that a session shares."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import SMALL, bench
from finished_runs import finished
from models import sentences
from slurm_cluster import SlurmCluster, why_not

from bench.method.plugins import Registry, discover


@pytest.fixture(scope="module")
def registry() -> Registry:
    """Return the methods that are installed here."""
    return discover()


@pytest.fixture(scope="session")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("texts") / "text.txt"
    path.write_text("\n".join(sentences(60, seed=8)) + "\n")
    return path


@pytest.fixture(scope="session")
def plan(tiny: str, texts: Path) -> tuple[str, ...]:
    """Return options of ``bench run`` for small runs; --seeds says how many."""
    words = f"run --method simcse --backbone {tiny} --suite check --corpus {texts}"
    return (*words.split(), *SMALL)


SLOW = """\
import os, time
from bench.methods.simcse import SimCSE


class Slow(SimCSE):
    \"\"\"SimCSE that waits at every step, long enough to be killed on any machine.

    Waiting takes nearly no processor time.
    \"\"\"

    name = "slow"

    def loss(self, views, batch):
        time.sleep(float(os.environ.get("BENCH_TEST_PAUSE", "0")))
        return super().loss(views, batch)
"""


@pytest.fixture(scope="session")
def long_plan(plan: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """Return the options for a method of 200 steps that pauses if $BENCH_TEST_PAUSE says so."""
    file = tmp_path_factory.mktemp("plugin") / "slow.py"
    file.write_text(SLOW)
    other = {"simcse": "slow", "eval_steps=3": "eval_steps=5000"}
    words = [other.get(word, word) for word in plan]
    return (*words, "--plugin", str(file), "--set", "epochs=400", "--set", "max_steps=200")


@pytest.fixture(scope="session")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., dict[str, Any]]:
    """Run a command line by the local executor in this process, once for each command line."""
    known: dict[tuple[str, ...], dict[str, Any]] = {}

    def run(*arguments: str) -> dict[str, Any]:
        if arguments not in known:
            runs = tmp_path_factory.mktemp("quiet")
            done = bench(*arguments, "--device", "cpu", "--precision", "fp32", "--runs", runs)
            assert done.exit_code in (0, 1), done.stderr
            ends = finished(runs).items()
            known[arguments] = {run_id: one for run_id, one in ends if one[0] == "finished"}
        return known[arguments]

    return run


@pytest.fixture(scope="session")
def slurm() -> Iterator[SlurmCluster]:
    """Start Slurm for the session; skip with the reason if it is not installed."""
    if (reason := why_not()) is not None:
        pytest.skip(reason)
    cluster = SlurmCluster()
    before = dict(os.environ)
    try:
        cluster.start()
        os.environ.update(cluster.environment)
        yield cluster
    finally:
        cluster.stop()
        os.environ.clear()
        os.environ.update(before)
