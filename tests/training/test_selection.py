"""Which checkpoint is kept, and what a training that cannot go on says."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from models import TOY_ROWS, Columns, Toy, toy, toy_recipe
from safetensors.torch import load_file

from bench.errors import BenchError, RunFailed
from bench.method import Batch, Context
from bench.runs.curve import read_curve
from bench.torch_method import Loss
from bench.training import fit


def train(
    folder: Path, scores: Sequence[float] | None = None, method: Toy | None = None, save_seconds: float = 60.0, **values: Any
) -> Any:
    """Train the toy with dev scores from a list; returns the report, the weights after each score, and the method."""
    seen: list[torch.Tensor] = []

    def dev_score(method: Any) -> float:
        seen.append(method.dense.weight.detach().clone())
        return scores[len(seen) - 1]

    context = Context(
        folder=folder, save_seconds=save_seconds, dev_score=dev_score if scores is not None else None, dev_task="scripted"
    )
    method = method or Toy()
    method.build(recipe=toy_recipe(**values))
    method.context = context
    return fit(method, Columns(TOY_ROWS), context), seen, method


@pytest.mark.parametrize(
    ("scores", "best"),
    [([1, 2, 3, 4], 3), ([4, 3, 2, 1], 0), ([1, 3, 3, 2], 1), ([-5, -5, -4, -4.5], 2), ([2, 2, 2, 2], 0), ([0, 0, 0.001, 0], 2)],
)  # fmt: skip
def test_the_kept_checkpoint_is_the_first_of_the_best(tmp_path: Path, scores: list[float], best: int) -> None:
    """Strictly better, as SimCSE's code has it: an equal score does not replace. 8 steps, a score after every second."""
    report, seen, method = train(tmp_path, scores, epochs=8 / 3, eval_steps=2)
    assert len(seen) == 4
    assert (report.steps, report.best_step, report.dev_score) == (8, 2 * (best + 1), scores[best])
    stored = load_file(tmp_path / "checkpoint" / "trained.safetensors")
    assert torch.equal(stored["dense.weight"], seen[best])
    assert torch.equal(method.dense.weight, seen[best]), "the kept checkpoint is loaded at the end"
    assert [(e["step"], e["dev_score"]) for e in read_curve(tmp_path) if "dev_score" in e] == [
        (2 * (i + 1), s) for i, s in enumerate(scores)
    ]


def test_dev_scores_come_every_so_many_steps_and_not_at_the_end(tmp_path: Path) -> None:
    """As in the authors' code: of 9 steps with a score every 4, the last one scored is 8."""
    report, seen, _ = train(tmp_path, [1, 2], epochs=3, eval_steps=4)
    assert (report.steps, len(seen), report.best_step) == (9, 2, 8)


def test_a_training_shorter_than_the_interval_is_scored_at_its_end(tmp_path: Path) -> None:
    report, seen, _ = train(tmp_path, [7.0], eval_steps=125)
    assert (report.steps, len(seen), report.best_step, report.dev_score) == (3, 1, 3, 7.0)


def test_without_a_dev_set_the_last_step_is_kept(tmp_path: Path) -> None:
    report, _, method = train(tmp_path, None, epochs=2, eval_steps=1)
    assert (report.steps, report.best_step, report.dev_score) == (6, 6, None)
    assert torch.equal(load_file(tmp_path / "checkpoint" / "trained.safetensors")["dense.weight"], method.dense.weight)


class Fails(Toy):
    """A toy whose forward does what a test wants at the step that it wants."""

    at, what = 5, staticmethod(lambda loss: loss)

    def forward(self, batch: Batch) -> Loss:
        loss = super().forward(batch)
        if batch.step == self.at:
            loss.total = self.what(loss.total)
        return loss


def failing(what: Any) -> Fails:
    method = Fails()
    method.what = what  # type: ignore[method-assign]
    return method


@pytest.mark.parametrize("factor", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_is_told_with_its_step(tmp_path: Path, factor: float) -> None:
    with pytest.raises(RunFailed, match=r"the loss became (nan|inf) at step 6$") as caught:
        train(tmp_path, None, failing(lambda loss: loss * factor), epochs=20)
    assert "learning_rate" in str(caught.value.hint)
    assert caught.value.exit_code == 1


def test_a_loss_that_is_no_number_is_told_before_its_weights_are_scored(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="the loss became nan at step 6$"):
        train(tmp_path, [1.0] * 9, failing(lambda loss: loss * float("nan")), epochs=20, eval_steps=4)
    assert torch.isfinite(load_file(tmp_path / "checkpoint" / "trained.safetensors")["dense.weight"]).all()


def out_of_memory(kind: str) -> Any:
    def raising(loss: torch.Tensor) -> torch.Tensor:
        raise {
            "cuda": torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."), "python": MemoryError(),
            "cpu": RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"),
            "mps": RuntimeError("MPS backend out of memory (MPS allocated: 9 GB)"),
        }[kind]  # fmt: skip

    return raising


@pytest.mark.parametrize("kind", ["cuda", "python", "cpu", "mps"])
def test_out_of_memory_names_the_batch_size_and_what_to_set(tmp_path: Path, kind: str) -> None:
    with pytest.raises(RunFailed, match="out of memory.*step 6 with batch_size 4") as caught:
        train(tmp_path, None, failing(out_of_memory(kind)), epochs=9, batch_size=4)
    assert "--set batch_size=2" in str(caught.value.hint)


def test_an_error_of_the_method_itself_is_not_called_a_lack_of_memory(tmp_path: Path) -> None:
    def raising(loss: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        train(tmp_path, None, failing(raising), epochs=9)


def test_a_method_without_anything_to_train_is_told(tmp_path: Path) -> None:
    method = toy(tmp_path)
    method.requires_grad_(False)
    with pytest.raises(RunFailed, match="toy has no parameter that trains"):
        fit(method, Columns(TOY_ROWS), method.context)


def full(*_: Any, **__: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_leaves_the_state_before_untouched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train(tmp_path, None, save_seconds=0.0)
    before = (tmp_path / "state" / "state.pt").read_bytes()
    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(RunFailed, match="training state cannot be written.*No space left") as caught:
        train(tmp_path, None, save_seconds=0.0, epochs=5)
    assert "free disk space" in str(caught.value.hint)
    assert [path.name for path in (tmp_path / "state").iterdir()] == ["state.pt"]
    assert (tmp_path / "state" / "state.pt").read_bytes() == before


def test_a_full_disk_leaves_the_checkpoint_before_untouched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train(tmp_path, [1.0], eval_steps=3)
    before = {path.name: path.read_bytes() for path in (tmp_path / "checkpoint").iterdir()}
    monkeypatch.setattr("safetensors.torch.save_file", full)
    with pytest.raises(RunFailed, match="checkpoint cannot be written"):
        train(tmp_path, [2.0], eval_steps=3)
    assert {path.name: path.read_bytes() for path in (tmp_path / "checkpoint").iterdir()} == before
    assert not (tmp_path / "checkpoint.new").exists()


@pytest.mark.parametrize("what", ["curve.jsonl", "."])
def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path, what: str) -> None:
    """The run's folder is a file; the curve is a folder."""
    folder = tmp_path / "run"
    if what == ".":
        folder.write_text("a file")
    else:
        (folder / what).mkdir(parents=True)
    with pytest.raises(BenchError, match="cannot be written") as caught:
        train(folder, None)
    assert str(folder) in caught.value.message
