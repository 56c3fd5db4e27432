"""Converts the content of one or more source files to the content of our file, which is checked
afterwards.
"""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial


def labelled_lines(file: bytes) -> bytes:
    """Write label, tab, text:

    LF line ends, no blanks or tabs at line ends, a tab inside a text made a blank.
    """
    rows = (line.rstrip("\t ").partition("\t") for line in _lines(file))
    return _joined([f"{label}\t{text.replace(chr(9), ' ')}" for label, _, text in rows])


def json_lines(file: bytes) -> bytes:
    """Read JSON lines with ``text`` and ``cluster``, the format of GSDMM's authors: label, tab,
    text without outer blanks."""
    return _joined(
        [f"{row['cluster']}\t{row['text'].strip()}" for row in map(json.loads, _lines(file))]
    )


def text_and_labels(texts: bytes, labels: bytes) -> bytes:
    """Return a file of texts and one of labels, joined line by line: label, tab, text without outer
    blanks, inner tabs made blanks.

    Raises ValueError if the two have different numbers of lines.
    """
    return _joined(
        [
            f"{label.strip()}\t{text.strip().replace(chr(9), ' ')}"
            for text, label in zip(_lines(texts), _lines(labels), strict=True)
        ]
    )


def first_columns(columns: int, file: bytes) -> bytes:
    """Return the first columns of a table with tabs."""
    return _joined(
        [
            "\t".join(line.split("\t")[:columns])
            for line in file.decode("utf-8").removesuffix("\n").split("\n")
        ]
    )


def labelled_nli(*files: bytes) -> bytes:
    """Write a CSV with sent0, sent1, label from the zip archives of SNLI and MultiNLI: the pairs of
    each one's ``*_train.jsonl``, in their order. A pair without a gold label ("-") is left out, as
    SBERT and InferSent do.

    The archives' checksums are known, so that each has one such file.
    """
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(("sent0", "sent1", "label"))
    for packed in files:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            train = [
                name
                for name in archive.namelist()
                if name.endswith("_train.jsonl") and not name.startswith("__MACOSX/")
            ]
            with archive.open(train[0]) as lines:
                writer.writerows(
                    (pair["sentence1"], pair["sentence2"], pair["gold_label"])
                    for pair in map(json.loads, lines)
                    if pair["gold_label"] != "-"
                )
    return table.getvalue().encode("utf-8")


CONVERSIONS: Mapping[str, Callable[..., bytes]] = {
    "labelled lines": labelled_lines,
    "JSON lines": json_lines,
    "text and labels": text_and_labels,
    "first 2 columns": partial(first_columns, 2),
    "first 7 columns": partial(first_columns, 7),
    "labelled NLI": labelled_nli,
}


def _lines(data: bytes) -> list[str]:
    return data.decode("utf-8-sig").replace("\r\n", "\n").removesuffix("\n").split("\n")


def _joined(rows: Sequence[str]) -> bytes:
    return ("\n".join(rows) + "\n").encode("utf-8")
