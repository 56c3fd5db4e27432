"""GloVe avg.: the mean of the vectors of a sentence's known words (Pennington et al. 2014; Reimers
and Gurevych 2019).

Words are separated by white space, and looked up as written, then lower-cased; unknown ones are
skipped. A sentence without a known word is a zero vector; its cosine counts as 0. The printed 61.32
used 300-dimensional vectors and an unstated tokenisation, so that it is a reference, not a target
for other vector files.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import lzma
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from bench.method import BenchError, Recipe, Value
from bench.method.own_vectors import OwnVectors


class GloveAvg(OwnVectors):
    """GloVe average: the mean of the vectors of a sentence's known words.

    Take it as the baseline that needs no transformer.

    Example:
        bench run --method glove-avg --set vectors=glove.840B.300d.zip

    Relations: InferSent trains an LSTM over the same kind of file.
    """

    name = "glove-avg"
    settings = ("none",)
    summary = "mean of the word vectors of a file"
    paper = "Pennington, Socher, Manning: GloVe, EMNLP 2014"
    deterministic = ("none",)
    own_backbone = "glove"
    places = ("vectors",)
    defaults = {
        "vectors": Value(
            None,
            "your file: --set vectors=FILE (a word and its numbers per line; plain, .xz, .gz or .zip)",
        )
    }

    @classmethod
    def check(cls, recipe: Recipe, backbone: Path | None) -> None:
        check_vectors_file(cls.name, recipe)

    @classmethod
    def own_revision(cls, recipe: Recipe) -> str:
        with Path(recipe.vectors).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def build(self, backbone: object, recipe: Recipe) -> None:
        super().build(backbone, recipe)
        self.words, self.table = read_vectors(Path(recipe.vectors))

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        if not len(sentences):
            return self.table[:0]
        return np.stack([self._mean(sentence.split()) for sentence in sentences])

    def _mean(self, words: list[str]) -> np.ndarray:
        rows = []
        for word in words:
            row = self.words.get(word, self.words.get(word.lower()))
            if row is not None:
                rows.append(row)
        if not rows:
            return np.zeros_like(self.table[0])
        # float64 inside, so that the order of the words makes no difference
        return self.table[rows].astype(np.float64).mean(0).astype(np.float32)


def check_vectors_file(name: str, recipe: Recipe) -> None:
    """Raise BenchError if a recipe names no file of word vectors, or one that is not there."""
    if not recipe.vectors:
        raise BenchError(
            f"{name} needs a file of word vectors",
            "--set vectors=FILE, in GloVe's text form; .xz, .gz and .zip are read",
        )
    if not Path(recipe.vectors).is_file():
        raise BenchError(f"vectors={recipe.vectors}: no such file", "--set vectors=FILE")


def read_vectors(path: Path) -> tuple[dict[str, int], np.ndarray]:
    """Return words with their rows, and the (words, dim) float32 table.

    Raises BenchError, with the line, if the file is malformed.
    """
    words: dict[str, int] = {}
    rows: list[np.ndarray] = []
    try:
        with _open(path) as file, io.TextIOWrapper(file, encoding="utf-8") as text:
            for number, line in enumerate(text, 1):
                word, *numbers = line.rstrip("\n").split(" ")
                if number == 1 and len(numbers) == 1:
                    continue  # word2vec's header: how many words, how many dimensions
                if (
                    rows
                    and len(numbers) > len(rows[0])
                    and not _is_number(numbers[-len(rows[0]) - 1])
                ):
                    # a word with blanks in it: the public 840B file has a few
                    cut = len(numbers) - len(rows[0])
                    word = " ".join([word, *numbers[:cut]])
                    numbers = numbers[cut:]
                with contextlib.suppress(ValueError):
                    row = np.array(numbers, dtype=np.float32)
                    if len(row) and (not rows or len(row) == len(rows[0])):
                        words.setdefault(word, len(rows))
                        rows.append(row)
                        continue
                raise BenchError(
                    f"{path} line {number}: expected a word and "
                    f"{len(rows[0]) if rows else 'its'} numbers"
                )
    except (
        OSError,
        EOFError,
        lzma.LZMAError,
        zlib.error,
        zipfile.BadZipFile,
        RuntimeError,
        UnicodeDecodeError,
    ) as error:
        raise BenchError(
            f"vectors={path}: {error}", "give a file in GloVe's text form: plain, .xz, .gz or .zip"
        ) from None
    if not rows:
        raise BenchError(f"vectors={path}: the file is empty")
    return words, np.stack(rows)


@contextlib.contextmanager
def _open(path: Path) -> Iterator[IO[bytes]]:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            if not archive.namelist():
                raise zipfile.BadZipFile("the archive is empty")
            with archive.open(archive.namelist()[0]) as file:
                yield file
    else:
        opener: Any = {".xz": lzma.open, ".gz": gzip.open}.get(path.suffix, open)
        with opener(path, "rb") as file:
            yield file


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
