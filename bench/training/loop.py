"""From a tokenised corpus to the checkpoint with the best dev score.

What the papers' scripts do, which descend from SimCSE's: AdamW, linear decay to 0, gradients clipped at a global norm, a dev
score every ``eval_steps`` optimiser steps, and the one checkpoint kept whose score is strictly better than all before.
The seed fixes order, initial weights and dropout; a run that was interrupted ends with the same weights as one that was not.
"""

from __future__ import annotations

import gc
import time
from contextlib import nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import torch

from bench.base.errors import Interrupted, OutOfMemory, RunFailed
from bench.method import Context, TrainReport, seed_for
from bench.method.features import attention, float32_products
from bench.method.torch_method import TorchMethod, check_schedule
from bench.training.batches import batches
from bench.training.gradient import check_spread
from bench.training.state import (
    Damaged,
    Progress,
    newest_good,
    read_state,
    rng_state,
    save_state,
    set_rng_state,
)
from bench.training.trainer import Trainer

if TYPE_CHECKING:
    from bench.data.corpora.token_cache import TokenisedCorpus


# --- A batch that does not fit into memory ---

SIGNS = (
    "out of memory",
    "can't allocate memory",
    "not enough memory",
    "cublas_status_alloc_failed",
)
MEMORY_ERRORS = (
    RuntimeError,
    MemoryError,
)  # what a lack of memory is raised as, among other things; torch's own is a RuntimeError


def is_out_of_memory(error: BaseException) -> bool:
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or any(
        sign in str(error).lower() for sign in SIGNS
    )


def explain_out_of_memory(error: BaseException, where: str, device: str) -> None:
    """Raises RunFailed that says where and what helps, if that is what ``error`` means; returns otherwise."""
    if is_out_of_memory(error):
        on_cpu = "end other programs that hold memory, or take a smaller backbone"
        raise RunFailed(
            f"out of memory: {where}",
            on_cpu if device == "cpu" else "free memory on the device, or --device cpu",
        ) from None


