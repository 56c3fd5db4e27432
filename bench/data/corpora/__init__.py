"""Training text: a file, or columns of a data set of the Hugging Face hub, as rows of one to three cells. See docs/data.md.

A file is streamed, so its size does not matter; it is surveyed once, and tokenised once into memory-mapped arrays:

corpus = open_corpus("wiki.txt.xz")               # reads the first row
len(corpus), corpus.sha256                        # one pass, remembered in the cache
ready = token_cache.tokenise(corpus, encode, tokenizer_key="...", vocab_size=8192)
ready.column(0).ids(np.array([5, 1, 9]))          # three arrays of token ids
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import itertools
import json
import lzma
import math
import re
import shutil
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from bench.base.errors import CorpusError, DataMissing
from bench.base.files import CacheEntry, default_cache, lock, write_whole
from bench.base.parquet import TooLarge, limit_of, read_batches
from bench.base.text import list_names, plural
from bench.data.fetching import Say, download, repository_info, silent, site

BUILTIN = Path(__file__).parents[2] / "builtin" / "data" / "sentences.txt.xz"
SURVEY_VERSION = 2  # of the rules by which rows are counted

KINDS: dict[tuple[str, ...], str] = {
    ("sentence",): "sentences",
    ("sent0", "sent1"): "pairs",
    ("sent0", "sent1", "hard_neg"): "triplets",
    ("sent0", "sent1", "label"): "labelled",
    ("sent0", "sent1", "score"): "graded",
}
"""The columns that a corpus may have, and the word with which a method says that it needs them."""
COLUMNS = tuple(KINDS)
NUMBERS = ("label", "score")  # columns that hold no text
LABELS = {"entailment": 0, "neutral": 1, "contradiction": 2}  # their ids in the hub's SNLI and MNLI
ALSO = {
    "text": "sentence",
    "anchor": "sent0",
    "positive": "sent1",
    "negative": "hard_neg",
    "premise": "sent0",
    "hypothesis": "sent1",
    "sentence1": "sent0",
    "sentence2": "sent1",
    "text1": "sent0",
    "text2": "sent1",
    "text_a": "sent0",
    "text_b": "sent1",
    "gold_label": "label",
}
"""Other names of these columns: those of sentence-transformers, SNLI, MNLI, STS-B, AnglE and CLAIF on the hub."""

LINES = (".txt", ".csv", ".tsv", ".jsonl", ".json")  # formats of lines
PARQUET = ".parquet"
COMPRESSED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open}
BLOCK = 1 << 20  # bytes read at once
MOST_TIMES = (
    1000  # as large as its file a corpus may be when it is unpacked; text shrinks to a fifth
)
LONGEST_LINE = 1 << 20  # bytes; a longer line is not one sentence, and would be held in memory
TEXT_ONLY = (
    "expected UTF-8 text, plain or compressed (named .gz or .xz); UTF-16: iconv -f UTF-16 -t UTF-8"
)

Row = tuple[str, ...]
Seen = Callable[[bytes], object] | None
"""Called with every block of a file's (decompressed) content."""
Record = dict[str, Any]
"""The cells of a row by the names of their columns."""


