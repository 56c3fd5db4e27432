"""Training text out of a data set of the Hugging Face hub: ``hub:owner/name@revision/path:column,column#rows``. See docs/data.md.

One file of the data set after the other is fetched (resumed after a cut, checked against the hub's checksum), the columns that
are asked for are written as JSON lines, and the file goes again: neither memory nor disk ever holds more than one of them.
What was made is kept under the name that was asked for; the revision of the data set is the one of that first time.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.base.errors import CorpusError, DataMissing
from bench.base.files import default_cache, lock, write_whole
from bench.base.text import list_names, plural
from bench.data.corpora.rows import (
    ALSO,
    COLUMNS,
    COMPRESSED,
    FORMATS,
    NUMBERS,
    PARQUET,
    Record,
    read_lines,
    read_parquet,
    read_records,
    row_of,
)
from bench.data.fetching import Say, download, repository_info, silent, site

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
    """``hub:owner/name@revision/path:column,column#rows``, taken apart."""

    text: str
    repo: str
    revision: str | None
    path: str  # a folder or file of the data set; "" for all of it
    columns: tuple[str, ...]
    limit: int | None  # rows at most

    @property
    def theirs(self) -> list[str]:
        """The columns as the data set calls them."""
        return [column.partition("=")[0] for column in self.columns]

    @classmethod
    def of(cls, text: str) -> HubName:
        """Raises CorpusError for what is no such name."""
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
    text: str,
    *,
    offline: bool = False,
    say: Say = silent,
    cache: Path | None = None,
) -> tuple[Path, str]:
    """The file with the rows of ``text``, made now where it is not here yet, and its name with the revision.

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
                f"run the same command where there is a network, then bring {folder} over, to the same place or below BENCH_CACHE",
            )
        folder.parent.mkdir(parents=True, exist_ok=True)
        with lock(folder.with_name(folder.name + ".lock")):
            if not about.is_file():
                _make(name, folder, say)
    return folder / "rows.jsonl", str(json.loads(about.read_text(encoding="utf-8"))["name"])


def is_here(text: str) -> bool:
    """Whether the rows were fetched earlier. Raises CorpusError for what is no such name."""
    return (_folder_of(HubName.of(text), None) / "about.json").is_file()


def _folder_of(name: HubName, cache: Path | None) -> Path:
    folder = f"{name.repo.replace('/', '--')}-{hashlib.sha256(name.text.encode()).hexdigest()[:12]}"
    return (cache or default_cache()) / "hub-corpora" / folder


def _make(name: HubName, folder: Path, say: Say) -> None:
    """Fill ``folder``. Each file of the data set becomes a part; what an earlier, interrupted try made is taken as it is."""
    earlier = folder / "revision.txt"  # of an earlier try, whose parts are here
    asked = earlier.read_text().strip() if earlier.is_file() else name.revision or "main"
    listing = repository_info(site("hub", name.repo, asked, ""), say)
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
    parts: list[Path] = []
    rows = 0
    for i, file in enumerate(chosen):
        remaining = None if name.limit is None else name.limit - rows
        if remaining is not None and remaining <= 0:
            break
        part = work / f"{i:05d}.jsonl"
        if not part.is_file():
            raw = work / f"{i:05d}.raw{suffix_of(file)}"
            download(site("hub", name.repo, revision, file), raw, say=say)
            _write_rows(read_rows(raw, file, name), part, remaining)
            raw.unlink()
        with part.open("rb") as stream:
            rows += sum(1 for _ in stream)
        parts.append(part)
    if not rows:
        raise CorpusError(f"{name.text} has no rows", "expected one sentence in each")
    _join(parts, folder / "rows.jsonl")
    limit = f"#{name.limit}" if name.limit else ""
    path = f"/{name.path}" if name.path else ""
    full = f"{PREFIX}{name.repo}@{revision[:12]}{path}:{','.join(name.columns)}{limit}"
    about = {"name": full, "revision": revision, "files": chosen[: len(parts)], "rows": rows}
    write_whole(folder / "about.json", (json.dumps(about, indent=1) + "\n").encode())
    shutil.rmtree(work, ignore_errors=True)


def data_files(name: HubName, files: list[str]) -> list[str]:
    """The files to read, in their order: those of the training split of one table. Raises CorpusError where that is not clear."""
    readable = [
        file
        for file in files
        if suffix_of(file) in SUFFIXES and not Path(file).name.startswith((".", "_"))
    ]
    chosen = [
        file for file in readable if f"{file}/".startswith(f"{name.path}/" if name.path else "")
    ]
    if chosen != [name.path]:
        train = [file for file in chosen if TRAIN.search(file)]
        chosen = train or [file for file in chosen if not OTHER_SPLIT.search(file)]
    # of text files in one folder, which have no columns, each is a table unless the folder was named
    each = any(suffix_of(file) == ".txt" for file in chosen) and not name.path
    tables = {(file if each else Path(file).parent.as_posix(), suffix_of(file)) for file in chosen}
    if len(tables) != 1:
        places = sorted({str(Path(file).parent) if "/" in file else file for file in readable})
        raise CorpusError(
            f"{name.text}: expected one table of training text, and {name.repo} has {len(tables)} there",
            f"name one, as {PREFIX}{name.repo}/FOLDER-OR-FILE:...; there is {list_names(places, 8) or 'none'}",
        )
    return sorted(chosen)


def _write_rows(rows: Iterator[Record], part: Path, limit: int | None) -> None:
    aside = part.with_suffix(".new")
    with aside.open("w", encoding="utf-8") as file:
        for row in itertools.islice(rows, limit):
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    aside.replace(part)


def _join(parts: list[Path], whole: Path) -> None:
    aside = whole.with_suffix(".new")
    with aside.open("wb") as out:
        for part in parts:
            with part.open("rb") as stream:
                shutil.copyfileobj(stream, out, 1 << 20)
    aside.replace(whole)


# --- the rows of one file of a hub data set: the columns that were asked for, under the names that corpora have here ---

SUFFIXES = {
    PARQUET,
    *FORMATS,
    *(f"{suffix}{packed}" for suffix in FORMATS for packed in COMPRESSED),
}


def suffix_of(file: str) -> str:
    """ ".parquet", ".jsonl", ".csv.gz", ... in lower case; of a packed file both."""
    path = Path(file.lower())
    return "".join(path.suffixes[-2:]) if path.suffix in COMPRESSED else path.suffix


def name_columns(columns: Sequence[str]) -> tuple[str, ...]:
    """What the columns of a data set are called here: as ``label=score`` says, by their names where all are known, else by
    their order."""
    renamed = [column.rpartition("=")[2] for column in columns]
    known = tuple(ALSO.get(column, column) for column in renamed)
    if any(sorted(known) == sorted(parts) for parts in COLUMNS):
        return known
    if len(columns) == 3 and known[2] in NUMBERS:
        return ("sent0", "sent1", known[2])
    return COLUMNS[len(columns) - 1]


def read_rows(path: Path, file: str, name: HubName) -> Iterator[Record]:
    """The rows of a file that lies at ``path`` and is called ``file`` in its data set; rows without a gold label (-1) are left
    out. Raises CorpusError where it has no such columns, or they hold no text."""
    where, suffix = f"{name.text}: {file}", suffix_of(file)

    def chosen(there: Sequence[str]) -> Sequence[str]:
        check_columns(name, where, there)
        return name.theirs

    if suffix == PARQUET:
        records = read_parquet(where, path, choose=chosen)
    else:
        records = read_records(where, f".{suffix.split('.')[1]}", read_lines(path))
    for i, (number, record) in enumerate(records):
        if not i:
            chosen(list(record))
        ours = name_columns(name.columns)
        row = {our: record.get(theirs) for our, theirs in zip(ours, name.theirs, strict=True)}
        if row.get("label") in (-1, "-1", "-"):
            continue
        row_of(where, number, row, ours, ours)
        yield row


def check_columns(name: HubName, where: str, there: Sequence[str]) -> None:
    """Raises CorpusError where a column is not ``there``, or none was named."""
    missing = [column for column in name.theirs if column not in there]
    if missing or not name.columns:
        problem = f"no column '{missing[0]}'" if missing else "its columns were not named"
        raise CorpusError(
            f"{where}: {problem}; it has {' '.join(', '.join(there).split())}",
            f"for example hub:{name.repo}:{there[0] if there else 'text'}",
        )
