"""Tasks and benchmarks of the mteb package, scored by mteb's own code on this run's vectors.

Suite mteb, protocol ``mteb/2``. A task's value is mteb's main score x 100, under the main score's
own name; for several splits or languages their mean, as mteb takes it. ``--suite mteb`` alone means
the seven STS sets as mteb has them; ``--suite mteb:NAME,...`` any tasks or benchmarks. mteb is
imported when a task is loaded, not before.

``mteb:STS17:es-es+en-tr`` scores some subsets (languages) of a task. Such a choice is a task of its
own, "STS17:es-es+en-tr", because its value is a mean over other data.
"""

from __future__ import annotations

import copy
import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from bench.base.errors import BenchError, RunFailed, one_line
from bench.data.sets import DataFolder, data_set
from bench.score.metrics.metric import metric_named
from bench.score.suites.mteb_data import (
    FROM_FOLDER,
    MtebSource,
    leaves,
    load_data,
    quiet_mteb,
    source_of,
)
from bench.score.suites.mteb_names import SUBSETS, named_tasks, with_subsets
from bench.score.suites.registry import split_suites
from bench.score.suites.sts import SAME_COSINES
from bench.score.suites.task import LoadedTask, RunPlace, Suite, Task, TaskResult, Vectors
from bench.score.suites.vectors import check_vectors

PROTOCOL = "mteb/2"
FOLDER = "mteb"  # in the run's folder: what mteb itself writes
BATCH = 1024  # sentences that mteb hands over at once; batches of a bounded size are made later


class MtebEncoder:
    """A run's vectors behind mteb's encoder protocol: ``vectors`` answers for any sentence.

    Similarity is the cosine; prompts are not used: no method here has one.
    """

    def __init__(
        self, model_name: str, revision: str | None = None, *, vectors: Vectors, **_: Any
    ) -> None:
        from mteb.models.model_meta import ModelMeta, ScoringFunction

        self._vectors = vectors
        self.mteb_model_meta: Any = ModelMeta.create_empty(
            {
                "name": model_name,
                "revision": revision,
                "similarity_fn_name": ScoringFunction.COSINE,
                "modalities": ["text"],
            }
        )

    def encode(
        self,
        inputs: Any,
        *,
        task_metadata: Any,
        hf_split: str,
        hf_subset: str,
        prompt_type: Any = None,
        **_: Any,
    ) -> np.ndarray:
        """Return (n, dim) float32 vectors of every text in the batches, in their order.

        Raises RunFailed, naming the first bad sentence.
        """
        sentences = [text for batch in inputs for text in batch["text"]]
        return check_vectors(self._vectors(sentences), sentences, str(task_metadata.name))

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Return the cosine of every vector with every other, (n, m)."""
        from mteb.similarity_functions import cos_sim

        return cos_sim(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Return the cosine of vector i with vector i, (n,)."""
        from mteb.similarity_functions import pairwise_cos_sim

        return pairwise_cos_sim(embeddings1, embeddings2)


