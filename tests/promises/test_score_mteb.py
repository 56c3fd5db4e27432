"""Tasks of mteb by name: mteb's own numbers, in files that mteb reads."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import mteb
import numpy as np
import pytest
import raw_sets
from made import DOES, HOW, WHAT, WHERE, WHO
from scored import score_words_in, words_in
from started import run_folders

TASK = "Banking77Classification"
Rows = dict[str, dict[str, list[Any]]]


class Words:
    """The encoder as mteb wants one."""

    def __init__(self) -> None:
        from mteb.models.model_meta import ModelMeta, ScoringFunction

        about = {"name": "me/words", "revision": "1", "modalities": ["text"]}
        about["similarity_fn_name"] = ScoringFunction.COSINE
        self.mteb_model_meta = ModelMeta.create_empty(about)

    def encode(self, inputs: Any, **_: Any) -> np.ndarray:
        return words_in([text for batch in inputs for text in batch["text"]])

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        from mteb.similarity_functions import cos_sim

        return cos_sim(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        from mteb.similarity_functions import pairwise_cos_sim

        return pairwise_cos_sim(embeddings1, embeddings2)


def mtebs_own(task: Any, dataset: Any, folder: Path) -> float:
    """Let mteb evaluate a task on data that are given to it; return its main score x 100."""
    task.dataset, task.data_loaded = dataset, True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = mteb.evaluate(
            Words(),
            task,
            cache=mteb.ResultCache(folder),
            show_progress_bar=False,
            co2_tracker=False,
        )
    (result,) = found.task_results
    return 100 * float(result.get_score())


def as_dataset(rows: Rows) -> Any:
    from datasets import Dataset, DatasetDict

    return DatasetDict({split: Dataset.from_dict(columns) for split, columns in rows.items()})


def pairs_of(pairs: raw_sets.Pairs) -> Rows:
    first, second, gold = pairs
    return {"test": {"sentence1": first, "sentence2": second, "score": gold}}


def requests(count: int, seed: int) -> dict[str, list[Any]]:
    """Return texts of four kinds whose last word says the kind in most of them."""
    chosen = np.random.default_rng(seed)
    texts, labels = [], []
    for number in range(count):
        kind = number % 4
        words = [chosen.choice(part) for part in (HOW, WHO, DOES, WHERE)]
        words.append(WHAT[kind] if chosen.random() < 0.6 else chosen.choice(WHAT))
        texts.append(" ".join(words))
        labels.append(kind)
    return {"text": texts, "label": labels, "label_text": [f"kind {kind}" for kind in labels]}


def write_cache(folder: Path, rows: Rows, task: Any) -> None:
    """Write the data set of a task as ``datasets`` keeps one of the hub in its cache."""
    from datasets import load_dataset

    path, revision = (task.metadata.dataset[key] for key in ("path", "revision"))
    made_in = folder / path.replace("/", "-")
    made_in.mkdir()
    files = {}
    for split, columns in rows.items():
        files[split] = str(made_in / f"{split}.json")
        lines = [
            dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
        ]
        Path(files[split]).write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
    load_dataset("json", data_files=files, cache_dir=str(made_in / "made"))
    (made,) = {file.parent for file in made_in.glob("made/json/*/*/*/*.arrow")}
    owner, name = path.split("/")
    kept = folder / "cache" / f"{owner}___{name}" / "default" / "0.0.0" / revision
    shutil.copytree(made, kept)
    for file in kept.glob("json-*.arrow"):
        file.rename(file.with_name(file.name.replace("json-", f"{name}-")))
    info = json.loads((kept / "dataset_info.json").read_text(encoding="utf-8"))
    info |= {"dataset_name": name, "config_name": "default"}
    (kept / "dataset_info.json").write_text(json.dumps(info), encoding="utf-8")


def results_of(run: Path) -> dict[str, float]:
    """Read the result files of a run with mteb's own class: task -> main score x 100."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = mteb.ResultCache(run / "mteb").load_results(include_remote=False)
    (model,) = found.model_results
    return {one.task_name: 100 * float(one.get_score()) for one in model.task_results}


@pytest.mark.nightly
@pytest.mark.promise(13)
def test_tasks_of_mteb_have_mtebs_numbers_and_mtebs_result_files(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = mteb.get_task(TASK)
    rows = {"train": requests(160, 1), "test": requests(80, 2)}
    write_cache(tmp_path, rows, about)
    spanish = pairs_of(raw_sets.sts_multi(shared / "data", "es-es"))
    task = mteb.get_task("STS17", hf_subsets=["es-es"])
    subset = {"lang": ["es-es"] * len(spanish["test"]["score"])}
    write_cache(tmp_path, {"test": spanish["test"] | subset}, task)
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    suites = [f"mteb:STS16,{TASK}", "mteb:STS17:es-es"]
    scores = score_words_in(tmp_path, suites, data=str(shared / "data"))

    def found(task: str) -> float:
        (one,) = [score for score in scores.values() if score["task"] == task]
        assert one["suite"] == "mteb"
        return float(one["value"])

    own = tmp_path / "own"
    data = as_dataset(pairs_of(raw_sets.sts(shared / "data", "STS16")))
    wanted = {"STS16": mtebs_own(mteb.get_task("STS16"), data, own)}
    wanted[TASK] = mtebs_own(about, as_dataset(rows), own)
    assert 30 < wanted[TASK] < 95
    chosen = mtebs_own(task, {"es-es": as_dataset(spanish)}, own)
    assert found("STS16") == pytest.approx(wanted["STS16"], abs=0.01)
    assert found(TASK) == pytest.approx(wanted[TASK], abs=0.01)
    assert found("STS17:es-es") == pytest.approx(chosen, abs=0.01)
    (run,) = run_folders(tmp_path / "runs")
    stored = results_of(run)
    assert {task: stored[task] for task in wanted} == pytest.approx(wanted, abs=0.01)
