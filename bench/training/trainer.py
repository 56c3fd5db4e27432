"""The parts of a training that change from step to step: one step, what is counted and logged, a
dev score.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch

from bench.base.errors import RunFailed
from bench.data.corpora.token_cache import TokenisedCorpus
from bench.method import Context, TrainReport, seed_for
from bench.method.batch import Batch
from bench.method.ranks import ALONE
from bench.method.torch_method import TorchMethod
from bench.records.names import CHECKPOINT
from bench.training.batches import Rows, row_order
from bench.training.checkpoints import Checkpoints
from bench.training.curve import TrainingCurve
from bench.training.distinct import distinct_row_order
from bench.training.gradient import backward
from bench.training.progress import ENDLESS, Horizon, Progress
from bench.training.state_files import Damaged

KEPT = "what was saved before that step is kept"
NOT_FINITE = (
    "look at these rows if it is the first step; "
    "otherwise lower --set learning_rate=, or use --precision fp32"
)
SHOWN = 8
"""Rows of a batch that an error names."""
LOG_EVERY = 25
"""Steps between two lines of curve.jsonl; also between two waits for the device."""
HALF = {"bf16": torch.bfloat16, "fp16": torch.float16}
"""Precision -> the type of the forward pass. Other precisions compute in float32."""


class Trainer:
    """The training of one method on one corpus, between two steps.

    It begins with the initial weights; :func:`bench.training.states.resume` restores a saved state.
    """

    def __init__(self, method: TorchMethod, corpus: TokenisedCorpus, context: Context) -> None:
        self.method = method
        self.corpus = corpus
        self.context = context
        self.recipe = method.recipe
        self.ranks = context.ranks or ALONE
        self.device = torch.device(context.device)
        self.horizon = Horizon(self.recipe, len(corpus))
        self.progress = Progress(chunk=context.config.chunk)
        # the losses of each step since the last line of the curve, on the device
        self.window: list[dict[str, torch.Tensor]] = []
        # the next line of the curve
        self.entry: dict[str, Any] = {}
        # the newest value of everything that was ever logged
        self.latest: dict[str, Any] = {}
        self.checkpoints = Checkpoints(context.folder)
        self.curve = TrainingCurve(context.folder)
        # when the last state was written, and how many seconds that took
        self.saved_at = time.monotonic()
        self.save_took = 0.0

        self._seed_dropout()
        method.to(self.device)
        self.ranks.start_alike(method)
        method.train()
        method.encoder.train()
        if context.config.compile:
            # an attribute of this one object: names of weights stay, and compute_exactly takes it
            # away for what is scored
            method.encoder.forward = torch.compile(method.encoder.forward)
        self.optimizer = method.optimizer()
        self.scaler = self.new_scaler()
        self.trained = [p for group in self.optimizer.param_groups for p in group["params"]]

    def _seed_dropout(self) -> None:
        """Seed the random numbers of the forward pass; the first rank draws the same as a single
        process.
        """
        rank = self.ranks.rank
        parts = ("dropout", rank) if rank else ("dropout",)
        torch.manual_seed(seed_for(self.context.seed, *parts))

    def new_scaler(self) -> torch.amp.GradScaler:
        """Return a scaler of the loss, which does something only with fp16."""
        return torch.amp.GradScaler(self.device.type, enabled=self.context.precision == "fp16")

    def finish(self) -> TrainReport:
        """Make the best checkpoint the run's, load it, and report the training.

        Raises RunFailed if the last weights are kept and are not finite, or if the best checkpoint
        was altered.
        """
        p = self.progress
        if p.best_score is None:
            self.check_sound()
        self.ranks.first(self._settle_checkpoint)
        self.method.load(self.context.folder / CHECKPOINT)
        return TrainReport(
            steps=p.step,
            best_step=p.best_step or p.step,
            dev_score=p.best_score,
            train_seconds=p.train_seconds,
            dev_seconds=p.dev_seconds,
            sentences=p.rows,
            tokens=p.tokens,
            execution=self._execution(),
        )

    def _execution(self) -> dict[str, Any]:
        """Return the facts of the execution that a record keeps."""
        execution: dict[str, Any] = {}
        ranks = self.progress.ranks
        if len(ranks) > 1:
            execution["ranks"] = ranks
        elif ranks and ranks != [1]:
            execution["ranks"] = ranks[0]
        if self.progress.chunk is not None:
            execution["chunk"] = self.progress.chunk
        if self.context.config.compile:
            execution["compiled"] = True
        return execution

    def _settle_checkpoint(self) -> None:
        """Make the best checkpoint the run's.

        Without a dev score it is the last step's; others are checked by their hashes.
        """
        p = self.progress
        try:
            if p.best_score is None:
                p.best_step = p.step
                p.best_files = self.checkpoints.keep(p.step, self.method.save)
            self.checkpoints.check(p.best_step, p.best_files)
        except Damaged as problem:
            raise RunFailed(str(problem), "the same command goes on from the last state") from None
        self.checkpoints.finish(p.best_step)

    def keep_checkpoint(self) -> None:
        """Keep the weights as the best checkpoint. Raises RunFailed if they cannot be written."""
        p = self.progress
        p.best_files = self.checkpoints.keep(p.step, self.method.save)

    def is_done(self) -> bool:
        """Return True after the last step, and if as many dev scores as ``patience`` in a row were
        not better.
        """
        if self.horizon.reached(self.progress):
            return True
        patience = self.recipe.patience
        return patience is not None and self.progress.worse >= patience

    def where(self) -> str:
        """Return "step 120 of 1000", or "step 120" if tokens or a clock end the training."""
        if self.horizon.steps is None:
            return f"step {self.progress.step}"
        return f"step {self.progress.step} of {self.horizon.steps}"

    def step(self, feed: Iterator[Batch]) -> None:
        """Do one update with the next batch. Its time includes making the batch.

        Raises RunFailed for a loss that is not finite, at the next line of the curve.
        """
        began = time.perf_counter()
        p = self.progress
        batch = next(feed)

        # the learning rate of this step
        rate = float(self.method.learning_rate(p.step, self.horizon.steps_at(p)))
        for group in self.optimizer.param_groups:
            group["lr"] = rate

        # the gradient, and the update with it
        self.window.append(self._update(batch))

        # the counts; a summary waits for the device, and so belongs to the time of a step
        p.step += 1
        p.rows += batch.whole or batch.size
        p.tokens += batch.tokens
        if len(self.window) >= LOG_EVERY:
            self._summarise(rate)
        taken = time.perf_counter() - began
        if self.horizon.budget and self.horizon.budget.timed:
            # all ranks end at the same step
            taken = self.ranks.share(taken)
        p.train_seconds += taken
        p.device_seconds += taken * self.ranks.count
        if self.window and self.horizon.reached(p):
            self._summarise(rate)

    def _update(self, batch: Batch) -> dict[str, torch.Tensor]:
        """Do one update with a batch, and return its losses, on the device."""
        # the gradient: of the whole batch, over all ranks
        half = HALF.get(self.context.precision)
        losses = backward(
            self.method,
            batch,
            chunk=self.progress.chunk,
            autocast=torch.autocast(self.device.type, half, enabled=half is not None),
            scaler=self.scaler,
        )
        self.ranks.mean_gradients(self.trained)
        self.scaler.unscale_(self.optimizer)
        if self.recipe.max_grad_norm:
            torch.nn.utils.clip_grad_norm_(self.trained, self.recipe.max_grad_norm)

        # the update
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        return losses

    def _summarise(self, rate: float) -> None:
        """Make the next line of the curve: the means since the last one."""
        self.check_finite()
        self.entry = {"step": self.progress.step}
        for name in self.window[0]:
            values = torch.stack([losses[name] for losses in self.window])
            self.entry[name] = values.mean().item()
        self.entry["learning_rate"] = rate
        self.window.clear()

    def check_finite(self) -> None:
        """Raises RunFailed for the first loss of the window that is not finite: before it is
        averaged, scored or saved.
        """
        if not self.window:
            return
        losses = torch.stack([of_step["loss"] for of_step in self.window]).tolist()
        for step, loss in enumerate(losses, self.progress.step - len(losses) + 1):
            if math.isfinite(loss):
                continue
            _, rows = next(self.order(step - 1))
            numbers = ", ".join(str(row + 1) for row in rows[:SHOWN].tolist())
            more = f" and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
            raise RunFailed(
                f"the loss became {loss} at step {step}, on rows {numbers}{more} of the corpus; "
                f"{KEPT}",
                NOT_FINITE,
            )

    def check_sound(self) -> None:
        """Raises RunFailed for a loss or a weight that is not finite: such weights are not stored
        or scored.
        """
        self.check_finite()
        finite = [weights.detach().isfinite().all() for weights in self.trained]
        if not bool(torch.stack(finite).all()):
            # from a gradient that was not finite although the loss was
            raise RunFailed(
                f"weights became NaN or infinite by step {self.progress.step}; {KEPT}", NOT_FINITE
            )

    def order(self, done: int) -> Iterator[tuple[int, Rows]]:
        """Return (epoch, row numbers) of every step after the first ``done``, for the whole batch,
        over all ranks.
        """
        if self.recipe.get("duplicates") == "drop":
            return distinct_row_order(
                self.context.seed,
                self.corpus.text_hashes,
                self.recipe.batch_size,
                self.recipe.drop_last,
                first=done,
            )
        return row_order(
            self.context.seed,
            len(self.corpus),
            self.recipe.batch_size,
            self.recipe.drop_last,
            first=done,
        )

    def log(self) -> None:
        """Write the next line of the curve, if there is one, and report the progress."""
        p = self.progress
        if self.entry:
            speed = p.rows / p.train_seconds if p.train_seconds else 0.0
            self.entry["sentences_per_second"] = round(speed, 1)
            self.ranks.first(partial(self.curve.add, self.entry))
            self.latest |= self.entry | {"best": p.best_score, "best_step": p.best_step}
            p.logged = p.step
            self.entry = {}
        # with a budget in tokens or time it changes with the pace
        steps = self.horizon.steps_at(p)
        total = steps if steps < ENDLESS else None
        self.context.reporter.advance(p.step, **self.latest, total=total)

    def score_is_due(self) -> bool:
        """Return True every ``eval_steps`` steps, and at the end if there is no score yet."""
        p = self.progress
        if self.context.dev_score is None or p.step == 0 or p.scored == p.step:
            return False
        if p.step % self.recipe.eval_steps == 0:
            return True
        return p.best_step == 0 and self.horizon.reached(p)

    def score_dev(self) -> None:
        """Score the dev set, and keep the checkpoint if it is strictly better than all before."""
        began = time.perf_counter()
        p = self.progress
        score_of = self.context.dev_score
        assert score_of is not None
        # else the scored vectors would be blamed
        self.check_sound()
        self.context.reporter.advance(p.step, **self.latest)
        self.context.reporter.phase("dev")
        score = float(self.ranks.first(partial(self.method.dev_score, score_of)))
        if p.best_score is None or score > p.best_score:
            self.ranks.first(self.keep_checkpoint)
            p.best_step = p.step
            p.best_score = score
            p.worse = 0
        else:
            p.worse += 1
        p.scored = p.step
        self.entry = {"step": p.step, **self.entry, "dev_score": score}
        p.dev_seconds += time.perf_counter() - began
        self.context.reporter.phase("train", self.horizon.steps)
