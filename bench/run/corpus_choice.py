"""Which corpus a run trains on: the one of ``--corpus``, or its recipe's; checked against what the method needs."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from bench.base.errors import BenchError, DataMissing
from bench.base.files import default_cache, write_whole
from bench.data.corpora import (
    KINDS,
    NUMBERS,
    PREFIX,
    Corpus,
    HubName,
    hub_corpus,
    is_here,
    name_columns,
    open_corpus,
)
from bench.data.fetching import silent, site
from bench.data.sets import (
    BY_HASH,
    HUB_CORPORA,
    MADE_HERE,
    RECIPE_CORPORA,
    STSB_TRAIN,
    TARGET,
    DataSet,
    NotFetchedYet,
    Pending,
    data_sets,
    sources_of,
)
from bench.data.sets.sts import read_sts
from bench.method import Recipe
from bench.run.plugins import Plugin
from bench.run.recipe_file import Entry

if TYPE_CHECKING:
    from bench.data.sets import DataFolder
    from bench.score.suites import KnownTask

COLUMNS_OF = {kind: columns for columns, kind in KINDS.items()}
NAMES = ("builtin", *MADE_HERE, *RECIPE_CORPORA, *HUB_CORPORA)


class AbsentCorpus(Corpus):
    """A corpus that is only fetched later, in a plan: its columns, and how many rows it has, 0 where nobody knows."""

    def __init__(self, name: str, columns: tuple[str, ...], rows: int) -> None:
        self.name, self.columns, self._facts = name, columns, ("unknown", rows)

    def only(self, column: str | None) -> AbsentCorpus:
        texts = [name for name in self.columns if name not in NUMBERS]
        return AbsentCorpus(
            self.name, ("sentence",), len(self) * (len(texts) if column == "all" else 1)
        )


class CorpusShelf:
    """The corpora of one plan, each opened once. ``requested``: the value of --corpus; None: that of the recipe."""

    def __init__(
        self, requested: str | None, data: DataFolder, scored: Sequence[KnownTask]
    ) -> None:
        self._requested, self._data, self._scored = requested, data, scored
        self._open: dict[str, Corpus] = {}

    def fitting(self, plugin: Plugin, setting: str, recipe: Recipe, entry: Entry | None) -> Corpus:
        """The corpus of one run. Raises DataMissing where it is not on this machine, BenchError where it is of another kind
        than the method needs."""
        needed = plugin.cls.needs(setting, recipe)
        name = self._requested or (entry.corpus if entry else None)
        if name is None:
            raise DataMissing("this method's recipes name no corpus", "--corpus FILE")
        if name not in self._open:
            self._open[name] = self._opened(name)
        corpus = self._open[name]
        if recipe["corpus_column"] is not None and len(corpus.columns) > 1:
            corpus = corpus.only(str(recipe["corpus_column"]))
        if corpus.kind not in needed:
            raise BenchError(
                f"{plugin.name} in the {setting} setting needs {' or '.join(needed)}; {corpus.name} has the columns {', '.join(corpus.columns)}",
                "docs/data.md has the columns of each kind; --set corpus_column=all, or the name of a column, takes sentences of a wider file",
            )
        return corpus

    def _opened(self, name: str) -> Corpus:
        later, name = self._data.later, HUB_CORPORA.get(name, name)
        if name == TARGET:
            absent = later is not None and later.pending
            return AbsentCorpus(TARGET, ("sentence",), 0) if absent else target_corpus(self._scored)
        if name == STSB_TRAIN:
            return self._stsb_train()
        if name.startswith(PREFIX):
            return self._of_hub(name)
        if name.startswith(BY_HASH):
            return open_corpus(found_by_hash(name, self._data))
        if name == "builtin" or (self._requested and Path(name).expanduser().exists()):
            return open_corpus(name)
        if name not in RECIPE_CORPORA and self._requested:
            raise DataMissing(f"no corpus at {name}", f"--corpus FILE, or {', '.join(NAMES)}")
        return self._of_recipes(RECIPE_CORPORA.get(name, name))

    def _stsb_train(self) -> Corpus:
        """The pairs of STS-B's train split, their scores divided by 5 as the hub has them."""
        try:
            pairs = read_sts(self._data, "STS-B", text="any", split="train")
        except NotFetchedYet:
            return AbsentCorpus(STSB_TRAIN, COLUMNS_OF["graded"], 5_749)
        table = io.StringIO()
        writer = csv.writer(table, lineterminator="\n")
        writer.writerow(COLUMNS_OF["graded"])
        writer.writerows(
            zip(pairs.sentences1, pairs.sentences2, (pairs.gold / 5).tolist(), strict=True)
        )
        return written_corpus(STSB_TRAIN, ".csv", table.getvalue())

    def _of_hub(self, name: str) -> Corpus:
        data = self._data
        if data.later is None or is_here(name):
            say = getattr(data.fetcher, "say", silent)
            path, full = hub_corpus(name, offline=data.offline, say=say)
            return Corpus(path, full, default_cache())
        wanted = HubName.of(name)
        url = site("hub", wanted.repo, wanted.revision or "main", "").url
        where = f"hub data set {wanted.repo}"
        data.later.note(Pending(name=name, kind="corpus", where=where, urls=(url,)))
        return AbsentCorpus(name, name_columns(wanted.columns or ("text",)), wanted.limit or 0)

    def _of_recipes(self, file: str) -> Corpus:
        """A corpus that recipes name, in train/ of the data folder, or fetched."""
        known = set_of(file)
        try:
            path = self._data.corpus(file)
        except NotFetchedYet:
            assert known is not None
            return AbsentCorpus(file, COLUMNS_OF[known.unit], sum(known.items.values()))
        if path is not None:
            return open_corpus(path)
        root = f" --data {self._data.root}" if self._data.root else ""
        fetch = f"bench data fetch {known.name}{root}; " if known and sources_of(known) else ""
        raise DataMissing(
            f"the recipe's corpus {file} is not on this machine", f"{fetch}--corpus FILE"
        )


