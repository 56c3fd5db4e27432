"""What was deleted, cut short or altered of a finished run: the same command makes it again, or says what does."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result
from commands import bench, error_line, the_run, tree

from bench.method.torch_method import TorchMethod
from bench.runs import RunsFolder

Hurt = Callable[[Path], None]


def delete(file: Path) -> None:
    file.unlink()


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def alter(file: Path) -> None:
    """Another number in it, of the same size."""
    if file.suffix == ".npz":
        arrays = dict(np.load(file))
        arrays["prediction"][0] += 0.25
        np.savez_compressed(file, **arrays)
        return
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))


HURTS = pytest.mark.parametrize("hurt", [delete, cut, alter])


@pytest.fixture
def runs(finished: tuple[Path, Result], tmp_path: Path) -> Path:
    """A copy of the runs folder with the finished run."""
    return Path(shutil.copytree(finished[0], tmp_path / "runs"))


def content(folder: Path, *without: str) -> dict[str, str]:
    """File -> hash, without the record (whose costs differ) and what is named."""
    return {
        name: sha
        for name, (_, sha) in tree(folder).items()
        if not name.startswith(("run.json", *without))
    }


def record(runs: Path) -> dict[str, Any]:
    return json.loads((the_run(runs) / "run.json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize("vectors", [True, False])
@HURTS
def test_predictions_come_again_from_vectors_or_by_encoding(
    runs: Path, command: tuple[Any, ...], hurt: Hurt, vectors: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: list[int] = []
    real = TorchMethod.encode
    monkeypatch.setattr(
        TorchMethod, "encode", lambda self, some: encoded.append(len(some)) or real(self, some)
    )
    before, whole = record(runs), content(the_run(runs))
    hurt(the_run(runs) / "predictions" / "captions.npz")
    if not vectors:
        shutil.rmtree(the_run(runs) / "vectors")
    assert bench("verify", "--runs", runs).exit_code == 1
    done = bench(*command, "--runs", runs)
    assert done.exit_code == 0, done.stderr
    what = {delete: "missing", cut: "cut short or damaged", alter: "altered"}[hurt]
    assert (
        f"predictions are made again: captions ({what})" in done.stderr
        and "nothing repeated" not in done.stderr
    )
    assert bool(encoded) is not vectors, "what is stored is not encoded"
    after = record(runs)
    assert (
        after["scores"] == before["scores"]
        and after["training"] == before["training"]
        and after["status"] == "finished"
    )
    assert content(the_run(runs)) == whole
    assert bench("verify", "--runs", runs).exit_code == 0
    assert "was done already, nothing repeated" in bench(*command, "--runs", runs).stderr


def test_vectors_that_were_altered_are_not_taken_for_the_checkpoints(
    runs: Path, command: tuple[Any, ...]
) -> None:
    before = record(runs)["scores"]
    (the_run(runs) / "predictions" / "captions.npz").unlink()
    (vectors,) = (the_run(runs) / "vectors").glob("*.f32")
    numbers = np.fromfile(vectors, dtype="<f4")
    np.random.default_rng(0).shuffle(numbers)
    numbers.tofile(vectors)
    assert bench(*command, "--runs", runs).exit_code == 0
    assert record(runs)["scores"] == before


@pytest.mark.slow
@pytest.mark.parametrize("part", ["folder", "trained.safetensors", "method.json"])
@HURTS
def test_a_lost_checkpoint_is_one_line_and_following_it_helps(
    runs: Path, command: tuple[Any, ...], hurt: Hurt, part: str
) -> None:
    if part == "folder" and hurt is not delete:
        pytest.skip("a folder is there or not")
    place, before = the_run(runs) / "checkpoint", tree(runs)
    shutil.rmtree(place) if part == "folder" else hurt(place / part)
    done = bench(*command, "--runs", runs)
    file = place if part == "folder" else place / part
    what = "is missing" if hurt is delete else "is cut short or altered"
    assert (
        f"{file} {what}" in error_line(done, 1)
        and "the recorded scores stay as they are" in done.stderr
    )
    assert {name: state for name, state in tree(runs).items() if "/checkpoint/" not in name} == {
        name: state for name, state in before.items() if "/checkpoint/" not in name
    }
    hint = done.stderr.splitlines()[-1]
    assert hint == "try: the same command with --fresh trains it again and scores the new weights"
    whole = {name: sha for name, (_, sha) in before.items()}
    again = bench(*command, "--runs", runs, "--fresh")
    assert again.exit_code == 0, again.stderr
    after = {name: sha for name, (_, sha) in tree(runs).items()}
    assert {name for name in whole if whole[name] != after[name]} <= {
        f"{the_run(runs).name}/{n}" for n in ("run.json", "curve.jsonl")
    }


def test_predictions_of_a_lost_checkpoint_come_from_the_vectors(
    runs: Path, command: tuple[Any, ...]
) -> None:
    before = record(runs)["scores"]
    shutil.rmtree(the_run(runs) / "checkpoint")
    (the_run(runs) / "predictions" / "captions.npz").unlink()
    assert "checkpoint is missing" in error_line(bench(*command, "--runs", runs), 1)
    assert record(runs)["scores"] == before and record(runs)["status"] == "finished"
    assert bench("verify", "--runs", runs).exit_code == 0
    shutil.rmtree(the_run(runs) / "vectors")
    cut(the_run(runs) / "predictions" / "captions.npz")
    damaged = tree(runs)
    assert "checkpoint is missing" in error_line(bench(*command, "--runs", runs), 1)
    assert tree(runs) == damaged


@pytest.mark.slow
def test_a_lost_checkpoint_and_a_new_suite_leave_no_old_score_beside_new_weights(
    runs: Path, command: tuple[Any, ...], sts12: Path
) -> None:
    """The bug of issue 15: what was unscored was decided before the training."""
    shutil.rmtree(the_run(runs) / "checkpoint")
    before = record(runs)
    other = [*command, "--runs", runs, "--suite", "check,sts", "--data", sts12, *SAME]
    done = bench(*other)
    assert done.exit_code == 1 and "checkpoint is missing" in done.stderr and record(runs) == before
    done = bench(*other, "--fresh")
    after = record(runs)
    assert {score["task"] for score in after["scores"]} == {"captions", "STS12"}, done.stderr
    assert bench("verify", "--runs", runs).exit_code == 0


@pytest.mark.slow
def test_a_record_whose_training_is_unknown_is_trained_and_all_its_scores_are_new(
    runs: Path, command: tuple[Any, ...]
) -> None:
    """Nothing of the old weights stays: neither the score, nor predictions, nor vectors, nor files of another tool."""
    folder, old = the_run(runs), record(runs)
    wrong = {**old["scores"][0], "value": 99.0}
    foreign = {**wrong, "suite": "mteb", "task": "STS12", "protocol": "mteb/2"}
    (folder / "run.json").write_text(
        json.dumps({**old, "training": None, "scores": [wrong, foreign]})
    )
    (folder / "mteb").mkdir()
    (folder / "mteb/results.json").write_text("{}")
    shutil.rmtree(folder / "checkpoint")
    done = bench(*command, "--runs", runs)
    assert done.exit_code == 0, done.stderr
    assert (
        "the scores of mteb were of the old weights and are gone: --suite mteb scores the new ones"
        in done.stderr
    )
    assert record(runs)["scores"] == old["scores"] and record(runs)["provenance"][
        "data"
    ].keys() == {"captions"}
    assert not (folder / "mteb").exists() and bench("verify", "--runs", runs).exit_code == 0


@pytest.mark.slow
def test_fresh_says_which_scores_go_with_the_old_weights(
    runs: Path, command: tuple[Any, ...], sts12: Path
) -> None:
    bench(*command, "--runs", runs, "--suite", "sts", "--data", sts12, *SAME)
    assert {score["task"] for score in record(runs)["scores"]} == {"captions", "STS12"}
    done = bench(*command, "--runs", runs, "--fresh")
    assert (
        "the scores of sts were of the old weights and are gone: --suite sts scores the new ones"
        in done.stderr
    )
    assert [score["task"] for score in record(runs)["scores"]] == ["captions"]


SAME = ("--set", "select_on=captions dev")  # what the suite check implies: the same run


@pytest.fixture(scope="module")
def sts12(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with one set of the suite."""
    folder = tmp_path_factory.mktemp("data")
    place = "senteval-moses/downstream/STS/STS12-en-test"
    shutil.copytree(shared / "data" / place, folder / place)
    return folder