class Corpus:
    """Training text in a file, read as a stream. ``columns`` is one of ``bench.data.corpora.COLUMNS``.

    With ``column``, only that column of a wider file, as sentences; "all" takes every cell of every text column.
    """

    def __init__(self, path: Path, name: str, cache: Path, column: str | None = None) -> None:
        self.path, self.name, self.column = path, name, column
        self._cache = cache
        self.format = format_of(path)
        if self.format not in (*LINES, PARQUET):
            raise CorpusError(
                f"{path}: unknown format '{path.suffix}'; expected {', '.join(LINES)} (plain, .gz or .xz) or {PARQUET}",
                "rename the file by its content, for example .txt for one sentence per line",
            )
        columns, rows = self._table()
        self.columns = columns if column is None else ("sentence",)
        next(rows)

    @property
    def kind(self) -> str:
        """ "sentences", "pairs", "triplets", "labelled" or "graded"."""
        return KINDS[self.columns]

    def only(self, column: str | None) -> Corpus:
        """One column as a corpus of sentences; "all": every text column, row by row; None: the only column.

        Raises CorpusError if the file has no such column, or if ``column`` is None and there are several.
        """
        texts = [name for name in self.columns if name not in NUMBERS]
        if column is None and len(self.columns) == 1:
            return self
        if column not in (*texts, "all"):
            problem = "several columns" if column is None else f"no column '{column}'"
            raise CorpusError(
                f"{self.path} has {problem}: {', '.join(texts)}",
                "name one of them, or all for every cell, row by row",
            )
        return Corpus(self.path, self.name, self._cache, column)

    def rows(self, seen: Seen = None) -> Iterator[Row]:
        """The rows in the file's order, each a tuple of ``len(self.columns)`` sentences that are never empty.

        Raises CorpusError, at the end if no row has any text.
        """
        blank = True
        for row in self._table(seen)[1]:
            blank = blank and all(text == " " for text in row)
            yield row
        if blank:
            raise CorpusError(f"{self.path}: no row has any text", "expected one sentence per line")

    def unchanged_rows(self) -> Iterator[Row]:
        """:meth:`rows`, and CorpusError at the end if the content is not the one that was surveyed."""
        expected, digest = self.sha256, hashlib.sha256()
        yield from self.rows(digest.update)
        if digest.hexdigest() != expected:
            raise CorpusError(
                f"{self.path} changed while it was being read", "start again when it is complete"
            )

    def __len__(self) -> int:
        """The number of rows. The first time this reads the whole file."""
        return self._facts[1]

    def __bool__(self) -> bool:
        return True  # `if corpus:` asks whether there is one, and must not read it for its length

    @property
    def sha256(self) -> str:
        """Of the decompressed content. The first time this reads the whole file."""
        return self._facts[0]

    @cached_property
    def _facts(self) -> tuple[str, int]:
        """The hash of the content and the number of rows, from the cache or by reading the whole file."""
        stat, where = self.path.stat(), (str(self.path.resolve()), self.column)
        entry = CacheEntry(
            "surveys",
            repr(where),
            [SURVEY_VERSION, *where, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns],
            self._cache,
        )
        if (known := entry.read()) is None:
            digest = hashlib.sha256()
            known = {"rows": sum(1 for _ in self.rows(digest.update)), "sha256": digest.hexdigest()}
            entry.write(known)
        return known["sha256"], known["rows"]

    def _table(self, seen: Seen = None) -> tuple[tuple[str, ...], Iterator[Row]]:
        """The columns of the file, and its rows (cells of the one column, if only one was requested).

        Other keys of JSON and Parquet are ignored; CSV and TSV must have no other columns.
        """
        where = str(self.path)
        records = read_records(where, self.path, self.format, seen)
        if (head := next(records, None)) is None:
            raise CorpusError(f"{where}: empty: it has no rows", "expected one sentence per line")
        names = list(head[1])
        known = [ALSO.get(name.strip().lower(), name.strip().lower()) for name in names]
        ours = sorted(
            name
            for name in known
            if self.format in (".csv", ".tsv") or name in set().union(*COLUMNS)
        )
        if (columns := next((one for one in COLUMNS if sorted(one) == ours), None)) is None:
            listed = ", ".join(repr(name.strip()[:30]) for name in names[:8])
            raise CorpusError(
                f"{where}: line 1 has the columns {listed}; expected sentence, or sent0,sent1, or these two with hard_neg, label or score",
                "rename or drop columns",
            )
        keys = [names[known.index(column)] for column in columns]
        rows = (
            row_of(where, number, record, keys, columns)
            for number, record in itertools.chain([head], records)
        )
        if self.column is None:
            return columns, rows
        places = [
            i
            for i, name in enumerate(columns)
            if name == self.column or (self.column == "all" and name not in NUMBERS)
        ]
        return columns, ((row[i],) for row in rows for i in places)


def open_corpus(path: str | Path, cache: Path | None = None) -> Corpus:
    """The corpus in a file, or with ``"builtin"`` the one in the package. Reads no more than the first row.

    ``cache`` keeps hash and row count between runs (default: ``default_cache()``). Raises DataMissing if there is no such
    file, and CorpusError if it is not in one of the known formats; later rows are checked as they are read.
    """
    cache = cache or default_cache()
    if str(path) == "builtin":
        return Corpus(BUILTIN, "builtin", cache)
    path = Path(path).expanduser()
    if not path.exists():
        raise DataMissing(
            f"no corpus at {path}",
            "name an existing file (one sentence per line), or 'builtin' for the small corpus in the package",
        )
    if not path.is_file():
        raise CorpusError(
            f"{path} is not a regular file, and a corpus is read more than once",
            "name one file: .txt, .jsonl, .csv or .tsv, plain or with .gz or .xz, or .parquet",
        )
    return Corpus(path, path.name, cache)