def set_of(file: str) -> DataSet | None:
    """The data set whose file is called so."""
    return next((known for known in data_sets().values() if known.files[0].name == file), None)


def found_by_hash(requested: str, data: DataFolder) -> Path:
    """The file with the text of that sha256 (of its decompressed content), here or in train/ of the data folders.

    Raises DataMissing where none has it. A file that is no corpus is passed over; hashes are cached.
    """
    wanted = requested.removeprefix(BY_HASH).lower()
    folders = [Path(), *(root / "train" for root in data.roots)]
    for folder in folders:
        for path in sorted(folder.glob("*")):
            with suppress(BenchError):
                if open_corpus(path).sha256 == wanted:
                    return path
    raise DataMissing(
        f"no text with {requested} in {', '.join(str(folder.resolve()) for folder in folders)}",
        "put the file there under any name, or --corpus FILE with another text",
    )


def target_corpus(scored: Sequence[KnownTask]) -> Corpus:
    """All distinct sentences of the tasks that are scored, in their order: what transductive rows of the papers trained on.

    Of a task that also scores sentences of its own making (with words removed), only those of the data (``original``).
    """
    texts = [getattr(task.task, "original", task.task.sentences) for task in scored]
    sentences = dict.fromkeys(" ".join(s.split()) or " " for of_task in texts for s in of_task)
    return written_corpus(TARGET, ".txt", "".join(f"{s}\n" for s in sentences))


def written_corpus(name: str, suffix: str, text: str) -> Corpus:
    """A text as a corpus of that name: a file in the cache."""
    content, cache = text.encode(), default_cache()
    path = cache / name / f"{hashlib.sha256(content).hexdigest()[:16]}{suffix}"
    if not path.exists():
        write_whole(path, content)
    return Corpus(path, name, cache)
