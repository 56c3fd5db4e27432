"""``failed-batch.tsv``: the rows of a batch with a NaN or infinite loss, for the user."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from bench.base.files import write_whole
from bench.data.corpora.columns import NUMBERS
from bench.data.corpora.token_cache import TokenisedCorpus
from bench.method.torch_method import TorchMethod
from bench.training.batches import Rows


def write_failed_batch(
    file: Path, rows: Rows, corpus: TokenisedCorpus, method: TorchMethod
) -> None:
    """Write a line for each row: its number in the corpus, from 1, then its columns as the method
    saw them.

    A file that cannot be written is no error: a full disk must not hide the first one.
    """
    table = [["row", *corpus.columns]]
    for row in rows.tolist():
        table.append([str(row + 1)])
    for number, name in enumerate(corpus.columns):
        for line, value in zip(table[1:], corpus.column(number).rows(rows), strict=True):
            line.append(_text(value, name, method))
    text = "".join("\t".join(line) + "\n" for line in table)
    with contextlib.suppress(OSError):
        write_whole(file, text.encode())


def _text(value: Any, name: str, method: TorchMethod) -> str:
    """Return a cell as text without line ends and tabs; ids are decoded if the tokenizer can."""
    if name in NUMBERS:
        return str(value[0])
    if not isinstance(value, str):
        ids = [int(number) for number in value]
        tokenizer = method.backbone.tokenizer
        value = " ".join(map(str, ids))
        if hasattr(tokenizer, "decode"):
            value = tokenizer.decode(ids)
    return " ".join(value.split())
