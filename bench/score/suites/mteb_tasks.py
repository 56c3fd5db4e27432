"""Suites as task classes of the mteb package: mteb runs any of its models and gives our numbers.

    import mteb
    from bench.score.suites.mteb_tasks import tasks

    mteb.evaluate(model, tasks("sts", "transfer", data="DIR"))

The main score equals ``bench run`` with the same vectors, under its own name ("bench_spearman",
"bench_accuracy"), on mteb's scale (0 to 1); an STS task also has mteb's own metrics. Each distinct
sentence is asked for once. Importing this module imports mteb.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from mteb.abstasks import AbsTask
from mteb.abstasks.sts import AbsTaskSTS
from mteb.abstasks.task_metadata import TaskMetadata

from bench.base.errors import BenchError
from bench.data.sets import DataFolder, data_set
from bench.records.names import text_of
from bench.score.encoding import VectorStore
from bench.score.suites.mteb import MtebEncoder
from bench.score.suites.mteb_data import as_dataset
from bench.score.suites.registry import find_metric, suite
from bench.score.suites.sts import LoadedPairs
from bench.score.suites.task import LoadedTask, Task, TaskResult, Vectors

TYPES = {
    "sts": "STS",
    "sts-multi": "STS",
    "cxc": "STS",
    "clustering": "Clustering",
    "geometry": "STS",
}  # of the others: Classification
# ISO 639-1 code of a data set's language -> mteb's code of language and script
LANGUAGES = {
    "ar": "ara-Arab",
    "de": "deu-Latn",
    "en": "eng-Latn",
    "es": "spa-Latn",
    "fr": "fra-Latn",
    "it": "ita-Latn",
    "ja": "jpn-Jpan",
    "nl": "nld-Latn",
    "pl": "pol-Latn",
    "pt": "por-Latn",
    "ru": "rus-Cyrl",
    "tr": "tur-Latn",
    "zh": "cmn-Hans",
}
BATCH = 1024  # sentences in one batch of the DataLoader, unless mteb is told otherwise


def tasks(*suites: str, data: str | Path) -> list[AbsTask]:
    """Read and check every task of these suites ("sts" if none is named) from the data folder.

    Raises what ``bench run`` would: DataMissing, DataDamaged, UnknownName.
    """
    folder = DataFolder(data, offline=True)
    made: list[AbsTask] = []
    for name in suites or ("sts",):
        if name.partition(":")[0] == "mteb":
            raise BenchError("the suite mteb is mteb's own", "mteb.get_tasks gives its tasks")
        made += [task_class(task, task.load(folder))() for task in suite(name).tasks]
    return made


def task_class(task: Task, loaded: LoadedTask) -> type[BenchTask]:
    """Return a class of its own for one task, as mteb has them."""
    metadata = metadata_of(task, loaded)
    return type(
        "".join(part.capitalize() for part in metadata.name.replace(".", "-").split("-")),
        (BenchStsTask if isinstance(loaded, LoadedPairs) else BenchTask,),
        {
            "metadata": metadata,
            "loaded": loaded,
            "__module__": __name__,
            "__doc__": metadata.description,
        },
    )


class BenchTask(AbsTask):
    """Any task of any suite: mteb brings the vectors, the suite scores them."""

    loaded: LoadedTask

    def load_data(self, num_proc: int | None = None, **_: Any) -> None:
        """Hand over the data, which was read and checked when the task was made."""
        self.dataset = self._dataset()
        self.data_loaded = True

    def _dataset(self) -> Any:
        from datasets import Dataset, DatasetDict

        return DatasetDict(
            test=Dataset.from_dict({"text": list(dict.fromkeys(self.loaded.sentences))})
        )

    def _evaluate_subset(
        self,
        model: Any,
        data_split: Any,
        *,
        encode_kwargs: Any,
        hf_split: str,
        hf_subset: str,
        prediction_folder: Path | None = None,
        **_: Any,
    ) -> Any:
        result = self.loaded.score(self._vectors(model, encode_kwargs, hf_split, hf_subset))
        if prediction_folder:
            self._save_task_predictions(
                {name: values.tolist() for name, values in result.predictions.items()},
                model,
                prediction_folder,
                hf_split=hf_split,
                hf_subset=hf_subset,
            )
        return scores_of(result)

    def _vectors(
        self, model: Any, encode_kwargs: Any, hf_split: str, hf_subset: str
    ) -> VectorStore:
        """Return the model's vector of every distinct sentence that is scored."""
        from torch.utils.data import DataLoader

        def encode(sentences: Sequence[str]) -> np.ndarray:
            rows: Any = [{"text": sentence} for sentence in sentences]
            vectors = model.encode(
                DataLoader(rows, batch_size=(encode_kwargs or {}).get("batch_size", BATCH)),
                task_metadata=self.metadata,
                hf_split=hf_split,
                hf_subset=hf_subset,
                **(encode_kwargs or {}),
            )
            return (
                vectors.detach().float().cpu().numpy()
                if hasattr(vectors, "detach")
                else np.asarray(vectors)
            )

        store = VectorStore()
        store.add(self.loaded.sentences, encode)
        return store

    def _calculate_descriptive_statistics_from_split(self, split: str, **_: Any) -> Any:
        sentences = self.loaded.sentences
        return {
            "num_samples": self.loaded.n,
            "number_of_characters": sum(map(len, sentences)),
            "unique_texts": len(set(sentences)),
        }


