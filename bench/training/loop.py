"""The training loop that every method runs in: from a tokenised corpus to the checkpoint with the best dev score.

What the papers' scripts do, which descend from SimCSE's: AdamW, linear decay to 0, gradients clipped at a global norm, a dev
score every ``eval_steps`` optimiser steps, and the one checkpoint kept whose score is strictly better than all before.
The seed fixes order, initial weights and dropout; a run that was interrupted ends with the same weights as one that was not.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import torch
from torch import nn

from bench.base.errors import Interrupted, OutOfMemory, RunFailed
from bench.base.files import write_whole
from bench.data.corpora import NUMBERS
from bench.method import Context, Recipe, TrainReport, check_choice, seed_for
from bench.method.contract import (
    GPU_SECONDS,
    SECONDS,
    TOKENS,
    budget_of,
    total_steps,
)
from bench.method.ranks import ALONE
from bench.method.torch_method import Batch, TorchMethod, attention, float32_products
from bench.runs.intact import CURVE, FAILED_BATCH, read_curve
from bench.training.batches import Rows, batches, row_order
from bench.training.gradient import backward, check_spread
from bench.training.state import (
    NO_SPACE,
    Checkpoints,
    Damaged,
    Progress,
    newest_good,
    read_state,
    rng_state,
    save_state,
    set_rng_state,
)

if TYPE_CHECKING:
    from bench.data.corpora.token_cache import TokenisedCorpus


# --- Where a training ends: after the recipe's epochs or steps, or when its budget is spent ---

ENDLESS = 10**9  # steps that a schedule is laid over until something of the budget is spent


class Horizon:
    """The end of one training, asked before and after every step."""

    def __init__(self, recipe: Recipe, rows: int) -> None:
        self.budget, self.steps = budget_of(recipe), total_steps(recipe, rows)
        self.most = recipe.max_steps or ENDLESS

    @property
    def timed(self) -> bool:
        return self.budget is not None and self.budget.timed

    def reached(self, p: Progress) -> bool:
        if self.steps is not None:
            return p.step >= self.steps
        return p.step >= self.most or self._share(p) >= 1

    def steps_at(self, p: Progress) -> int:
        """Steps that the schedule is laid over. Where tokens or a clock decide: as many as there will be at the pace so far,
        so that a rate which falls with the share of steps falls with the share of the budget, and ends where that ends."""
        if self.steps is not None:
            return self.steps
        share = self._share(p)
        expected = round(p.step / share) if share > 0 and p.step else ENDLESS
        return max(p.step + 1, min(expected, self.most))

    def _share(self, p: Progress) -> float:
        """How much of the budget is spent: 0 at the start, 1 and more when it is used up."""
        assert self.budget is not None
        spent = {
            TOKENS: p.tokens,
            SECONDS: p.train_seconds,
            GPU_SECONDS: p.device_seconds,
        }
        return spent[self.budget.unit] / self.budget.amount


# --- What trains a method: a step, what is counted and logged, a dev score ---

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


# --- ``--set compile=true``: torch compiles the encoder's forward while training. Vectors that are scored come from the encoder as it is ---


def compile_encoder(encoder: nn.Module, note: Callable[[str], None]) -> Callable[[], bool]:
    """Compile the encoder's forward. If the compiler fails, ``note`` gets one line with its error and the forward is eager from then on.

    Returns a function that says whether the forward is compiled still.
    """
    vars(encoder).pop("forward", None)
    eager = encoder.forward
    compiled = torch.compile(eager)

    @functools.wraps(eager)
    def forward(*args: Any, **kwargs: Any) -> Any:
        nonlocal compiled
        try:
            return compiled(*args, **kwargs)
        except torch.OutOfMemoryError:
            raise
        except (
            Exception
        ) as error:  # a compiler fails in many ways, and none of them ends a training
            if compiled is not eager:
                compiled = eager
                note(
                    f"compile: the encoder is not compiled ({(str(error).strip().splitlines() or [type(error).__name__])[0][:120]})"
                )
                return eager(*args, **kwargs)
            raise

    encoder.forward = forward  # an attribute of this one object: names of weights stay
    return lambda: compiled is not eager


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
        attention(method.encoder, "eager") if bf16_on_cpu else contextlib.nullcontext(),
        float32_products(tf32=context.precision == "tf32"),
    ):
        return run_loop(method, corpus, context)


def run_loop(method: TorchMethod, corpus: TokenisedCorpus, context: Context) -> TrainReport:
    """The loop: train ``method``; its best checkpoint is in ``context.folder / "checkpoint"`` and loaded when this returns.

    Raises Interrupted when ``context.should_stop()`` says so (a state to go on from is kept), RunFailed for a loss that is
    not finite or a disk that is full, OutOfMemory for a batch that does not fit.
    """
    check_choice(method.recipe, "schedule", ("linear", "constant"))
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
