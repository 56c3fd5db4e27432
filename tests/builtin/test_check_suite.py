"""The suite 'check': its score is scipy's, its parts share nothing, other data than its own is
refused.
"""

from __future__ import annotations

import lzma
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from scipy.stats import pearsonr, spearmanr
from scored_run import finished_run

from bench.base.errors import DataDamaged
from bench.compare.tables import make_tables
from bench.records import Run, RunsFolder, Score
from bench.records.predictions import read_predicted
from bench.score.suites import check, suite
from bench.score.suites.check import check_dev_task


def hashed_words(sentences):
    """Vectors of word counts in 64 buckets."""
    vectors = np.zeros((len(sentences), 64), dtype=np.float32)
    for i, sentence in enumerate(sentences):
        for word in sentence.lower().split():
            vectors[i, sum(map(ord, word)) % 64] += 1
    return vectors


@pytest.fixture(scope="module")
def test_part():
    return suite("check").tasks[0].load(None)


@pytest.fixture(scope="module")
def scored(test_part):
    return test_part.score(hashed_words)


def test_scores_are_spearman_of_cosine_over_all_pairs(test_part, scored):
    a, b = hashed_words(test_part.data.sentences1), hashed_words(test_part.data.sentences2)
    cosine = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    np.testing.assert_allclose(scored.predictions["prediction"], cosine, atol=1e-6)
    kept, gold = scored.predictions["prediction"], test_part.data.gold
    assert scored.value == pytest.approx(100 * spearmanr(kept, gold)[0], abs=1e-9)
    about = scored.suite, scored.task, scored.protocol, scored.metric, scored.n
    assert about == ("check", "captions", "check/2", "spearman", 4742)
    for kind, n in (("c2c_cocaption", 4000), ("c2c_isim", 742)):
        rows = scored.predictions["subset"] == kind
        said = scored.detail["subsets"][kind]
        assert said["n"] == rows.sum() == n
        both = (spearmanr(kept[rows], gold[rows])[0], pearsonr(kept[rows], gold[rows])[0])
        wanted = pytest.approx([100 * one for one in both], abs=1e-9)
        assert [said["spearman"], said["pearson"]] == wanted


def test_captions_of_one_image_are_drawn_together(tmp_path, scored):
    store = RunsFolder(tmp_path)
    run = finished_run(store, scores=())
    score = Score(**{name: getattr(scored, name) for name in Score.__struct_fields__})
    store.write_predictions(run.run_id, score.task, score.protocol, scored.predictions, score.suite)
    record = replace(run, scores=(score,))
    cell = read_predicted([Run(record, store.folder(run.run_id))], score.key)
    assert cell.shared_NK is not None and cell.shared_NK.shape == (4742, 2)
    assert len(np.unique(cell.shared_NK)) == 800
    (table,) = make_tables([Run(record, store.folder(run.run_id))])
    spread = table.rows[0].cells[0].spread
    images, said, gold = (scored.predictions[key] for key in ("image", "prediction", "gold"))
    places = [np.flatnonzero(images == one) for one in range(800)]
    draw = np.random.default_rng(1)
    values = []
    for _ in range(500):
        rows = np.concatenate([places[one] for one in draw.integers(0, 800, 800)])
        values.append(100 * spearmanr(said[rows], gold[rows])[0])
    low, high = np.percentile(values, [2.5, 97.5])
    assert spread.high - spread.low == pytest.approx(high - low, rel=0.15)


HEAD = b"sentence1\tsentence2\tgold\tkind\tcaption1\tcaption2\n"


@pytest.mark.parametrize(
    "content",
    [None, lzma.compress(HEAD + b"A.\tB.\t1\tc2c_isim\t1\t2\n"), lzma.compress(HEAD * 50)[:-9]],
)
def test_damaged_data_is_refused(tmp_path: Path, monkeypatch, content):
    monkeypatch.setattr(check, "CHECK_DATA", tmp_path)
    if content is not None:
        (tmp_path / "check-dev.tsv.xz").write_bytes(content)
    with pytest.raises(DataDamaged, match="captions dev") as caught:
        check_dev_task()
    assert caught.value.hint == "install the package again" and "\n" not in caught.value.message