class BenchStsTask(BenchTask, AbsTaskSTS):
    """An STS set, with our Spearman as main score and mteb's own metrics of the same vectors."""

    def _dataset(self) -> Any:
        assert isinstance(self.loaded, LoadedPairs)
        return as_dataset({"test": self.loaded.data})

    def _evaluate_subset(
        self,
        model: Any,
        data_split: Any,
        *,
        encode_kwargs: Any,
        hf_split: str,
        hf_subset: str,
        **rest: Any,
    ) -> Any:
        store = self._vectors(model, encode_kwargs, hf_split, hf_subset)
        return {
            **AbsTaskSTS._evaluate_subset(
                self,
                _Answering(model, store),
                data_split,
                encode_kwargs=encode_kwargs,
                hf_split=hf_split,
                hf_subset=hf_subset,
                **rest,
            ),
            **scores_of(self.loaded.score(store)),
        }

    def _calculate_descriptive_statistics_from_split(self, split: str, **options: Any) -> Any:
        return AbsTaskSTS._calculate_descriptive_statistics_from_split(self, split, **options)


class _Answering(MtebEncoder):
    """The unchanged model, except that its vectors were computed already."""

    def __init__(self, model: Any, vectors: Vectors) -> None:
        self._model, self._vectors = model, vectors
        self.mteb_model_meta = model.mteb_model_meta

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        return self._model.similarity(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        return self._model.similarity_pairwise(embeddings1, embeddings2)


def scores_of(result: TaskResult) -> dict[str, Any]:
    """Convert a result to mteb's scores: "bench_spearman" and so on.

    STS also has mean and weighted mean over sub-datasets.
    """
    name = f"bench_{result.metric.replace('-', '_')}"
    bounded = math.isfinite(find_metric(result.suite, result.metric).bounds[1])
    scale = 0.01 if bounded else 1.0  # bounded metrics are printed x 100
    scores: dict[str, Any] = {name: scale * result.value}
    if result.std is not None:
        scores[f"{name}_std"] = scale * result.std
    for extra in ("mean", "wmean"):
        if isinstance(value := result.detail.get(extra), float):
            scores[f"{name}_{extra}"] = scale * value
    return {**scores, "bench_protocol": result.protocol, "bench_n": result.n}


def metadata_of(task: Task, loaded: LoadedTask) -> TaskMetadata:
    """Return the task for mteb. Its name starts with "bench-": mteb's own STS12 is another
    protocol.
    """
    text = text_of(task.protocol)
    protocol = f"-{text}" if text else ""
    if sum(other.name == task.name for other in suite(task.suite).tasks) > 1:
        protocol = f"-{task.protocol.partition('/')[0]}"
    name, languages = task.name, ["eng-Latn"]
    if task.suite == "sts-multi":
        # the task is named by its languages alone
        name = task.data[0]
        languages = [LANGUAGES[code] for code in data_set(name).languages]
    return TaskMetadata(
        name=f"bench-{name}{protocol}",
        description=f"{task.name} of bench's suite {task.suite}, protocol {task.protocol}.",
        dataset={"path": f"local/{task.suite}", "revision": loaded.sha256},
        type=TYPES.get(task.suite, "Classification"),  # type: ignore[arg-type]
        category="t2t" if TYPES.get(task.suite) == "STS" else "t2c",
        eval_splits=["test"],
        eval_langs=languages,
        main_score=f"bench_{task.metric.name.replace('-', '_')}",
        is_public=False,
    )
