"""What trains a method: a step, what is counted and logged, a dev score. The loop (``bench.training.loop``) says when.

Also ``curve.jsonl`` as it is written.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import torch

from bench.base.errors import RunFailed
from bench.base.files import write_whole
from bench.data.corpora import NUMBERS
from bench.method import Context, TrainReport, seed_for
from bench.method.ranks import ALONE
from bench.method.torch_method import Batch, TorchMethod
from bench.runs.store import CURVE, FAILED_BATCH, read_curve
from bench.training.batches import Rows, row_order
from bench.training.compiled import compile_encoder
from bench.training.gradient import backward
from bench.training.horizon import ENDLESS, Horizon
from bench.training.state import NO_SPACE, Checkpoints, Damaged, Progress

if TYPE_CHECKING:
    from bench.data.corpora.token_cache import TokenisedCorpus


KEPT = "what was saved before that step is kept"
NOT_FINITE = "look at these rows, if it is the first step; else a lower --set learning_rate=, or --precision fp32"
LOG_EVERY = 25  # steps between two lines of curve.jsonl; also how often the device is waited for


class Trainer:
    """Of ``method`` on ``corpus``, from its beginning or from where :func:`bench.training.loop.resume` puts it."""

    def __init__(self, method: TorchMethod, corpus: TokenisedCorpus, context: Context) -> None:
        self.method, self.corpus, self.context, self.recipe = method, corpus, context, method.recipe
        self.ranks = context.ranks or ALONE
        self.device = torch.device(context.device)
        self.dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(context.precision)
        self.horizon = Horizon(self.recipe, len(corpus))
        self.progress = Progress(chunk=context.chunk)
        self.window: list[dict[str, torch.Tensor]] = []  # losses since the last line of the curve
        self.entry: dict[str, Any] = {}  # the next line of the curve
        self.latest: dict[str, Any] = {}  # the newest value of everything that was ever logged
        self.states, self.checkpoints = context.folder / "state", Checkpoints(context.folder)
        self.curve = TrainingCurve(context.folder)
        self.saved, self.save_took = (
            time.monotonic(),
            0.0,
        )  # when the last state was written, and how long that took
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
        self.ranks.first(self._settle_checkpoint)
        method.load(self.context.folder / "checkpoint")
        ranks: Any = p.ranks[0] if len(p.ranks) == 1 else p.ranks
        execution = {
            "ranks": None if ranks == 1 else ranks,
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
        """Put the best checkpoint in its place: the last step where nothing was scored, else checked against its hashes."""
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
        patience = self.recipe.patience
        return self.horizon.reached(self.progress) or (
            patience is not None and self.progress.worse >= patience
        )

    def where(self) -> str:
        return f"step {self.progress.step}" + (
            f" of {self.horizon.steps}" if self.horizon.steps is not None else ""
        )

    # one step

    def step(self, feed: Iterator[Batch]) -> None:
        """One update with the next batch. Making the batch is part of what it takes."""
        began = time.perf_counter()
        batch, p = next(feed), self.progress
        rate = float(self.method.learning_rate(p.step, self.horizon.steps_at(p)))
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.window.append(self.backward(batch))
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
        if self.horizon.timed:
            taken = self.ranks.share(taken)
        p.train_seconds += taken
        p.device_seconds += taken * self.ranks.count
        if self.window and self.horizon.reached(p):
            self._summarise(rate)

    def backward(self, batch: Batch) -> dict[str, torch.Tensor]:
        return backward(
            self.method,
            batch,
            chunk=self.progress.chunk,
            autocast=torch.autocast(self.device.type, self.dtype, enabled=self.dtype is not None),
            scaler=self.scaler,
        )

    # the curve

    def _summarise(self, rate: float) -> None:
        """The means since the last line, as the next one."""
        self.check_finite()
        means = {
            name: torch.stack([w[name] for w in self.window]).mean().item()
            for name in self.window[0]
        }
        self.window.clear()
        self.entry = {"step": self.progress.step, **means, "learning_rate": rate}

    def check_finite(self) -> None:
        """Raises RunFailed for the first loss of the window that is no number: before it is averaged, scored or saved."""
        losses = torch.stack([w["loss"] for w in self.window]).tolist() if self.window else []
        for step, loss in enumerate(losses, self.progress.step - len(losses) + 1):
            if not math.isfinite(loss):
                _, rows = next(self.order(step - 1))
                raise RunFailed(
                    f"the loss became {loss} at step {step}; the rows of its batch are in {self.write_batch(rows)}; {KEPT}",
                    NOT_FINITE,
                )

    def check_sound(self) -> None:
        """Raises RunFailed for a loss or a weight that is no number: nothing is kept or scored of such weights."""
        self.check_finite()
        if not bool(torch.stack([p.detach().isfinite().all() for p in self.trained]).all()):
            step = self.progress.step  # a gradient has made them so although the loss was a number
            raise RunFailed(f"weights became NaN or infinite by step {step}; {KEPT}", NOT_FINITE)

    def order(self, done: int) -> Iterator[tuple[int, Rows]]:
        """(epoch, row numbers) of every step after ``done`` of them: of the whole batch, over all ranks."""
        return row_order(
            self.context.seed,
            len(self.corpus),
            self.recipe.batch_size,
            self.recipe.drop_last,
            first=done,
        )

    def write_batch(self, rows: Rows) -> Path:
        """A file beside the curve, one line a row: its number in the corpus, from 1, then its columns as the method saw them."""
        path, corpus = self.context.folder / FAILED_BATCH, self.corpus
        columns = [corpus.column(i).rows(rows) for i in range(len(corpus.columns))]
        lines = ["\t".join(("row", *corpus.columns))]
        for i, row in enumerate(rows):
            texts = [
                self._text(column[i], name)
                for name, column in zip(corpus.columns, columns, strict=True)
            ]
            lines.append(
                "\t".join((str(int(row) + 1), *(" ".join(text.split()) for text in texts)))
            )
        with contextlib.suppress(OSError):  # a full disk must not hide what happened
            if self.ranks.lead:
                write_whole(path, ("\n".join(lines) + "\n").encode())
        return path

    def _text(self, value: Any, name: str) -> str:
        """A cell as text: ids go back through the tokenizer, where there is one."""
        if isinstance(value, str):
            return value
        if name in NUMBERS:
            return str(value[0])
        ids = [int(number) for number in value]
        decode = getattr(self.method.backbone.tokenizer, "decode", None)
        return " ".join(map(str, ids)) if decode is None else str(decode(ids))

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
        expected = self.horizon.steps_at(
            p
        )  # of a budget in tokens or time this changes with the pace
        known_end = (
            {} if self.horizon.steps is not None or expected >= ENDLESS else {"total": expected}
        )
        self.context.reporter.advance(p.step, **self.latest, **known_end)

    # dev scores

    def score_is_due(self) -> bool:
        """Every ``eval_steps`` steps; and at the end, where that is before the first score."""
        p = self.progress
        if self.context.dev_score is None or not p.step or p.scored == p.step:
            return False
        return p.step % self.recipe.eval_steps == 0 or (
            p.best_step == 0 and self.horizon.reached(p)
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


# --- ``curve.jsonl`` as it is written: a line added at a time, and taken back to a step when a training goes on from there ---


class TrainingCurve:
    """Of the run in ``folder``. Raises RunFailed where it cannot be written."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / CURVE
        self._file: IO[str] | None = (
            None  # kept open: who takes the run over puts another file in its place
        )

    def go_back_to(self, step: int) -> None:
        """Leave out what came after ``step``, and a line that a crash cut short. Whole or not at all."""
        self._file = None
        lines = [json.dumps(entry) for entry in read_curve(self.folder) if entry["step"] <= step]
        with self._writing():
            write_whole(self.path, "".join(line + "\n" for line in lines).encode())

    def add(self, entry: Mapping[str, Any]) -> None:
        with self._writing():
            self._file = self._file or self.path.open("a")
            self._file.write(json.dumps(dict(entry)) + "\n")
            self._file.flush()

    def sync(self) -> None:
        """Wait until it is on the disk: a state must not remember a line that a power cut takes away."""
        with self._writing(), self.path.open("a") as file:
            os.fsync(file.fileno())

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """While open, an OSError becomes a RunFailed."""
        try:
            yield
        except OSError as error:
            raise RunFailed(
                f"{self.path} cannot be written: {error.strerror or error}", NO_SPACE
            ) from None
