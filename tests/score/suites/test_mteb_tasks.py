"""Our suites as mteb tasks: mteb, run by its own user on local data, gives our numbers."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.data.sets import DataFolder, data_sets
from bench.score.suites import suite

mteb = pytest.importorskip("mteb")
from mteb.models.model_meta import ModelMeta, ScoringFunction  # noqa: E402

from bench.score.suites.mteb_tasks import LANGUAGES, tasks  # noqa: E402


class Words:
    """A model by mteb's protocol: a sum of word vectors. Counts the sentences it is asked for."""

    mteb_model_meta = ModelMeta.create_empty(
        {
            "name": "me/words",
            "revision": "1",
            "similarity_fn_name": ScoringFunction.COSINE,
            "modalities": ["text"],
        }
    )

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.known: dict[str, np.ndarray] = {}

    def vectors(self, sentences: Any) -> np.ndarray:
        for word in {word for sentence in sentences for word in sentence.split()} - set(self.known):
            self.known[word] = np.random.default_rng(zlib.crc32(word.encode())).normal(size=32)
        return np.array(
            [sum((self.known[w] for w in s.split()), np.zeros(32)) for s in sentences],
            dtype=np.float32,
        )

    def encode(self, inputs: Any, **_: Any) -> np.ndarray:
        sentences = [text for batch in inputs for text in batch["text"]]
        self.asked += sentences
        return self.vectors(sentences)

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        raise NotImplementedError

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        from mteb.similarity_functions import pairwise_cos_sim

        return pairwise_cos_sim(embeddings1, embeddings2)


def evaluated(made: Any, tmp_path: Path, model: Any) -> dict[str, Any]:
    found = mteb.evaluate(
        model,
        made,
        cache=mteb.ResultCache(tmp_path),
        prediction_folder=tmp_path / "predictions",
        show_progress_bar=False,
        co2_tracker=False,
    )
    return {one.task_name: one.scores["test"][0] for one in found.task_results}


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["sts", "sts:senteval-all-raw/1"])
def test_every_sts_set_gives_the_number_of_our_suite(name, shared, tmp_path):
    model = Words()
    made = tasks(name, data=shared / "data")
    assert [one.metadata.type for one in made] == ["STS"] * 7
    scores = evaluated(made, tmp_path, model)
    ending = "" if name == "sts" else "-raw"
    for task in suite(name).tasks:
        ours = task.load(DataFolder(shared / "data")).score(model.vectors)
        theirs = scores[f"bench-{task.name}{ending}"]
        assert 100 * theirs["main_score"] == pytest.approx(ours.value, abs=1e-6)
        assert 100 * theirs["bench_spearman_mean"] == pytest.approx(ours.detail["mean"], abs=1e-6)
        # mteb's own result from the same vectors, in float32: near, and not the same.
        assert 100 * theirs["cosine_spearman"] == pytest.approx(ours.value, abs=5e-3)
        assert (theirs["bench_n"], theirs["bench_protocol"]) == (task.n, task.protocol)
    (stored,) = mteb.ResultCache(tmp_path).load_results(include_remote=False).model_results
    assert {one.task_name for one in stored.task_results} == set(scores)
    assert len(list((tmp_path / "predictions").iterdir())) == 7


def test_sets_in_other_languages_say_their_languages(shared):
    made = tasks("sts-multi:zh,tr-en", data=shared / "data")
    about = {task.metadata.name: task.metadata.eval_langs for task in made}
    assert about == {
        "bench-STS17-tr-en": ["tur-Latn", "eng-Latn"],
        "bench-STS-B-zh": ["cmn-Hans"],
    }
    assert {task.metadata.type for task in made} == {"STS"}
    every = {code for known in data_sets().values() for code in known.languages}
    assert every == set(LANGUAGES)
