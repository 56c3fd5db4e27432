"""Vectors that were computed elsewhere, as a method: a file, or a mapping of sentences to vectors."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from bench.base.errors import BenchError, RunFailed, one_line
from bench.models.external import ExternalModel, as_vectors, external_plugin
from bench.models.objects import ObjectModel
from bench.run.plugins import Plugin

FORMS = (
    "an .npz with 'sentences' (n strings) and 'vectors' (n, d), "
    "or a .parquet as bench encode --to writes"
)


def file_plugin(file: Path) -> Plugin:
    """The method of one file. Raises BenchError, naming the file, if it holds no vectors."""
    try:
        if file.suffix.lower() == ".parquet":
            import pyarrow.parquet as pq

            table = pq.read_table(file, columns=["sentence", "vector"])
            sentences, vectors = table["sentence"].to_pylist(), table["vector"].to_pylist()
        else:
            with np.load(file, allow_pickle=False) as arrays:
                sentences, vectors = list(map(str, arrays["sentences"])), arrays["vectors"]
    except Exception as error:  # whatever the bytes of a damaged file lead to
        raise BenchError(f"vectors:{file} cannot be read: {one_line(error)[:160]}", FORMS) from None
    return _vectors_plugin(sentences, vectors, f"vectors:{file}", file.stem)


def table_plugin(table: Mapping[str, Any], name: str) -> Plugin:
    """The method of a mapping from sentences to vectors."""
    if not table or not all(isinstance(sentence, str) for sentence in table):
        raise BenchError(
            "a mapping of sentences to vectors needs at least one key, and strings as keys",
            "{'a sentence': [0.1, 0.2, ...], ...}",
        )
    return _vectors_plugin(
        list(table), list(table.values()), name or "the mapping", name or "vectors"
    )


def _vectors_plugin(sentences: list[str], rows: Any, who: str, name: str) -> Plugin:
    try:
        vectors = as_vectors(rows, sentences, who)
    except RunFailed as error:
        raise BenchError(error.message.replace(" returned ", " holds "), FORMS) from None
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
        identity={"revision": digest.hexdigest(), "by": "vectors"},
    )


class VectorsModel(ObjectModel):
    """Looks sentences up. A prompt is part of the text that is looked up."""

    name = "vectors"
    kind = "vectors"
    summary = "vectors that were computed elsewhere"
    vectors: ClassVar[np.ndarray]
    row_of: ClassVar[Mapping[str, int]]
    who: ClassVar[str]

    @classmethod
    def expect(cls, texts: Sequence[str]) -> str | None:
        """Raises BenchError for missing texts: which, and how many."""
        if lacking := [text for text in texts if text not in cls.row_of]:
            raise BenchError(
                f"{cls.who} lacks {len(lacking):,} of {len(texts):,} sentences: "
                + ", ".join(repr(text[:60]) for text in lacking[:3]),
                "bench evaluate --list-sentences FILE writes every sentence that these suites need",
            )
        return None

    @classmethod
    def ask(
        cls, texts: list[str], has_prompt: bool = False, dimension: int | None = None
    ) -> np.ndarray:
        cls.expect(texts)
        return cls.vectors[[cls.row_of[text] for text in texts]]

    def about(self) -> dict[str, Any]:
        return ExternalModel.about(self) | {"identity": "vectors", "sentences": len(self.row_of)}