# --- a file to numbered records, a record to a row ---


def format_of(file: str | Path) -> str:
    """ ".jsonl" for "a.jsonl" and "A.JSONL.gz". Only text is read compressed: ".gz" for "a.parquet.gz"."""
    path = Path(file)
    suffix, inner = path.suffix.lower(), Path(path.stem).suffix.lower()
    return inner if suffix in COMPRESSED and inner in LINES else suffix


def row_of(
    where: str, number: int, record: Record, keys: Sequence[str], columns: Sequence[str]
) -> Row:
    """The cells of a record in the order of ``keys``, the record's names of ``columns``.

    A missing cell, or one with nothing but white space, is one space, as in the training scripts of SimCSE and PromCSE. A
    label is its word, a score its number as Python writes it. Raises CorpusError, naming the line.
    """
    row = []
    for key, column in zip(keys, columns, strict=True):
        if key not in record:
            raise CorpusError(
                f"{where}: line {number} has no '{key}', but line 1 has",
                "write null for a missing cell",
            )
        text = record[key]
        if column in NUMBERS:
            text = (_label if column == "label" else _score)(where, number, text)
        elif not (text is None or isinstance(text, str)):
            raise CorpusError(
                f"{where}: line {number}: '{key}' is {json.dumps(text, default=str)[:40]}, expected a string or null"
            )
        row.append(" " if not text or text.isspace() else text)
    return tuple(row)


def _label(where: str, number: int, value: Any) -> str:
    text = str(value).strip().lower()
    label = {str(i): label for label, i in LABELS.items()}.get(text, text)
    if label not in LABELS:
        listed = ", ".join(f"{label} ({i})" for label, i in LABELS.items())
        raise CorpusError(
            f"{where}: line {number} has the label {value!r}; expected {listed}",
            "drop rows without a gold label; name a column of graded scores 'score'",
        )
    return label


def _score(where: str, number: int, value: Any) -> str:
    with suppress(TypeError, ValueError):
        score = float(value)
        if math.isfinite(score):
            return repr(score)
    raise CorpusError(
        f"{where}: line {number} has the score {value!r}; expected a number",
        "drop rows without a score",
    )


def read_records(
    where: str,
    path: Path,
    kind: str,
    seen: Seen = None,
    choose: Callable[[list[str]], Sequence[str]] = list,
) -> Iterator[tuple[int, Record]]:
    """(number of the line, record) for each row of a file of the format ``kind``; the column of a text file is "text".

    Of a Parquet file only the columns that ``choose`` returns are read. ``where`` names the file in messages. Raises
    CorpusError, naming the line.
    """
    if kind == PARQUET:
        return _parquet(where, path, seen, choose)
    lines = read_lines(path, seen)
    if kind == ".txt":
        return ((i, {"text": line.removesuffix("\r")}) for i, line in enumerate(lines, start=1))
    if kind == ".csv":
        return _with_header(where, _csv(where, lines))
    if kind == ".tsv":  # nothing is quoted, a double quote is a character like any other
        return _with_header(
            where, enumerate((line.removesuffix("\r").split("\t") for line in lines), start=1)
        )
    return _json(where, lines)


