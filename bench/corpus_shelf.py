"""Which corpus a run trains on: the one that was asked for, or its recipe's own; checked against what the method needs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.corpora import KINDS, Corpus, default_cache, open_corpus
from bench.corpora.hub import hub_corpus
from bench.corpora.hub_name import PREFIX
from bench.errors import BenchError, DataMissing
from bench.files import write_whole
from bench.method import Recipe
from bench.plugins import Plugin
from bench.recipes import Entry

if TYPE_CHECKING:
    from bench.datasets import DataFolder
    from bench.suites.known import KnownTask

TARGET = "target"  # the name of the corpus of all sentences that are scored
RECIPE_CORPORA = {"wiki1m": "wiki1m_for_simcse.txt", "nli": "nli_for_simcse.csv", "nli-labelled": "nli_labelled.csv"}
EXPECTED = {"sentences": "one column of sentences", "pairs": "columns sent0, sent1", "triplets": "columns sent0, sent1, hard_neg",
            "labelled": "columns sent0, sent1, label"}  # fmt: skip


class CorpusShelf:
    """The corpora of one plan, each opened once."""

    def __init__(self, asked: str | None, data: DataFolder, scored: Sequence[KnownTask]) -> None:
        self._asked, self._data, self._scored = asked, data, scored
        self._open: dict[str, Corpus] = {}

    def fitting(self, plugin: Plugin, setting: str, recipe: Recipe, entry: Entry | None) -> Corpus:
        """The corpus of one run. Raises DataMissing where it is not on this machine, BenchError where it is of another kind
        than the method needs."""
        needed = plugin.cls.needs(setting, recipe)
        asked = self._asked
        if asked is not None:
            check_asked(asked)
        if asked is None or is_recipe_corpus(asked):
            asked = corpus_file(asked or (entry.corpus if entry else None), self._data)
        name = asked
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
                hint = (
                    "--setting unsupervised trains on sentences; docs/corpora.md says how pairs, triplets and labels are written"
                )
            wanted = " or ".join(EXPECTED[kind] for kind in needed)
            raise BenchError(
                f"{plugin.name} in the {setting} setting needs {wanted}; {corpus.name} has {', '.join(corpus.columns)}", hint
            )
        return corpus

    def _opened(self, name: str) -> Corpus:
        if name == TARGET:
            return target_corpus(self._scored)
        if name.startswith(PREFIX):
            path, full = hub_corpus(name, offline=self._data.offline, report=getattr(self._data.fetcher, "report", None))
            return Corpus(path, full, default_cache())
        return open_corpus(name if name == "builtin" else Path(name))


def is_recipe_corpus(asked: str) -> bool:
    """Does --corpus name a corpus as recipes do ("wiki1m"), and no file that lies here?"""
    return asked in RECIPE_CORPORA and not Path(asked).exists()


def check_asked(asked: str) -> None:
    """Raises DataMissing where --corpus is neither a name that is known nor a file."""
    names = ("builtin", TARGET, *RECIPE_CORPORA)
    if asked in names or asked.startswith(PREFIX):
        return
    try:
        open_corpus(Path(asked))
    except DataMissing as error:
        raise DataMissing(error.message, f"--corpus FILE, with one sentence a line, or a name: {', '.join(names)}") from None


def corpus_file(name: str | None, data: DataFolder) -> str:
    """Where a recipe's own corpus lies. Raises DataMissing, naming --corpus, where it is not on this machine."""
    if name in ("builtin", TARGET):
        return name
    if name is None:
        raise DataMissing("this method's recipes name no corpus", "--corpus FILE (one sentence a line), or --corpus builtin")
    file = RECIPE_CORPORA.get(name, name)
    path = data.corpus(file)
    if path is None:
        looked = f" (looked for {data.root / 'train' / file})" if data.root else " (no --data was given)"
        raise DataMissing(f"the recipe's corpus {file} is not on this machine{looked}", "--corpus FILE, or --corpus builtin")
    return str(path)


def target_corpus(scored: Sequence[KnownTask]) -> Corpus:
    """All distinct sentences of the tasks that are scored, in their order: what transductive rows of the papers trained on.

    Of a task that also scores sentences of its own making (with words removed), only those of the data (``original``).
    """
    texts = [getattr(one.task, "original", one.task.sentences) for one in scored]
    sentences = dict.fromkeys(" ".join(s.split()) or " " for of_task in texts for s in of_task)
    text = "".join(f"{s}\n" for s in sentences).encode()
    cache = default_cache()
    path = cache / "target" / f"{hashlib.sha256(text).hexdigest()[:16]}.txt"
    if not path.exists():
        write_whole(path, text)
    return Corpus(path, TARGET, cache)


assert set(KINDS.values()) == set(EXPECTED)
