"""From a tokenised corpus to the checkpoint with the best dev score.

What the papers' scripts do, METHODS of SimCSE's code: AdamW, linear decay to 0, gradients clipped at a global norm, a dev
score every ``eval_steps`` optimiser steps, and the one checkpoint kept whose score is strictly better than all before.
The seed fixes order, initial weights and dropout; a run that was interrupted ends with the same weights as one that was not.
"""

from __future__ import annotations

import itertools
import json
import math
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from bench.errors import Interrupted, RunFailed
from bench.method import Context, Recipe, TrainReport, seed_for
from bench.runs.curve import CURVE, read_curve
from bench.torch_method import Batch, TorchMethod
from bench.training.memory import explain_out_of_memory
from bench.training.optimizer import check_schedule
from bench.training.state import Progress, load_state, replace_folder, save_state, settle_folder

if TYPE_CHECKING:
    from bench.corpora import TokenisedCorpus

LOG_EVERY = 25  # steps between two lines of curve.jsonl; also how often the device is waited for


def batches_per_epoch(recipe: Recipe, rows: int) -> int:
    """The last short batch of an epoch counts, unless the recipe drops it (and there is a whole one)."""
    whole, left = divmod(rows, recipe.batch_size)
    return whole + bool(left and not (recipe.drop_last and whole))


def total_steps(recipe: Recipe, rows: int) -> int:
    """Optimiser steps of the whole run."""
    steps = math.ceil(recipe.epochs * batches_per_epoch(recipe, rows))
    return min(steps, recipe.max_steps) if recipe.max_steps else steps


def row_order(seed: int, rows: int, batch_size: int, drop_last: bool = False) -> Iterator[tuple[int, np.ndarray]]:
    """Endless (epoch, row numbers of a batch), each epoch in an order of its own that is the same for every method."""
    end = rows - rows % batch_size if drop_last and rows >= batch_size else rows
    for epoch in itertools.count():
        order = np.random.default_rng(seed_for(seed, "data order", epoch)).permutation(rows)
        yield from ((epoch, order[i : i + batch_size]) for i in range(0, end, batch_size))


def fit(method: TorchMethod, corpus: TokenisedCorpus, context: Context) -> TrainReport:
    """Train ``method``; its best checkpoint is in ``context.folder / "checkpoint"`` and loaded when this returns.

    Raises Interrupted when ``context.should_stop()`` says so (a state to go on from is kept), RunFailed for a loss that is
    not finite or memory that does not suffice.
    """
    recipe = method.recipe
    check_schedule(recipe)
    steps = total_steps(recipe, len(corpus))
    torch.manual_seed(seed_for(context.seed, "dropout"))
    method.to(context.device)
    method.train()
    method.encoder.train()
    run = _Run(method, method.optimizer(), context, steps)
    run.resume()
    context.reporter.phase("train", steps)
    order = row_order(context.seed, len(corpus), recipe.batch_size, recipe.drop_last)
    for _ in range(run.progress.step):
        next(order)
    try:
        while run.progress.step < steps and not run.out_of_patience():
            if context.should_stop():
                run.save()
                raise Interrupted(f"stopped at step {run.progress.step} of {steps}; the same command goes on from there")
            run.step(batch_of(method, corpus, *next(order), run.progress.step))
            at_end = run.progress.step == steps
            if context.dev_score and (run.progress.step % recipe.eval_steps == 0 or (at_end and run.progress.best_step == 0)):
                run.evaluate()
            run.log()
            if time.monotonic() - run.saved > context.save_seconds:
                run.save()
    except (torch.OutOfMemoryError, RuntimeError, MemoryError) as error:
        size = recipe.batch_size
        hint = f"--set batch_size={max(1, size // 2)} (fewer negatives: another recipe), or a shorter max_seq_length"
        explain_out_of_memory(error, f"step {run.progress.step + 1} with batch_size {size}", hint)
        raise
    return run.finish()


def batch_of(method: TorchMethod, corpus: TokenisedCorpus, epoch: int, rows: np.ndarray, step: int) -> Batch:
    """The rows as the method's features, on its device."""
    device = torch.device(method.context.device)
    columns = {name: corpus.column(i).rows(rows) for i, name in enumerate(corpus.columns)}
    views = method.collate(columns, rows, epoch)
    return Batch(tuple({key: value.to(device, non_blocking=True) for key, value in view.items()} for view in views), step)