def release() -> None:
    """Give back what the step that failed had taken."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def hold_fewer_rows(trainer: Trainer) -> None:
    """After a step that did not fit: halve the rows that are held at a time, where that was asked for and the batch can be cut.

    Raises OutOfMemory otherwise.
    """
    trainer.optimizer.zero_grad(set_to_none=True)
    p, size, method = trainer.progress, trainer.recipe.batch_size, trainer.method
    step, at_once = p.step + 1, min(p.chunk or size, size)
    may_cut = trainer.context.auto_batch and method.is_split() and trainer.ranks.count == 1
    if not may_cut or at_once == 1:
        chunks = "" if at_once == 1 else "--chunk auto (holds as many rows at a time as fit), or "
        hint = f"{chunks}a smaller batch_size, max_seq_length or backbone"
        raise OutOfMemory(f"out of memory: step {step} with {at_once} rows at a time", hint)
    p.chunk = at_once // 2
    trainer.context.reporter.note(
        f"step {step} does not fit into memory: {p.chunk} of its {size} rows are held at a time"
    )


# --- The loop ---


def train(method: TorchMethod, corpus: TokenisedCorpus, context: Context) -> TrainReport:
    """What the method does itself with the corpus, and the loop, unless that was all. Raises what :func:`run_loop` raises."""
    report = method.fit(corpus, context)
    if report is not None:
        return report
    bf16_on_cpu = context.device == "cpu" and context.precision == "bf16"
    # eager saves 10 to 20 % of a bf16 step; in float32 the two are equally fast
    with (
        attention(method.encoder, "eager") if bf16_on_cpu else nullcontext(),
        float32_products(tf32=context.precision == "tf32"),
    ):
        return run_loop(method, corpus, context)


def run_loop(method: TorchMethod, corpus: TokenisedCorpus, context: Context) -> TrainReport:
    """The loop: train ``method``; its best checkpoint is in ``context.folder / "checkpoint"`` and loaded when this returns.

    Raises Interrupted when ``context.should_stop()`` says so (a state to go on from is kept), RunFailed for a loss that is
    not finite or a disk that is full, OutOfMemory for a batch that does not fit.
    """
    check_schedule(method.recipe)
    trainer = Trainer(method, corpus, context)
    note = check_spread(method, trainer.ranks, len(corpus))
    if note:
        context.reporter.note(note)
    if not resume(trainer) and context.auto_batch:
        save(trainer)  # what a step that does not fit leaves behind is undone from here
    while not train_to_end(trainer):
        hold_fewer_rows(trainer)  # or raises OutOfMemory
        resume(trainer)
    return trainer.finish()


def train_to_end(trainer: Trainer) -> bool:
    """All steps that are left, with their dev scores, lines of the curve and states. False where a step did not fit into memory."""
    context, ranks, step = trainer.context, trainer.ranks, trainer.progress.step
    feed = batches(
        trainer.method,
        trainer.corpus,
        trainer.order(step),
        step,
        device=trainer.device,
        share=ranks.part,
    )
    try:
        while True:
            if trainer.score_is_due():
                _score(trainer)
            trainer.log()
            stop = ranks.any(context.should_stop())
            if stop or ranks.share(save_is_due(trainer)):
                save(trainer)
            if trainer.is_done():
                return True
            if stop:
                raise interruption(trainer)
            try:
                trainer.step(feed)
            except MEMORY_ERRORS as error:
                if not is_out_of_memory(error):
                    raise
                break
    finally:
        feed.close()
    release()  # not while the error is handled: it holds on to the tensors of the step
    return False


def _score(trainer: Trainer) -> None:
    """A stop while scoring keeps a state in which the score is still due."""
    try:
        trainer.evaluate()
    except Interrupted:
        save(trainer)
        raise interruption(trainer) from None
    except MEMORY_ERRORS as error:
        explain_out_of_memory(error, "scoring the dev set", trainer.method.context.device)
        raise


def interruption(trainer: Trainer) -> Interrupted:
    return Interrupted(f"stopped at {trainer.where()}; the same command goes on from there")


# --- Keeping all that a training needs to go on, and going on from there as if nothing had happened ---

SAVING = 0.1  # share of the time that may go into saving states, where a disk is slow


def save_is_due(trainer: Trainer) -> bool:
    wait = trainer.context.save_seconds
    return wait <= 0 or time.monotonic() - trainer.saved > max(wait, trainer.save_took / SAVING)


def save(trainer: Trainer) -> None:
    """Keep weights, optimiser, random generators of every rank, counts, and what the curve still lacks.

    Raises RunFailed where it cannot be written, or where the loss is no number: a training that is lost is not kept.
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
        trainer.states,
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
    """Put the trainer where the newest good state was; False where there is none. What came after that state is taken back."""
    note, chunk = trainer.context.reporter.note, trainer.progress.chunk

    def take_back() -> None:
        trainer.checkpoints.forget_after(trainer.progress.step)
        trainer.curve.go_back_to(trainer.progress.logged)

    state = trainer.ranks.first(
        lambda: newest_good(trainer.states, lambda state: _check(state, trainer), note)
    )
    if state is not None:
        _restore(read_state(state), trainer)
        trainer.progress.chunk = (
            chunk or trainer.progress.chunk
        )  # what the command says, or what was found to fit, holds
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
        raise Damaged("it is of another version of this training")
    if progress.best_score is not None:
        trainer.checkpoints.check(progress.best_step, progress.best_files)


def _restore(state: dict[str, Any], trainer: Trainer) -> None:
    trainer.progress, trainer.entry = Progress(**state["progress"]), state["entry"]
    trainer.window = [
        {name: loss.to(trainer.device) for name, loss in step.items()} for step in state["window"]
    ]
    trainer.method.load_state_dict(state["trained"], strict=False)
    trainer.optimizer.load_state_dict(state["optimizer"])
    trainer.scaler = trainer.new_scaler()  # one that a step has left half-way refuses the next
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
