"""Lines of training text end with LF or CR LF. Text with other line ends is refused, and other
characters end nothing.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from bench.base.errors import CorpusError
from bench.data.corpora import open_corpus_file


def rows(tmp_path: Path, name: str, content: str | bytes) -> list[tuple[str, ...]]:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(open_corpus_file(path, cache=tmp_path / "cache").rows())


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("a.txt", "one\ntwo\rthree\nfour\n", 2),
        ("a.txt", "one\r\ntwo\rthree\r\n", 2),
        ("a.txt", "x\r" * (1 << 20), 1),
        ("a.txt.gz", gzip.compress(b"one\rtwo\r", mtime=0), 1),
        ("a.tsv", "sent0\tsent1\na\tb\rc\td\n", 2),
        ("a.csv", "sent0,sent1\na,b\rc,d\n", 2),
        ("a.jsonl", '{"text": "one"}\n{"text": "two"}\r{"text": "three"}\n', 2),
    ],
)
def test_a_carriage_return_alone_is_refused_with_what_to_do(
    tmp_path: Path, name: str, content: str | bytes, line: int
) -> None:
    with pytest.raises(CorpusError) as caught:
        rows(tmp_path, name, content)
    assert f"line {line} " in caught.value.message
    assert caught.value.hint is not None and "perl -pe" in caught.value.hint
    assert "\r" not in caught.value.message + caught.value.hint


ODD = "a\u2028b\u2029c\x85d\x0ce\x0bf\x1cg"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_no_other_character_ends_a_line(tmp_path: Path, end: str) -> None:
    assert rows(tmp_path, "a.txt", f"{ODD}{end}z{end}") == [(ODD,), ("z",)]
    assert rows(tmp_path, "a.tsv", f"sent0\tsent1{end}{ODD}\tz{end}") == [(ODD, "z")]
    assert rows(tmp_path, "a.csv", f"sent0,sent1{end}{ODD},z{end}") == [(ODD, "z")]
    line = '{"text": "' + ODD.replace("\x0c", "").replace("\x0b", "").replace("\x1c", "") + '"}'
    assert rows(tmp_path, "a.jsonl", f'{line}{end}{{"text": "z"}}{end}')[1] == ("z",)


def test_a_quoted_cell_keeps_its_line_breaks(tmp_path: Path) -> None:
    content = 'sentence\n"a\rb"\n"c\r\nd"\n'
    assert rows(tmp_path, "a.csv", content) == [("a\rb",), ("c\r\nd",)]
