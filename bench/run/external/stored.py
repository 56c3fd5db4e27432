"""Score vectors that were computed elsewhere: a file, or a mapping of sentences to vectors."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Mapping, Sequence
from io import BufferedReader
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from bench.base.errors import BenchError, RunFailed, one_line
from bench.base.parquet import TooLarge, limit_of, read_batches
from bench.base.reading import open_plain_file
from bench.method.plugins import Plugin
from bench.records.arrays import PLAIN
from bench.run.external.external import BYTES, as_vectors, external_plugin
from bench.run.external.objects import Identity, ObjectModel

FORMS = (
    "an .npz with 'sentences' (n strings) and 'vectors' (n, d), "
    "or a .parquet with the columns sentence and vector"
)


def file_plugin(file: Path) -> Plugin:
    """Make the method of one file. Raises BenchError, naming the file, if it holds no vectors."""
    try:
        # a link that the user named is followed
        target = file.resolve() if file.is_symlink() else file
        with open_plain_file(target) as stream:
            if file.suffix.lower() == ".parquet":
                sentences, vectors = _read_parquet(stream)
            else:
                sentences, vectors = _read_npz(stream)
    except Exception as error:  # the bytes of a damaged file may raise any error
        raise BenchError(f"vectors:{file} cannot be read: {one_line(error)[:160]}", FORMS) from None
    return _vectors_plugin(sentences, vectors, f"vectors:{file}", file.stem)


TIMES = 100
"""How many times as large as its file the unpacked vectors may be; numbers hardly shrink."""


def _read_parquet(stream: BufferedReader) -> tuple[list[str], Any]:
    """Read (sentences, vectors). Raises TooLarge, and pyarrow's errors."""
    from pyarrow import int8, uint8

    limit = limit_of(os.fstat(stream.fileno()).st_size, TIMES)
    sentences: list[str] = []
    vectors: list[Any] = []
    for batch in read_batches(stream, ["sentence", "vector"], limit):
        sentences += batch["sentence"].to_pylist()
        rows = batch["vector"].to_pylist()
        number = getattr(batch["vector"].type, "value_type", None)
        if number in (int8(), uint8()):  # which Python's integers would hide
            rows = [np.array(row, dtype=number.to_pandas_dtype()) for row in rows]
        vectors += rows
    return sentences, vectors


def _read_npz(stream: BufferedReader) -> tuple[list[str], Any]:
    """Read (sentences, vectors). Raises TooLarge, and many kinds of errors for a damaged file."""
    limit = limit_of(os.fstat(stream.fileno()).st_size, TIMES)
    with zipfile.ZipFile(stream) as archive:
        members = archive.infolist()
        unpacked = sum(member.file_size for member in members)
        if unpacked > limit or any(member.compress_type not in PLAIN for member in members):
            raise TooLarge(f"it unpacks to {unpacked:,} bytes, the limit is {limit:,}")
    with np.load(stream, allow_pickle=False) as arrays:
        return list(map(str, arrays["sentences"])), arrays["vectors"]


def table_plugin(table: Mapping[str, Any], name: str) -> Plugin:
    """Make the method of a mapping from sentences to vectors."""
    if not table or not all(isinstance(sentence, str) for sentence in table):
        raise BenchError(
            "a mapping of sentences to vectors needs at least one key, and strings as keys",
            "{'a sentence': [0.1, 0.2, ...], ...}",
        )
    return _vectors_plugin(
        list(table), list(table.values()), name or "the mapping", name or "vectors"
    )


def _vectors_plugin(sentences: list[str], rows: Any, who: str, name: str) -> Plugin:
    """Make the method of sentences and their vectors. Raises BenchError if they do not fit."""
    try:
        vectors = as_vectors(rows, sentences, who)
    except RunFailed as error:
        hint = BYTES if error.hint == BYTES else FORMS
        raise BenchError(error.message.replace(" returned ", " holds "), hint) from None
    row_of: dict[str, int] = {}
    for i, sentence in enumerate(sentences):
        before = row_of.setdefault(sentence, i)
        if not np.array_equal(vectors[before], vectors[i]):
            raise BenchError(
                f"{who}: two different vectors for '{sentence[:60]}', rows {before} and {i}",
                "one vector for each sentence",
            )
    digest = hashlib.sha256(vectors.tobytes())
    digest.update("\0".join(sentences).encode("utf-8", "surrogatepass"))
    return external_plugin(
        VectorsModel,
        name,
        vectors=vectors,
        row_of=row_of,
        who=who,
        identity=Identity(digest.hexdigest(), "vectors", dimension=vectors.shape[1]),
    )


class VectorsModel(ObjectModel):
    """A method that looks sentences up. A prompt is part of the text that is looked up."""

    name = "vectors"
    kind = "vectors"
    summary = "vectors that were computed elsewhere"
    vectors: ClassVar[np.ndarray]
    row_of: ClassVar[Mapping[str, int]]
    who: ClassVar[str]

    @classmethod
    def check_texts(cls, texts: Sequence[str]) -> None:
        """Raise BenchError for missing texts, with their number and the first ones."""
        lacking = [text for text in texts if text not in cls.row_of]
        if lacking:
            first = ", ".join(repr(text[:60]) for text in lacking[:3])
            raise BenchError(
                f"{cls.who} lacks {len(lacking):,} of {len(texts):,} sentences: {first}",
                "bench evaluate --list-sentences FILE --suite SUITE writes every sentence of a suite",
            )

    @classmethod
    def ask(
        cls,
        texts: list[str],
        has_prompt: bool = False,
        dimension: int | None = None,
        side: str | None = None,
    ) -> np.ndarray:
        cls.check_texts(texts)
        return cls.vectors[[cls.row_of[text] for text in texts]]

    def about(self) -> dict[str, Any]:
        return self.common_facts() | {"identity": "vectors", "sentences": len(self.row_of)}
