"""From a source's own files to the files that the harness reads; each is checked by the manifest's checksum afterwards.

A conversion takes the contents of one or more source files and gives the content of one file of ours.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence


def as_is(data: Sequence[bytes]) -> bytes:
    """The file itself."""
    (one,) = data
    return one


def labelled_lines(data: Sequence[bytes]) -> bytes:
    """Label, tab, text: LF line ends, no blanks or tabs at line ends, a tab inside a text made a blank."""
    (one,) = data
    rows = []
    for line in _lines(one):
        label, _, text = line.rstrip("\t ").partition("\t")
        rows.append(f"{label}\t{text.replace(chr(9), ' ')}")
    return _joined(rows)


def json_lines(data: Sequence[bytes]) -> bytes:
    """JSON lines with ``text`` and ``cluster``, as the authors of GSDMM keep their sets: label, tab, text without outer blanks."""
    (one,) = data
    rows = [json.loads(line) for line in _lines(one)]
    return _joined([f"{row['cluster']}\t{row['text'].strip()}" for row in rows])


def text_and_labels(data: Sequence[bytes]) -> bytes:
    """A file of texts and one of labels, joined line by line: label, tab, text without outer blanks, inner tabs made blanks.

    Raises ValueError where the two have different numbers of lines.
    """
    texts, labels = (_lines(one) for one in data)
    rows = [f"{label.strip()}\t{text.strip().replace(chr(9), ' ')}" for text, label in zip(texts, labels, strict=True)]
    return _joined(rows)


def _cut(columns: int) -> Callable[[Sequence[bytes]], bytes]:
    def cut(data: Sequence[bytes]) -> bytes:
        (one,) = data
        return _joined(["\t".join(line.split("\t")[:columns]) for line in one.decode("utf-8").removesuffix("\n").split("\n")])

    return cut


CONVERSIONS: Mapping[str, Callable[[Sequence[bytes]], bytes]] = {
    "as is": as_is,
    "labelled lines": labelled_lines,
    "JSON lines": json_lines,
    "text and labels": text_and_labels,
    "first 2 columns": _cut(2),
    "first 7 columns": _cut(7),
}


def _lines(data: bytes) -> list[str]:
    text = data.decode("utf-8-sig").replace("\r\n", "\n").removesuffix("\n")
    return text.split("\n")


def _joined(rows: Sequence[str]) -> bytes:
    return ("\n".join(rows) + "\n").encode("utf-8")
