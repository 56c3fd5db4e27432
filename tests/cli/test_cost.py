"""The costs of training in a record: counted on the corpus itself, and shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import Result
from commands import the_run

from bench.backbones import load, resolve
from bench.records import RunRecord, RunsFolder


@pytest.fixture(scope="module")
def record(finished: tuple[Path, Result]) -> RunRecord:
    runs, done = finished
    assert done.exit_code == 0, done.stderr
    return RunsFolder(runs).read(the_run(runs).name)


@pytest.mark.slow
def test_every_token_of_the_rows_that_were_seen_is_counted(
    record: RunRecord, tiny: str, corpus: Path
) -> None:
    backbone = load(resolve(tiny))
    ids = backbone.tokenizer(corpus.read_text().splitlines(), truncation=True, max_length=32)[
        "input_ids"
    ]
    assert record.training is not None
    assert record.training.tokens == sum(len(row) for row in ids)  # one epoch
    assert record.cost.train_seconds and record.cost.train_tokens_per_second
    # both are rounded
    assert record.cost.train_tokens_per_second * record.cost.train_seconds == pytest.approx(
        record.training.tokens, rel=0.1
    )
