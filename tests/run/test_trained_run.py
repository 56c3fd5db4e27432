"""A finished run, put together again."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from commands import SMALL, bench, the_run
from factories import record
from models import sentences
from msgspec.structs import replace

from bench.base.errors import NotAModel
from bench.method.plugins import discover
from bench.records import BackboneUsed, RunsFolder
from bench.run.finished import backbone_of, find_run, load_finished_run


@pytest.mark.slow
@pytest.mark.usefixtures("short_check")
@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("promcse", ("--set", "prompt_length=3")),
        ("cls", ()),
        ("whitening", ("--set", "components=16")),
    ],
    ids=["a prefix on a frozen encoder", "nothing trained", "fitted"],
)
def test_the_vectors_are_those_that_were_scored(method, options, tiny, tmp_path):
    """Equal to the run's own vector store, in a process that built the method from the record
    alone.
    """
    corpus = tmp_path / "text.txt"
    corpus.write_text("\n".join(sentences(60, seed=8)) + "\n")
    small = SMALL if method == "promcse" else ()
    learns = ("--corpus", corpus) if method != "cls" else ()
    where = ("--suite", "check", "--device", "cpu", "--runs", tmp_path / "runs")
    done = bench("run", "--method", method, "--backbone", tiny, *where, *learns, *small, *options)
    assert done.exit_code == 0, done.stderr
    folder = the_run(tmp_path / "runs")
    from bench.data.sets import DataFolder
    from bench.score.encoding import VectorStore
    from bench.score.suites.check import SUITE

    texts = list(dict.fromkeys(SUITE.tasks[0].load(DataFolder(None, offline=True)).sentences))[:20]
    key = json.loads((folder / "run.json").read_text())["fingerprint"][:16]
    stored = VectorStore(folder / "vectors", key)(texts)
    run = find_run(method, RunsFolder(tmp_path / "runs"))
    assert run.notes == () and run.folder == folder
    assert np.allclose(load_finished_run(run, offline=True).encode(texts), stored, atol=1e-5)


@pytest.mark.slow
@pytest.mark.usefixtures("short_check")
def test_killed_after_the_last_score_it_still_says_what_the_corpus_shares_with_the_test_data(
    tiny, tmp_path, monkeypatch
):
    (tmp_path / "text.txt").write_text("\n".join(sentences(12, seed=8)) + "\n")
    words = f"run --method simcse --backbone {tiny} --suite check --device cpu --precision fp32"
    command = (*words.split(), "--corpus", tmp_path / "text.txt", *SMALL)

    def about(runs: Path) -> dict:
        return json.loads((the_run(runs) / "run.json").read_text())["provenance"]

    class Killed(BaseException):
        """Nothing is written after it."""

    def killed(*_: object) -> None:
        raise Killed

    def kill() -> None:
        with monkeypatch.context() as patch:
            patch.setattr("bench.run.scoring.with_overlap", killed)
            with pytest.raises(Killed):
                bench(*command, "--runs", tmp_path / "a")
        assert "overlap" not in about(tmp_path / "a")["corpus"]

    kill()
    for runs in (tmp_path / "a", tmp_path / "b"):
        assert bench(*command, "--runs", runs).exit_code == 0
    assert about(tmp_path / "a")["corpus"] == about(tmp_path / "b")["corpus"]
    (counted,) = about(tmp_path / "a")["corpus"]["overlap"]["tasks"]
    assert counted["task"] == "captions"


def test_a_folder_that_has_changed_since_is_refused(tiny: str) -> None:
    made = record("simcse", 42)
    about = BackboneUsed(name=tiny, revision="0" * 64)
    made = replace(made, provenance=replace(made.provenance, backbone=about))
    with pytest.raises(NotAModel, match="was made with .* revision 000000000000; here it is"):
        backbone_of(made, discover()["simcse"])
