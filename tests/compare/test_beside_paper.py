"""Which of our runs stand beside a published row."""

from __future__ import annotations

from pathlib import Path

import pytest
from compared_runs import runs_in
from factories import TRAINING
from made_runs import made_run
from msgspec.structs import replace

from bench.base.errors import BenchError
from bench.compare.beside_paper import rows_beside
from bench.papers import find_part
from bench.records import RunRecord


def trained(folder: Path, steps: int, seeds: int, **changes: object) -> list[RunRecord]:
    done = replace(TRAINING, steps=steps, best_step=min(steps, TRAINING.best_step or 0))
    recipe = {"budget": f"{steps}steps"}
    noise = 0.3 + 0.1 / (steps + 1)
    return [
        made_run(folder, "simcse", seed, noise=noise, recipe=recipe, training=done, **changes)  # type: ignore[arg-type]
        for seed in range(1, seeds + 1)
    ]


def test_the_longest_training_with_enough_seeds_counts_and_texts_are_not_mixed(
    tmp_path: Path,
) -> None:
    """Not that of most seeds, and no mean over runs of two texts."""
    records = [
        *trained(tmp_path, 0, 6),
        *trained(tmp_path, 100, 6),
        *trained(tmp_path, 2000, 2),
        *trained(tmp_path, 1000, 3, provenance={"corpus": {"name": "other", "sha256": "b" * 64}}),
    ]
    kept = trained(tmp_path, 1000, 4)
    (ours,) = [
        row
        for row in rows_beside(find_part("promcse:1"), runs_in(tmp_path, [*records, *kept]))
        if row.row.first.label == "SimCSE-BERT-base" and row.row.first.setting == "unsupervised"
    ]
    assert [one.run_id for one in ours.records] == [one.run_id for one in kept]
    assert ours.ours == "simcse on builtin, 1,000 steps, seeds 1-4"
    average = sum(score.value for one in kept for score in one.scores if score.task == "Avg.") / 4
    (cell,) = [cell for cell in ours.cells if cell.printed.task == "Avg."]
    assert cell.mean == pytest.approx(average)


@pytest.mark.parametrize("pooling", ["cls", "avg"])
def test_a_training_from_a_released_checkpoint_is_not_that_checkpoint(
    tmp_path: Path, pooling: str
) -> None:
    released = "princeton-nlp/unsup-simcse-bert-base-uncased"
    recipe = {"pooling": pooling}
    made = [made_run(tmp_path, "esimcse", 1, noise=0.3, backbone=released, recipe=recipe)]
    with pytest.raises(BenchError, match="none of these runs has a score for a row of it"):
        rows_beside(find_part("simcse:5"), runs_in(tmp_path, made))


@pytest.mark.parametrize(
    ("part", "hint"),
    [
        ("ct:README", "bench papers ct:README"),
        ("promcse:3", "bench run --paper promcse:3 --dry-run"),
    ],
)
def test_what_is_suggested_can_be_run(tmp_path: Path, part: str, hint: str) -> None:
    made = [made_run(tmp_path, "esimcse", 1, noise=0.3)]
    with pytest.raises(BenchError) as caught:
        rows_beside(find_part(part), runs_in(tmp_path, made))
    assert caught.value.hint == hint
