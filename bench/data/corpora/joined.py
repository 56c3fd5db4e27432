"""Several texts that are trained on together, one after the other."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence

from bench.base.errors import CorpusError
from bench.data.corpora.columns import Row
from bench.data.corpora.corpus import Corpus
from bench.data.reading.lines import Seen

SHOWN = 3  # names of texts that the name of them all has


class JoinedCorpus(Corpus):
    """Several texts with the same columns as one. No row is left out: a row in two of them is
    trained on twice.

    ``JoinedCorpus([open_corpus_file("a.txt"), open_corpus_file("b.csv", columns=["title"])])``
    """

    def __init__(self, parts: Sequence[Corpus]) -> None:
        check_same_columns(parts)
        first = parts[0]
        self._parts = tuple(parts)
        self.name = joined_name(parts)
        self.source_name = self.name
        self.path = first.path
        self.column = first.column
        self.columns = first.columns
        self.format = "joined"
        self.chosen = None
        self.unread = tuple(dict.fromkeys(name for part in parts for name in part.unread))

    @property
    def parts(self) -> tuple[Corpus, ...]:
        return self._parts

    def only(self, column: str | None) -> Corpus:
        return JoinedCorpus([part.only(column) for part in self._parts])

    def choose(self, columns: Sequence[str]) -> Corpus:
        return JoinedCorpus([part.choose(columns) for part in self._parts])

    def rows(self, seen: Seen = None) -> Iterator[Row]:
        for part in self._parts:
            yield from part.rows(seen)

    def unchanged_rows(self) -> Iterator[Row]:
        for part in self._parts:
            yield from part.unchanged_rows()

    def __len__(self) -> int:
        return sum(len(part) for part in self._parts)

    @property
    def repeated(self) -> dict[str, int]:
        """The sums over the texts: a text that two of them have is not counted."""
        sums: dict[str, int] = {}
        for part in self._parts:
            for name, count in part.repeated.items():
                sums[name] = sums.get(name, 0) + count
        return sums

    @property
    def content_sha256(self) -> str:
        return self.sha256

    @property
    def sha256(self) -> str:
        """The hash of the texts' hashes, in their order."""
        parts = [[part.sha256, part.format] for part in self._parts]
        return hashlib.sha256(json.dumps(["joined texts", parts]).encode()).hexdigest()


def check_same_columns(parts: Sequence[Corpus]) -> None:
    """Raise CorpusError if a text has other columns than the first."""
    first = parts[0]
    for part in parts[1:]:
        if part.columns != first.columns:
            raise CorpusError(
                f"texts that are trained on together need the same columns: {first.name} has "
                f"{', '.join(first.columns)}; {part.name} has {', '.join(part.columns)}",
                "name the columns of each: --corpus FILE:COLUMN,COLUMN",
            )


def joined_name(parts: Sequence[Corpus]) -> str:
    """Return the name of several texts: as a user types them, but no more than three."""
    names = ",".join(part.name for part in parts[:SHOWN])
    if len(parts) > SHOWN:
        return f"{names} and {len(parts) - SHOWN} more"
    return names