@dataclass(frozen=True)
class LoadedMteb(LoadedTask):
    """A task of mteb with the source of its data."""

    task: Task
    # Never run: each scoring works on a copy, so that mteb's draws are the same.
    pristine: Any
    source: MtebSource
    offline: bool = False

    @property
    def name(self) -> str:
        return str(self.pristine.metadata.name)

    @property
    def folder(self) -> Path:
        """The folder of mteb's files, below the run's: a choice of subsets has one of its own."""
        name = self.task.name
        return Path(FOLDER) if name == self.name else Path(FOLDER, quote(name, safe=""))

    @property
    def sentences(self) -> tuple[str, ...]:
        """Empty, because mteb asks for sentences while it scores."""
        return ()

    @property
    def n(self) -> int:
        return declared_items(self.pristine)

    @property
    def sha256(self) -> str:
        """Hash of the data's name (revision on the hub, or content of own files), splits and
        languages.
        """
        named = [
            [leaf.metadata.name, leaf.metadata.dataset, *_parts(leaf)]
            for leaf in leaves(self.pristine)
        ]
        content = [named, _parts(self.pristine), self.source.sha256]
        return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()

    def score(self, vectors: Vectors) -> TaskResult:
        """Score the task, and delete mteb's files. ``vectors`` must answer for any sentence."""
        with tempfile.TemporaryDirectory() as folder:
            return self.score_in(RunPlace("model", "unknown", Path(folder)), vectors)

    def score_in(self, place: RunPlace, vectors: Vectors) -> TaskResult:
        """Score the task, with mteb's own results and predictions below ``place.folder``/mteb.

        Raises RunFailed if the vectors cannot be scored or mteb fails, DataMissing if the data is
        not available.
        """
        import mteb

        predictions = place.folder / self.folder / "predictions"
        with quiet_mteb(self.offline):
            task = copy.deepcopy(self.pristine)
            self.source.fill(task)
            for leaf in leaves(task):
                (predictions / leaf.prediction_file_name).unlink(missing_ok=True)
            if leaves(task) == [task]:
                load_data(task, self.offline)
            encoder = MtebEncoder(f"bench/{place.name}", place.revision, vectors=vectors)
            try:
                run = mteb.evaluate(
                    encoder,
                    task,
                    cache=mteb.ResultCache(place.folder / self.folder),
                    overwrite_strategy="always",
                    prediction_folder=predictions,
                    encode_kwargs={"batch_size": BATCH, "show_progress_bar": False},
                    show_progress_bar=False,
                    co2_tracker=False,
                )
            except (BenchError, MemoryError):
                raise
            except Exception as error:
                if "out of memory" in str(error).lower():
                    raise
                raise RunFailed(
                    f"{self.name}: mteb {mteb.__version__} raised {one_line(error, 300)}"
                ) from error
        result = run.task_results[0]
        value = float(result.get_score())
        if not np.isfinite(value):
            raise RunFailed(
                f"{self.name}: mteb's {task.metadata.main_score} is not a number", SAME_COSINES
            )
        return TaskResult(
            suite="mteb",
            task=self.task.name,
            protocol=PROTOCOL,
            metric=str(task.metadata.main_score),
            value=100 * value,
            n=_count_items(task) or self.n,
            detail=self._detail(task, result, place.folder),
            predictions=_predictions(task, predictions),
        )

    def _detail(self, task: Any, result: Any, folder: Path) -> dict[str, Any]:
        """Return the facts that the record holds next to the value. ``folder``: the run's."""
        files = [
            folder / self.folder / "predictions" / leaf.prediction_file_name
            for leaf in leaves(task)
        ]
        subtasks = {}
        if leaves(task) != [task]:
            subtasks = {
                leaf.metadata.name: leaf.metadata.dataset["revision"] for leaf in leaves(task)
            }
        return {
            "mteb_version": result.mteb_version,
            "type": task.metadata.type,
            "dataset": {
                "path": self.pristine.metadata.dataset["path"],
                "revision": result.dataset_revision,
            },
            "source": self.source.text,
            "superseded_by": task.metadata.superseded_by,
            "subtasks": subtasks,
            "scores": {
                split: [_plain_scores(part) for part in parts]
                for split, parts in result.scores.items()
            },
            "results": sorted(
                str(file.relative_to(folder))
                for file in (folder / self.folder).glob(f"results/**/{self.name}.json")
            ),
            "predictions": [str(file.relative_to(folder)) for file in files if file.is_file()],
        }


def mteb_task(name: str, metric: str, n: int = 0, pristine: Any = None) -> Task:
    """Make the task of one mteb task.

    ``pristine``: mteb's object, if it exists already, with the splits and languages of a benchmark.
    """

    def read(task: Task, data: DataFolder) -> LoadedMteb:
        """Find the data. Raises DataMissing."""
        import mteb

        with quiet_mteb(data.offline):
            made = pristine if pristine is not None else mteb.get_task(name)
            return LoadedMteb(task, made, source_of(made, data), data.offline)

    return Task(
        suite="mteb", name=name, protocol=PROTOCOL, metric=metric_named(metric), n=n, read=read
    )


def choose_mteb_tasks(names: str) -> Suite:
    """Build the suite with these tasks and benchmarks, separated by commas.

    Raises UnknownName, and BenchError for tasks that are not about text.
    """
    import mteb

    by_name: dict[str, Any] = {}
    with quiet_mteb():
        for name in split_suites(names):
            for task in named_tasks(mteb, name):
                label = str(task.metadata.name)
                if SUBSETS in name:
                    label = with_subsets(task)
                if _parts(by_name.setdefault(label, task)) != _parts(task):
                    raise BenchError(
                        f"mteb: {label} is named twice, with different splits or languages",
                        "score them in two runs folders",
                    )
    if not by_name:
        raise BenchError(
            "--suite mteb: no task is named",
            "for example --suite mteb:STSBenchmark,Banking77Classification",
        )
    other = [name for name, task in by_name.items() if set(task.metadata.modalities) != {"text"}]
    if other:
        raise BenchError(
            f"mteb: {len(other)} of {len(by_name)} tasks are not about text, first {other[0]}",
            "name only tasks about text",
        )
    return replace(
        SUITE,
        tasks=tuple(
            mteb_task(name, str(task.metadata.main_score), declared_items(task), task)
            for name, task in by_name.items()
        ),
    )


