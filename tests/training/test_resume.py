"""The seed fixes everything, and an interruption changes nothing."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from models import Columns, built, sentences

from bench.base.errors import Interrupted
from bench.method import Context
from bench.method.config import RunConfig
from bench.method.context import SilentReporter
from bench.methods.simcse import SimCSE
from bench.records.curve import read_curve
from bench.training.loop import run_loop
from bench.training.state_files import STATE, read_state, write_state
from bench.training.trainer import Trainer

VALUES: dict[str, Any] = {"batch_size": 3, "epochs": 1, "eval_steps": 10, "learning_rate": 1e-3}
ROWS = 110  # 37 steps: one whole logging window of 25 and a part


class Training:
    """One training of SimCSE on the tiny backbone."""

    def __init__(
        self,
        tiny: str,
        folder: Path,
        seed: int = 1,
        stop: Callable[[], bool] = lambda: False,
        save_seconds: float = 1e9,
    ) -> None:
        probe = sentences(8, seed=99)
        self.folder = folder
        self.notes: list[str] = []
        reporter = SilentReporter()
        reporter.note = self.notes.append  # type: ignore[method-assign]
        config = RunConfig(device="cpu", save_seconds=save_seconds)
        how: Any = {"folder": folder, "seed": seed}
        how |= {"dev_score": lambda method: float(method.encode(probe)[:, 0].mean()) * 10}
        context = Context(config, should_stop=lambda: self.asked(), reporter=reporter, **how)
        values = {"setting": "unsupervised", "seed": seed, "context": context} | VALUES
        self.method = built(SimCSE, tiny, folder, **values)
        ids = self.method.token_ids(sentences(ROWS, seed=5))
        self.corpus = Columns(ids)
        self.stop = self.asked = stop

    def run(self) -> Training:
        with pytest.MonkeyPatch.context() as patch:
            # asked for a stop between steps only: encode asks too, and is not what is tested here
            fit_step = Trainer.step

            def step(run: Any, feed: Any) -> None:
                self.asked = lambda: False
                fit_step(run, feed)

            patch.setattr(Trainer, "step", step)
            log = Trainer.log

            def logged(run: Any) -> None:
                log(run)
                self.asked = self.stop

            patch.setattr(Trainer, "log", logged)
            self.report = run_loop(self.method, self.corpus, self.method.context)
        return self

    def outcome(self) -> dict[str, Any]:
        checkpoint = sorted((self.folder / "checkpoint").iterdir())
        curve = read_curve(self.folder)
        for entry in curve:
            entry.pop("sentences_per_second", None)
        r = self.report
        return {
            "checkpoint": {path.name: path.read_bytes() for path in checkpoint},
            "curve": curve,
            "report": (r.steps, r.best_step, r.dev_score, r.sentences),
        }


def stopped(tiny: str, folder: Path, *steps: int) -> None:
    """Trainings that are stopped after so many steps, one after the other."""
    for count in steps:
        with pytest.raises(Interrupted, match="the same command goes on"):
            Training(tiny, folder, stop=after(count)).run()


def after(steps: int) -> Callable[[], bool]:
    """Says stop once it was asked ``steps`` times: before the step of that number, counted from
    0.
    """
    asked = [0]

    def stop() -> bool:
        asked[0] += 1
        return asked[0] > steps

    return stop


@pytest.fixture(scope="module")
def whole(tiny: str, tmp_path_factory: pytest.TempPathFactory) -> Training:
    """Never interrupted."""
    return Training(tiny, tmp_path_factory.mktemp("whole")).run()


@pytest.mark.slow
def test_a_crash_goes_on_from_the_last_state_and_repeats_what_came_after(tiny, tmp_path, whole):
    """A state at step 12, then steps up to 33 that no state remembers: their checkpoint and curve
    are there already.
    """
    stopped(tiny, tmp_path, 12)
    shutil.copytree(tmp_path / "state", tmp_path / "kept")
    stopped(tiny, tmp_path, 21)
    shutil.rmtree(tmp_path / "state")
    (tmp_path / "kept").rename(tmp_path / "state")
    (tmp_path / "state" / "state.pt.new").write_bytes(b"half a st")
    (tmp_path / "state" / "best-00000030.new").mkdir(parents=True)
    with (tmp_path / "curve.jsonl").open("a") as file:
        file.write('{"step": 34, "lo')
    last = Training(tiny, tmp_path).run()
    assert last.outcome() == whole.outcome()
    assert not (tmp_path / "state" / "best-00000030.new").exists()


@pytest.mark.slow
@pytest.mark.parametrize("score_number", [2])
def test_a_stop_during_a_dev_score_keeps_a_state_in_which_it_is_still_due(
    tiny, tmp_path, whole, score_number
):
    """Encoding gives up; the step before the score is kept, the score is not left out, and no line
    of the curve is lost.
    """
    first = Training(tiny, tmp_path)
    scores, score = [0], first.method.context.dev_score

    def scored(method: Any) -> float:
        scores[0] += 1
        return score(method)

    first.asked = lambda: scores[0] == score_number
    first.method.context = replace(first.method.context, dev_score=scored)
    step = 10 * score_number
    with pytest.raises(
        Interrupted, match=f"stopped at step {step} of 37; the same command goes on"
    ):
        run_loop(first.method, first.corpus, first.method.context)
    state = read_state(tmp_path / "state")
    assert state is not None and state["progress"]["step"] == step
    assert [entry["step"] for entry in read_curve(tmp_path)] == [10, 20][: score_number - 1]
    assert Training(tiny, tmp_path).run().outcome() == whole.outcome()


def test_a_crash_while_the_checkpoint_is_put_in_its_place_loses_nothing(tiny, tmp_path, whole):
    Training(tiny, tmp_path).run()
    (tmp_path / "checkpoint").rename(tmp_path / "checkpoint.old")
    (tmp_path / "checkpoint.new").mkdir()
    assert Training(tiny, tmp_path).run().outcome() == whole.outcome()
    assert {path.name for path in tmp_path.iterdir()} == {"checkpoint", "curve.jsonl", "state"}


def damage(path: Path, how: str) -> None:
    if how == "other tensors":
        state = torch.load(path, weights_only=True)
        state["trained"].pop("head.dense.bias")
        write_state(path.parent, state)
        return
    whole = path.read_bytes()
    middle = len(whole) // 2
    path.write_bytes(
        {
            "cut": whole[:middle],
            "garbage": b"\x80\x04" * 50,
            "empty": b"",
            "one bit": whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :],
        }[how]
    )


DAMAGES = ["cut", "garbage", "empty", "other tensors"]


@pytest.mark.slow
@pytest.mark.matrix(every=4)
@pytest.mark.parametrize("how", DAMAGES)
def test_training_starts_again_if_its_state_is_damaged(tiny, tmp_path, whole, how):
    stopped(tiny, tmp_path, 12)
    damage(tmp_path / "state" / STATE, how)
    last = Training(tiny, tmp_path).run()
    assert last.outcome() == whole.outcome()
    (problem,) = last.notes
    assert problem.endswith("training starts again")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["one bit"])
def test_a_damaged_checkpoint_costs_the_state_that_names_it(tiny, tmp_path, whole, how):
    """The best step stays the best: a later one may not take its place only because it was lost."""
    stopped(tiny, tmp_path, 12, 11)
    state = read_state(tmp_path / "state")
    assert state is not None
    best = state["progress"]["best_step"]
    damage(tmp_path / "state" / f"best-{best:08d}" / "trained.safetensors", how)
    last = Training(tiny, tmp_path).run()
    assert last.outcome() == whole.outcome()
    (lost,) = last.notes
    assert "the best checkpoint, of step" in lost
