"""A finished run, put together again."""

from __future__ import annotations

import json

import pytest
from commands import SMALL, bench, the_run
from factories import record
from models import sentences
from msgspec.structs import replace

from bench.base.errors import NotAModel
from bench.method.plugins import discover
from bench.records import BackboneUsed
from bench.run.finished import backbone_of


@pytest.mark.slow
@pytest.mark.usefixtures("short_check")
def test_killed_after_the_last_score_it_still_says_what_the_corpus_shares_with_the_test_data(
    tiny, tmp_path, monkeypatch
):
    (tmp_path / "text.txt").write_text("\n".join(sentences(12, seed=8)) + "\n")
    words = f"run --method simcse --backbone {tiny} --suite check --device cpu --precision fp32"
    command = (*words.split(), "--corpus", tmp_path / "text.txt", *SMALL)
    command += ("--runs", tmp_path / "runs")

    def corpus() -> dict:
        record = json.loads((the_run(tmp_path / "runs") / "run.json").read_text())
        return record["provenance"]["corpus"]

    class Killed(BaseException):
        """Nothing is written after it."""

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("bench.run.scoring.with_overlap", killed)
        with pytest.raises(Killed):
            bench(*command)
    assert "overlap" not in corpus()
    assert bench(*command).exit_code == 0
    (counted,) = corpus()["overlap"]["tasks"]
    assert counted["task"] == "captions"


def test_a_folder_that_has_changed_since_is_refused(tiny: str) -> None:
    made = record("simcse", 42)
    about = BackboneUsed(name=tiny, revision="0" * 64)
    made = replace(made, provenance=replace(made.provenance, backbone=about))
    with pytest.raises(NotAModel, match="was made with .* revision 000000000000; here it is"):
        backbone_of(made, discover()["simcse"])
