"""The training loop that every method runs in: from a tokenised corpus to the checkpoint with the best dev score.

What the papers' scripts do, which descend from SimCSE's: AdamW, linear decay to 0, gradients clipped at a global norm, a dev
score every ``eval_steps`` optimiser steps, and the checkpoint kept whose score is strictly better than all before.
The seed fixes order, initial weights and dropout; a run that was interrupted ends with the same weights as one that was not.
"""

from __future__ import annotations

import contextlib
import gc
import json
import math
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any

import torch
from safetensors import SafetensorError

from bench.base.errors import Interrupted, OutOfMemory, RunFailed
from bench.base.files import share_files, write_whole
from bench.base.hashes import file_sha256, folder_sha256
from bench.data.corpora.columns import NUMBERS
from bench.data.corpora.token_cache import TokenisedCorpus
from bench.method import Context, Recipe, TrainReport, check_choice, seed_for
from bench.method.checks import check_last_batch
from bench.method.contract import (
    GPU_SECONDS,
    SECONDS,
    TOKENS,
    budget_of,
    total_steps,
)
from bench.method.ranks import ALONE
from bench.method.torch_method import Batch, TorchMethod, attention, float32_products
from bench.records.store import CURVE, FAILED_BATCH, read_curve
from bench.training.gradient import (
    Rows,
    backward,
    batches,
    check_spread,
    compile_encoder,
    row_order,
)

# --- What a training keeps on the disk: its best checkpoint, and the states from which it resumes ---
# A state is one file, ``state/step-00000120-<hash>.pt``; the last two are kept. It is written under another name, synced and renamed.
# Its name has the hash of its content, so that a truncated or altered file is noticed, and the state before it is used. It is read
# with ``weights_only=True``: nothing in it is executed.
#
# The checkpoint with the best dev score:
# During a training it is ``state/best-00000125/``; at the end it becomes ``checkpoint/``. A state names the step and the hashes of
# its best checkpoint. At most two exist, the newest and the one that the newest state names: each may take gigabytes. Where that
# state is damaged and the one before names a checkpoint that is gone, training starts again from the beginning.

NO_SPACE = "free disk space, or another --runs"


class Damaged(Exception):
    """A state cannot be used, or the checkpoint that it names."""


class Checkpoints:
    """Of the run in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.used, self.state = folder / "checkpoint", folder / "state"

    def keep(self, step: int, write: Callable[[Path], object]) -> dict[str, str]:
        """A new best checkpoint, which ``write`` puts into a folder. Returns the hash of each file.

        At most two exist: this one, and the one that the newest state names. Raises RunFailed where it cannot be written.
        """
        folder = self._best(step)
        replace_folder(folder, write)
        self.forget_all_but([step, *(state.step for state in saved_states(self.state)[:1])])
        return folder_sha256(folder)

    def check(self, step: int, files: Mapping[str, str]) -> None:
        """Raises Damaged where the best checkpoint, of ``step``, does not have the hashes that its state names."""
        if folder_sha256(self._best(step)) != files:
            raise Damaged(f"the best checkpoint, of step {step}, was cut short or altered")

    def finish(self, step: int) -> None:
        """Make the best checkpoint, of ``step``, the run's checkpoint."""
        replace_folder(
            self.used, partial(shutil.copytree, self._best(step), copy_function=link_or_copy)
        )

    def forget_after(self, step: int) -> None:
        """Remove those of later steps, which are trained again, and unfinished ones that a crash left."""
        for of_step, folder in self._all():
            if of_step > step or folder.suffix:
                shutil.rmtree(folder, ignore_errors=True)

    def forget_all_but(self, states: Iterable[int]) -> None:
        """Keep those that states of these steps name: for each, the newest that is not newer than the state."""
        every = self._all()
        needed = {max((best for best, _ in every if best <= step), default=None) for step in states}
        for of_step, folder in every:
            if of_step not in needed:
                shutil.rmtree(folder, ignore_errors=True)

    def _best(self, step: int) -> Path:
        return self.state / f"best-{step:08d}"

    def _all(self) -> list[tuple[int, Path]]:
        """(step, folder) of each."""
        return [(int(path.stem.removeprefix("best-")), path) for path in self.state.glob("best-*")]


def link_or_copy(source: str, to: str) -> None:
    """A hard link where the disk supports it: a checkpoint's files are never changed."""
    try:
        os.link(source, to)
    except OSError:
        shutil.copy2(source, to)


