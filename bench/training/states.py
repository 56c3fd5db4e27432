"""Everything that a training needs to resume: saved from time to time, and restored as if nothing had happened."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import torch

from bench.method import seed_for
from bench.training.progress import Progress
from bench.training.state_files import Damaged, newest_good, read_state, save_state
from bench.training.trainer import Trainer

SAVING = 0.1  # the largest share of the time for saving states, where a disk is slow


def save(trainer: Trainer) -> None:
    """Save weights, optimiser, random generators of every rank, counts, and what the curve does not have yet.

    Raises RunFailed where it cannot be written, or where the loss is not finite: a training that is lost is not saved.
    """
    trainer.check_sound()
    began = time.monotonic()
    rng = trainer.ranks.gather(rng_state(trainer.device))
    trainer.ranks.first(lambda: _write(trainer, rng))
    trainer.saved = time.monotonic()
    trainer.save_took = trainer.saved - began


def _write(trainer: Trainer, rng: list[dict[str, Any]]) -> None:
    if trainer.progress.logged:
        trainer.curve.sync()
    steps = save_state(
        trainer.checkpoints.state,
        trainer.progress.step,
        {
            "trained": trainer.method.training_state(),
            "optimizer": trainer.optimizer.state_dict(),
            "scaler": trainer.scaler.state_dict(),
            "progress": asdict(trainer.progress),
            "window": trainer.window,
            "entry": trainer.entry,
            "rng": rng,
        },
    )
    trainer.checkpoints.forget_all_but(steps)


def resume(trainer: Trainer) -> bool:
    """Restore the trainer from the newest good state; False where there is none. Undoes what came after that state."""
    note, chunk = trainer.context.reporter.note, trainer.progress.chunk

    def take_back() -> None:
        trainer.checkpoints.forget_after(trainer.progress.step)
        trainer.curve.go_back_to(trainer.progress.logged)

    state = trainer.ranks.first(
        lambda: newest_good(trainer.checkpoints.state, lambda state: _check(state, trainer), note)
    )
    if state is not None:
        _restore(read_state(state), trainer)
        # what the command sets, or what did fit
        trainer.progress.chunk = chunk or trainer.progress.chunk
        note(f"goes on from {trainer.where()}")
    if trainer.progress.ranks[-1:] != [trainer.ranks.count]:
        trainer.progress.ranks.append(trainer.ranks.count)
    trainer.ranks.first(take_back)
    trainer.context.reporter.phase("train", trainer.horizon.steps)
    return state is not None


def _check(state: dict[str, Any], trainer: Trainer) -> None:
    """Raises Damaged where a state is not of this training, or its best checkpoint was altered."""
    try:
        progress = Progress(**state["progress"])
        whole = {"optimizer", "scaler", "window", "entry", "rng"} <= state.keys()
        same = whole and state["trained"].keys() == trainer.method.training_state().keys()
    except (KeyError, TypeError, AttributeError):
        same = False
    if not same:
        raise Damaged("it is from another version of this training")
    if progress.best_score is not None:
        trainer.checkpoints.check(progress.best_step, progress.best_files)


def _restore(state: dict[str, Any], trainer: Trainer) -> None:
    trainer.progress, trainer.entry = Progress(**state["progress"]), state["entry"]
    trainer.window = [
        {name: loss.to(trainer.device) for name, loss in step.items()} for step in state["window"]
    ]
    trainer.method.load_state_dict(state["trained"], strict=False)
    trainer.optimizer.load_state_dict(state["optimizer"])
    trainer.scaler = trainer.new_scaler()  # after an unfinished step it refuses the next
    trainer.scaler.load_state_dict(state["scaler"])
    ranks, rng, step = trainer.ranks, state["rng"], trainer.progress.step
    same_kind = (rng[0]["device"] is None) == (rng_state(trainer.device)["device"] is None)
    if len(rng) == ranks.count and same_kind:
        set_rng_state(rng[ranks.rank], trainer.device)
        return
    torch.manual_seed(seed_for(trainer.context.seed, "dropout", ranks.rank, step))
    trainer.context.reporter.note(
        f"other processes or another device worked on it before: dropout is drawn anew from step {step} on"
    )


def rng_state(device: torch.device) -> dict[str, Any]:
    """The states of torch's generators, of the CPU and the device."""
    return {
        "cpu": torch.get_rng_state(),
        "device": None
        if device.type == "cpu"
        else getattr(torch, device.type).get_rng_state(device),  # torch.cuda or torch.mps
    }


def set_rng_state(state: Mapping[str, Any], device: torch.device) -> None:
    torch.set_rng_state(state["cpu"])
    if state["device"] is not None and device.type != "cpu":
        getattr(torch, device.type).set_rng_state(state["device"], device)
