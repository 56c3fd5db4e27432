"""``bench export``: the files it writes, its model card, and a user's mistakes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from commands import bench, error_line, tree

from bench.records import Run, RunsFolder
from bench.records.arrays import read_arrays
from bench.records.record import read_record

Finished = tuple[Path, Result]


def export(finished: Finished, *arguments: str | Path, **env: str) -> Result:
    return bench("export", "simcse", "--runs", finished[0], *arguments, **env)


@pytest.mark.slow
def test_the_interval_is_that_of_a_plain_bootstrap(finished: Finished) -> None:
    import numpy as np
    from scipy.stats import spearmanr

    from bench.export.card_tables import scores_table

    store = RunsFolder(finished[0])
    record = read_record(store.record_file("simcse"))
    score = record.scores[0]
    stored = read_arrays(
        store.predictions_path(record.run_id, score.task, score.protocol, score.suite)
    )
    rng = np.random.default_rng(11)
    rows = [rng.integers(score.n, size=score.n) for _ in range(500)]
    drawn = [spearmanr(stored["prediction"][r], stored["gold"][r]).statistic for r in rows]
    plain = 100 * np.percentile(drawn, [2.5, 97.5])
    text = scores_table(Run(record, store.folder(record.run_id)))
    found = [float(end) for end in re.findall(r"([-\d.]+) to ([-\d.]+) \|", text)[0]]
    assert np.abs(np.array(found) - plain).max() < 0.15 * np.ptp(plain)


def test_json_and_the_example_of_the_card(finished: Finished, tmp_path: Path) -> None:
    to = tmp_path / "new" / "model"
    facts = json.loads(export(finished, "--to", to, "--json").stdout)
    assert facts["dimensions"] == 32 and facts["difference"] <= 1e-5 and facts["module_files"] == []
    readme = (to / "README.md").read_text(encoding="utf-8")
    code = re.findall("```python\n(.*?)```", readme, re.S)[0]
    names: dict[str, Any] = {}
    exec(code.replace('SentenceTransformer("model"', f'SentenceTransformer("{to}"'), names)
    assert tuple(names["vectors"].shape) == (2, 32)


def test_the_same_export_again_changes_nothing_and_other_files_are_kept(
    finished: Finished, tmp_path: Path
) -> None:
    """A command may have been killed after it had put the folder in its place."""
    assert export(finished, "--to", tmp_path / "new").exit_code == 0
    before = tree(tmp_path)
    assert export(finished, "--to", tmp_path / "new").exit_code == 0
    assert tree(tmp_path) == before
    (tmp_path / "new" / "notes.txt").write_text("mine")
    before = tree(tmp_path)
    done = export(finished, "--to", tmp_path / "new")
    assert "exists already" in error_line(done) and tree(tmp_path) == before


@pytest.mark.parametrize("fault", ["other vectors", "full disk"])
def test_a_fault_leaves_nothing_behind(
    fault: str, finished: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bench.export import st_folder

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    if fault == "full disk":
        monkeypatch.setattr(st_folder, "write_json", full)
    else:
        monkeypatch.setitem(st_folder.POOLINGS, "cls", "pooling_mode_mean_tokens")
        monkeypatch.setitem(st_folder.POOLINGS, "mean", "pooling_mode_cls_token")
    done = export(finished, "--to", tmp_path / "new")
    code, said = {
        "full disk": (2, "new cannot be written: No space left on device"),
        "other vectors": (1, "does not give the vectors of simcse"),
    }[fault]
    assert said in error_line(done, code) and list(tmp_path.iterdir()) == []