def replace_folder(folder: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` fill another folder, then replace ``folder`` by it: readers see the old one or the new one."""
    new, old = folder.with_name(folder.name + ".new"), folder.with_name(folder.name + ".old")
    shutil.rmtree(new, ignore_errors=True)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        write(new)
        new.mkdir(exist_ok=True)  # a method may have nothing to save
        share_files(new)
        for path in new.rglob("*"):
            if path.is_file():  # on the disk before the rename, which would else show an empty one
                with path.open("rb") as file:
                    os.fsync(file.fileno())
        shutil.rmtree(old, ignore_errors=True)
        if folder.exists():
            folder.rename(old)
        new.rename(folder)
    except (OSError, SafetensorError) as error:  # a full disk can raise either
        shutil.rmtree(new, ignore_errors=True)
        if old.exists() and not folder.exists():
            old.rename(folder)
        why = getattr(error, "strerror", None) or error
        raise RunFailed(f"the checkpoint cannot be written to {folder}: {why}", NO_SPACE) from None
    shutil.rmtree(old, ignore_errors=True)


STATES = 2  # that are kept: the newest, and the one before in case that is damaged
HASH = 32  # digits in a name


@dataclass
class Progress:
    """How far a training is. Seconds are summed over all processes that worked on it."""

    step: int = 0
    rows: int = 0
    tokens: int = 0  # of these rows, without padding
    best_step: int = 0
    best_score: float | None = None
    best_files: dict[str, str] = field(default_factory=dict)  # of the best checkpoint: its sha256
    worse: int = 0  # dev scores in a row that were not better
    scored: int = 0  # step of the last dev score
    logged: int = 0  # step of the last line of the curve
    chunk: int | None = None  # rows whose activations are held at once
    ranks: list[int] = field(default_factory=list)  # how many processes worked on it, in turn
    train_seconds: float = 0.0
    device_seconds: float = 0.0  # these times the number of processes
    dev_seconds: float = 0.0
    idle: int = 0  # steps whose loss was exactly 0


@dataclass(frozen=True)
class SavedState:
    """A state on the disk."""

    step: int
    sha256: str  # its beginning
    path: Path


def saved_states(folder: Path) -> list[SavedState]:
    """The states in ``folder``, newest first."""
    return sorted(
        (
            SavedState(int(name[1]), name[2], path)
            for path in folder.glob("step-*.pt")
            if (name := re.fullmatch(rf"step-([0-9]{{8,}})-([0-9a-f]{{{HASH}}})\.pt", path.name))
        ),
        key=lambda s: (s.step, s.path.stat().st_mtime_ns),
        reverse=True,
    )


def save_state(folder: Path, step: int, content: Mapping[str, Any]) -> list[int]:
    """Write the state of ``step``, and remove all but the last two. Returns the steps of those that are kept.

    Raises RunFailed where it cannot be written; the states before it are unchanged then.
    """
    new = folder / "state.pt.new"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with new.open("wb") as file:
            torch.save(dict(content), file)
            file.flush()
            os.fsync(file.fileno())
        new.replace(folder / f"step-{step:08d}-{file_sha256(new)[:HASH]}.pt")
    except (OSError, RuntimeError) as error:  # torch wraps a write's error
        with contextlib.suppress(OSError):
            new.unlink(missing_ok=True)
        why = getattr(error, "strerror", None) or error
        raise RunFailed(
            f"the training state cannot be written to {folder}: {why}", NO_SPACE
        ) from None
    steps: list[int] = []
    for state in saved_states(folder):
        if len(steps) < STATES and state.step not in steps:
            steps.append(state.step)
        else:
            state.path.unlink(missing_ok=True)
    return steps


def newest_good(
    folder: Path, check: Callable[[dict[str, Any]], None], say: Callable[[str], None]
) -> Path | None:
    """The newest state that is undamaged and passes ``check``; None without one: training starts from the beginning.

    One that is damaged, or for which ``check`` raises Damaged, is removed, ``say`` gets a line, and the one before is tried.
    """
    for state in saved_states(folder):
        try:
            if not file_sha256(state.path).startswith(state.sha256):
                raise Damaged("it was cut short or altered")
            check(read_state(state.path))
            return state.path
        except (Damaged, OSError) as problem:
            state.path.unlink(missing_ok=True)
            say(
                f"the training state of step {state.step} cannot be used: {problem}; "
                "training goes on from the one before, or starts again"
            )
    return None


def read_state(path: Path) -> dict[str, Any]:
    """Raises Damaged where it cannot be read."""
    try:
        return torch.load(path, weights_only=True, map_location="cpu")  # type: ignore[no-any-return]
    except Exception as error:  # damaged bytes can raise anything; an older state only costs time
        raise Damaged(f"it cannot be read ({' '.join(str(error).split())[:80]})") from None


def rng_state(device: torch.device) -> dict[str, Any]:
    """The states of torch's generators, of the CPU and the device."""
    return {
        "cpu": torch.get_rng_state(),
        "device": None
        if device.type == "cpu"
        else getattr(torch, device.type).get_rng_state(device),  # torch.cuda or torch.mps
    }


def set_rng_state(state: Mapping[str, Any], device: torch.device) -> None:
    torch.set_rng_state(state["cpu"])
    if state["device"] is not None and device.type != "cpu":
        getattr(torch, device.type).set_rng_state(state["device"], device)


# --- Where a training ends: after the recipe's epochs or steps, or when its budget is spent ---

ENDLESS = 10**9  # steps of a schedule until something of the budget is spent


class Horizon:
    """The end of one training."""

    def __init__(self, recipe: Recipe, rows: int) -> None:
        self.budget, self.steps = budget_of(recipe), total_steps(recipe, rows)
        self.most = (recipe.max_steps or ENDLESS) if self.steps is None else self.steps

    def reached(self, p: Progress) -> bool:
        return p.step >= self.most or (self.steps is None and self._share(p) >= 1)

    def steps_at(self, p: Progress) -> int:
        """The number of steps of the schedule. Where tokens or a clock decide, it is estimated from the pace so far, so that a
        rate which falls with the share of steps falls with the share of the budget, and ends where that ends."""
        if self.steps is not None:
            return self.steps
        share = self._share(p)
        expected = round(p.step / share) if share > 0 and p.step else ENDLESS
        return max(p.step + 1, min(expected, self.most))

    def _share(self, p: Progress) -> float:
        """How much of the budget is spent: 0 at the start, 1 and more when it is used up."""
        assert self.budget is not None
        spent = {TOKENS: p.tokens, SECONDS: p.train_seconds, GPU_SECONDS: p.device_seconds}
        return spent[self.budget.unit] / self.budget.amount


# --- What trains a method: a step, what is counted and logged, a dev score ---

KEPT = "what was saved before that step is kept"
NOT_FINITE = "look at these rows if it is the first step; otherwise lower --set learning_rate=, or use --precision fp32"
LOG_EVERY = 25  # steps between two lines of curve.jsonl; also between two waits for the device


class Trainer:
    """Of ``method`` on ``corpus``, from its beginning or from where :func:`bench.training.loop.resume` puts it."""

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
        """Count the steps of the window whose loss is exactly 0, and say so at the first: nothing is learned in such a step."""
        p = self.progress
        losses = torch.stack([w["loss"] for w in self.window]).tolist()
        for step, loss in enumerate(losses, p.step - len(losses) + 1):
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


# --- ``curve.jsonl``: lines are added one by one, and removed back to a step when a training resumes from there ---


class TrainingCurve:
    """Of the run in ``folder``. Raises RunFailed where it cannot be written."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / CURVE
        self._file: IO[str] | None = None  # kept open: a process that takes over replaces the file

    def go_back_to(self, step: int) -> None:
        """Remove what came after ``step``, and a line that a crash truncated. Whole or not at all."""
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
        """Wait until it is on the disk: a state must not refer to a line that a power cut can delete."""
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


# --- A batch that does not fit into memory ---

SIGNS = (
    "out of memory",
    "can't allocate memory",
    "not enough memory",
    "cublas_status_alloc_failed",
)
MEMORY_ERRORS = (RuntimeError, MemoryError)  # among others, lack of memory; torch's is the first


def is_out_of_memory(error: BaseException) -> bool:
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or any(
        sign in str(error).lower() for sign in SIGNS
    )


def explain_out_of_memory(error: BaseException, where: str, device: str) -> None:
    """Raises RunFailed with the place and a hint if ``error`` means lack of memory; returns otherwise."""
    if is_out_of_memory(error):
        raise RunFailed(
            f"out of memory: {where}",
            "close other programs that use memory, or take a smaller backbone"
            if device == "cpu"
            else "free memory on the device, or --device cpu",
        ) from None


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


# --- The loop ---


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


# --- Saving everything that a training needs to resume, and resuming as if nothing had happened ---

SAVING = 0.1  # the largest share of the time for saving states, where a disk is slow


def save(trainer: Trainer) -> None:
    """Save weights, optimiser, random generators of every rank, counts, and what the curve does not have yet.

    Raises RunFailed where it cannot be written, or where the loss is not finite: a training that is lost is not saved.
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
        trainer.checkpoints.state,
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
    """Restore the trainer from the newest good state; False where there is none. Undoes what came after that state."""
    note, chunk = trainer.context.reporter.note, trainer.progress.chunk

    def take_back() -> None:
        trainer.checkpoints.forget_after(trainer.progress.step)
        trainer.curve.go_back_to(trainer.progress.logged)

    state = trainer.ranks.first(
        lambda: newest_good(trainer.checkpoints.state, lambda state: _check(state, trainer), note)
    )
    if state is not None:
        _restore(read_state(state), trainer)
        # what the command sets, or what did fit
        trainer.progress.chunk = chunk or trainer.progress.chunk
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
        raise Damaged("it is from another version of this training")
    if progress.best_score is not None:
        trainer.checkpoints.check(progress.best_step, progress.best_files)


def _restore(state: dict[str, Any], trainer: Trainer) -> None:
    trainer.progress, trainer.entry = Progress(**state["progress"]), state["entry"]
    trainer.window = [
        {name: loss.to(trainer.device) for name, loss in step.items()} for step in state["window"]
    ]
    trainer.method.load_state_dict(state["trained"], strict=False)
    trainer.optimizer.load_state_dict(state["optimizer"])
    trainer.scaler = trainer.new_scaler()  # after an unfinished step it refuses the next
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
