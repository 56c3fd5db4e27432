"""Checkpoints are written on a thread: the loop goes on meanwhile, and everything that a state
promises is on the disk before it.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from models import Columns, built, sentences

from bench.base.errors import RunFailed
from bench.base.hashes import folder_sha256
from bench.method import Context
from bench.method.host_memory import HostMemory
from bench.methods.simcse import SimCSE
from bench.training.batches import batches
from bench.training.checkpoints import Checkpoints
from bench.training.loop import run_loop
from bench.training.state_files import read_state, saved_states
from bench.training.states import save_state
from bench.training.trainer import Trainer

VALUES: dict[str, Any] = {
    "setting": "unsupervised",
    "seed": 1,
    "batch_size": 4,
    "max_steps": 8,
    "eval_steps": 2,
    "learning_rate": 1e-2,
}


class OwnSave(SimCSE):
    """A plugin that writes a file of its own."""

    def save(self, folder: Path) -> None:
        super().save(folder)
        (folder / "thread.txt").write_text(threading.current_thread().name)


def method_of(tiny: str, folder: Path, cls: type[SimCSE] = SimCSE, **context: Any) -> Any:
    method = built(cls, tiny, folder, context=Context(folder=folder, seed=1, **context), **VALUES)
    return method


def corpus_of(method: Any) -> Columns:
    return Columns(method.token_ids(sentences(32, seed=5)))


def better_each_time() -> Callable[[Any], float]:
    scores = iter(range(100))
    return lambda _: float(next(scores))


@pytest.fixture
def trainer(tiny: str, tmp_path: Path) -> Iterator[Trainer]:
    """A trainer that has done one step, with every dev score better than the last."""
    method = method_of(tiny, tmp_path, dev_score=better_each_time())
    made = Trainer(method, corpus_of(method), method.context)
    do_step(made)
    yield made
    made.checkpoints.close()


def do_step(trainer: Trainer) -> None:
    order = trainer.order(trainer.progress.step)
    feed = batches(
        trainer.method, trainer.corpus, order, trainer.progress.step, device=trainer.device
    )
    trainer.step(feed)


class Gate:
    """Holds the thread that writes a checkpoint until it is opened."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        import safetensors.torch

        self.open = threading.Event()
        self.reached = threading.Event()
        real = safetensors.torch.save_file

        def save_file(*given: Any, **named: Any) -> None:
            self.reached.set()
            assert self.open.wait(30)
            real(*given, **named)

        patch.setattr(safetensors.torch, "save_file", save_file)


def weights(method: Any) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in method.trained_state().items()}


