"""The parts of a training that change from step to step: one step, what is counted and logged, a dev score."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from bench.base.errors import RunFailed
from bench.base.files import write_whole
from bench.data.corpora.columns import NUMBERS
from bench.data.corpora.token_cache import TokenisedCorpus
from bench.method import Context, TrainReport, seed_for
from bench.method.ranks import ALONE
from bench.method.torch_method import Batch, TorchMethod
from bench.records.names import FAILED_BATCH
from bench.training.batches import Rows, row_order
from bench.training.checkpoints import Checkpoints
from bench.training.compiled import compile_encoder
from bench.training.curve import TrainingCurve
from bench.training.gradient import backward
from bench.training.progress import ENDLESS, Horizon, Progress
from bench.training.state_files import Damaged

KEPT = "what was saved before that step is kept"
NOT_FINITE = "look at these rows if it is the first step; otherwise lower --set learning_rate=, or use --precision fp32"
LOG_EVERY = 25  # steps between two lines of curve.jsonl; also between two waits for the device


class Trainer:
    """Of ``method`` on ``corpus``, from its beginning or from where :func:`bench.training.states.resume` puts it."""

    def __init__(self, method: TorchMethod, corpus: TokenisedCorpus, context: Context) -> None:
        self.method, self.corpus, self.context, self.recipe = method, corpus, context, method.recipe
        self.ranks = context.ranks or ALONE
        self.device = torch.device(context.device)
        self.horizon = Horizon(self.recipe, len(corpus))
        self.progress = Progress(chunk=context.chunk)
        self.window: list[dict[str, torch.Tensor]] = []  # losses since the last line of the curve
        self.entry: dict[str, Any] = {}  # the next line of the curve
        self.latest: dict[str, Any] = {}  # the newest value of everything that was ever logged
        self.checkpoints, self.curve = Checkpoints(context.folder), TrainingCurve(context.folder)
        # when the last state was written, and how long that took
        self.saved, self.save_took = time.monotonic(), 0.0
        rank = (self.ranks.rank,) if self.ranks.rank else ()
        torch.manual_seed(seed_for(context.seed, "dropout", *rank))
        method.to(self.device)
        self.ranks.start_alike(method)
        method.train()
        method.encoder.train()
        self.is_compiled = (
            compile_encoder(method.encoder, context.reporter.note)
            if context.compiled
            else lambda: False
        )
        self.optimizer = method.optimizer()
        self.scaler = self.new_scaler()
        self.trained = [p for group in self.optimizer.param_groups for p in group["params"]]

    # beginning and end

    def new_scaler(self) -> torch.amp.GradScaler:
        return torch.amp.GradScaler(self.device.type, enabled=self.context.precision == "fp16")

    def finish(self) -> TrainReport:
        p, method = self.progress, self.method
        if p.best_score is None:
            self.check_sound()
        if self.window:  # patience ended the training between two lines of the curve
            self.count_idle()
        if p.idle > 1:
            self.context.reporter.note(f"the loss was exactly 0 in {p.idle} of {p.step} steps")
        self.ranks.first(self._settle_checkpoint)
        method.load(self.context.folder / "checkpoint")
        execution: dict[str, Any] = {
            "ranks": None if p.ranks == [1] else p.ranks[0] if len(p.ranks) == 1 else p.ranks,
            "chunk": p.chunk,
            "compiled": self.is_compiled() or None,
        }
        return TrainReport(
            steps=p.step,
            best_step=p.best_step or p.step,
            dev_score=p.best_score,
            train_seconds=p.train_seconds,
            dev_seconds=p.dev_seconds,
            sentences=p.rows,
            tokens=p.tokens,
            execution={key: value for key, value in execution.items() if value is not None},
        )

    def _settle_checkpoint(self) -> None:
        """Make the best checkpoint the run's: the last step's where nothing was scored, else checked against its hashes."""
        p = self.progress
        try:
            if p.best_score is None:
                p.best_step, p.best_files = p.step, self.checkpoints.keep(p.step, self.method.save)
            self.checkpoints.check(p.best_step, p.best_files)
        except Damaged as problem:
            raise RunFailed(
                str(problem), "the same command goes on from the last good state"
            ) from None
        self.checkpoints.finish(p.best_step)
        (self.context.folder / FAILED_BATCH).unlink(missing_ok=True)

    def is_done(self) -> bool:
        return self.horizon.reached(self.progress) or (
            self.recipe.patience is not None and self.progress.worse >= self.recipe.patience
        )

    def where(self) -> str:
        return f"step {self.progress.step}" + (
            f" of {self.horizon.steps}" if self.horizon.steps is not None else ""
        )

    # one step

    def step(self, feed: Iterator[Batch]) -> None:
        """One update with the next batch. Its time includes making the batch."""
        began = time.perf_counter()
        batch, p = next(feed), self.progress
        rate = float(self.method.learning_rate(p.step, self.horizon.steps_at(p)))
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        half = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(self.context.precision)
        self.window.append(
            backward(
                self.method,
                batch,
                chunk=p.chunk,
                autocast=torch.autocast(self.device.type, half, enabled=half is not None),
                scaler=self.scaler,
            )
        )
        self.ranks.mean_gradients(self.trained)
        self.scaler.unscale_(self.optimizer)
        if self.recipe.max_grad_norm:
            torch.nn.utils.clip_grad_norm_(self.trained, self.recipe.max_grad_norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        p.step += 1
        p.rows += batch.whole or batch.size
        p.tokens += batch.tokens
        if len(self.window) >= LOG_EVERY:
            self._summarise(rate)
        taken = time.perf_counter() - began
        if self.horizon.budget and self.horizon.budget.timed:
            taken = self.ranks.share(taken)
        p.train_seconds += taken
        p.device_seconds += taken * self.ranks.count
        if self.window and self.horizon.reached(p):
            self._summarise(rate)

    # the curve

    def _summarise(self, rate: float) -> None:
        """The means since the last line, as the next one."""
        self.check_finite()
        self.count_idle()
        means = {
            name: torch.stack([w[name] for w in self.window]).mean().item()
            for name in self.window[0]
        }
        self.window.clear()
        self.entry = {"step": self.progress.step, **means, "learning_rate": rate}

    def check_finite(self) -> None:
        """Raises RunFailed for the first loss of the window that is not finite: before it is averaged, scored or saved."""
        losses = torch.stack([w["loss"] for w in self.window]).tolist() if self.window else []
        for step, loss in enumerate(losses, self.progress.step - len(losses) + 1):
            if not math.isfinite(loss):
                _, rows = next(self.order(step - 1))
                raise RunFailed(
                    f"the loss became {loss} at step {step}; the rows of its batch are in {self.write_batch(rows)}; {KEPT}",
                    NOT_FINITE,
                )

    def count_idle(self) -> None:
        """Count the steps of the window whose loss is exactly 0, and say so at the first: nothing is learned in such a step.

        A rank may see the loss of its own rows alone: a step counts if the loss is 0 on every rank.
        """
        p = self.progress
        losses = torch.stack([w["loss"] for w in self.window]).abs().tolist()
        largest = [max(of_ranks) for of_ranks in zip(*self.ranks.gather(losses), strict=True)]
        for step, loss in enumerate(largest, p.step - len(losses) + 1):
            if loss != 0:
                continue
            if p.idle == 0:
                self.context.reporter.note(
                    f"the loss is exactly 0 at step {step}: nothing is learned from a batch without anything to compare, "
                    "such as a single row or equal scores"
                )
            p.idle += 1

    def check_sound(self) -> None:
        """Raises RunFailed for a loss or a weight that is not finite: such weights are not stored or scored."""
        self.check_finite()
        if not bool(torch.stack([p.detach().isfinite().all() for p in self.trained]).all()):
            raise RunFailed(  # from a gradient that was not finite although the loss was
                f"weights became NaN or infinite by step {self.progress.step}; {KEPT}", NOT_FINITE
            )

    def order(self, done: int) -> Iterator[tuple[int, Rows]]:
        """(epoch, row numbers) of every step after the first ``done``: of the whole batch, over all ranks."""
        return row_order(
            self.context.seed,
            len(self.corpus),
            self.recipe.batch_size,
            self.recipe.drop_last,
            first=done,
        )

    def write_batch(self, rows: Rows) -> Path:
        """A file next to the curve with a line for each row: its number in the corpus, from 1, then its columns as the method saw them."""
        path, names = self.context.folder / FAILED_BATCH, self.corpus.columns
        cells = [
            [self._text(value, name) for value in self.corpus.column(i).rows(rows)]
            for i, name in enumerate(names)
        ]
        lines = [
            "\t".join(line) + "\n"
            for line in [
                ("row", *names),
                *zip([str(row + 1) for row in rows.tolist()], *cells, strict=True),
            ]
        ]
        with contextlib.suppress(OSError):  # a full disk must not hide the first error
            if self.ranks.lead:
                write_whole(path, "".join(lines).encode())
        return path

    def _text(self, value: Any, name: str) -> str:
        """A cell as text without line ends and tabs: ids are decoded where the tokenizer can."""
        if name in NUMBERS:
            return str(value[0])
        if not isinstance(value, str):
            ids, tokenizer = [int(number) for number in value], self.method.backbone.tokenizer
            value = (
                tokenizer.decode(ids) if hasattr(tokenizer, "decode") else " ".join(map(str, ids))
            )
        return " ".join(value.split())

    def log(self) -> None:
        """The next line of the curve, where there is one, and the progress."""
        p = self.progress
        if self.entry:
            self.entry["sentences_per_second"] = (
                round(p.rows / p.train_seconds, 1) if p.train_seconds else 0.0
            )
            self.ranks.first(lambda: self.curve.add(self.entry))
            self.latest |= self.entry | {"best": p.best_score, "best_step": p.best_step}
            p.logged, self.entry = p.step, {}
        # for a budget in tokens or time it changes with the pace
        total = self.horizon.steps_at(p)
        self.context.reporter.advance(
            p.step, **self.latest, total=total if total < ENDLESS else None
        )

    # dev scores

    def score_is_due(self) -> bool:
        """Every ``eval_steps`` steps; and at the end, where that is before the first score."""
        p = self.progress
        to_score = self.context.dev_score is not None and p.step and p.scored != p.step
        return bool(
            to_score
            and (
                p.step % self.recipe.eval_steps == 0
                or (p.best_step == 0 and self.horizon.reached(p))
            )
        )

    def evaluate(self) -> None:
        """Score, and keep the checkpoint if it is strictly better."""
        began = time.perf_counter()
        p, score_of = self.progress, self.context.dev_score
        assert score_of is not None
        self.check_sound()  # else the scored vectors would be blamed
        self.context.reporter.advance(p.step, **self.latest)
        self.context.reporter.phase("dev")
        score = float(self.ranks.first(lambda: self.method.dev_score(score_of)))
        better = p.best_score is None or score > p.best_score
        if better:
            p.best_files = self.ranks.first(lambda: self.checkpoints.keep(p.step, self.method.save))
            p.best_step, p.best_score = p.step, score
        p.worse = 0 if better else p.worse + 1
        p.scored = p.step
        self.entry = {"step": p.step, **self.entry, "dev_score": score}
        p.dev_seconds += time.perf_counter() - began
        self.context.reporter.phase("train", self.horizon.steps)
