"""Corpora: what is written comes back, in every format; what cannot be read is refused in one line
that says where.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import lzma

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.base.errors import CorpusError
from bench.data.corpora import Corpus, open_corpus_file

TRIPLET = ("sent0", "sent1", "hard_neg")
COMPRESS = {"": lambda data: data, ".gz": gzip.compress, ".xz": lzma.compress}


@pytest.fixture
def make(tmp_path):
    def make(name: str, content: bytes | str) -> Corpus:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return open_corpus_file(path, cache=tmp_path / "cache")

    return make


def rows(corpus):
    return list(corpus.rows())


def refused(make, name, content) -> CorpusError:
    """The error of opening or reading; one line each in message and hint, with the file's name in
    it.
    """
    with pytest.raises(CorpusError) as caught:
        for _ in make(name, content).rows():
            pass
    error = caught.value
    assert "\n" not in error.message and "\n" not in (error.hint or "") and name in error.message
    assert error.exit_code == 2
    return error


# text of one line: anything but LF, CR, NUL and half characters (refused) and a BOM (dropped at the
# start)
LINE = st.text(
    st.characters(blacklist_categories=["Cs"], blacklist_characters="\n\r\0\ufeff"), max_size=30
)
CELL = st.text(
    st.characters(blacklist_categories=["Cs"], blacklist_characters="\0\ufeff"), max_size=30
)
quick = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])


def want(cells) -> tuple[str, ...]:
    return tuple(c if c.strip() else " " for c in cells)


@quick
@given(
    st.lists(LINE, min_size=1, max_size=20),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.sampled_from(["", ".gz", ".xz"]),
)
def test_text_round_trip(make, lines, end, last_end, suffix):
    lines = [*lines, "the last line has text"]
    content = (end.join(lines) + (end if last_end else "")).encode()
    corpus = make("a.txt" + suffix, COMPRESS[suffix](content))
    assert rows(corpus) == [want([line]) for line in lines]
    assert len(corpus) == len(lines)
    assert corpus.sha256 == hashlib.sha256(content).hexdigest()


@quick
@given(
    st.lists(st.tuples(CELL, CELL, CELL), min_size=1, max_size=10),
    st.sampled_from(["\n", "\r\n"]),
    st.permutations(TRIPLET),
)
def test_csv_round_trip_with_commas_quotes_and_line_breaks(make, cells, end, header):
    cells = [*cells, ('say "a, b"', "line\nbreak", "x")]
    out = io.StringIO(newline="")
    # Python's writer does not quote a CR if lines end in LF alone; a reader cannot know what that
    # means
    writer = csv.writer(
        out, lineterminator=end, quoting=csv.QUOTE_MINIMAL if end == "\r\n" else csv.QUOTE_ALL
    )
    writer.writerow(header)
    for row in cells:
        writer.writerow([row[TRIPLET.index(name)] for name in header])
    corpus = make("a.csv", out.getvalue())
    assert corpus.columns == TRIPLET
    assert rows(corpus) == [want(row) for row in cells]


@quick
@given(st.lists(st.tuples(CELL, st.none() | CELL), min_size=1, max_size=10), st.booleans())
def test_json_lines_round_trip(make, cells, ascii_only):
    cells = [*cells, ("some", "text")]
    lines = [
        json.dumps({"sent1": b, "id": i, "sent0": a}, ensure_ascii=ascii_only)
        for i, (a, b) in enumerate(cells)
    ]
    corpus = make("a.jsonl", "\n".join(lines))
    assert corpus.columns == ("sent0", "sent1")
    assert rows(corpus) == [want((a, b or "")) for a, b in cells]


@quick
@given(
    st.binary(max_size=300),
    st.sampled_from([".txt", ".csv", ".tsv", ".jsonl", ".txt.gz", ".csv.xz"]),
    st.booleans(),
)
def test_any_bytes_give_rows_or_one_clear_line(tmp_path, data, suffix, packed):
    path = tmp_path / ("a" + suffix)
    path.write_bytes(COMPRESS[path.suffix](data) if packed and path.suffix in COMPRESS else data)
    try:
        corpus = open_corpus_file(path, cache=tmp_path / "cache")
        found = rows(corpus)
        assert found and all(len(row) == len(corpus.columns) and all(row) for row in found)
    except CorpusError as error:
        assert "\n" not in error.message and str(path) in error.message


def test_only_lf_ends_a_line_and_blank_lines_stay(make):
    corpus = make("a.txt", "one\u2028still one\x0b\x85\n\n  \t \nfour\n\n")
    assert rows(corpus) == [("one\u2028still one\x0b\x85",), (" ",), (" ",), ("four",), (" ",)]
    assert rows(make("b.txt", "\ufeffone\r\ntwo\r\n")) == [("one",), ("two",)]
    assert rows(make("c.txt", "\ufeffno end")) == [("no end",)]


def test_a_long_cell_is_read_from_csv_as_from_json(make):
    long = "word " * 40_000
    for name, content in (
        ("a.csv", f"sentence\n{long}\n"),
        ("a.jsonl", json.dumps({"text": long})),
    ):
        assert rows(make(name, content)) == [(long,)]


def test_json_null_and_other_keys(make):
    corpus = make(
        "a.json.gz",
        gzip.compress(
            b'{"text": "one", "id": 3}\n{"text": null}\r\n{"n": [], "text": ""}', mtime=0
        ),
    )
    assert corpus.columns == ("sentence",) and rows(corpus) == [("one",), (" ",), (" ",)]


@pytest.mark.parametrize(
    "name, content, says",
    [
        ("a.txt", "\n \n\t\n", "no row has any text"),
        ("a.txt", b"good\nno\0pe\n", "line 2 has a NUL byte"),
        ("a.txt", gzip.compress(b"text\n", mtime=0), "line 1 "),
        ("a.txt", b"ok\n" + b"y" * (1 << 20) + b"z\nend\n", "line 2 is longer than"),
        ("a.txt.xz", b"plain text\n", "not a .xz archive"),
        ("noformat", b"text\n", "unknown format ''"),
        ("a.csv", "sent0,sent1\n", "empty: it has no rows"),
        (
            "a.csv",
            "A first sentence, and more\nx,y\n",
            "line 1 has the columns 'A first sentence', 'and more'; expected sentence",
        ),
        ("a.jsonl", '[{"text": "a"}]', "line 1 is not a JSON object"),
        ("a.jsonl", '{"text": "a"}\n{"text": 7}', "line 2: 'text' is 7, expected a string or null"),
        ("a.jsonl", '{"text": "a\\u0000"}', "an escape that is not a character"),
    ],
)
def test_refused_with_what_and_where(make, name, content, says):
    assert says in refused(make, name, content).message


@pytest.mark.nightly
@pytest.mark.parametrize("suffix", [".gz", ".xz"])
def test_an_archive_that_ends_too_soon(make, suffix):
    import random

    text = "".join(f"{random.Random(i).random()} sentence {i}\n" for i in range(60000)).encode()
    data = COMPRESS[suffix](text)
    assert (
        "the archive ends too soon, after line"
        in refused(make, "a.txt" + suffix, data[: len(data) * 2 // 3]).message
    )
    assert "ends too soon" in refused(make, "b.txt" + suffix, data[:-4]).message
    damaged = data[: len(data) // 2] + bytes(100) + data[len(data) // 2 + 100 :]
    assert "damaged, after line" in refused(make, "c.txt" + suffix, damaged).message


def test_survey_is_remembered_until_the_file_changes(make, tmp_path, monkeypatch):
    corpus = make("a.txt.xz", lzma.compress(b"one\ntwo\n"))
    first = (corpus.sha256, len(corpus))
    with monkeypatch.context() as m:
        again = open_corpus_file(tmp_path / "a.txt.xz", cache=tmp_path / "cache")
        m.setattr(Corpus, "rows", lambda self, seen: pytest.fail("read again"))
        assert (again.sha256, len(again)) == first and again
    changed = make("a.txt.xz", lzma.compress(b"one\ntwo\nthree\n"))
    assert len(changed) == 3 and changed.sha256 != first[0]
    for file in (tmp_path / "cache" / "surveys").iterdir():
        file.write_text("{damaged")
    assert len(open_corpus_file(tmp_path / "a.txt.xz", cache=tmp_path / "cache")) == 3


def test_a_cache_that_cannot_be_written_does_not_matter_for_reading(tmp_path):
    (tmp_path / "a.txt").write_text("one\n")
    (tmp_path / "file").write_text("")
    assert len(open_corpus_file(tmp_path / "a.txt", cache=tmp_path / "file" / "cache")) == 1
