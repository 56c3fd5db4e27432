"""Which corpus a run trains on: the one that was asked for, or its recipe's own; checked against what the method needs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from bench.base.errors import BenchError, CorpusError, DataMissing
from bench.base.files import write_whole
from bench.data.corpora import KINDS, Corpus, default_cache, open_corpus
from bench.data.corpora.hub import PREFIX, HubName, hub_corpus, is_here, name_columns
from bench.data.fetching import silent, site
from bench.data.sets import NotFetchedYet, Pending, data_sets, sources_of
from bench.data.sets.manifest import BY_HASH, RECIPE_CORPORA, TARGET
from bench.method import Recipe
from bench.run.plugins import Plugin
from bench.run.recipe_file import Entry

if TYPE_CHECKING:
    from bench.data.sets import DataFolder
    from bench.score.suites.known import KnownTask

EXPECTED = {
    "sentences": "one column of sentences",
    "pairs": "columns sent0, sent1",
    "triplets": "columns sent0, sent1, hard_neg",
    "labelled": "columns sent0, sent1, label",
}


class AbsentCorpus(Corpus):
    """A corpus that is only fetched later, in a plan: its columns, and how many rows it has where that is known."""

    def __init__(self, name: str, columns: tuple[str, ...], known_rows: int | None) -> None:
        self.name, self.columns, self.known_rows = name, columns, known_rows

    def only(self, column: str | None) -> AbsentCorpus:
        texts = [name for name in self.columns if name != "label"]
        rows = self.known_rows and self.known_rows * (len(texts) if column == "all" else 1)
        return AbsentCorpus(self.name, ("sentence",), rows)

    def _survey(self) -> tuple[str, int]:
        return "unknown", self.known_rows or 0


class CorpusShelf:
    """The corpora of one plan, each opened once."""

    def __init__(self, asked: str | None, data: DataFolder, scored: Sequence[KnownTask]) -> None:
        self._asked, self._data, self._scored = asked, data, scored
        self._open: dict[str, Corpus] = {}

    def fitting(self, plugin: Plugin, setting: str, recipe: Recipe, entry: Entry | None) -> Corpus:
        """The corpus of one run. Raises DataMissing where it is not on this machine, BenchError where it is of another kind
        than the method needs."""
        needed = plugin.cls.needs(setting, recipe)
        name = self._asked or ""
        if name:
            check_asked(name)
        if name.startswith(BY_HASH):
            name = str(found_by_hash(name, self._data))
        elif not name or is_recipe_corpus(name):
            try:
                name = corpus_file(name or (entry.corpus if entry else None), self._data, needed)
            except NotFetchedYet as later:
                assert later.wanted is not None
                columns = next(
                    columns for columns, kind in KINDS.items() if kind == later.wanted.unit
                )
                name = later.wanted.files[0].name
                self._open[name] = AbsentCorpus(name, columns, sum(later.wanted.items.values()))
        if name not in self._open:
            self._open[name] = self._opened(name)
        corpus = self._open[name]
        if recipe["corpus_column"] is not None and len(corpus.columns) > 1:
            corpus = corpus.only(str(recipe["corpus_column"]))
        if corpus.kind not in needed:
            hint = "give another --corpus, or another --setting"
            if "sentences" in needed:
                hint = "--set corpus_column=sent0 trains on its first column, =all on every cell as a sentence"
            elif corpus.kind == "sentences" and "unsupervised" in plugin.cls.settings:
                hint = "--setting unsupervised trains on sentences; docs/corpora.md says how pairs, triplets and labels are written"
            wanted = " or ".join(EXPECTED[kind] for kind in needed)
            raise BenchError(
                f"{plugin.name} in the {setting} setting needs {wanted}; {corpus.name} has {', '.join(corpus.columns)}",
                hint,
            )
        return corpus

    def _opened(self, name: str) -> Corpus:
        later = self._data.later
        if name == TARGET:
            return (
                AbsentCorpus(TARGET, ("sentence",), None)
                if later and later.pending
                else target_corpus(self._scored)
            )
        if name.startswith(PREFIX) and later is not None and not is_here(name):
            asked = HubName.of(name)
            later.note(pending_corpus(name))
            return AbsentCorpus(name, name_columns(asked.columns or ("text",)), asked.limit)
        if name.startswith(PREFIX):
            path, full = hub_corpus(
                name, offline=self._data.offline, say=getattr(self._data.fetcher, "say", silent)
            )
            return Corpus(path, full, default_cache())
        return open_corpus(name if name == "builtin" else Path(name))


def pending_corpus(name: str) -> Pending:
    """What fetching a data set of the hub as a corpus would bring. Raises CorpusError for what is no such name."""
    asked = HubName.of(name)
    url = site("hub", asked.repo, asked.revision or "main", "").url
    return Pending(name=name, kind="corpus", where=f"hub data set {asked.repo}", urls=(url,))


def is_recipe_corpus(asked: str) -> bool:
    """Does --corpus name a corpus as recipes do ("wiki1m"), and no file that lies here?"""
    return asked in RECIPE_CORPORA and not Path(asked).exists()


def is_text_of(corpus: Corpus, name: str) -> bool:
    """Is it the text that recipes call ``name``? Its number of rows decides where that is known (its hash is not), else its file's name."""
    file = RECIPE_CORPORA.get(name, name)
    rows = next(
        (
            data_set.files[0].rows
            for data_set in data_sets().values()
            if data_set.files[0].name == file
        ),
        0,
    )
    if not rows:
        return corpus.name == file
    here = corpus.known_rows if isinstance(corpus, AbsentCorpus) else len(corpus)
    return bool(here and here % rows == 0)  # with corpus_column "all", each of its columns is a row


