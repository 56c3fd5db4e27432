"""The training loop that every method runs in: from a tokenised corpus to the checkpoint with the
best dev score.

It trains as the papers' scripts do, which descend from SimCSE's: AdamW, linear decay to 0,
gradients clipped at a global norm, a dev score every ``eval_steps`` optimiser steps, and the
checkpoint kept if its score is strictly better than all before. The seed fixes order, initial
weights and dropout; a run that was interrupted ends with the same weights as one that was not.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator

import torch

from bench.base.errors import Interrupted, OutOfMemory
from bench.data.corpora.token_cache import TokenisedCorpus
from bench.method import Context, TrainReport
from bench.method.batch import Batch
from bench.method.passes import float32_products, use_attention
from bench.method.torch_method import TorchMethod, is_split
from bench.records.names import CHECKPOINT
from bench.training.batches import batches
from bench.training.memory import MEMORY_ERRORS, explain_out_of_memory, is_out_of_memory
from bench.training.states import resume, save_is_due, save_state
from bench.training.trainer import Trainer


def train_method(method: TorchMethod, corpus: TokenisedCorpus, context: Context) -> TrainReport:
    """Call the method's ``fit``, then run the loop unless ``fit`` was all.

    Raises the errors of :func:`run_loop`.
    """
    report = method.fit(corpus, context)
    if report is not None:
        method.save(context.folder / CHECKPOINT)
        return report
    with contextlib.ExitStack() as stack:
        stack.enter_context(float32_products(tf32=context.precision == "tf32"))
        if context.device == "cpu" and context.precision == "bf16":
            # saves 10 to 20 % of a bf16 step; in float32 the two are equally fast
            stack.enter_context(use_attention(method.encoder, "eager"))
        # some of cuDNN's kernels round a dropout of 0.1 to sixteenths (pytorch PR 174245), and the
        # two views of a sentence would differ by another amount than the recipe says
        torch.backends.cuda.enable_cudnn_sdp(False)
        return run_loop(method, corpus, context)


def run_loop(method: TorchMethod, corpus: TokenisedCorpus, context: Context) -> TrainReport:
    """Train ``method`` to the end; its best checkpoint is then in ``context.folder /
    "checkpoint"``, and loaded.

    Raises Interrupted if ``context.should_stop()`` is true (a state to resume from is saved),
    RunFailed for a loss that is not finite or a full disk, OutOfMemory for a batch that does not
    fit.
    """
    # the initial weights, a new optimiser, all counts at 0
    return train_to_end(Trainer(method, corpus, context))


def train_to_end(trainer: Trainer) -> TrainReport:
    """Do the steps, dev scores and states that remain. Raises the errors of :func:`run_loop`."""
    ranks = trainer.ranks
    context = trainer.context

    # go on from the last saved state, if there is one
    resume(trainer)

    with contextlib.closing(remaining_batches(trainer)) as feed:
        while True:
            # every eval_steps steps: a dev score; the checkpoint is kept if it is strictly better
            if trainer.score_is_due():
                score_dev_set(trainer)

            # every LOG_EVERY steps, and with a dev score: a line of the curve
            trainer.log()

            # from time to time, and before a stop: a state to resume from. The signal of any rank
            # and the clock of rank 0 decide, so that all ranks do the same.
            stop = ranks.any(context.should_stop())
            if stop or ranks.share(save_is_due(trainer)):
                save_state(trainer)

            # the end: after the last step, when the budget is spent, or when patience is out
            if trainer.is_done():
                return trainer.finish()
            if stop:
                raise interruption(trainer)

            # one step: forward, backward, clip, update
            do_step(trainer, feed)


def remaining_batches(trainer: Trainer) -> Generator[Batch]:
    """Yield the batches of all steps that remain, each with this rank's share of the rows."""
    step = trainer.progress.step
    return batches(
        trainer.method,
        trainer.corpus,
        trainer.order(step),
        step,
        device=trainer.device,
        share=trainer.ranks.part,
    )


def do_step(trainer: Trainer, feed: Iterator[Batch]) -> None:
    """Do one step. Raises OutOfMemory, with a ``--chunk`` to go on with, if it does not fit."""
    try:
        trainer.step(feed)
    except MEMORY_ERRORS as error:
        if not is_out_of_memory(error):
            raise
        raise out_of_memory(trainer) from None


def score_dev_set(trainer: Trainer) -> None:
    """Score the dev set.

    A stop meanwhile saves a state with the score still due, and raises Interrupted.
    """
    try:
        trainer.score_dev()
    except Interrupted:
        save_state(trainer)
        raise interruption(trainer) from None
    except MEMORY_ERRORS as error:
        explain_out_of_memory(error, "scoring the dev set", trainer.method.context.device)
        raise


def interruption(trainer: Trainer) -> Interrupted:
    """Return the error that ends a training which the same command continues."""
    return Interrupted(f"stopped at {trainer.where()}; the same command goes on from there")


def out_of_memory(trainer: Trainer) -> OutOfMemory:
    """Return the error of a step that does not fit into memory."""
    progress = trainer.progress
    method = trainer.method
    at_once = min(progress.chunk or trainer.recipe.batch_size, trainer.recipe.batch_size)
    message = f"out of memory: step {progress.step + 1} with {at_once} rows at a time"
    hint = "a smaller batch_size, max_seq_length or backbone"
    if at_once > 1 and is_split(method) and trainer.ranks.count == 1:
        half = 2 ** (at_once.bit_length() - 2)
        hint = f"--chunk {half}: the same command with it goes on from the last state; or {hint}"
    return OutOfMemory(message, hint)
