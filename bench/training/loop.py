"""From a tokenised corpus to the checkpoint with the best dev score.

What the papers' scripts do, which descend from SimCSE's: AdamW, linear decay to 0, gradients clipped at a global norm, a dev
score every ``eval_steps`` optimiser steps, and the one checkpoint kept whose score is strictly better than all before.
The seed fixes order, initial weights and dropout; a run that was interrupted ends with the same weights as one that was not.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import torch

from bench.base.errors import Interrupted
from bench.method import Context, TrainReport, seed_for
from bench.method.features import attention, float32_products
from bench.method.optimizer import check_schedule
from bench.method.torch_method import Batch, TorchMethod
from bench.training.batches import batch_of, batches, batches_per_epoch, row_order
from bench.training.checkpoints import Damaged
from bench.training.gradient import check_spread
from bench.training.horizon import total_steps
from bench.training.memory import ERRORS, explain_out_of_memory, hold_fewer_rows, is_out_of_memory, release
from bench.training.state import Progress, newest_good, read_state, rng_state, save_state, set_rng_state
from bench.training.trainer import Sitting

if TYPE_CHECKING:
    from bench.data.corpora import TokenisedCorpus


__all__ = ["batch_of", "batches_per_epoch", "fit", "row_order", "total_steps", "train"]


def train(method: TorchMethod, corpus: TokenisedCorpus, context: Context) -> TrainReport:
    """What the method does itself with the corpus, and the loop, unless that was all. Raises what :func:`fit` raises."""
    report = method.fit(corpus, context)
    if report is not None:
        return report
    bf16_on_cpu = context.device == "cpu" and context.precision == "bf16"
    # eager saves 10 to 20 % of a bf16 step; in float32 the two are equally fast
    with (
        attention(method.encoder, "eager") if bf16_on_cpu else nullcontext(),
        float32_products(tf32=context.precision == "tf32"),
    ):
        return fit(method, corpus, context)


def fit(method: TorchMethod, corpus: TokenisedCorpus, context: Context) -> TrainReport:
    """The loop: train ``method``; its best checkpoint is in ``context.folder / "checkpoint"`` and loaded when this returns.

    Raises Interrupted when ``context.should_stop()`` says so (a state to go on from is kept), RunFailed for a loss that is
    not finite or a disk that is full, OutOfMemory for a batch that does not fit.
    """
    check_schedule(method.recipe)
    sitting = Sitting(method, corpus, context)
    note = check_spread(method, sitting.ranks, len(corpus))
    if note:
        context.reporter.note(note)
    if not resume(sitting) and context.auto_batch:
        save(sitting)  # what a step that does not fit leaves behind is undone from here
    while not to_the_end(sitting):
        hold_fewer_rows(sitting)  # or raises OutOfMemory
        resume(sitting)
    return sitting.finish()


def to_the_end(sitting: Sitting) -> bool:
    """All steps that are left, with their dev scores, lines of the curve and states. False where a step did not fit into memory."""
    context, ranks, step = sitting.context, sitting.ranks, sitting.progress.step
    order = row_order(context.seed, len(sitting.corpus), sitting.recipe.batch_size, sitting.recipe.drop_last, first=step)
    feed = batches(sitting.method, sitting.corpus, order, step, device=sitting.device, share=ranks.part)
    try:
        while True:
            if sitting.score_is_due():
                _score(sitting)
            sitting.log()
            stop = ranks.any(context.should_stop())
            if stop or ranks.share(save_is_due(sitting)):
                save(sitting)
            if sitting.is_done():
                return True
            if stop:
                raise stopped(sitting)
            if not _fits(sitting, feed):
                break
    finally:
        feed.close()
    release()  # not while the error is handled: it holds on to the tensors of the step
    return False


def _fits(sitting: Sitting, feed: Iterator[Batch]) -> bool:
    """One step; False where it did not fit into memory."""
    try:
        sitting.step(feed)
        return True
    except ERRORS as error:
        if not is_out_of_memory(error):
            raise
        return False


def _score(sitting: Sitting) -> None:
    """A stop while scoring keeps a state in which the score is still due."""
    try:
        sitting.evaluate()
    except Interrupted:
        save(sitting)
        raise stopped(sitting) from None
    except ERRORS as error:
        explain_out_of_memory(error, "scoring the dev set", sitting.method.context.device)
        raise


def stopped(sitting: Sitting) -> Interrupted:
    return Interrupted(f"stopped at {sitting.where()}; the same command goes on from there")


# --- keeping all that a training needs to go on, and going on from there as if nothing had happened ---

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
