"""The training loop that every method runs in: from a tokenised corpus to the checkpoint with the best dev score.

What the papers' scripts do, which descend from SimCSE's: AdamW, linear decay to 0, gradients clipped at a global norm, a dev
score every ``eval_steps`` optimiser steps, and the checkpoint kept whose score is strictly better than all before.
The seed fixes order, initial weights and dropout; a run that was interrupted ends with the same weights as one that was not.
"""

from __future__ import annotations

import contextlib
import gc
import time

import torch

from bench.base.errors import Interrupted, OutOfMemory
from bench.data.corpora.token_cache import TokenisedCorpus
from bench.method import Context, TrainReport, check_choice
from bench.method.checks import check_last_batch
from bench.method.torch_method import TorchMethod, attention, float32_products
from bench.training.batches import batches
from bench.training.memory import MEMORY_ERRORS, explain_out_of_memory, is_out_of_memory
from bench.training.spread import check_spread
from bench.training.states import SAVING, resume, save
from bench.training.trainer import Trainer


def hold_fewer_rows(trainer: Trainer) -> None:
    """After a step that did not fit: halve the rows that are held at a time, with --chunk auto and a batch that can be cut.

    Raises OutOfMemory otherwise.
    """
    trainer.optimizer.zero_grad(set_to_none=True)
    p, size, method = trainer.progress, trainer.recipe.batch_size, trainer.method
    step, at_once = p.step + 1, min(p.chunk or size, size)
    may_cut = trainer.context.auto_batch and method.is_split() and trainer.ranks.count == 1
    if not may_cut or at_once == 1:
        chunks = "" if at_once == 1 else "--chunk auto (holds as many rows at a time as fit), or "
        raise OutOfMemory(
            f"out of memory: step {step} with {at_once} rows at a time",
            f"{chunks}a smaller batch_size, max_seq_length or backbone",
        )
    p.chunk = at_once // 2
    trainer.context.reporter.note(
        f"step {step} does not fit into memory: {p.chunk} of its {size} rows are held at a time"
    )


def train(method: TorchMethod, corpus: TokenisedCorpus, context: Context) -> TrainReport:
    """The method's ``fit``, then the loop, unless ``fit`` was all. Raises what :func:`run_loop` raises."""
    if (report := method.fit(corpus, context)) is not None:
        return report
    bf16_on_cpu = context.device == "cpu" and context.precision == "bf16"
    # eager saves 10 to 20 % of a bf16 step; in float32 the two are equally fast
    with (
        attention(method.encoder, "eager") if bf16_on_cpu else contextlib.nullcontext(),
        float32_products(tf32=context.precision == "tf32"),
    ):
        return run_loop(method, corpus, context)


def run_loop(method: TorchMethod, corpus: TokenisedCorpus, context: Context) -> TrainReport:
    """The loop: train ``method``; its best checkpoint is in ``context.folder / "checkpoint"`` and loaded when this returns.

    Raises Interrupted when ``context.should_stop()`` is true (a state to resume from is saved), RunFailed for a loss that is
    not finite or a full disk, OutOfMemory for a batch that does not fit.
    """
    check_choice(method.recipe, "schedule", ("linear", "constant"))
    check_last_batch(method, method.recipe, len(corpus))
    trainer = Trainer(method, corpus, context)
    if note := check_spread(method, trainer.ranks, len(corpus)):
        context.reporter.note(note)
    if not resume(trainer) and context.auto_batch:
        save(trainer)  # from which to resume after a step that does not fit
    while not train_to_end(trainer):
        hold_fewer_rows(trainer)  # or raises OutOfMemory
        resume(trainer)
    return trainer.finish()


def train_to_end(trainer: Trainer) -> bool:
    """All remaining steps, with their dev scores, lines of the curve and states. False where a step did not fit into memory."""
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
            due = context.save_seconds <= 0 or time.monotonic() - trainer.saved > max(
                context.save_seconds, trainer.save_took / SAVING
            )
            if stop or ranks.share(due):
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
    # free the memory of the failed step; not while the error is handled: it refers to the step's tensors
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return False


def _score(trainer: Trainer) -> None:
    """A stop while scoring saves a state in which the score is still due."""
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
