"""Keeping all that a training needs to go on, and going on from there as if nothing had happened."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

import torch

from bench.method import seed_for
from bench.training.checkpoints import Damaged
from bench.training.sitting import Sitting
from bench.training.state import Progress, newest_good, read_state, rng_state, save_state, set_rng_state

SAVING = 0.1  # share of the time that may go into saving states, where a disk is slow


def save_is_due(sitting: Sitting) -> bool:
    wait = sitting.context.save_seconds
    return wait <= 0 or time.monotonic() - sitting.saved > max(wait, sitting.save_took / SAVING)


def save(sitting: Sitting) -> None:
    """Keep weights, optimiser, random generators of every rank, counts, and what the curve still lacks.

    Raises RunFailed where it cannot be written, or where the loss is no number: a training that is lost is not kept.
    """
    sitting.check_sound()
    sitting.count_energy()
    began = time.monotonic()
    rng = sitting.ranks.gather(rng_state(sitting.device))
    sitting.ranks.first(lambda: _write(sitting, rng))
    sitting.saved = time.monotonic()
    sitting.save_took = sitting.saved - began


def _write(sitting: Sitting, rng: list[dict[str, Any]]) -> None:
    if sitting.progress.logged:
        sitting.curve.sync()
    steps = save_state(sitting.states, sitting.progress.step, {
        "trained": sitting.method.training_state(), "optimizer": sitting.optimizer.state_dict(),
        "scaler": sitting.scaler.state_dict(), "progress": asdict(sitting.progress), "window": sitting.window,
        "entry": sitting.entry, "rng": rng,
    })  # fmt: skip
    sitting.checkpoints.forget_all_but(steps)


def resume(sitting: Sitting) -> bool:
    """Put the sitting where the newest good state was; False where there is none. What came after that state is taken back."""
    note, chunk = sitting.context.reporter.note, sitting.progress.chunk

    def newest() -> Any:
        sitting.checkpoints.settle()
        return newest_good(sitting.states, lambda state: _check(state, sitting), note)

    def take_back() -> None:
        sitting.checkpoints.forget_after(sitting.progress.step)
        sitting.curve.go_back_to(sitting.progress.logged)

    found = sitting.ranks.first(newest)
    if found is not None:
        _restore(read_state(found), sitting)
        sitting.progress.chunk = chunk or sitting.progress.chunk  # what the command says, or what was found to fit, holds
        note(f"goes on from {sitting.where()}")
    if sitting.progress.ranks[-1:] != [sitting.ranks.count]:
        sitting.progress.ranks.append(sitting.ranks.count)
    sitting.ranks.first(take_back)
    sitting.context.reporter.phase("train", sitting.horizon.steps)
    return found is not None


def _check(state: dict[str, Any], sitting: Sitting) -> None:
    """Raises Damaged where a state is not of this training, or its best checkpoint is lost. That is put in its place."""
    try:
        progress = Progress(**state["progress"])
        same = state["trained"].keys() == sitting.method.training_state().keys()
        same = same and {"optimizer", "scaler", "window", "entry", "rng"} <= state.keys()
    except (KeyError, TypeError, AttributeError):
        same = False
    if not same:
        raise Damaged("it is of another version of this training")
    if progress.best_score is not None:
        line = sitting.checkpoints.restore(progress.best_step, progress.best_files)
        if line:
            sitting.context.reporter.note(line)


def _restore(state: dict[str, Any], sitting: Sitting) -> None:
    sitting.progress, sitting.entry = Progress(**state["progress"]), state["entry"]
    sitting.window = [{name: loss.to(sitting.device) for name, loss in step.items()} for step in state["window"]]
    sitting.settled = False
    sitting.method.load_state_dict(state["trained"], strict=False)
    sitting.optimizer.load_state_dict(state["optimizer"])
    sitting.scaler = sitting.new_scaler()  # one that a step has left half-way refuses the next
    sitting.scaler.load_state_dict(state["scaler"])
    ranks, rng, step = sitting.ranks, state["rng"], sitting.progress.step
    same_kind = (rng[0]["device"] is None) == (rng_state(sitting.device)["device"] is None)
    if len(rng) == ranks.count and same_kind:
        set_rng_state(rng[ranks.rank], sitting.device)
        return
    torch.manual_seed(seed_for(sitting.context.seed, "dropout", ranks.rank, step))
    before = "1 process" if len(rng) == 1 else f"{len(rng)} processes"
    now = "another device" if len(rng) == ranks.count else str(ranks.count)
    sitting.context.reporter.note(f"{before} worked on it before, now {now}: dropout is drawn anew from step {step} on")
