"""Vectors that somebody else computed: a file, or a mapping of sentences to vectors."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from bench.base.errors import BenchError, RunFailed
from bench.method import Recipe, prompted
from bench.run.models import GivenModel, as_vectors, given_plugin, short_name
from bench.run.plugins import Plugin

FORMS = "an .npz with 'sentences' (n strings) and 'vectors' (n, d), or a .parquet as bench encode --to writes"


def file_plugin(file: Path) -> Plugin:
    """The method of one file. Raises BenchError, naming the file, where it holds no vectors."""
    if not file.is_file():
        raise BenchError(f"vectors:{file}: no such file", FORMS)
    try:
        sentences, vectors = (_parquet if file.suffix.lower() == ".parquet" else _npz)(file)
    except BenchError:
        raise
    except Exception as error:  # whatever the bytes of a damaged file lead to
        raise BenchError(f"vectors:{file} cannot be read: {' '.join(str(error).split())[:160]}", FORMS) from None
    return _plugin(sentences, vectors, f"vectors:{file}", short_name(file.stem))


def table_plugin(table: Mapping[str, Any], name: str) -> Plugin:
    """The method of a mapping from sentences to vectors."""
    if not table or not all(isinstance(one, str) for one in table):
        raise BenchError("a mapping of sentences to vectors needs strings as keys, and some", "{'a sentence': [0.1, 0.2, ...], ...}")
    sentences = list(table)
    return _plugin(sentences, [table[sentence] for sentence in sentences], name or "the mapping", short_name(name or "vectors"))


def _npz(file: Path) -> tuple[list[str], np.ndarray]:
    with np.load(file, allow_pickle=False) as arrays:
        lacking = [name for name in ("sentences", "vectors") if name not in arrays.files]
        if lacking:
            raise BenchError(f"vectors:{file} has no array '{lacking[0]}'", FORMS)
        return [str(sentence) for sentence in arrays["sentences"]], arrays["vectors"]


def _parquet(file: Path) -> tuple[list[str], np.ndarray]:
    import pyarrow.parquet as pq

    table = pq.read_table(file, columns=["sentence", "vector"])
    return table["sentence"].to_pylist(), np.array(table["vector"].to_pylist())


def _plugin(sentences: list[str], given: Any, who: str, called: str) -> Plugin:
    try:
        vectors = as_vectors(given, sentences, who)
    except RunFailed as error:
        raise BenchError(error.message.replace(" returned ", " holds "), FORMS) from None
    row_of: dict[str, int] = {}
    for i, sentence in enumerate(sentences):
        before = row_of.setdefault(sentence, i)
        if before != i and not np.array_equal(vectors[before], vectors[i]):
            raise BenchError(f"{who}: two different vectors for '{sentence[:60]}', rows {before} and {i}", "one vector for each sentence")
    digest = hashlib.sha256(vectors.tobytes())
    digest.update("\0".join(sentences).encode("utf-8", "surrogatepass"))
    return given_plugin(VectorsModel, own_backbone=called, row_of=row_of, vectors=vectors, who=who, content=digest.hexdigest())


class VectorsModel(GivenModel):
    """Looks sentences up. A prompt is part of the text that is looked up."""

    name = "vectors"
    kind = "vectors"
    summary = "vectors that somebody else computed"
    row_of: ClassVar[Mapping[str, int]]
    vectors: ClassVar[np.ndarray]
    who: ClassVar[str]
    content: ClassVar[str]

    @classmethod
    def own_revision(cls, recipe: Recipe) -> str:
        return cls.content

    @classmethod
    def expect(cls, texts: Sequence[str]) -> str | None:
        """Raises BenchError where a text is not there: which, and how many."""
        lacking = [text for text in texts if text not in cls.row_of]
        if lacking:
            shown = ", ".join(repr(text[:60]) for text in lacking[:3])
            raise BenchError(
                f"{cls.who} lacks {len(lacking):,} of {len(texts):,} sentences: {shown}{', ...' * (len(lacking) > 3)}",
                "bench evaluate --list-sentences FILE writes every sentence that these suites ask for",
            )
        return None

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        texts = prompted(self.text_prompt, sentences)
        try:
            self.expect(texts)
        except BenchError as error:
            raise RunFailed(error.message, error.hint) from None
        vectors: np.ndarray = self.vectors[[self.row_of[text] for text in texts]]
        self.context.reporter.advance(len(texts), total=len(texts))
        return vectors

    def about(self) -> dict[str, Any]:
        return {
            **super().about(),
            "known": False,
            "identity": "vectors",
            "sentences": len(self.row_of),
            "pooling": None,
            "dtype": None,
        }
