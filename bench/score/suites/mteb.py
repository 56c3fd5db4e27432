"""Tasks and benchmarks of the mteb package, scored by mteb's own code on this run's vectors: protocol ``mteb/2``.

A task's value is mteb's main score x 100, under the main score's own name; of several splits or languages their mean, as mteb
takes it. ``--suite mteb`` alone means the seven STS sets as mteb has them; ``--suite mteb:NAME,...`` any tasks or benchmarks.
mteb is imported when a task is loaded, not before.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import logging
import random
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.base.errors import BenchError, DataMissing, RunFailed, UnknownName, one_line
from bench.data.fetching import endpoint, offline_now
from bench.data.sets import ON_ITS_PAGE, DataFolder, NotFetchedYet, Pending, data_set
from bench.data.sets.sts import SentencePairs, read_sts
from bench.score.metrics.metric import metric_named
from bench.score.suites import (
    LoadedTask,
    RunPlace,
    Suite,
    Task,
    TaskResult,
    Vectors,
    check_vectors,
    split_names,
)
from bench.score.suites.sts import SAME_COSINES

# --- where the data of an mteb task comes from: the user's data folder, mteb's own cache on this machine, or the hub ---
# The folder has the seven STS sets in exactly the text that mteb hosts, with the files' white space (a test compares them with
# mteb's own counts of pairs, characters and distinct sentences); a record names the source.


FROM_FOLDER = {
    **{name: (name, "tokenised", "test") for name in ("STS12", "STS13", "STS14", "STS15", "STS16")},
    "STSBenchmark": ("STS-B", "raw", "test"),
    "SICK-R": ("SICK-R", "raw", "all"),
}
"""mteb's task -> (our set, its text form, its split)."""


@dataclass(frozen=True)
class Source:
    """``pairs`` if the user's folder has the data; otherwise the revision on the hub that mteb asks for."""

    text: str
    pairs: SentencePairs | None = None

    def fill(self, task: Any) -> None:
        """Put the folder's pairs into an STS task of mteb, under a revision "local-SHA256"."""
        if self.pairs is not None:
            dataset = {**task.metadata.dataset, "revision": f"local-{self.pairs.sha256}"}
            task.metadata = task.metadata.model_copy(update={"dataset": dataset})
            task.dataset = as_dataset(self.pairs)
            task.data_loaded = True


def as_dataset(pairs: SentencePairs) -> Any:
    """The pairs as mteb's STS tasks hold them: {"test": sentence1, sentence2, score}."""
    from datasets import Dataset, DatasetDict

    return DatasetDict(
        test=Dataset.from_dict(
            {
                "sentence1": pairs.sentences1,
                "sentence2": pairs.sentences2,
                "score": pairs.gold.tolist(),
            }
        )
    )


def leaves(task: Any) -> list[Any]:
    """The tasks that have data: the task itself, or those that an aggregate is made of."""
    parts = getattr(task.metadata, "tasks", None)
    return [leaf for part in parts for leaf in leaves(part)] if parts else [task]


def source_of(task: Any, data: DataFolder) -> Source:
    """The user's folder if it has exactly this text; otherwise the hub, from which the data is fetched now unless it is here or offline.

    Raises DataMissing if neither has it, DataDamaged if the folder's copy is damaged.
    """
    name = task.metadata.name
    if name in FROM_FOLDER and data.roots and _hosted(task):
        ours, form, split = FROM_FOLDER[name]
        with contextlib.suppress(DataMissing):
            pairs = read_sts(data.as_it_is, ours, text=form, split=split, keep_spaces=True)
            return Source(f"data folder, {form} text of {ours}, {split} split", pairs)
    for leaf in leaves(task):
        if not _hosted(leaf) or leaf.data_loaded or _cached(leaf.metadata.dataset):
            continue
        if data.later is not None:
            data.later.note(
                Pending(
                    name=f"mteb:{name}",
                    kind="data",
                    where=f"hub data set {leaf.metadata.dataset['path']}",
                    urls=(f"{endpoint()}/datasets/{leaf.metadata.dataset['path']}",),
                    licence=leaf.metadata.license or ON_ITS_PAGE,
                )
            )
            raise NotFetchedYet(name)
        if data.offline or offline_now():
            raise missing_data(leaf)
        try:
            copy.deepcopy(leaf).load_data()
        except Exception as error:  # datasets, huggingface_hub and httpx each have their own
            raise missing_data(leaf, error) from None
    return Source("hub, at the revision that mteb asks for" if _hosted(task) else "the task itself")


