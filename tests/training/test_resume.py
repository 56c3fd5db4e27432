"""The seed fixes everything, and an interruption changes nothing."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from models import Columns, built, sentences

import bench.training.loop
from bench.errors import Interrupted
from bench.method import Context
from bench.runs.curve import read_curve
from bench.training import fit
from methods.simcse import SimCSE

VALUES: dict[str, Any] = {"batch_size": 3, "epochs": 1, "eval_steps": 10, "learning_rate": 1e-3}
ROWS = 110  # 37 steps: one whole logging window of 25 and a part
STEPS = 37


class Training:
    """One training of SimCSE on the tiny backbone; the optimiser that it made is kept for looking at."""

    def __init__(self, tiny: str, folder: Path, seed: int = 1, stop: Callable[[], bool] = lambda: False,
                 save_seconds: float = 1e9) -> None:  # fmt: skip
        probe = sentences(8, seed=99)
        self.folder = folder
        context = Context(folder=folder, seed=seed, should_stop=lambda: False, save_seconds=save_seconds,
                          dev_score=lambda method: float(method.encode(probe)[:, 0].mean()) * 10, dev_task="probe")  # fmt: skip
        self.method = built(SimCSE, tiny, folder, setting="unsupervised", seed=seed, context=context, **VALUES)
        ids = self.method.token_ids(sentences(ROWS, seed=5))
        self.corpus = Columns(ids)
        self.stop = stop

    def run(self) -> Training:
        made = self.method.optimizer

        def keep() -> Any:
            self.optimizer = made()
            return self.optimizer

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self.method, "optimizer", keep)
            # asked for a stop between steps only: encode asks too, and is not what is tested here
            asked, fit_step = self.stop, bench.training.loop._Run.step

            def step(run: Any, batch: Any) -> None:
                self.method.context.should_stop = lambda: False
                fit_step(run, batch)

            patch.setattr(bench.training.loop._Run, "step", step)
            log = bench.training.loop._Run.log

            def logged(run: Any) -> None:
                log(run)
                self.method.context.should_stop = asked

            patch.setattr(bench.training.loop._Run, "log", logged)
            self.method.context.should_stop = asked
            self.report = fit(self.method, self.corpus, self.method.context)
        return self

    def outcome(self) -> dict[str, Any]:
        files = {path.name: path.read_bytes() for path in sorted((self.folder / "checkpoint").iterdir())}
        curve = [{k: v for k, v in entry.items() if k != "sentences_per_second"} for entry in read_curve(self.folder)]
        counted = (self.report.steps, self.report.best_step, self.report.dev_score, self.report.sentences)
        return {"checkpoint": files, "curve": curve, "report": counted}

    def same_optimizer(self, other: Training) -> bool:
        a, b = (one.optimizer.state_dict() for one in (self, other))
        tensors = [(a["state"][i][key], b["state"][i][key]) for i in a["state"] for key in ("step", "exp_avg", "exp_avg_sq")]
        return a["param_groups"] == b["param_groups"] and all(torch.equal(x, y) for x, y in tensors)


def after(steps: int) -> Callable[[], bool]:
    """Says stop once it was asked ``steps`` times: before the step of that number, counted from 0."""
    asked = [0]

    def stop() -> bool:
        asked[0] += 1
        return asked[0] > steps

    return stop


@pytest.fixture(scope="module")
def whole(tiny: str, tmp_path_factory: pytest.TempPathFactory) -> Training:
    """Never interrupted."""
    return Training(tiny, tmp_path_factory.mktemp("whole")).run()


def test_the_same_seed_gives_the_same_weights_bit_for_bit(tiny: str, tmp_path: Path, whole: Training) -> None:
    torch.rand(5)  # what was drawn before does not matter
    again = Training(tiny, tmp_path).run()
    assert again.outcome() == whole.outcome()
    assert again.same_optimizer(whole)


def test_another_seed_gives_other_weights(tiny: str, tmp_path: Path, whole: Training) -> None:
    other = Training(tiny, tmp_path, seed=2).run()
    assert other.outcome()["checkpoint"] != whole.outcome()["checkpoint"]
    assert [e["step"] for e in other.outcome()["curve"]] == [e["step"] for e in whole.outcome()["curve"]]


def test_the_curve_has_a_line_for_every_window_and_every_dev_score(whole: Training) -> None:
    curve = whole.outcome()["curve"]
    assert [(e["step"], "loss" in e, "dev_score" in e) for e in curve] == [
        (10, False, True), (20, False, True), (25, True, False), (30, False, True), (37, True, False)
    ]  # fmt: skip
    scored = {e["step"]: e["dev_score"] for e in curve if "dev_score" in e}
    assert whole.report.best_step == max(scored, key=scored.__getitem__)
    assert whole.report.dev_score == max(scored.values())


@pytest.mark.parametrize("stops", [(0,), (7,), (10, 3), (25,), (31, 1, 1), (36,)])
def test_a_stopped_training_ends_as_one_that_was_not_stopped(
    tiny: str, tmp_path: Path, whole: Training, stops: tuple[int, ...]
) -> None:
    """Before the first step, inside a logging window, at a dev score, at a logging step, near the end; several times."""
    for sitting in stops:
        with pytest.raises(Interrupted, match="the same command goes on from there"):
            Training(tiny, tmp_path, stop=after(sitting)).run()
        torch.rand(3)
    last = Training(tiny, tmp_path).run()
    assert last.outcome() == whole.outcome()
    assert last.same_optimizer(whole)


def test_a_crash_goes_on_from_the_last_state_and_repeats_what_came_after(tiny: str, tmp_path: Path, whole: Training) -> None:
    """A state at step 12, then steps up to 33 that no state remembers: their checkpoint and curve are there already."""
    with pytest.raises(Interrupted):
        Training(tiny, tmp_path, stop=after(12)).run()
    shutil.copytree(tmp_path / "state", tmp_path / "kept")
    with pytest.raises(Interrupted):
        Training(tiny, tmp_path, stop=after(21)).run()
    shutil.rmtree(tmp_path / "state")
    (tmp_path / "kept").rename(tmp_path / "state")
    (tmp_path / "state" / "state.pt.new").write_bytes(b"half a st")
    (tmp_path / "checkpoint.new").mkdir()
    with (tmp_path / "curve.jsonl").open("a") as file:
        file.write('{"step": 34, "lo')
    last = Training(tiny, tmp_path).run()
    assert last.outcome() == whole.outcome()
    assert not (tmp_path / "checkpoint.new").exists()


def test_a_stop_during_a_dev_score_changes_nothing(tiny: str, tmp_path: Path, whole: Training) -> None:
    """Encoding gives up too; the step before the score is repeated from the last state, so that no score is left out."""
    first = Training(tiny, tmp_path, save_seconds=0.0)
    first.stop = lambda: (tmp_path / "curve.jsonl").exists() and first.scoring
    first.scoring, score = False, first.method.context.dev_score

    def scored(method: Any) -> float:
        first.scoring = bool(read_curve(tmp_path))  # the second dev score
        return score(method)

    first.method.context.dev_score = scored
    first.method.context.should_stop = first.stop
    with pytest.raises(Interrupted, match="encoding"):
        fit(first.method, first.corpus, first.method.context)
    assert [entry["step"] for entry in read_curve(tmp_path)] == [10]
    assert Training(tiny, tmp_path).run().outcome() == whole.outcome()


def test_a_crash_between_two_renames_loses_no_checkpoint(tiny: str, tmp_path: Path, whole: Training) -> None:
    with pytest.raises(Interrupted):
        Training(tiny, tmp_path, stop=after(35)).run()
    (tmp_path / "checkpoint").rename(tmp_path / "checkpoint.old")
    (tmp_path / "checkpoint.new").mkdir()
    assert Training(tiny, tmp_path).run().outcome() == whole.outcome()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint", "curve.jsonl", "state"]


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
@pytest.mark.parametrize("damage", ["cut", "garbage", "empty", "other tensors"])
def test_a_damaged_state_starts_anew(tiny: str, tmp_path: Path, whole: Training, damage: str) -> None:
    with pytest.raises(Interrupted):
        Training(tiny, tmp_path, stop=after(12)).run()
    file = tmp_path / "state" / "state.pt"
    if damage == "other tensors":
        state = torch.load(file, weights_only=True)
        state["trained"].pop("head.dense.bias")
        torch.save(state, file)
    else:
        file.write_bytes(
            {"cut": file.read_bytes()[: file.stat().st_size // 2], "garbage": b"\x80\x04" * 50, "empty": b""}[damage]
        )
    assert Training(tiny, tmp_path).run().outcome() == whole.outcome()


def test_a_state_is_kept_every_so_often(tiny: str, tmp_path: Path) -> None:
    """``save_seconds`` 0: after every step, so that a stop without warning loses nothing."""
    training = Training(tiny, tmp_path, save_seconds=0.0)
    training.run()
    state = torch.load(tmp_path / "state" / "state.pt", weights_only=True)
    assert state["progress"]["step"] == STEPS
    assert set(state["trained"]) == {name for name, p in training.method.named_parameters() if p.requires_grad}
