"""mteb's tasks on our vectors: with two tasks made here."""

from __future__ import annotations

import json
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats

from bench.base.errors import BenchError
from bench.data.sets import DataFolder
from bench.score.suites import RunPlace, Task, suite
from bench.score.suites.mteb import mteb_task
from bench.score.suites.mteb_names import with_subsets


def hashed(sentences: Any) -> np.ndarray:
    """Encode without a model: the sum of a fixed random vector for every word."""
    words = {word for sentence in sentences for word in sentence.split()}
    known = {w: np.random.default_rng(zlib.crc32(w.encode())).normal(size=16) for w in words}
    rows = [sum((known[w] for w in s.split()), np.zeros(16)) for s in sentences]
    return np.array(rows, dtype=np.float32)


def task(made: Any) -> Task:
    return mteb_task(made.metadata.name, made.metadata.main_score, pristine=made)


def scored(made: Any, folder: Path, vectors: Any = hashed) -> Any:
    loaded: Any = task(made).load(DataFolder(None, offline=True))
    return loaded.score_in(RunPlace("simcse+x-s1", "1a2b", folder), vectors)


def test_an_sts_task_gives_mtebs_own_number_and_keeps_its_cosines(tmp_path: Path) -> None:
    import mteb
    from mteb_tasks import TinySts

    result = scored(TinySts(), tmp_path)
    made = TinySts()
    made.load_data()
    data = made.dataset["test"]
    a, b = hashed(data["sentence1"]), hashed(data["sentence2"])
    cosines = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    wanted = 100 * scipy.stats.spearmanr(cosines, data["score"]).statistic
    assert result.value == pytest.approx(wanted, abs=1e-6)
    about = result.suite, result.task, result.protocol, result.metric, result.n
    assert about == ("mteb", "TinySts", "mteb/2", "cosine_spearman", 40)
    np.testing.assert_allclose(result.predictions["prediction"], cosines, atol=1e-6)
    assert result.predictions["gold"].tolist() == data["score"]
    assert set(result.predictions["subset"]) == {"default/test"}
    assert result.detail["mteb_version"] == mteb.__version__
    assert result.detail["dataset"] == {"path": "local", "revision": "r1"}
    json.dumps(result.detail, allow_nan=False)


def test_a_choice_of_subsets_is_a_task_of_its_own(tmp_path: Path) -> None:
    from mteb_tasks import TinyLanguages, random_sentences

    both = suite("mteb:STS17:en-tr+es-es").tasks
    assert [task.name for task in both] == ["STS17:en-tr+es-es"]
    assert suite("mteb:STS17:es-es+en-tr,STS17:es-es").tasks[0].name == "STS17:en-tr+es-es"
    made: Any = TinyLanguages().filter_languages(None, hf_subsets=["es-es", "en"])
    label = with_subsets(made)
    loaded: Any = mteb_task(label, "cosine_spearman", pristine=made).load(DataFolder(None))
    result = loaded.score_in(RunPlace("simcse+x-s1", "1a2b", tmp_path), hashed)
    first, second = random_sentences(40, 1), random_sentences(40, 2)
    values = []
    for size in (20, 30):
        a, b = hashed(first[:size]), hashed(second[:size])
        cosines = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
        both_sides = zip(first[:size], second[:size], strict=True)
        shared = [len(set(one.split()) & set(other.split())) for one, other in both_sides]
        values.append(100 * scipy.stats.spearmanr(cosines, shared).statistic)
    assert result.value == pytest.approx(np.mean(values), abs=0.01)
    assert (result.task, result.n) == ("TinyLanguages:en+es-es", 50)
    (file,) = result.detail["results"]
    assert file.startswith("mteb/TinyLanguages%3A") and (tmp_path / file).is_file()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("STS17:de-de", "unknown subset 'de-de' of STS17"),
        ("STSBenchmark:en", "STSBenchmark has no subsets to choose"),
    ],
)
def test_a_wrong_choice_of_subsets_is_one_line(name: str, message: str) -> None:
    with pytest.raises(BenchError, match=re.escape(message)):
        suite(f"mteb:{name}")


def test_the_whole_task_with_every_subset_keeps_its_name() -> None:
    import mteb

    every = "+".join(mteb.get_task("STSBenchmarkMultilingualSTS").hf_subsets)
    (task,) = suite(f"mteb:STSBenchmarkMultilingualSTS:{every}").tasks
    assert task.name == "STSBenchmarkMultilingualSTS"
