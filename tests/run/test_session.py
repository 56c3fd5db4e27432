"""Python and the command line do the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import argv, bench
from run_log import started_runs

import bench as library
from bench.records import RunsFolder


@pytest.mark.slow(seconds=6)
def test_a_script_trains_as_the_command_line_does(
    tiny: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("a dog runs\na cat eats\na man sings\n" * 4)
    (tmp_path / "pairs.tsv").write_text(
        "sentence1\tsentence2\tscore\n"
        + "".join(f"a dog runs {i}\ta cat runs {i % 5}\t{i % 6}\n" for i in range(12))
    )
    words = f"run simcse --backbone {tiny} --corpus text.txt --suite pairs.tsv --seeds 1-2"
    words += " --set batch_size=4 --set select_on=last --device cpu --runs typed"
    done = bench(*argv(words))
    assert done.exit_code == 0, done.stderr
    capsys.readouterr()
    results = library.train(
        "simcse",
        tiny,
        "text.txt",
        seeds=[1, 2],
        suites="pairs.tsv",
        runs="called",
        device="cpu",
        batch_size=4,
        select_on="last",
    )
    called = capsys.readouterr().err
    plan, *lines = done.stderr.splitlines()
    assert plan.startswith("Plan: 2 runs of simcse") and called.splitlines() == lines
    assert len(started_runs(called)) == 2 and called.count("\n  done: ") == 2
    for result in results:
        typed = RunsFolder("typed").read(result.run_id)
        assert typed.fingerprint == result.record.fingerprint
        assert typed.scores == result.record.scores