@pytest.mark.slow
def test_damaged_predictions_of_another_suite_are_told(
    runs: Path, command: tuple[Any, ...], sts12: Path
) -> None:
    bench(*command, "--runs", runs, "--suite", "sts", "--data", sts12, *SAME)
    (the_run(runs) / "predictions" / "STS12.npz").unlink()
    done = bench(*command, "--runs", runs)
    assert done.exit_code == 0 and "nothing repeated" in done.stderr
    assert (
        "predictions of what is not asked for now are damaged: STS12 (--suite sts)" in done.stderr
    )
    bench(*command, "--runs", runs, "--suite", "sts", "--data", sts12, *SAME)
    assert (the_run(runs) / "predictions" / "STS12.npz").is_file() and bench(
        "verify", "--runs", runs
    ).exit_code == 0


@pytest.mark.slow
@pytest.mark.parametrize("part", ["folder", "method.json"])
def test_the_checkpoint_of_what_is_not_trained_is_made_again_at_once(
    tiny: str, tmp_path: Path, part: str
) -> None:
    command = (
        "run",
        "--method",
        "last-avg",
        "--backbone",
        tiny,
        "--suite",
        "check",
        "--runs",
        tmp_path,
    )
    assert bench(*command).exit_code == 0
    before, whole = record(tmp_path), content(the_run(tmp_path))
    place = the_run(tmp_path) / "checkpoint"
    shutil.rmtree(place) if part == "folder" else cut(place / part)
    done = bench(*command)
    assert done.exit_code == 0 and "made again, for nothing was trained" in done.stderr
    assert content(the_run(tmp_path)) == whole and record(tmp_path)["scores"] == before["scores"]
    assert record(tmp_path)["checkpoint"] == before["checkpoint"]
    assert "nothing repeated" in bench(*command).stderr


