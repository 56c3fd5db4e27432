"""The training text that ``--corpus`` or a recipe names: a file, a name that recipes use, a text of
the hub, or a text by its hash.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from bench.base.errors import BenchError, DataMissing
from bench.base.files import default_cache, write_whole
from bench.data.corpora import Corpus, open_corpus_file
from bench.data.corpora.columns import COLUMNS_OF, NUMBERS, columns_to_be
from bench.data.corpora.hub import PREFIX, HubName, hub_corpus, is_here, name_columns
from bench.data.fetching import silent, site
from bench.data.sets import (
    BY_HASH,
    HUB_CORPORA,
    MADE_HERE,
    RECIPE_CORPORA,
    STSB_TRAIN,
    TARGET,
    DataFolder,
    NotFetchedYet,
    Pending,
    data_sets,
    sources_of,
)
from bench.data.sets.sts import read_sts
from bench.score.suites import KnownTask

NAMES = ("builtin", *MADE_HERE, *RECIPE_CORPORA, *HUB_CORPORA)


class AbsentCorpus(Corpus):
    """A corpus of a plan that is only fetched later: its columns and its number of rows, 0 if that
    is not known.
    """

    def __init__(self, name: str, columns: tuple[str, ...], rows: int) -> None:
        self.name, self.columns, self._facts = name, columns, ("unknown", rows)
        self.unread = ()

    def only(self, column: str | None) -> AbsentCorpus:
        texts = len({*self.columns} - {*NUMBERS}) if column == "all" else 1
        return AbsentCorpus(self.name, ("sentence",), len(self) * texts)


def open_corpus(
    name: str, requested: bool, data: DataFolder, scored: Sequence[KnownTask]
) -> Corpus:
    """The corpus of that name.

    ``requested``: --corpus names it, which may be a file, and not a recipe. Raises DataMissing if
    it is not on this machine.
    """
    name = HUB_CORPORA.get(name, name)
    if name == TARGET:
        return (
            AbsentCorpus(TARGET, ("sentence",), 0)
            if data.later is not None and data.later.pending
            else target_corpus(scored)
        )
    if name == STSB_TRAIN:
        return stsb_train(data)
    if name.startswith(PREFIX):
        return _of_hub(name, data)
    if name.startswith(BY_HASH):
        return open_corpus_file(found_by_hash(name, data))
    if name == "builtin" or (requested and Path(name).expanduser().exists()):
        return open_corpus_file(name)
    if name not in RECIPE_CORPORA and requested:
        raise DataMissing(f"no corpus at {name}", f"--corpus FILE, or {', '.join(NAMES)}")
    return _of_recipes(RECIPE_CORPORA.get(name, name), data)


def stsb_train(data: DataFolder) -> Corpus:
    """The pairs of STS-B's train split, with scores divided by 5 as on the hub."""
    try:
        pairs = read_sts(data, "STS-B", text="any", split="train")
    except NotFetchedYet:
        return AbsentCorpus(STSB_TRAIN, COLUMNS_OF["graded"], 5_749)
    table = io.StringIO()
    csv.writer(table, lineterminator="\n").writerows(
        [
            COLUMNS_OF["graded"],
            *zip(pairs.sentences1, pairs.sentences2, (pairs.gold / 5).tolist(), strict=True),
        ]
    )
    return written_corpus(STSB_TRAIN, ".csv", table.getvalue())


def _of_hub(name: str, data: DataFolder) -> Corpus:
    if data.later is None or is_here(name):
        return Corpus(
            *hub_corpus(name, offline=data.offline, say=getattr(data.fetcher, "say", silent)),
            default_cache(),
        )
    wanted = HubName.of(name)
    data.later.note(
        Pending(
            name=name,
            kind="corpus",
            where=f"hub data set {wanted.repo}",
            urls=(site("hub", wanted.repo, wanted.revision or "main", "").url,),
        )
    )
    columns = columns_to_be(name_columns(wanted.columns or ("text",)))
    return AbsentCorpus(name, columns, wanted.limit or 0)


def _of_recipes(file: str, data: DataFolder) -> Corpus:
    """A corpus that recipes name: from train/ of the data folder, or fetched."""
    known = next((one for one in data_sets().values() if one.files[0].name == file), None)
    try:
        path = data.corpus(file)
    except NotFetchedYet:
        assert known is not None
        return AbsentCorpus(file, COLUMNS_OF[known.unit], sum(known.items.values()))
    if path is not None:
        return open_corpus_file(path)
    root = f" --data {data.root}" if data.root else ""
    fetch = f"bench data fetch {known.name}{root}; " if known and sources_of(known) else ""
    raise DataMissing(f"the recipe's corpus {file} is not on this machine", f"{fetch}--corpus FILE")


def found_by_hash(requested: str, data: DataFolder) -> Path:
    """The file with the text of that sha256 (of its decompressed content), here or in train/ of the
    data folders.

    Raises DataMissing if no file has it. A file that is not a corpus is skipped; hashes are cached.
    """
    folders = [Path(), *(root / "train" for root in data.roots)]
    for path in (path for folder in folders for path in sorted(folder.glob("*"))):
        with suppress(BenchError):
            if BY_HASH + open_corpus_file(path).sha256 == requested.lower():
                return path
    raise DataMissing(
        f"no text with {requested} in {', '.join(str(folder.resolve()) for folder in folders)}",
        "put the file there under any name, or use another text: --corpus FILE",
    )


def target_corpus(scored: Sequence[KnownTask]) -> Corpus:
    """All distinct sentences of the tasks that are scored, in their order: what the papers'
    transductive rows were trained on.

    If a task also scores sentences that it makes (with words removed), only those of the data count
    (``original``).
    """
    sentences = dict.fromkeys(
        " ".join(sentence.split()) or " "
        for known in scored
        for sentence in getattr(known.task, "original", known.task.sentences)
    )
    return written_corpus(TARGET, ".txt", "".join(f"{s}\n" for s in sentences))


def written_corpus(name: str, suffix: str, text: str) -> Corpus:
    """A text as a corpus with that name: a file in the cache."""
    cache, key = default_cache(), hashlib.sha256(text.encode()).hexdigest()[:16]
    path = cache / name / f"{key}{suffix}"
    if not path.exists():
        write_whole(path, text.encode())
    return Corpus(path, name, cache)
