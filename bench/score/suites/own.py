"""A user's own files as tasks: ``--suite pairs.tsv``, ``--suite classification:reviews.csv``.

There are four kinds of protocol, three like a suite of the papers: ``own-pairs-HASH/1`` is Spearman
x 100 of cosine and rating (as sts), ``own-probe-HASH/1`` SentEval's classifier (as transfer),
``own-kmeans-HASH/1`` k-means with ten seeds (as clustering), ``own-retrieval-HASH/1`` nDCG@10 of a
search. Pairs judged 0 or 1 may have another score: ``own-ap-HASH/1``, ``own-f1-HASH/1``,
``own-accuracy-HASH/1``. HASH is the beginning of the hash of the rows that are used, so that files
of one name and different content are never one column. A score is verified without the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec.structs import replace as replace_fields

from bench.base.errors import BenchError, DataMissing, UnknownName
from bench.base.text import plural
from bench.data.own.items import (
    read_classed,
    read_labelled,
    read_pairs,
    texts_in_two_splits,
    with_kind,
)
from bench.data.own.naming import (
    CLASSIFICATION,
    CLUSTERING,
    EXAMPLE,
    PAIRS,
    RETRIEVAL,
    OwnFile,
    description_notes,
    parse_own_file,
    read_description,
    split_files,
)
from bench.data.own.retrieval import read_retrieval
from bench.data.sets import DataFolder
from bench.records.names import protocol_text, with_text
from bench.score.metrics.metric import (
    ACCURACY,
    AVERAGE_PRECISION,
    BEST_ACCURACY,
    BEST_F1,
    CLUSTERING_ACCURACY,
    NDCG,
    SPEARMAN,
    Metric,
)
from bench.score.suites.clustering import LoadedTexts, score_clusters
from bench.score.suites.own_pairs import (
    LoadedOwnPairs,
    score_average_precision,
    score_best_accuracy,
    score_best_f1,
    score_own_pairs,
)
from bench.score.suites.retrieval import LoadedRetrieval, score_rankings
from bench.score.suites.task import (
    Arrays,
    LoadedTask,
    RunPlace,
    Suite,
    Task,
    TaskResult,
    TaskScore,
    Vectors,
)
from bench.score.suites.transfer import LoadedTransfer, score_folds

NAME = "own"
SHOWN = 60  # letters of a text in a note


@dataclass(frozen=True)
class LoadedOwn(LoadedTask):
    """A user's data, scored like the suite of ``inner``. The record keeps the facts about it."""

    task: Task
    # a LoadedPairs, LoadedTransfer, LoadedTexts or LoadedRetrieval
    inner: Any
    # name, scale, licence and source, if the file comes with a description that has them
    facts: dict[str, object] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def data(self) -> Any:  # type: ignore[override]
        return self.inner.data

    @property
    def sentences(self) -> Sequence[str]:
        return self.inner.sentences

    @property
    def sides(self) -> Mapping[str, Sequence[str]]:
        return self.inner.sides

    @property
    def n(self) -> int:
        return self.inner.n

    def on(self, device: str) -> LoadedOwn:
        return replace(self, inner=self.inner.on(device))

    def score(self, vectors: Vectors) -> TaskResult:
        """Score the task. Raises RunFailed if the vectors cannot be scored."""
        return self._described(self.inner.score(vectors))

    def score_in(self, place: RunPlace, vectors: Vectors) -> TaskResult:
        return self._described(self.inner.score_in(place, vectors))

    def _described(self, result: TaskResult) -> TaskResult:
        return replace_fields(result, detail={**result.detail, "data": self.facts})


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """How one kind of file is scored."""

    # without the hash of the file
    name: str
    metric: Metric
    rescore: Callable[[Arrays, str], TaskScore]
    # reads the file, and returns its data
    read: Callable[[OwnFile], Any]
    # puts a task and its data together
    load: Callable[[Task, Any], LoadedTask]
    # () to publish predictions whole
    needs: tuple[str, ...]
    # ends the task's name, so that one file can be scored in two ways
    suffix: str = ""


# Kind of file -> its protocol.
PROTOCOLS = {
    PAIRS: Protocol(
        name="own-pairs/1",
        metric=SPEARMAN,
        rescore=score_own_pairs,
        read=read_pairs,
        load=LoadedOwnPairs,
        needs=("prediction", "gold", "subset"),
    ),
    CLASSIFICATION: Protocol(
        name="own-probe/1",
        metric=ACCURACY,
        rescore=score_folds,
        read=read_labelled,
        load=LoadedTransfer,
        needs=("prediction", "gold", "subset", "fold"),
    ),
    CLUSTERING: Protocol(
        name="own-kmeans/1",
        metric=CLUSTERING_ACCURACY,
        rescore=score_clusters,
        read=read_classed,
        load=LoadedTexts,
        needs=("prediction", "gold", "subset", "inertia"),
        suffix="-clusters",
    ),
    RETRIEVAL: Protocol(
        name="own-retrieval/1",
        metric=NDCG,
        rescore=score_rankings,
        read=read_retrieval,
        load=LoadedRetrieval,
        needs=(),
    ),
}