@pytest.mark.slow
def test_what_other_verbs_say_of_a_lost_checkpoint_is_a_command_that_makes_it(
    runs: Path, command: tuple[Any, ...], tmp_path: Path
) -> None:
    """`bench encode` said "run its command again", and that said that nothing was left to do."""
    (tmp_path / "text.txt").write_text("a sentence\n")
    encode = (
        "encode",
        the_run(runs).name,
        tmp_path / "text.txt",
        "--to",
        tmp_path / "vectors.npy",
        "--runs",
        runs,
    )
    weights = the_run(runs) / "checkpoint" / "trained.safetensors"
    for hurt in (alter, delete):
        hurt(weights)
        done = bench(*encode)
        assert str(weights) in error_line(done) and not (tmp_path / "vectors.npy").exists(), (
            "no vectors of other weights"
        )
        hint = done.stderr.splitlines()[-1].removeprefix("try: ")
        assert hint.startswith("to train it again: bench run --method simcse")
        again = shlex.split(hint.removeprefix("to train it again: "))[1:]
        assert again[-3:] == ["--fresh", "--runs", str(runs)], (
            "where the run lies now, not where it was made"
        )
        assert bench(*again).exit_code == 0
    assert bench(*encode).exit_code == 0 and (tmp_path / "vectors.npy").is_file()
    export = (
        "export",
        the_run(runs).name,
        "--to",
        tmp_path / "export",
        "--format",
        "transformers",
        "--runs",
        runs,
    )
    cut(weights)
    assert "--fresh --runs" in bench(*export).stderr and not (tmp_path / "export").exists()


