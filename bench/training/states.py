"""Everything that a training needs to resume: saved from time to time, and restored as if nothing
had happened.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

import torch

from bench.method import seed_for
from bench.method.torch_method import training_state
from bench.training.progress import Progress
from bench.training.state_files import STATE, Damaged, read_state, write_state
from bench.training.trainer import Trainer

SAVING = 0.1
"""The largest share of the time that is spent on saving states, even if a disk is slow."""


def save_is_due(trainer: Trainer) -> bool:
    """Return True if the last state is older than ``save_seconds``, and saving does not take too
    much of the time.
    """
    wanted = trainer.context.config.save_seconds
    if wanted <= 0:
        return True
    return time.monotonic() - trainer.saved_at > max(wanted, trainer.save_took / SAVING)


def save_state(trainer: Trainer) -> None:
    """Save a state.

    Raises RunFailed if it cannot be written, or if a loss or a weight is not finite: a lost
    training is not saved.
    """
    trainer.check_sound()
    began = time.monotonic()
    rng = trainer.ranks.gather(rng_state(trainer.device))
    trainer.ranks.first(partial(_write, trainer, rng))
    trainer.saved_at = time.monotonic()
    trainer.save_took = trainer.saved_at - began


def _write(trainer: Trainer, rng: list[dict[str, Any]]) -> None:
    if trainer.progress.logged:
        trainer.curve.sync()
    write_state(trainer.checkpoints.state, content_of(trainer, rng))
    trainer.checkpoints.keep_only(trainer.progress.best_step)


def content_of(trainer: Trainer, rng: list[dict[str, Any]]) -> dict[str, Any]:
    """Return all that is resumed. ``rng``: the states of the random generators of every rank."""
    return {
        "trained": training_state(trainer.method),
        "optimizer": trainer.optimizer.state_dict(),
        "scaler": trainer.scaler.state_dict(),
        "progress": asdict(trainer.progress),
        "window": trainer.window,
        "entry": trainer.entry,
        "rng": rng,
    }


def restore(trainer: Trainer, state: Mapping[str, Any]) -> None:
    """Restore the content of :func:`content_of`."""
    trainer.method.load_state_dict(state["trained"], strict=False)
    trainer.optimizer.load_state_dict(state["optimizer"])
    # a new one: after an unfinished step the old one refuses the next
    trainer.scaler = trainer.new_scaler()
    trainer.scaler.load_state_dict(state["scaler"])
    trainer.progress = Progress(**state["progress"])
    trainer.window = []
    for losses in state["window"]:
        moved = {name: loss.to(trainer.device) for name, loss in losses.items()}
        trainer.window.append(moved)
    trainer.entry = state["entry"]
    _restore_rng(trainer, state["rng"])


def _restore_rng(trainer: Trainer, rng: list[dict[str, Any]]) -> None:
    """Restore the random generators, or seed them for this step if the processes or the device are
    others.
    """
    ranks = trainer.ranks
    step = trainer.progress.step
    had_device = rng[0]["device"] is not None
    has_device = rng_state(trainer.device)["device"] is not None
    if len(rng) == ranks.count and had_device == has_device:
        set_rng_state(rng[ranks.rank], trainer.device)
        return
    torch.manual_seed(seed_for(trainer.context.seed, "dropout", ranks.rank, step))
    trainer.context.reporter.note(
        "other processes or another device worked on it before: "
        f"dropout is drawn anew from step {step} on"
    )


def resume(trainer: Trainer) -> None:
    """Restore the trainer from the saved state, if there is one, and undo what came after it."""
    # set by the command
    chunk = trainer.progress.chunk
    folder = trainer.checkpoints.state
    if trainer.ranks.first(partial(_is_usable, trainer)):
        state = read_state(folder)
        assert state is not None
        restore(trainer, state)
        trainer.progress.chunk = chunk or trainer.progress.chunk
        trainer.context.reporter.note(f"goes on from {trainer.where()}")
    if trainer.progress.ranks[-1:] != [trainer.ranks.count]:
        trainer.progress.ranks.append(trainer.ranks.count)
    trainer.ranks.first(partial(_undo_later, trainer))
    trainer.context.reporter.phase("train", trainer.horizon.steps)


def _undo_later(trainer: Trainer) -> None:
    trainer.checkpoints.keep_only(trainer.progress.best_step)
    trainer.curve.go_back_to(trainer.progress.logged)


def _is_usable(trainer: Trainer) -> bool:
    """Say if there is a state to go on from; a damaged one is removed, and a line says so."""
    folder = trainer.checkpoints.state
    try:
        state = read_state(folder)
        if state is not None:
            _check(trainer, state)
    except Damaged as problem:
        (folder / STATE).unlink(missing_ok=True)
        trainer.context.reporter.note(
            f"the training state cannot be used: {problem}; training starts again"
        )
        return False
    return state is not None


def _check(trainer: Trainer, state: dict[str, Any]) -> None:
    """Raise Damaged if a state is not of this training, or its best checkpoint was altered."""
    try:
        progress = Progress(**state["progress"])
        whole = {"optimizer", "scaler", "window", "entry", "rng"} <= state.keys()
        same = whole and state["trained"].keys() == training_state(trainer.method).keys()
    except (KeyError, TypeError, AttributeError):
        same = False
    if not same:
        raise Damaged("it is from another version of this training")
    if progress.best_score is not None:
        trainer.checkpoints.check(progress.best_step, progress.best_files)


def rng_state(device: torch.device) -> dict[str, Any]:
    """Return the states of torch's random generators: of the CPU, and of the device unless it is
    the CPU.
    """
    state: dict[str, Any] = {"cpu": torch.get_rng_state(), "device": None}
    if device.type != "cpu":
        # torch.cuda or torch.mps
        state["device"] = getattr(torch, device.type).get_rng_state(device)
    return state


def set_rng_state(state: Mapping[str, Any], device: torch.device) -> None:
    """Set torch's random generators to the states that :func:`rng_state` returned."""
    torch.set_rng_state(state["cpu"])
    if state["device"] is not None and device.type != "cpu":
        getattr(torch, device.type).set_rng_state(state["device"], device)