def missing_data(task: Any, error: Exception | None = None) -> DataMissing:
    """The error for data that is not here, with the command that fetches it."""
    name, wanted = task.metadata.name, task.metadata.dataset
    why = f" ({one_line(error, 160)})" if error else ""
    folder = "; --data DIR with the STS sets serves it too" if name in FROM_FOLDER else ""
    return DataMissing(
        f"{name}: {wanted['path']} at revision {wanted['revision'][:12]} is not in the local cache {_cache()}{why}",
        f"with a connection: python -c \"import mteb; mteb.get_task('{name}').load_data()\"{folder}",
    )


def load_data(task: Any, offline: bool) -> None:
    """Load the data. Raises DataMissing if it is not here, or if the cache holds another revision than mteb asks for.

    (Without a connection, ``datasets`` takes the newest copy that it has, of any revision.)
    """
    if task.data_loaded:
        return
    try:
        task.load_data()
    except (ConnectionError, FileNotFoundError, ValueError) as error:
        raise missing_data(task, error) from None
    if offline or offline_now():
        revisions = {Path(file["filename"]).parent.name for file in _cache_files(task.dataset)}
        if _hosted(task) and revisions and task.metadata.dataset["revision"] not in revisions:
            stored = ", ".join(sorted(revision[:12] for revision in revisions))
            raise missing_data(task, ValueError(f"revision {stored} is there"))