@pytest.mark.slow
def test_the_encoder_of_a_run_that_trained_nothing_is_its_backbone(
    tiny: str, tmp_path: Path
) -> None:
    command = (
        "run",
        "--method",
        "last-avg",
        "--backbone",
        tiny,
        "--suite",
        "check",
        "--runs",
        tmp_path,
    )
    bench(*command)
    on_it = ("run", "--method", "cls", "--suite", "check", "--runs", tmp_path / "more")
    done = bench(*on_it, "--backbone", the_run(tmp_path))
    assert "is a run that trained nothing" in error_line(done)
    assert (
        bench(*on_it, *shlex.split(done.stderr.splitlines()[-1].removeprefix("try: "))).exit_code
        == 0
    )


PLUGIN = """
import numpy as np
from bench.method import Batch, Loss, TorchMethod
import torch

class Diverging(TorchMethod):
    name, settings = "diverging", ("unsupervised",)

    def views(self, batch):
        return self.embed(batch.columns[0]), self.embed(batch.columns[0])

    def loss(self, views, batch):
        return Loss(((views[0] - views[1]) ** 2).mean())

    def embed(self, features):
        return self.hidden(features)[:, 0] * (float("nan") if self.recipe.learning_rate > 1e-3 else 1.0)
"""


@pytest.mark.slow
def test_a_lower_learning_rate_helps_where_vectors_are_no_numbers(
    corpus: Path, tiny: str, tmp_path: Path
) -> None:
    (tmp_path / "diverging.py").write_text(PLUGIN)
    command = (
        "run",
        "--method",
        "diverging",
        "--plugin",
        tmp_path / "diverging.py",
        "--backbone",
        tiny,
        "--suite",
        "check",
        "--corpus",
        corpus,
        "--device",
        "cpu",
        "--precision",
        "fp32",
        "--max-steps",
        "1",
        "--set",
        "batch_size=8",
        "--set",
        "select_on=last",
        "--runs",
        tmp_path / "runs",
    )
    done = bench(*command, "--set", "learning_rate=1")
    assert done.exit_code == 1 and "--precision" not in done.stderr.splitlines()[-1], (
        "it is fp32 already"
    )
    assert "a lower --set learning_rate=" in done.stderr.splitlines()[-1]
    assert bench(*command, "--set", "learning_rate=1e-4").exit_code == 0


def test_what_suites_say_of_vectors_that_are_no_numbers() -> None:
    from bench.base.errors import RunFailed
    from bench.score.suites import check_vectors

    with pytest.raises(RunFailed) as failed:
        check_vectors(np.array([[np.nan]]), ["a"], "STS12")
    assert "a lower --set learning_rate=, or another backbone" in str(failed.value.hint)
    assert "--precision" not in str(failed.value.hint), "scores are float32, whatever is asked for"


def test_a_large_checkpoint_is_read_once(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bench.runs import intact

    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(intact, "SMALL", 1)
    monkeypatch.setattr("bench.base.files.SETTLED_SECONDS", -1.0)
    found = RunsFolder(runs).read(the_run(runs).name)
    read: list[Path] = []
    real = intact.file_sha256
    monkeypatch.setattr(intact, "file_sha256", lambda file: read.append(file) or real(file))
    assert intact.checkpoint_problem(found, the_run(runs)) is None
    assert sorted(file.name for file in read) == ["method.json", "trained.safetensors"]
    assert intact.checkpoint_problem(found, the_run(runs)) is None and len(read) == 2
    weights = the_run(runs) / "checkpoint" / "trained.safetensors"
    facts = weights.stat()
    alter(weights)
    os.utime(
        weights, ns=(facts.st_atime_ns, facts.st_mtime_ns)
    )  # same size, same time of writing: the kernel's own clock tells
    assert "its hash is not the recorded one" in str(
        intact.checkpoint_problem(found, the_run(runs))
    )


def test_a_file_that_was_written_just_now_is_not_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bench.runs import intact

    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(intact, "SMALL", 1)
    (tmp_path / "file").write_bytes(b"one")
    assert intact.remembered_sha256(tmp_path / "file") == intact.file_sha256(tmp_path / "file")
    assert not (tmp_path / "cache").exists()