class _Run:
    """The state of one training: what is counted, logged, saved and restored."""

    def __init__(self, method: TorchMethod, optimizer: torch.optim.Optimizer, context: Context, steps: int) -> None:
        self.method, self.optimizer, self.context, self.steps = method, optimizer, context, steps
        self.device = torch.device(context.device)
        self.dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(context.precision)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=context.precision == "fp16")
        self.trained = [p for group in optimizer.param_groups for p in group["params"]]
        self.progress = Progress()
        self.saved = time.monotonic()
        self.window: list[dict[str, torch.Tensor]] = []
        self.entry: dict[str, Any] = {}  # the next line of the curve
        self.known: dict[str, Any] = {}  # the newest value of everything that was ever logged
        self.checkpoint = context.folder / "checkpoint"
        self.curve = context.folder / CURVE

    def resume(self) -> None:
        settle_folder(self.checkpoint)
        restored = load_state(self.context.folder / "state", self.method, self.optimizer, self.scaler, self.device)
        lines: list[str] = []
        if restored is not None:
            self.progress, self.window = restored
            self.context.reporter.note(f"goes on from step {self.progress.step} of {self.steps}")
            lines = [json.dumps(entry) for entry in read_curve(self.context.folder) if entry["step"] <= self.progress.step]
        self._write_curve("w", "".join(line + "\n" for line in lines))

    def save(self) -> None:
        save_state(
            self.context.folder / "state", self.method, self.optimizer, self.scaler, self.progress, self.window, self.device
        )
        self.saved = time.monotonic()

    def step(self, batch: Batch) -> None:
        began = time.perf_counter()
        recipe, p = self.method.recipe, self.progress
        rate = self.method.learning_rate(p.step, self.steps)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        with torch.autocast(self.device.type, self.dtype, enabled=self.dtype is not None):
            loss = self.method(batch)
        self.scaler.scale(loss.total).backward()
        self.scaler.unscale_(self.optimizer)
        if recipe.max_grad_norm:
            torch.nn.utils.clip_grad_norm_(self.trained, recipe.max_grad_norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        self.window.append({"loss": loss.total.detach(), **{name: part.detach() for name, part in loss.parts.items()}})
        p.step += 1
        p.rows += batch.size
        if len(self.window) >= LOG_EVERY or p.step == self.steps:
            self.entry = {"step": p.step, **self._mean_of_window(), "learning_rate": rate}
        p.train_seconds += time.perf_counter() - began

    def _mean_of_window(self) -> dict[str, float]:
        self._check_finite()
        means = {name: torch.stack([w[name] for w in self.window]).mean().item() for name in self.window[0]}
        self.window.clear()
        return means

    def _check_finite(self) -> None:
        losses = torch.stack([w["loss"] for w in self.window]).tolist() if self.window else []
        for step, loss in enumerate(losses, self.progress.step - len(losses) + 1):
            if not math.isfinite(loss):
                raise RunFailed(f"the loss became {loss} at step {step}", "lower learning_rate, or --precision fp32")

    def _write_curve(self, mode: str, text: str) -> None:
        try:
            self.curve.parent.mkdir(parents=True, exist_ok=True)
            with self.curve.open(mode) as file:
                file.write(text)
        except OSError as error:
            raise RunFailed(
                f"{self.curve} cannot be written: {error.strerror or error}", "free disk space, or another --runs"
            ) from None

    def evaluate(self) -> None:
        began = time.perf_counter()
        assert self.context.dev_score is not None
        self._check_finite()  # else the scored vectors would be blamed
        p = self.progress
        self.context.reporter.phase("dev")
        score = self.method.dev_score(self.context.dev_score)
        p.worse = 0 if p.best_score is None or score > p.best_score else p.worse + 1
        if not p.worse:
            p.best_step, p.best_score = p.step, score
            replace_folder(self.checkpoint, self.method.save)
        self.entry = {"step": p.step, **self.entry, "dev_score": score}
        p.dev_seconds += time.perf_counter() - began
        self.context.reporter.phase("train", self.steps)

    def out_of_patience(self) -> bool:
        patience = self.method.recipe.patience
        return patience is not None and self.progress.worse >= patience

    def log(self) -> None:
        p = self.progress
        if self.entry:
            self.entry["sentences_per_second"] = round(p.rows / p.train_seconds, 1) if p.train_seconds else 0.0
            self._write_curve("a", json.dumps(self.entry) + "\n")
            self.known |= self.entry | {"best": p.best_score, "best_step": p.best_step}
            self.entry = {}
        self.context.reporter.advance(p.step, **self.known)

    def finish(self) -> TrainReport:
        p = self.progress
        if p.best_score is None:
            p.best_step = p.step
            replace_folder(self.checkpoint, self.method.save)
        self.method.load(self.checkpoint)
        return TrainReport(
            steps=p.step, best_step=p.best_step, dev_score=p.best_score, train_seconds=p.train_seconds,
            dev_seconds=p.dev_seconds, sentences=p.rows,
        )  # fmt: skip
