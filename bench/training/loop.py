"""From a tokenised corpus to the checkpoint with the best dev score.

What the papers' scripts do, METHODS of SimCSE's code: AdamW, linear decay to 0, gradients clipped at a global norm, a dev
score every ``eval_steps`` optimiser steps, and the one checkpoint kept whose score is strictly better than all before.
The seed fixes order, initial weights and dropout; a run that was interrupted ends with the same weights as one that was not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bench.errors import Interrupted
from bench.method import Context, TrainReport
from bench.torch_method import Batch, TorchMethod
from bench.training.across import check_spread
from bench.training.batches import batch_of, batches, batches_per_epoch, row_order
from bench.training.fitting import hold_fewer_rows
from bench.training.horizon import total_steps
from bench.training.memory import ERRORS, explain_out_of_memory, is_out_of_memory, release
from bench.training.optimizer import check_schedule
from bench.training.resume import resume, save, save_is_due
from bench.training.sitting import Sitting

if TYPE_CHECKING:
    from bench.corpora import TokenisedCorpus

__all__ = ["batch_of", "batches_per_epoch", "fit", "row_order", "total_steps"]


def fit(method: TorchMethod, corpus: TokenisedCorpus, context: Context) -> TrainReport:
    """Train ``method``; its best checkpoint is in ``context.folder / "checkpoint"`` and loaded when this returns.

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
