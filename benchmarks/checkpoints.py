"""Checkpoints of a BERT-base-sized training: written in the loop's way, and on a thread meanwhile.

    python benchmarks/checkpoints.py [--improvements 4] [--between 3] [--folder DIR] [--tiny]

No peer. Each of several dev scores is better than the last one, so that 440 MB are written,
synced, renamed and hashed. Between two of them the loop does ``--between`` seconds of work, in the
place of steps. In the loop's way is the time of a training beyond its work. The two sides
alternate. ``--folder`` chooses the disk.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from card_models import Place
from card_steps import Training, full_rows, ready_method
from machine import describe_machine


@dataclass(frozen=True)
class Taken:
    """The seconds of one training with several improvements."""

    # beyond the work between its checkpoints
    in_the_way: float
    # of the loop's calls that keep a checkpoint
    calls: float


def do_work(seconds: float) -> None:
    """Keep one core busy until it has computed for ``seconds``."""
    import torch

    some = torch.ones(256, 256)
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        some @ some


def keep_in_the_loop(trainer: Any) -> None:
    """Keep a checkpoint as every training did before there was a thread."""
    p = trainer.progress
    p.best_files = trainer.checkpoints.keep(p.step, trainer.method.save)


def keep_on_the_thread(trainer: Any) -> None:
    trainer.keep_checkpoint()


def timed(trainer: Any, keep: Any, improvements: int, between: float) -> Taken:
    """Do the work and keep the checkpoints; the last one is waited for, as at a training's end."""
    whole = calls = work = 0.0
    began = time.perf_counter()
    for _ in range(improvements):
        trainer.progress.step += 1
        at = time.perf_counter()
        keep(trainer)
        calls += time.perf_counter() - at
        do_work(between)
        work += between
    trainer.wait_for_checkpoint()
    whole = time.perf_counter() - began
    return Taken(whole - work, calls)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--improvements", type=int, default=4)
    parser.add_argument("--between", type=float, default=3.0, help="seconds of processor time")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="on the disk that is measured")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--tiny", action="store_true", help="a small model, to try the script")
    chosen = parser.parse_args()

    import torch

    torch.set_num_threads(1)
    print(describe_machine())
    sides = {"in the loop": keep_in_the_loop, "on the thread": keep_on_the_thread}
    found: dict[str, list[Taken]] = {name: [] for name in sides}
    with tempfile.TemporaryDirectory(dir=chosen.folder) as scratch:
        place = Place(chosen.device, chosen.tiny, Path(scratch))
        method = ready_method(place, "simcse", "bert-base", 2)
        training = Training(method, full_rows(4))
        for _ in range(chosen.rounds):
            for name, keep in sides.items():
                taken = timed(training.trainer, keep, chosen.improvements, chosen.between)
                found[name].append(taken)
        training.close()
        training.trainer.checkpoints.close()
    for name, taken in found.items():
        in_the_way = statistics.median(one.in_the_way for one in taken) / chosen.improvements
        calls = statistics.median(one.calls for one in taken) / chosen.improvements
        print(
            f"{name}: {in_the_way:.2f} s in the loop's way an improvement, {calls:.2f} s of calls"
        )


if __name__ == "__main__":
    main()