def _cache_files(dataset: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(dataset, Mapping):
        for split in dataset.values():
            yield from _cache_files(split)
    else:
        yield from getattr(dataset, "cache_files", ())


def _hosted(task: Any) -> bool:
    """Whether mteb's own code loads the task from the hub; a user's class may bring its data."""
    return type(task).__module__.split(".")[0] == "mteb"


def _cache() -> Path:
    from datasets import config

    return Path(config.HF_DATASETS_CACHE)


def _cached(dataset: Mapping[str, Any]) -> bool:
    """Whether a copy of this revision is prepared here. Reads no file."""
    from datasets.naming import camelcase_to_snakecase

    owner, slash, name = str(dataset["path"]).rpartition("/")
    folder = (f"{owner}___" if slash else "") + camelcase_to_snakecase(name)
    return any((_cache() / folder).glob(f"*/*/{dataset['revision']}"))


@contextlib.contextmanager
def quiet(offline: bool = False) -> Iterator[None]:
    """mteb and ``datasets`` without progress bars and log lines, without a connection if ``offline``, and without side effects: mteb
    seeds the global random states, which are restored."""
    import datasets
    import huggingface_hub.constants as hub
    from datasets.utils import are_progress_bars_disabled

    with contextlib.ExitStack() as afterwards, warnings.catch_warnings():
        afterwards.callback(random.setstate, random.getstate())
        afterwards.callback(np.random.set_state, np.random.get_state())
        if (torch := sys.modules.get("torch")) is not None:
            afterwards.callback(torch.set_rng_state, torch.get_rng_state())
        if not are_progress_bars_disabled():
            afterwards.callback(datasets.enable_progress_bars)
        datasets.disable_progress_bars()
        for name in ("mteb", "datasets", "huggingface_hub"):
            logger = logging.getLogger(name)
            afterwards.callback(logger.setLevel, logger.level)
            logger.setLevel(logging.CRITICAL)
        modules: tuple[Any, ...] = (hub, datasets.config) if offline else ()
        for module in modules:
            afterwards.callback(setattr, module, "HF_HUB_OFFLINE", module.HF_HUB_OFFLINE)
            module.HF_HUB_OFFLINE = True
        random.seed(0)
        np.random.seed(0)
        warnings.simplefilter("ignore")
        yield


# --- the tasks ---


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
        """(n, dim) float32 of every text in the batches, in their order. Raises RunFailed, naming the first bad sentence."""
        sentences = [text for batch in inputs for text in batch["text"]]
        return check_vectors(self._vectors(sentences), sentences, str(task_metadata.name))

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Cosine of every vector with every other, (n, m)."""
        from mteb.similarity_functions import cos_sim

        return cos_sim(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Cosine of vector i with vector i, (n,)."""
        from mteb.similarity_functions import pairwise_cos_sim

        return pairwise_cos_sim(embeddings1, embeddings2)


@dataclass(frozen=True)
class LoadedMteb(LoadedTask):
    """A task whose data is within reach. ``pristine`` is never run: each scoring works on a copy, so that mteb's draws are the same."""

    pristine: Any
    source: Source
    offline: bool = False

    form: None = None  # mteb knows one text of a task

    @property
    def name(self) -> str:
        return str(self.pristine.metadata.name)

    @property
    def sentences(self) -> tuple[str, ...]:
        """None: mteb asks for them while it scores."""
        return ()

    @property
    def n(self) -> int:
        return declared_items(self.pristine)

    @property
    def sha256(self) -> str:
        """Of what names the data: its revision on the hub, or the content of the user's own files; splits and languages."""
        named = [
            [leaf.metadata.name, leaf.metadata.dataset, *_parts(leaf)]
            for leaf in leaves(self.pristine)
        ]
        pairs = self.source.pairs
        content = [named, _parts(self.pristine), None if pairs is None else pairs.sha256]
        return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()

    def score(self, vectors: Vectors) -> TaskResult:
        """The task's result; mteb's files are deleted. ``vectors`` must answer for any sentence."""
        with tempfile.TemporaryDirectory() as folder:
            return self.score_in(RunPlace("model", "unknown", Path(folder)), vectors)

    def score_in(self, place: RunPlace, vectors: Vectors) -> TaskResult:
        """The task's result; mteb's own results and predictions are stored below ``place.folder``/mteb.

        Raises RunFailed if the vectors cannot be scored or mteb fails, DataMissing if the data cannot be had.
        """
        import mteb

        predictions = place.folder / FOLDER / "predictions"
        with quiet(self.offline):
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
                    cache=mteb.ResultCache(place.folder / FOLDER),
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
        if not np.isfinite(value := float(result.get_score())):
            raise RunFailed(
                f"{self.name}: mteb's {task.metadata.main_score} is not a number", SAME_COSINES
            )
        return TaskResult(
            suite="mteb",
            task=self.name,
            protocol=PROTOCOL,
            metric=str(task.metadata.main_score),
            value=100 * value,
            n=sum(  # queries of retrieval tasks, rows of all others
                len(data["queries"] if isinstance(data, Mapping) and "queries" in data else data)
                for _, _, data in _scored_data(task)
            )
            or self.n,
            detail=self._detail(task, result, place.folder),
            predictions=_predictions(task, predictions),
        )

    def _detail(self, task: Any, result: Any, folder: Path) -> dict[str, Any]:
        """What the record holds next to the value; ``folder`` is the run's."""
        files = [
            folder / FOLDER / "predictions" / leaf.prediction_file_name for leaf in leaves(task)
        ]
        return {
            "mteb_version": result.mteb_version,
            "type": task.metadata.type,
            "dataset": {
                "path": self.pristine.metadata.dataset["path"],
                "revision": result.dataset_revision,
            },
            "source": self.source.text,
            "superseded_by": task.metadata.superseded_by,
            "subtasks": {
                leaf.metadata.name: leaf.metadata.dataset["revision"] for leaf in leaves(task)
            }
            if leaves(task) != [task]
            else {},
            "scores": {
                split: [_plain_scores(part) for part in parts]
                for split, parts in result.scores.items()
            },
            "results": sorted(
                str(file.relative_to(folder))
                for file in folder.glob(f"{FOLDER}/results/**/{self.name}.json")
            ),
            "predictions": [str(file.relative_to(folder)) for file in files if file.is_file()],
        }


def mteb_task(name: str, metric: str, n: int = 0, pristine: Any = None) -> Task:
    """One task of mteb by its name; ``pristine``: the task, if it exists already, with the splits and languages of a benchmark."""

    def read(task: Task, data: DataFolder, text: str) -> LoadedMteb:
        """``text`` is ignored: the task determines its text. Raises DataMissing if its data cannot be had."""
        import mteb

        with quiet(data.offline):
            made = pristine if pristine is not None else mteb.get_task(name)
            return LoadedMteb(made, source_of(made, data), data.offline)

    return Task(
        suite="mteb", name=name, protocol=PROTOCOL, metric=metric_named(metric), n=n, read=read
    )


def choose_tasks(names: str) -> Suite:
    """The suite with these tasks and benchmarks, separated by commas. Raises UnknownName, and BenchError for tasks that are not about text."""
    import mteb

    by_name: dict[str, Any] = {}
    with quiet():
        for name in split_names(names):
            for task in _named(mteb, name):
                label = task.metadata.name
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
    if other := [
        name for name, task in by_name.items() if set(task.metadata.modalities) != {"text"}
    ]:
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


def _named(mteb: Any, name: str) -> list[Any]:
    """The task of that name, or a benchmark's tasks."""
    with contextlib.suppress(KeyError):
        return [mteb.get_task(name)]
    try:
        return [copy.deepcopy(task) for task in mteb.get_benchmark(name).tasks]
    except KeyError:
        raise UnknownName(
            "mteb task or benchmark",
            name,
            [
                *(task.metadata.name for task in mteb.get_tasks(exclude_superseded=False)),
                *(benchmark.name for benchmark in mteb.get_benchmarks()),
            ],
            hint="mteb available-tasks, mteb available-benchmarks",
        ) from None


def _parts(task: Any) -> list[Any]:
    """Splits and subsets (languages) that are scored."""
    return [list(task.eval_splits), list(task.hf_subsets)]


def declared_items(task: Any) -> int:
    """Items of the scored splits, as the mteb package counts them; 0 if it does not."""
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


def _scored_data(task: Any) -> Iterator[tuple[str, str, Any]]:
    """(subset, split, data) of everything that was scored and is still loaded."""
    for subset in task.hf_subsets:
        whole = (task.dataset or {}).get(subset, task.dataset if subset == "default" else None)
        for split in task.eval_splits:
            if isinstance(whole, Mapping) and split in whole:
                yield subset, split, whole[split]


def _predictions(task: Any, folder: Path) -> dict[str, np.ndarray]:
    """The predictions that mteb wrote for similarity and classification tasks, row by row, with gold values; nothing for other kinds.

    "prediction" is (n,) cosines, or (n, experiments) classes: mteb fits a classifier on several samples of the training split.
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
        made = written.get(subset, {}).get(split)
        if gold_column is None or made is None or gold_column not in data.column_names:
            return {}
        made = (
            made.get("cosine_scores")
            if isinstance(made, Mapping)
            else list(zip(*made, strict=True))
        )
        gold = np.array(data[gold_column])
        if made is None or len(made) != len(gold) or gold.dtype.hasobject:
            return {}
        rows["prediction"].append(np.array(made))
        rows["gold"].append(gold)
        rows["subset"].append(np.full(len(gold), f"{subset}/{split}"))
    return {key: np.concatenate(parts) for key, parts in rows.items() if parts}


def _plain_scores(scores: Mapping[str, Any]) -> dict[str, Any]:
    """The scores that are numbers, text, None, or lists of numbers or text."""
    return {
        key: _plain(value)
        for key, value in scores.items()
        if value is None
        or all(
            isinstance(part, str | int | float)
            for part in (value[:1] if isinstance(value, list) else [value])
        )
    }


def _plain(value: Any) -> Any:
    """Without NaN and infinity, which JSON does not have."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


SUITE = Suite(
    name="mteb",
    title="Tasks of the mteb package",
    description="Any text task or benchmark of mteb by name, scored by mteb's own code: --suite mteb:NAME,NAME.",
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