def check_asked(asked: str) -> None:
    """Raises DataMissing where --corpus is neither a name that is known nor a file."""
    names = ("builtin", TARGET, *RECIPE_CORPORA)
    if asked in names or asked.startswith((PREFIX, BY_HASH)):
        return
    try:
        open_corpus(Path(asked))
    except DataMissing as error:
        raise DataMissing(
            error.message, f"--corpus FILE, with one sentence a line, or a name: {', '.join(names)}"
        ) from None


def found_by_hash(asked: str, data: DataFolder) -> Path:
    """The file with the text of that sha256 (of its decompressed content), here or in train/ of the data folders.

    Raises DataMissing where none has it. A file that is no corpus is passed over; hashes are kept from one time to the next.
    """
    wanted = asked.removeprefix(BY_HASH).lower()
    folders = [Path(), *(root / "train" for root in data.roots)]
    for path in (
        path
        for folder in folders
        if folder.is_dir()
        for path in sorted(folder.iterdir())
        if path.is_file()
    ):
        with suppress(CorpusError):
            if open_corpus(path).sha256 == wanted:
                return path
    looked = ", ".join(str(folder.resolve()) for folder in folders)
    raise DataMissing(
        f"no text with {asked} in {looked}",
        "put the file there under any name, or --corpus FILE with another text",
    )


def corpus_file(name: str | None, data: DataFolder, needed: Sequence[str] = ("sentences",)) -> str:
    """Where a recipe's own corpus lies. Raises DataMissing, naming what else serves a method that takes the kinds ``needed``,
    where it is not on this machine."""
    if name in ("builtin", TARGET):
        return name
    own = "--corpus FILE with " + " or ".join(EXPECTED[kind] for kind in needed)
    own += ", or --corpus builtin" if "sentences" in needed else ""
    if name is None:
        raise DataMissing("this method's recipes name no corpus", own)
    file = RECIPE_CORPORA.get(name, name)
    path = data.corpus(file)
    if path is None:
        looked = (
            f" (looked for {data.root / 'train' / file})" if data.root else " (no --data was given)"
        )
        source = next(
            (
                data_set
                for data_set in data_sets().values()
                if data_set.files[0].name == file and sources_of(data_set)
            ),
            None,
        )
        fetch = (
            f"bench data fetch {source.name}{f' --data {data.root}' if data.root else ''}; "
            if source
            else ""
        )
        raise DataMissing(f"the recipe's corpus {file} is not on this machine{looked}", fetch + own)
    return str(path)


def target_corpus(scored: Sequence[KnownTask]) -> Corpus:
    """All distinct sentences of the tasks that are scored, in their order: what transductive rows of the papers trained on.

    Of a task that also scores sentences of its own making (with words removed), only those of the data (``original``).
    """
    texts = [getattr(task.task, "original", task.task.sentences) for task in scored]
    sentences = dict.fromkeys(" ".join(s.split()) or " " for of_task in texts for s in of_task)
    text = "".join(f"{s}\n" for s in sentences).encode()
    cache = default_cache()
    path = cache / "target" / f"{hashlib.sha256(text).hexdigest()[:16]}.txt"
    if not path.exists():
        write_whole(path, text)
    return Corpus(path, TARGET, cache)


assert set(KINDS.values()) == set(EXPECTED)
