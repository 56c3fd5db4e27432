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
from shlex import quote

from bench.base.cache import default_cache
from bench.base.errors import BenchError, CorpusError, DataMissing
from bench.base.files import write_whole
from bench.base.text import list_names
from bench.data.corpora import Corpus, open_corpus_file
from bench.data.corpora.columns import COLUMNS_OF, NUMBERS, columns_to_be
from bench.data.corpora.hub import HubName, hub_corpus, is_here
from bench.data.corpora.joined import JoinedCorpus, check_same_columns, joined_name
from bench.data.corpora.naming import (
    HUB,
    CorpusName,
    name_columns,
    parse_columns,
    parse_corpus,
)
from bench.data.fetching import silent, site
from bench.data.reading.naming import BY_HASH, path_exists
from bench.data.sets import (
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

SHARED_TEXT = {
    TARGET: "transductive: trained on the text of the sets that are scored",
    STSB_TRAIN: "trained on rated pairs whose sentences the STS sets share",
}
"""Corpus -> a remark for readers of its scores."""
NAMES = ("builtin", *MADE_HERE, *RECIPE_CORPORA, *HUB_CORPORA)


class AbsentCorpus(Corpus):
    """A corpus of a plan that is only fetched later: its columns and its number of rows, 0 if that
    is not known.
    """

    def __init__(
        self, name: str, columns: tuple[str, ...], rows: int, parts: tuple[Corpus, ...] = ()
    ) -> None:
        self.name = self.source_name = name
        self.columns, self._facts = columns, ("unknown", rows, {})
        self.unread, self.chosen = (), None
        self._parts = parts

    @property
    def parts(self) -> tuple[Corpus, ...]:
        return self._parts or (self,)

    def only(self, column: str | None) -> AbsentCorpus:
        texts = len({*self.columns} - {*NUMBERS}) if column == "all" else 1
        return AbsentCorpus(self.name, ("sentence",), len(self) * texts, self._parts)

    def choose(self, columns: Sequence[str]) -> AbsentCorpus:
        chosen = parse_columns(columns, self.name)
        name = f"{self.name}:{','.join(columns)}"
        return AbsentCorpus(name, columns_to_be(chosen.ours), len(self))


def open_corpus(
    text: str | Sequence[str],
    requested: bool,
    data: DataFolder,
    scored: Sequence[KnownTask],
) -> Corpus:
    """Open the text of that name, or the texts of those names as one.

    ``requested``: --corpus names them, which may be files with columns, and not a recipe. Raises
    DataMissing if one is not on this machine, CorpusError if one cannot be read, or has other
    columns than the first.
    """
    if not requested:
        return _open_source(str(text), (), False, data, scored)
    texts = [text] if isinstance(text, str) else text
    parts = []
    for name in map(parse_corpus, texts):
        parts.append(_open_source(name.source, name.columns, True, data, scored))
    if len(parts) == 1:
        return parts[0]
    if not any(isinstance(part, AbsentCorpus) for part in parts):
        return JoinedCorpus(parts)
    check_same_columns(parts)
    rows = [len(part) for part in parts]
    known = sum(rows) if all(rows) else 0
    return AbsentCorpus(joined_name(parts), parts[0].columns, known, tuple(parts))


def _open_source(
    name: str,
    columns: Sequence[str],
    requested: bool,
    data: DataFolder,
    scored: Sequence[KnownTask],
) -> Corpus:
    """Open one text, with the columns that were named. Raises DataMissing, CorpusError."""
    if name.startswith(BY_HASH):
        return open_corpus_file(find_by_hash(name, data, columns), columns=columns)
    if name == "builtin" or (requested and name not in NAMES and path_exists(name)):
        return open_corpus_file(name, columns=columns)
    corpus = _open_known(HUB_CORPORA.get(name, name), requested, data, scored)
    return corpus.choose(columns) if columns else corpus


def _open_known(
    name: str, requested: bool, data: DataFolder, scored: Sequence[KnownTask]
) -> Corpus:
    """Open a text that is no file: made of evaluation data, of the hub, or one that recipes name.

    Raises DataMissing.
    """
    if name == TARGET:
        if data.later is not None and data.later.pending:
            return AbsentCorpus(TARGET, ("sentence",), 0)
        if not scored:
            raise CorpusError(f"{TARGET} is the text that is scored, and nothing is scored here")
        return target_corpus(scored)
    if name == STSB_TRAIN:
        return stsb_train(data)
    if name.startswith(HUB):
        return _of_hub(name, data)
    if name not in RECIPE_CORPORA and requested:
        raise DataMissing(f"no corpus at {name}", f"--corpus FILE, or {', '.join(NAMES)}")
    return _of_recipes(RECIPE_CORPORA.get(name, name), data)


def describe_corpus(corpus: Corpus, duplicates: str = "keep") -> list[str]:
    """Return notes on the text for a reader of the plan: whether it is test data, what
    is not read, what is there twice.

    ``duplicates``: of the recipe; "drop" keeps equal texts out of a batch.
    """
    notes = []
    known: dict[tuple[str, str], str] = {}
    for part in corpus.parts:
        if part.source_name in SHARED_TEXT:
            notes.append(SHARED_TEXT[part.source_name])
        if part.unread:
            notes.append(f"{part.name}: columns that are not read: {list_names(part.unread)}")
        notes += _describe_repeated(part, duplicates)
        if len(corpus.parts) == 1 or isinstance(part, AbsentCorpus):
            continue
        content = (part.sha256, part.format)
        if content in known:
            notes.append(
                f"{part.name} is the same text as {known[content]}: each row is trained on again"
            )
        known.setdefault(content, part.name)
    return notes


def _describe_repeated(corpus: Corpus, duplicates: str) -> list[str]:
    """Return a note on texts that a column has more than once, if there are any."""
    counts = [f"{name} {count:,}" for name, count in corpus.repeated.items() if count]
    if not counts:
        return []
    effect = (
        "equal texts in a batch count as negatives of each other; --set duplicates=drop keeps them "
        "apart"
    )
    if duplicates == "drop":
        effect = "no batch has equal texts: a row that would repeat one waits for a later batch"
    return [f"{corpus.name}: texts that their column had before: {', '.join(counts)}; {effect}"]


def corpus_arguments(corpus: Corpus) -> tuple[str, ...]:
    """Return what ``--corpus`` takes to find the same text again under any file name: a value for
    each of its parts."""
    arguments = []
    for part in corpus.parts:
        source = part.source_name
        if source not in ("builtin", *MADE_HERE) and not source.startswith(HUB):
            source = f"{BY_HASH}{part.content_sha256}"
        columns = () if part.chosen is None else part.chosen.as_text()
        arguments.append(CorpusName(source, columns).text)
    return tuple(arguments)


def is_composed(corpus: Corpus) -> bool:
    """Say if it is more than one whole text: several, or chosen columns.

    Its hash alone does not lead to its files then.
    """
    return len(corpus.parts) > 1 or corpus.chosen is not None


def name_with_content(corpus: Corpus) -> str:
    """Return how a search names its text:

    NAME@SHA256; if it is composed, NAMES = ARGUMENT + ARGUMENT.
    """
    if not is_composed(corpus):
        return f"{corpus.name}@{corpus.sha256}"
    return f"{corpus.name} = {' + '.join(corpus_arguments(corpus))}"


def stsb_train(data: DataFolder) -> Corpus:
    """Return the pairs of STS-B's train split, with scores divided by 5 as on the hub."""
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
    columns = columns_to_be(name_columns(wanted.columns or ("text",)) or ())
    return AbsentCorpus(name, columns, wanted.limit or 0)


def _of_recipes(file: str, data: DataFolder) -> Corpus:
    """Return a corpus that recipes name: from train/ of the data folder, or fetched."""
    known = next((known for known in data_sets().values() if known.files[0].name == file), None)
    try:
        path = data.corpus(file)
    except NotFetchedYet:
        assert known is not None
        return AbsentCorpus(file, COLUMNS_OF[known.unit], sum(known.items.values()))
    if path is not None:
        return open_corpus_file(path)
    root = f" --data {quote(str(data.root))}" if data.root else ""
    fetch = f"bench data fetch {known.name}{root}; " if known and sources_of(known) else ""
    raise DataMissing(f"the recipe's corpus {file} is not on this machine", f"{fetch}--corpus FILE")


def find_by_hash(requested: str, data: DataFolder, columns: Sequence[str] = ()) -> Path:
    """Find the file with the text of that sha256 (of its decompressed content), here or in train/
    of the data folders.

    ``columns``: those that are read, which count for saved folders. Raises DataMissing if no file
    has it. A file that is not a corpus is skipped; hashes are cached.
    """
    folders = [Path(), *(root / "train" for root in data.roots)]
    for folder in folders:
        for path in sorted(folder.glob("*")):
            with suppress(BenchError):
                corpus = open_corpus_file(path, columns=columns)
                if f"{BY_HASH}{corpus.content_sha256}" == requested.lower():
                    return path
    places = ", ".join(str(folder.resolve()) for folder in folders)
    raise DataMissing(
        f"no text with {requested}{_known_name(requested)} in {places}",
        "put the file there under any name; or --data DIR, if DIR/train has it; or another text: "
        "--corpus FILE",
    )


def _known_name(requested: str) -> str:
    """Return " (nli_triplets.csv.xz)" for the hash of a text that bench knows, else ""."""
    for known in data_sets().values():
        for file in known.files:
            hashes = {f"{BY_HASH}{form.sha256}" for form in file.forms.values()}
            if requested.lower() in hashes:
                return f" ({Path(file.path).name})"
    return ""


def target_corpus(scored: Sequence[KnownTask]) -> Corpus:
    """Collect the distinct sentences of the scored tasks in order, as the papers' transductive
    rows were trained on them.

    If a task also scores sentences that it makes (with words removed), only the sentences of its
    data count (``original``).
    """
    distinct: dict[str, None] = {}
    for known in scored:
        for sentence in getattr(known.task, "original", known.task.sentences):
            # an empty line is no row, so an empty sentence is a blank
            distinct[" ".join(sentence.split()) or " "] = None
    return written_corpus(TARGET, ".txt", "".join(f"{sentence}\n" for sentence in distinct))


def written_corpus(name: str, suffix: str, text: str) -> Corpus:
    """Return a text as a corpus with that name: a file in the cache."""
    cache, key = default_cache(), hashlib.sha256(text.encode()).hexdigest()[:16]
    path = cache / name / f"{key}{suffix}"
    if not path.exists():
        write_whole(path, text.encode())
    return Corpus(path, name, cache)
