"""``bench run --chunk N`` sets how a batch is held in memory, which does not identify a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from commands import bench, error_line, the_run

from bench.records import RunsFolder

WHOLE = """
from bench.method import Loss, TorchMethod

class Whole(TorchMethod):
    name, settings = "whole", ("unsupervised",)

    def forward(self, batch):
        return Loss(self.embed(batch.columns[0]).square().mean())

    def embed(self, features):
        return self.hidden(features)[:, 0]
"""


@pytest.mark.slow
def test_a_run_in_chunks_is_the_same_run_and_its_record_says_how(
    command: tuple[Any, ...], tmp_path: Path
) -> None:
    """The masks are drawn chunk by chunk: they would make a difference with dropout."""
    records = []
    for name, chunk in (("whole", ()), ("cut", ("--chunk", "3"))):
        runs = tmp_path / name
        done = bench(
            *command,
            "--set",
            "dropout=0",
            "--runs",
            runs,
            "--set",
            "max_steps=2",
            "--plain",
            *chunk,
        )
        assert done.exit_code == 0, done.stderr
        records.append(RunsFolder(runs).read(the_run(runs).name))
    whole, cut = records
    assert whole.run_id == cut.run_id and whole.fingerprint == cut.fingerprint
    assert whole.provenance.execution.chunk is None
    assert cut.provenance.execution.chunk == 3
    assert cut.scores[0].value == pytest.approx(whole.scores[0].value, abs=0.01)


def test_a_method_that_cannot_be_cut_is_refused_before_anything_starts(
    command: tuple[Any, ...], tmp_path: Path
) -> None:
    file, runs = tmp_path / "whole.py", tmp_path / "runs"
    file.write_text(WHOLE)
    arguments = [str(one) for one in command]
    arguments[arguments.index("simcse")] = "whole"
    done = bench(*arguments, "--plugin", file, "--runs", runs, "--chunk", "4")
    assert "whole defines its loss as a whole, in forward(batch)" in error_line(done)
    assert "omit --chunk" in done.stderr and not runs.exists()