def _parts(task: Any) -> list[Any]:
    """Return the splits and subsets (languages) that are scored."""
    return [list(task.eval_splits), list(task.hf_subsets)]


def declared_items(task: Any) -> int:
    """Return the number of items of the scored splits as mteb states it; 0 if it does not."""
    total = 0
    for leaf in leaves(task):
        for split, known in (leaf.metadata.descriptive_stats or {}).items():
            if split in leaf.eval_splits:
                by_subset = known.get("hf_subset_descriptive_stats") or {}
                counted = [by_subset[name] for name in leaf.hf_subsets if name in by_subset] or [
                    known
                ]
                total += sum(
                    int(each.get("num_queries") or each.get("num_samples") or 0) for each in counted
                )
    return total


def _count_items(task: Any) -> int:
    """Count queries of retrieval tasks and rows of others, in all data that is still loaded."""
    total = 0
    for _, _, data in _scored_data(task):
        if isinstance(data, Mapping) and "queries" in data:
            total += len(data["queries"])
        else:
            total += len(data)
    return total


def _scored_data(task: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield (subset, split, data) of all data that was scored and is still loaded."""
    for subset in task.hf_subsets:
        whole = (task.dataset or {}).get(subset, task.dataset if subset == "default" else None)
        for split in task.eval_splits:
            if isinstance(whole, Mapping) and split in whole:
                yield subset, split, whole[split]


def _predictions(task: Any, folder: Path) -> dict[str, np.ndarray]:
    """Read the predictions that mteb wrote, row by row, with gold values.

    They exist for similarity tasks, (n,) cosines, and for classification, (n, experiments) classes:
    mteb fits a classifier on several samples of the training split. Empty for other kinds.
    """
    file = folder / task.prediction_file_name
    if leaves(task) != [task] or not file.is_file():
        return {}
    written = json.loads(file.read_text(encoding="utf-8"))
    gold_column = {
        "STS": "score",
        "Classification": getattr(task, "label_column_name", "label"),
    }.get(task.metadata.type)
    rows: dict[str, list[np.ndarray]] = {"prediction": [], "gold": [], "subset": []}
    for subset, split, data in _scored_data(task):
        predicted = written.get(subset, {}).get(split)
        if gold_column is None or predicted is None or gold_column not in data.column_names:
            return {}
        if isinstance(predicted, Mapping):
            predicted = predicted.get("cosine_scores")
        else:
            predicted = list(zip(*predicted, strict=True))
        gold = np.array(data[gold_column])
        if predicted is None or len(predicted) != len(gold) or gold.dtype.hasobject:
            return {}
        rows["prediction"].append(np.array(predicted))
        rows["gold"].append(gold)
        rows["subset"].append(np.full(len(gold), f"{subset}/{split}"))
    return {key: np.concatenate(parts) for key, parts in rows.items() if parts}


def _plain_scores(scores: Mapping[str, Any]) -> dict[str, Any]:
    """Keep the scores that are numbers, text, None, or lists of numbers or text."""
    return {key: _plain(value) for key, value in scores.items() if _is_plain(value)}


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        value = value[0] if value else None
    return value is None or isinstance(value, str | int | float)


def _plain(value: Any) -> Any:
    """Replace NaN and infinity, which JSON does not have, with None."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


SUITE = Suite(
    name="mteb",
    title="Tasks of the mteb package",
    description=(
        "Any text task or benchmark of mteb by name, scored by mteb's own code: --suite "
        "mteb:NAME,NAME."
    ),
    tasks=tuple(
        mteb_task(
            name,
            "cosine_spearman",
            sum(data_set(ours).items.values()) if split == "all" else data_set(ours).items[split],
        )
        for name, (ours, _, split) in FROM_FOLDER.items()
    ),
    average=None,
    docs="suites.md#mteb",
    choose_tasks=choose_mteb_tasks,
    extra_detail=(
        "dataset",
        "mteb_version",
        "predictions",
        "results",
        "scores",
        "source",
        "subtasks",
        "superseded_by",
        "type",
    ),
)