def test_the_loop_goes_on_and_the_weights_of_the_score_are_written(
    trainer: Trainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = tmp_path / "wanted"
    trainer.method.save(wanted)
    before = weights(trainer.method)
    gate = Gate(monkeypatch)
    trainer.evaluate()
    assert gate.reached.wait(30)
    do_step(trainer)  # while the thread waits
    assert not torch.equal(
        before["head.dense.weight"], trainer.method.trained_state()["head.dense.weight"]
    )
    assert not (tmp_path / "state" / "best-00000001").exists()
    gate.open.set()
    trainer.wait_for_checkpoint()
    best = tmp_path / "state" / "best-00000001"
    assert folder_sha256(best) == folder_sha256(wanted) == trainer.progress.best_files


def test_a_state_is_written_after_the_checkpoint_that_it_names(
    trainer: Trainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch)
    trainer.evaluate()
    saving = threading.Thread(target=save_state, args=(trainer,))
    saving.start()
    assert gate.reached.wait(30)
    saving.join(0.2)
    assert saving.is_alive() and not list((tmp_path / "state").glob("*.pt*"))
    gate.open.set()
    saving.join(30)
    (state,) = saved_states(tmp_path / "state")
    progress = read_state(state.path)["progress"]
    assert progress["best_files"] == folder_sha256(tmp_path / "state" / "best-00000001")


def no_space(*_: Any, **__: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    "later",
    [save_state, Trainer.evaluate, Trainer.finish, Trainer.wait_for_checkpoint],
    ids=["save", "keep", "finish", "wait"],
)
def test_a_full_disk_is_an_error_of_the_loop_at_the_latest_at(
    trainer: Trainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later: Any
) -> None:
    trainer.evaluate()
    save_state(trainer)
    before = folder_sha256(tmp_path / "state")
    do_step(trainer)
    monkeypatch.setattr("safetensors.torch.save_file", no_space)
    trainer.evaluate()
    do_step(trainer)
    with pytest.raises(RunFailed, match=r"the checkpoint cannot be written to .*: No space left"):
        later(trainer)
    # the state, and the checkpoint that it names
    assert folder_sha256(tmp_path / "state") == before


def test_an_error_of_a_step_waits_for_the_thread(
    tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What follows a failed training may remove its folder."""
    method = method_of(tiny, tmp_path, dev_score=better_each_time())
    steps = Trainer.step
    writing: list[bool] = []
    keep = Checkpoints._keep

    def slowly(self: Checkpoints, step: int, write: Any) -> dict[str, str]:
        writing.append(True)
        threading.Event().wait(0.2)
        files = keep(self, step, write)
        writing.append(False)
        return files

    def step(trainer: Trainer, feed: Any) -> None:
        if trainer.progress.step == 2:
            raise ValueError("a mistake")
        steps(trainer, feed)

    monkeypatch.setattr(Checkpoints, "_keep", slowly)
    monkeypatch.setattr(Trainer, "step", step)
    with pytest.raises(ValueError, match="a mistake"):
        run_loop(method, corpus_of(method), method.context)
    assert writing == [True, False]
    assert not [thread for thread in threading.enumerate() if "checkpoints" in thread.name]


def test_a_method_with_a_save_of_its_own_is_written_in_the_loop(tiny: str, tmp_path: Path) -> None:
    method = method_of(tiny, tmp_path, OwnSave, dev_score=better_each_time())
    assert method.saved_copy(HostMemory()) is None
    run_loop(method, corpus_of(method), method.context)
    written = (tmp_path / "checkpoint" / "thread.txt").read_text()
    assert written == threading.current_thread().name


def test_the_best_checkpoint_is_that_of_the_best_score(tiny: str, tmp_path: Path) -> None:
    """The weights at the time of the score, not those of a later step, are loaded at the end."""
    scores = iter([1.0, 3.0, 2.0, 0.0])
    seen = []

    def dev_score(method: Any) -> float:
        seen.append(weights(method))
        return next(scores)

    method = method_of(tiny, tmp_path, dev_score=dev_score)
    report = run_loop(method, corpus_of(method), method.context)
    assert report.best_step == 4
    last = method.trained_state()
    assert all(torch.equal(tensor, last[name]) for name, tensor in seen[1].items())
    assert not all(torch.equal(tensor, last[name]) for name, tensor in seen[3].items())


def test_going_back_to_a_state_drops_what_the_thread_wrote_later(trainer: Trainer) -> None:
    """After a step that does not fit into memory."""
    trainer.evaluate()
    save_state(trainer)
    files = trainer.progress.best_files
    do_step(trainer)
    trainer.evaluate()
    trainer.checkpoints.forget_after(1)
    trainer.progress = replace(trainer.progress, best_step=1, best_files=files)
    trainer.wait_for_checkpoint()
    assert trainer.progress.best_files == files
    trainer.checkpoints.check(1, files)


def test_a_copy_is_contiguous_and_of_its_own_memory() -> None:
    memory = HostMemory()
    wide = torch.arange(6.0).reshape(2, 3)
    tensors = {"turned": wide.T, "number": torch.tensor(3), "half": wide.bfloat16()}
    wanted = {name: tensor.clone() for name, tensor in tensors.items()}
    copies = memory.copy(tensors)()
    wide.zero_()
    for name, tensor in wanted.items():
        assert copies[name].is_contiguous() and copies[name].dtype == tensor.dtype
        assert torch.equal(copies[name], tensor)
