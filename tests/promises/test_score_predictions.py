"""Every score keeps a prediction for every item."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import raw_sets
from made import rated_pairs
from scored import arrays, score_words_in, spearman
from started import python, record, run_folders

OF_RESULTS = """
import json, sys
import bench
answers = {}
for result in bench.load_runs(sys.argv[1]):
    kept = result.predictions("pairs")
    answers[result.run_id] = {name: kept[name].tolist() for name in ("prediction", "gold")}
print(json.dumps(answers))
"""


@pytest.mark.promise(16)
def test_every_run_keeps_a_prediction_for_every_pair(ten_runs: Path, tmp_path: Path) -> None:
    answers = json.loads(python(OF_RESULTS, ten_runs, cwd=tmp_path).out.splitlines()[-1])
    gold = [score for _, _, score in rated_pairs(80)]
    assert len(answers) == len(run_folders(ten_runs)) == 10
    for run in run_folders(ten_runs):
        (score,) = record(run)["scores"]
        (file,) = (run / "predictions").rglob("*.npz")
        with np.load(file, allow_pickle=False) as stored:
            predicted = stored["prediction"]
            assert stored["gold"].tolist() == gold
        assert predicted.shape == (80,)
        assert answers[run.name] == {"prediction": predicted.tolist(), "gold": gold}
        assert score["value"] == pytest.approx(spearman(predicted, gold), abs=1e-6)


@pytest.mark.promise(16)
@pytest.mark.nightly
def test_a_probe_keeps_the_label_that_it_predicts_for_every_text(
    shared: Path, tmp_path: Path
) -> None:
    data = shared / "data"
    scores = score_words_in(tmp_path, ["transfer:CR,MRPC"], data=str(data))
    texts = raw_sets.labelled(data, "CR")["all"][1]
    kept = arrays(tmp_path, "CR")
    assert kept["gold"].tolist() == texts.tolist()
    right = kept["prediction"] == texts
    folds = [round(100 * right[kept["fold"] == fold].mean(), 2) for fold in range(10)]
    assert scores["CR senteval-probe/1"]["value"] == pytest.approx(np.mean(folds), abs=0.01)
    labels = raw_sets.labelled(data, "MRPC")["test"][1]
    kept = arrays(tmp_path, "MRPC")
    share = 100 * (kept["prediction"] == labels).mean()
    assert scores["MRPC senteval-probe/1"]["value"] == pytest.approx(share, abs=0.01)