def _csv(where: str, lines: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
    """RFC 4180: commas, double quotes; a line break inside quotes belongs to the cell."""
    reader = csv.reader((line + "\n" for line in lines), strict=True)
    first = 1
    try:
        for cells in reader:
            yield first, cells or [""]
            first = reader.line_num + 1
    except csv.Error as error:
        raise CorpusError(
            f"{where}: the record that starts on line {first} is not valid CSV: {error}",
            'put a cell with a comma, a quote or a line break in double quotes, and write a quote inside it as ""',
        ) from None


def _with_header(
    where: str, numbered: Iterator[tuple[int, list[str]]]
) -> Iterator[tuple[int, Record]]:
    _, header = next(numbered, (1, []))
    for number, cells in numbered:
        if len(cells) != len(header):
            raise CorpusError(
                f"{where}: line {number} has {len(cells)} cells, the header has {len(header)}",
                "an empty cell needs its separator too",
            )
        yield number, dict(zip(header, cells, strict=True))


def _json(where: str, lines: Iterator[str]) -> Iterator[tuple[int, Record]]:
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            raise CorpusError(
                f"{where}: line {number} is not a JSON object",
                "expected one object per line and no blank lines; to split an array: jq -c '.[]'",
            )
        if "\\u" in line and not _is_text(record):
            raise CorpusError(
                f"{where}: line {number} has an escape that is not a character (NUL or half a surrogate pair)"
            )
        yield number, record


def _parquet(
    where: str, path: Path, seen: Seen, choose: Callable[[list[str]], Sequence[str]]
) -> Iterator[tuple[int, Record]]:
    import pyarrow.parquet

    try:
        if seen is not None:
            with path.open("rb") as file:
                while block := file.read(BLOCK):
                    seen(block)
        with pyarrow.parquet.ParquetFile(path) as table:
            limit = limit_of(path.stat().st_size, MOST_TIMES)
            batches = read_batches(table, list(choose(table.schema_arrow.names)), limit)
            for number, record in enumerate((r for b in batches for r in b.to_pylist()), start=1):
                if not _is_text(record):
                    raise CorpusError(f"{where}: row {number} has a NUL character")
                yield number, record
    except (pyarrow.ArrowException, OSError, TooLarge) as error:
        raise CorpusError(
            f"{where} is not a readable Parquet file: {' '.join(str(error).split())[:120]}"
        ) from None


def _is_text(record: Record) -> bool:
    """Whether no string has half a surrogate pair or a NUL, which no tokenizer takes and only an escape can make."""
    return not any(
        c == "\0" or "\ud800" <= c <= "\udfff"
        for c in "".join(value for value in record.values() if isinstance(value, str))
    )


def read_lines(path: Path, seen: Seen = None) -> Iterator[str]:
    r"""Lines without their LF; a CR before it stays. Only LF ends a line (not U+2028, not \x0b). A BOM is dropped.

    A missing LF at the end changes nothing. Raises CorpusError, with the number of the line, for text that is not UTF-8, a
    NUL byte, a line that is too long, and an archive that is damaged or ends too soon.
    """
    number, tail, unpacked = 0, b"", 0
    try:
        limit = limit_of(path.stat().st_size, MOST_TIMES)
        with COMPRESSED.get(path.suffix.lower(), open)(path, "rb") as file:
            while block := file.read(BLOCK):
                unpacked += len(block)
                if unpacked > limit:
                    raise CorpusError(f"{path} unpacks to more than {limit:,} bytes")
                if seen is not None:
                    seen(block)
                if number == 0 and not tail:
                    block = block.removeprefix(b"\xef\xbb\xbf")
                *whole, tail = (tail + block).split(b"\n")
                for line in whole:
                    number += 1
                    yield _text(path, number, line)
                if len(tail) > LONGEST_LINE:
                    _text(path, number + 1, tail)
            if tail:
                yield _text(path, number + 1, tail)
    except EOFError:
        raise CorpusError(
            f"{path}: the archive ends too soon, after line {number}",
            "the download was cut off: get the file again",
        ) from None
    except (lzma.LZMAError, gzip.BadGzipFile, zlib.error) as error:
        raise CorpusError(
            f"{path}: not a {path.suffix} archive, or damaged, after line {number} ({error})",
            "get the file again, or rename it by its content",
        ) from None
    except OSError as error:
        raise CorpusError(f"{path}: cannot be read: {error.strerror or error}") from None


def _text(path: Path, number: int, line: bytes) -> str:
    if len(line) > LONGEST_LINE:
        raise CorpusError(
            f"{path}: line {number} is longer than {LONGEST_LINE:,} bytes; expected one sentence or record per line",
            "split the text into sentences, one per line",
        )
    if b"\0" in line:
        raise CorpusError(f"{path}: line {number} has a NUL byte: not UTF-8 text", TEXT_ONLY)
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        problem = f"byte 0x{line[error.start]:02x} after {error.start} bytes"
        raise CorpusError(f"{path}: line {number} is not UTF-8: {problem}", TEXT_ONLY) from None


# --- columns of a data set of the hub: ``hub:owner/name@revision/path:column,column#rows`` ---
# One file of the data set after the other is fetched (resumed after a cut, checked against the hub's checksum), the requested
# columns are written as JSON lines, and the file is deleted: neither memory nor disk holds more than one of them. The result is
# stored under the requested name; its revision is the one that the data set had that first time.

PREFIX = "hub:"
FORM = "hub:OWNER/NAME:COLUMN (or COLUMN,COLUMN for pairs; label=score names a column; OWNER/NAME@REVISION, OWNER/NAME/FOLDER-OR-FILE, COLUMN#ROWS)"
NAME = re.compile(
    r"hub:(?P<repo>[^/:@]+/[^/:@]+)(@(?P<revision>[^/:]+))?(/(?P<path>[^:]*))?"
    r"(:(?P<columns>[^#]*)(#(?P<limit>0*[1-9][0-9]*))?)?"
)
TRAIN = re.compile(r"(^|[/_.\-])train([/_.\-]|$)")
OTHER_SPLIT = re.compile(r"(^|[/_.\-])(test|validation|valid|val|dev|eval)([/_.\-]|$)")


@dataclass(frozen=True)
class HubName:
    """The parts of ``hub:owner/name@revision/path:column,column#rows``."""

    text: str
    repo: str
    revision: str | None
    path: str  # a folder or file of the data set; "" for all of it
    columns: tuple[str, ...]
    limit: int | None  # the largest number of rows

    @classmethod
    def of(cls, text: str) -> HubName:
        """Raises CorpusError if the text is not such a name."""
        parts = NAME.fullmatch(text)
        columns = [part.strip() for part in (parts and parts["columns"] or "").split(",")]
        if parts is None or len(columns) > 3:
            raise CorpusError(
                f"--corpus {text}: expected {FORM}", "for example --corpus hub:owner/name:text"
            )
        return cls(
            text,
            parts["repo"],
            parts["revision"],
            (parts["path"] or "").strip("/"),
            tuple(filter(None, columns)),
            int(parts["limit"]) if parts["limit"] else None,
        )


def hub_corpus(
    text: str, *, offline: bool = False, say: Say = silent, cache: Path | None = None
) -> tuple[Path, str]:
    """The file with the rows of ``text``, made now if it is not here yet, and its name with the revision.

    Raises CorpusError (no such column, several tables, not text), DataMissing (``offline``, and not here), FetchFailed or
    DataDamaged (it could not be downloaded).
    """
    name = HubName.of(text)
    folder = _folder_of(name, cache)
    about = folder / "about.json"
    if not about.is_file():
        if offline:
            raise DataMissing(
                f"{text} is not on this machine, and nothing is fetched (--offline)",
                f"run the same command on a machine with a network, then copy {folder} to the same path here, or below BENCH_CACHE",
            )
        folder.parent.mkdir(parents=True, exist_ok=True)
        with lock(folder.with_name(folder.name + ".lock")):
            if not about.is_file():
                _make(name, folder, say)
    return folder / "rows.jsonl", str(json.loads(about.read_text(encoding="utf-8"))["name"])


def is_here(text: str) -> bool:
    """Whether the rows were fetched earlier. Raises CorpusError if the text is not a name of the hub."""
    return (_folder_of(HubName.of(text), None) / "about.json").is_file()


def _folder_of(name: HubName, cache: Path | None) -> Path:
    return (
        (cache or default_cache())
        / "hub-corpora"
        / f"{name.repo.replace('/', '--')}-{hashlib.sha256(name.text.encode()).hexdigest()[:12]}"
    )


def _make(name: HubName, folder: Path, say: Say) -> None:
    """Fill ``folder``, ``about.json`` last. Each file of the data set becomes a part; parts of an interrupted try are used."""
    earlier = folder / "revision.txt"  # of the interrupted try
    wanted = earlier.read_text().strip() if earlier.is_file() else name.revision or "main"
    listing = repository_info(site("hub", name.repo, wanted, ""), say)
    revision = str(listing.sha)
    sizes = {sibling.rfilename: sibling.size or 0 for sibling in listing.siblings or []}
    chosen = data_files(name, list(sizes))
    licence = getattr(listing.card_data, "license", None) or "not stated"
    size = f"{sum(sizes[file] for file in chosen) / 1e6:,.0f} MB in {plural(len(chosen), 'file')}"
    at_most = f"at most {name.limit:,} rows, " if name.limit else ""
    say(f"fetching {name.text}: {name.repo} at {revision[:12]}, {at_most}{size}, licence {licence}")
    work = folder / "parts"
    work.mkdir(parents=True, exist_ok=True)
    write_whole(earlier, revision.encode())
    rows, most, parts = 0, name.limit or sys.maxsize, list[Path]()
    for i, file in enumerate(chosen):
        if rows >= most:
            break
        part, aside = work / f"{i:05d}.jsonl", work / f"{i:05d}.new"
        if not part.is_file():
            raw = work / f"{i:05d}.{Path(file).name}"
            download(site("hub", name.repo, revision, file), raw, say=say)
            with aside.open("w", encoding="utf-8") as out:
                for row in itertools.islice(read_rows(raw, file, name), most - rows):
                    out.write(json.dumps(row, ensure_ascii=False) + "\n")
            aside.replace(part)
            raw.unlink()
        with part.open("rb") as stream:
            rows += sum(1 for _ in stream)
        parts.append(part)
    if not rows:
        raise CorpusError(f"{name.text} has no rows", "expected one sentence in each")
    with (folder / "rows.jsonl").open("wb") as whole:
        for part in parts:
            with part.open("rb") as stream:
                shutil.copyfileobj(stream, whole, BLOCK)
    limit = f"#{name.limit}" if name.limit else ""
    path = f"/{name.path}" if name.path else ""
    about = {
        "name": f"{PREFIX}{name.repo}@{revision[:12]}{path}:{','.join(name.columns)}{limit}",
        "revision": revision,
        "files": chosen[: len(parts)],
        "rows": rows,
    }
    write_whole(folder / "about.json", (json.dumps(about, indent=1) + "\n").encode())
    shutil.rmtree(work, ignore_errors=True)


def data_files(name: HubName, files: list[str]) -> list[str]:
    """The files to read, in their order: the training split of one table. Raises CorpusError if that is not clear."""
    readable = [
        file
        for file in files
        if format_of(file) in (*LINES, PARQUET) and not Path(file).name.startswith((".", "_"))
    ]
    chosen = [f for f in readable if f"{f}/".startswith(f"{name.path}/" if name.path else "")]
    if chosen != [name.path]:
        chosen = [file for file in chosen if TRAIN.search(file)] or [
            file for file in chosen if not OTHER_SPLIT.search(file)
        ]
    # text files in one folder have no columns, so each is a table unless the folder was named
    each = any(format_of(file) == ".txt" for file in chosen) and not name.path
    tables = {
        (file if each else Path(file).parent, format_of(file), Path(file).suffix.lower())
        for file in chosen
    }
    if len(tables) != 1:
        places = sorted({str(Path(file).parent) if "/" in file else file for file in readable})
        raise CorpusError(
            f"{name.text}: expected one table of training text, and {name.repo} has {len(tables)} there",
            f"name one, as {PREFIX}{name.repo}/FOLDER-OR-FILE:...; there is {list_names(places, 8) or 'none'}",
        )
    return sorted(chosen)


def name_columns(columns: Sequence[str]) -> tuple[str, ...]:
    """Our names of a data set's columns: as ``label=score`` says, by their names if all are known, else by their order."""
    renamed = [column.rpartition("=")[2] for column in columns]
    known = tuple(ALSO.get(column, column) for column in renamed)
    if any(sorted(known) == sorted(parts) for parts in COLUMNS):
        return known
    return (
        ("sent0", "sent1", known[2])
        if len(columns) == 3 and known[2] in NUMBERS
        else COLUMNS[len(columns) - 1]
    )


def read_rows(path: Path, file: str, name: HubName) -> Iterator[Record]:
    """The rows of a file at ``path`` that its data set calls ``file``, without those that have no gold label (-1).

    Raises CorpusError if it has no such columns, or if they hold no text.
    """
    where, ours = f"{name.text}: {file}", name_columns(name.columns)
    theirs = [column.partition("=")[0] for column in name.columns]

    def chosen(there: Sequence[str]) -> Sequence[str]:
        if (missing := [column for column in theirs if column not in there]) or not theirs:
            problem = f"no column '{missing[0]}'" if missing else "name the columns"
            raise CorpusError(
                f"{where}: {problem}; it has {' '.join(', '.join(there).split())}",
                f"for example hub:{name.repo}:{there[0] if there else 'text'}",
            )
        return theirs

    for i, (number, record) in enumerate(read_records(where, path, format_of(file), choose=chosen)):
        if not i:
            chosen(list(record))
        row = {our: record.get(their) for our, their in zip(ours, theirs, strict=True)}
        if row.get("label") not in (-1, "-1", "-"):
            row_of(where, number, row, ours, ours)
            yield row