PAIRS_PROTOCOL = PROTOCOLS[PAIRS]
# Score that the description of judged pairs names -> its protocol.
JUDGED = {
    "average-precision": replace(
        PAIRS_PROTOCOL,
        name="own-ap/1",
        metric=AVERAGE_PRECISION,
        rescore=score_average_precision,
    ),
    "f1": replace(PAIRS_PROTOCOL, name="own-f1/1", metric=BEST_F1, rescore=score_best_f1),
    "accuracy": replace(
        PAIRS_PROTOCOL,
        name="own-accuracy/1",
        metric=BEST_ACCURACY,
        rescore=score_best_accuracy,
    ),
}


def task_of_file(own: OwnFile) -> Task:
    """Read a file, and make a task of it.

    Raises BenchError if the file cannot be read, or if its labels may mean two things.
    """
    known = with_kind(own)
    protocol = PROTOCOLS[known.kind]
    content = protocol.read(known)
    if known.kind == PAIRS:
        protocol = JUDGED.get(content.score, protocol)

    def read(task: Task, data: DataFolder) -> LoadedOwn:
        return describe_data(known, protocol.load(task, content))

    return Task(
        suite=NAME,
        name=known.name + protocol.suffix,
        protocol=with_text(protocol.name, content.sha256[:8]),
        metric=protocol.metric,
        read=read,
        rescore=protocol.rescore,
        needs=protocol.needs,
    )


def describe_data(own: OwnFile, inner: Any) -> LoadedOwn:
    """Add the facts of the file's description, and notes: on values of the description that have no
    effect, and on texts that are fitted and tested.
    """
    facts = read_description(own.path).facts(own.kind)
    notes = description_notes(own)
    if own.kind == RETRIEVAL:
        facts |= {"queries": len(inner.data), "documents": len(inner.data.documents)}
        notes += inner.data.notes
    both = texts_in_two_splits(inner.data) if own.kind == CLASSIFICATION else []
    if both:
        facts["tested_and_fitted"] = len(both)
        count, first = plural(len(both), "tested text"), both[0][:SHOWN]
        notes += (
            f"{own.path.name}: {count} also in the train or dev split, the first is '{first}'",
        )
    return LoadedOwn(inner.task, inner, facts, notes)


def stored_task(name: str, protocol: str) -> Task | None:
    """Return the task of a record, to compute its score again without the file.

    Returns None if this bench does not know the protocol.
    """
    for known in (*PROTOCOLS.values(), *JUDGED.values()):
        if with_text(known.name, protocol_text(protocol)) == protocol:
            return Task(
                suite=NAME,
                name=name,
                protocol=protocol,
                metric=known.metric,
                read=_read_nothing,
                rescore=known.rescore,
                needs=known.needs,
            )
    return None


def _read_nothing(task: Task, data: DataFolder) -> LoadedTask:
    raise DataMissing(f"a record does not say where the file of {task.name} is")


def choose_files(files: str) -> Suite:
    """Build the suite with the tasks of files: "pairs.tsv:a,b,rating", or several with commas
    between.

    Raises DataMissing, DataDamaged, or BenchError, also for two files of one name.
    """
    tasks: dict[str, Task] = {}
    for text in split_files(files):
        own = parse_own_file(text)
        task = task_of_file(own)
        if task.name in tasks:
            raise BenchError(
                f"--suite {text}: another file is called {task.name}, too", "--suite NAME=FILE"
            )
        tasks[task.name] = task
    if not tasks:
        raise UnknownName("file", files, [], hint=EXAMPLE)
    return replace(SUITE, tasks=tuple(tasks.values()))


SUITE = Suite(
    name=NAME,
    title="Your own files",
    description=(
        "Rated pairs, labelled texts, or queries and documents in files of yours: --suite "
        "pairs.tsv, classification:texts.csv, clustering:texts.csv, retrieval:FOLDER."
    ),
    tasks=(),
    average=None,
    docs="suites.md#own",
    choose_tasks=choose_files,
    extra_detail=("classes", "data", "dev", "fits", "folds"),
    stored_task=stored_task,
)
