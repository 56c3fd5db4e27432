"""A training that cannot go on says why and loses nothing: the command line, as a user sees it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import Result
from commands import argv, bench, the_run
from models import sentences

from bench.records import RunsFolder

PLUGIN = '''
"""SimCSE's loss on a device that holds ROOM rows at once, and is no number at step BAD."""
import torch
from bench.method import Batch, Loss, TorchMethod

class Fragile(TorchMethod):
    name, settings = "fragile", ("unsupervised",)
    defaults = {"room": 1000, "bad": 1000, "lost": 1000}

    def views(self, batch):
        if batch.size > self.recipe.room:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return self.embed(batch.columns[0]), self.embed(batch.columns[0])

    def loss(self, views, batch):
        if batch.step + 1 == self.recipe.lost:
            raise RuntimeError("CUDA error: device-side assert triggered")
        first, second = (torch.nn.functional.normalize(view, dim=-1) for view in views)
        scores = first @ second.T / 0.05
        loss = torch.nn.functional.cross_entropy(scores, torch.arange(len(scores)))
        return Loss(loss * float("nan") if batch.step + 1 == self.recipe.bad else loss)

    def embed(self, features):
        return self.hidden(features)[:, 0]
'''
ROWS = 40
pytestmark = pytest.mark.usefixtures("short_check")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """Write the corpus into the folder of the plugin."""
    (tmp_path / "fragile.py").write_text(PLUGIN)
    (tmp_path / "text.txt").write_text("\n".join(sentences(ROWS, seed=6)) + "\n")
    return tmp_path / "text.txt"


def bench_run(text: Path, tiny: str, *more: str) -> Result:
    """10 steps of 4 rows, a dev score every 5."""
    where = ("--plugin", text.parent / "fragile.py", "--backbone", tiny, "--corpus", text)
    what = "--suite check --device cpu --precision fp32 --set batch_size=4 --set eval_steps=5"
    runs = ("--runs", text.parent / "runs")
    return bench("run", "--method", "fragile", *where, *argv(what), *runs, *more)


def errors(done: Result) -> list[str]:
    assert "Traceback" not in done.stderr
    return [line for line in done.stderr.splitlines() if line.startswith(("error: ", "try: "))]


def test_a_loss_that_is_no_number_names_step_rows_and_what_is_kept(text: Path, tiny: str) -> None:
    done = bench_run(text, tiny, "--set", "bad=7")
    assert done.exit_code == 1
    error, hint = errors(done)
    folder = the_run(text.parent / "runs")
    assert re.search(r"the loss became nan at step 7, on rows (\d+, ){3}\d+ of the corpus;", error)
    assert "learning_rate" in hint
    assert (folder / "state" / "best-00000005" / "trained.safetensors").exists()
    record = RunsFolder(folder.parent).read(folder.name)
    assert record.status == "failed" and "the loss became nan at step 7" in str(record.error)


def test_a_batch_that_does_not_fit_is_one_line_that_names_a_chunk(text: Path, tiny: str) -> None:
    done = bench_run(text, tiny, "--set", "batch_size=16", "--set", "room=5")
    assert done.exit_code == 1
    error, hint = errors(done)
    assert error == "error: out of memory: step 1 with 16 rows at a time"
    assert hint.startswith("try: --chunk 8: the same command with it goes on")


def test_a_gpu_that_failed_ends_the_command_and_the_other_seeds_are_not_tried(
    text: Path, tiny: str
) -> None:
    done = bench_run(text, tiny, "--set", "lost=7", "--seeds", "1-5")
    assert done.exit_code == 1
    error, hint = errors(done)
    assert error.startswith("error: the GPU cannot be used any more: fragile: fragile.py:")
    assert error.endswith("RuntimeError: CUDA error: device-side assert triggered")
    assert "the same command goes on" in hint
    folder = the_run(text.parent / "runs")
    assert RunsFolder(folder.parent).read(folder.name).status == "failed"
