"""Which checkpoint is kept, and the error of a training that cannot go on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from models import TOY_ROWS, Columns, Toy, toy_recipe
from safetensors.torch import load_file

from bench.base.errors import OutOfMemory, RunFailed
from bench.method import Batch, Context
from bench.method.batch import Loss
from bench.method.config import RunConfig
from bench.method.torch_method import TorchMethod
from bench.records.curve import read_curve
from bench.training.loop import run_loop
from bench.training.state_files import read_state


def train(
    folder: Path,
    scores: Sequence[float] | None = None,
    method: Toy | None = None,
    save_seconds: float = 60.0,
    chunk: int | None = None,
    **values: Any,
) -> Any:
    """Train the toy with dev scores from a list; returns the report, the weights after each score,
    and the method.
    """
    seen: list[torch.Tensor] = []

    def dev_score(method: Any) -> float:
        seen.append(method.dense.weight.detach().clone())
        return scores[len(seen) - 1]

    config = RunConfig(device="cpu", save_seconds=save_seconds, chunk=chunk)
    asked = dev_score if scores is not None else None
    context = Context(config, folder=folder, dev_score=asked)
    method = method or Toy()
    method.build(recipe=toy_recipe(**values))
    method.context = context
    return run_loop(method, Columns(TOY_ROWS), context), seen, method


@pytest.mark.parametrize(
    ("scores", "best"),
    [([1, 2, 3, 4], 3), ([4, 3, 2, 1], 0), ([1, 3, 3, 2], 1)],
)
def test_the_kept_checkpoint_is_the_first_of_the_best(tmp_path, scores, best):
    """Strictly better, as SimCSE's code has it: an equal score does not replace. 8 steps, a score
    after every second.
    """
    report, seen, method = train(tmp_path, scores, epochs=8 / 3, eval_steps=2)
    assert len(seen) == 4
    assert (report.steps, report.best_step, report.dev_score) == (8, 2 * (best + 1), scores[best])
    stored = load_file(tmp_path / "checkpoint" / "trained.safetensors")
    assert torch.equal(stored["dense.weight"], seen[best])
    assert torch.equal(method.dense.weight, seen[best]), "the kept checkpoint is loaded at the end"
    assert [(e["step"], e["dev_score"]) for e in read_curve(tmp_path) if "dev_score" in e] == [
        (2 * (i + 1), s) for i, s in enumerate(scores)
    ]


class Fails(Toy):
    """A toy with a forward that changes the loss at one step, as a test wants it."""

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


def test_a_loss_that_is_no_number_is_told_with_its_step_and_the_rows_of_its_batch(tmp_path):
    """Step 6 of 3 a epoch: the last batch of the second epoch, two rows."""
    method = failing(lambda loss: loss * float("nan"))
    with pytest.raises(
        RunFailed,
        match=r"the loss became (nan|inf) at step 6, on rows [\d, ]+ of the corpus",
    ) as caught:
        train(tmp_path, None, method, epochs=20)
    assert "learning_rate" in str(caught.value.hint) and caught.value.exit_code == 1
    numbers = re.search(r"on rows ([\d, ]+) of", str(caught.value.message))
    assert numbers is not None
    told = [int(row) - 1 for row in numbers[1].split(", ")]
    assert [TOY_ROWS[row][0] for row in told] == method.seen[5]


class Bursts(Toy):
    """A finite loss with a gradient that is not finite, from step 6 on."""

    def forward(self, batch: Batch) -> Loss:
        made = super().forward(batch)
        if batch.step >= 5:
            self.dense.weight.register_hook(lambda gradient: gradient * float("nan"))
        return made


def test_nothing_is_kept_or_scored_of_weights_that_are_no_numbers(tmp_path: Path) -> None:
    kept = {
        "dev": {"scores": [1.0, 2.0, 3.0], "eval_steps": 2},
        "saved": {"save_seconds": 0.0},
        "end": {"max_steps": 6},
    }
    for name, values in kept.items():
        with pytest.raises(RunFailed, match="became NaN or infinite by step 6"):
            train(tmp_path / name, method=Bursts(), epochs=20, **values)
    assert [path.name for path in (tmp_path / "dev" / "state").iterdir()] == ["best-00000004"]
    state = read_state(tmp_path / "saved" / "state")
    assert state is not None and state["progress"]["step"] == 5
    assert not (tmp_path / "end" / "checkpoint").exists()


def out_of_memory(kind: str) -> Exception:
    return {
        "cuda": torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
        "python": MemoryError(),
        "cpu": RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: 8 bytes"),
        "mps": RuntimeError("MPS backend out of memory (MPS allocated: 9 GB)"),
    }[kind]


class Holds(Toy):
    """A toy on a device that holds ``room`` rows at once."""

    room, kind = 8, "cuda"

    def forward(self, batch: Batch) -> Loss:
        if batch.size > self.room:
            raise out_of_memory(self.kind)
        return super().forward(batch)


def holding(room: int, kind: str = "cuda", cls: type[Toy] = Holds) -> Any:
    method = cls()
    method.room, method.kind = room, kind
    return method


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cuda", "mps"])
def test_out_of_memory_names_the_step_and_what_helps(tmp_path: Path, kind: str) -> None:
    wanted = r"out of memory: step 1 with 8 rows at a time \(try:"
    with pytest.raises(OutOfMemory, match=wanted) as caught:
        train(tmp_path, None, holding(3, kind), batch_size=8)
    assert str(caught.value.hint).startswith("a smaller batch_size") and caught.value.exit_code == 1


class InParts(Toy):
    """The toy with its loss split into views and loss, so that its batch can be cut; a pass holds
    ``room`` rows.
    """

    room = 8
    forward = TorchMethod.forward

    def views(self, batch: Batch) -> tuple[torch.Tensor, ...]:
        if batch.size > self.room:
            raise out_of_memory("cuda")
        features = batch.columns[0]
        self.seen.append(features["input_ids"][:, 0].tolist())
        counts = (
            torch.nn.functional.one_hot(features["input_ids"], self.VOCABULARY).double()
            * features["attention_mask"][:, :, None]
        )
        wanted = features["input_ids"].sum(1, keepdim=True).double() / 10
        return ((self.dense(counts.sum(1)) - wanted).square().mean(1),)

    def loss(self, views: tuple[torch.Tensor, ...], batch: Batch) -> Loss:
        return Loss(views[0].mean(), {"half": views[0].mean() / 2})


def test_out_of_memory_names_a_chunk_for_a_batch_that_can_be_cut(tmp_path: Path) -> None:
    for chunk, hint in ((None, "--chunk 4:"), (4, "--chunk 2:")):
        with pytest.raises(OutOfMemory) as caught:
            train(tmp_path, None, holding(3, cls=InParts), batch_size=8, chunk=chunk)
        assert str(caught.value.hint).startswith(hint)
    report, _, _ = train(tmp_path, None, holding(3, cls=InParts), batch_size=8, chunk=2)
    assert report.execution == {"chunk": 2}
