"""``bench run``: its files, and the results it keeps when a method fails or a record is damaged."""

from __future__ import annotations

import hashlib
import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import Result
from commands import argv, bench, the_run

from bench.backbones import load, resolve
from bench.methods.simcse import SimCSE
from bench.records import RunsFolder
from bench.records.arrays import read_arrays


@pytest.mark.slow
def test_a_run_leaves_a_record_predictions_a_curve_and_a_checkpoint(
    finished: tuple[Path, Result], command: tuple[Any, ...], tiny: str, corpus: Path
) -> None:
    runs, done = finished
    assert done.exit_code == 0, done.stderr
    folder = the_run(runs)
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    kept = {"run.json", "curve.jsonl", "predictions/captions.npz"}
    assert files >= kept | {"checkpoint/method.json", "checkpoint/trained.safetensors"}
    record = RunsFolder(runs).read(folder.name)
    named = (record.status, record.method, record.setting, record.backbone, record.seed)
    assert named == ("finished", "simcse", "unsupervised", Path(tiny).name, 42)
    assert record.recipe["batch_size"].value == 8 and record.recipe["batch_size"].source == "--set"
    trained = record.training
    assert trained is not None and (trained.steps, trained.sentences) == (8, 60)
    (score,) = record.scores
    curve = [json.loads(line) for line in (folder / "curve.jsonl").read_text().splitlines()]
    assert [e["step"] for e in curve] == [3, 6, 8]
    assert trained.dev_score == max(e["dev_score"] for e in curve if "dev_score" in e)
    bytes_ = sum(p.stat().st_size for p in (folder / "checkpoint").iterdir())
    assert record.cost.checkpoint_bytes == bytes_
    assert record.provenance.corpus.sha256 == hashlib.sha256(corpus.read_bytes()).hexdigest()
    typed = ["bench", *map(str, command), "--runs", str(runs)]
    names = [Path(word).name if word.startswith("/") else word for word in typed]
    assert record.provenance.command == shlex.join(names), "no folder of this machine"
    assert folder.name in done.stdout and f"{score.value:.2f}" in done.stdout


def test_the_kept_checkpoint_gives_the_recorded_predictions(
    finished: tuple[Path, Result], tiny: str, tmp_path: Path
) -> None:
    """Loaded by hand into a fresh model, encoded one by one, cosines in numpy."""
    from models import built

    from bench.score.suites import suite

    runs, _ = finished
    method = built(SimCSE, tiny, tmp_path, setting="unsupervised")
    method.load(the_run(runs) / "checkpoint")
    loaded = suite("check").tasks[0].load(None).data
    wanted = read_arrays(
        RunsFolder(runs).predictions_path(the_run(runs).name, "captions", "check/2")
    )["prediction"]
    for row in (0, 17, 4741):
        with torch.no_grad():
            a, b = (
                method.encoder(**method.assemble(method.token_ids([side[row]])))
                .last_hidden_state[0, 0]
                .double()
                .numpy()
                for side in (loaded.sentences1, loaded.sentences2)
            )
        assert a @ b / np.linalg.norm(a) / np.linalg.norm(b) == pytest.approx(wanted[row], abs=1e-5)


def test_every_token_of_the_rows_that_were_seen_is_counted(
    finished: tuple[Path, Result], tiny: str, corpus: Path
) -> None:
    runs, _ = finished
    record = RunsFolder(runs).read(the_run(runs).name)
    tokenizer = load(resolve(tiny)).tokenizer
    texts = corpus.read_text().splitlines()
    ids = tokenizer(texts, truncation=True, max_length=32)["input_ids"]
    assert record.training is not None
    assert record.training.tokens == sum(len(row) for row in ids)  # one epoch
    assert record.cost.train_seconds and record.cost.train_tokens_per_second
    # both are rounded
    assert record.cost.train_tokens_per_second * record.cost.train_seconds == pytest.approx(
        record.training.tokens, rel=0.1
    )


@pytest.mark.slow
@pytest.mark.usefixtures("short_check")
def test_a_method_that_raises_is_a_failed_run_and_the_others_go_on(
    tiny: str, tmp_path: Path
) -> None:
    plugin, runs = tmp_path / "mine.py", tmp_path / "runs"
    plugin.write_text(
        "from bench.method import TorchMethod\n\nclass Mine(TorchMethod):\n    name = 'mine'\n\n"
        "    def embed(self, features):\n        raise IndexError('row 7\\nof 3')\n"
    )
    where = ("--plugin", plugin, "--backbone", tiny, "--runs", runs)
    done = bench(*argv("run --method mine,cls --suite check"), *where)
    assert done.exit_code == 1 and "Traceback" not in done.output
    error = "mine: mine.py:7, in embed: IndexError: row 7 of 3"
    assert done.stderr.count("error: ") == 1 and f"error: {error}\n" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("1 of 2 runs failed: mine-")
    found = {record.method: record for record in RunsFolder(runs).records()[0]}
    assert (found["mine"].status, found["cls"].status) == ("failed", "finished")
    assert found["mine"].error == error
    assert "in embed" in (runs / found["mine"].run_id / "traceback.txt").read_text()


@pytest.mark.slow
@pytest.mark.usefixtures("short_check")
def test_a_damaged_record_is_made_anew(tiny: str, tmp_path: Path) -> None:
    command = ("run", "--method", "cls", "--backbone", tiny, "--suite", "check", "--runs", tmp_path)
    assert bench(*command).exit_code == 0
    file = the_run(tmp_path) / "run.json"
    whole = json.loads(file.read_text())
    file.write_text("{")
    assert "run.json" in bench("runs", "--runs", tmp_path).stderr
    done = bench(*command)
    assert done.exit_code == 0, done.stderr
    assert json.loads(file.read_text())["scores"] == whole["scores"]
