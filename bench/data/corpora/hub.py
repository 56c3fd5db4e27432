"""Columns of a data set of the hub as training text:
``hub:owner/name@revision/path:column,column#rows``.

One file of the data set after the other is fetched (resumed after a cut, checked against the hub's
checksum), the requested columns are written as JSON lines, and the file is deleted: memory and disk
hold at most one of them. The result is stored under the requested name; its revision is the data
set's at that first time.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.base.cache import default_cache
from bench.base.errors import CorpusError, DataMissing
from bench.base.files import write_whole
from bench.base.hashes import file_sha256
from bench.base.locks import lock
from bench.base.text import list_names, plural
from bench.data.corpora.columns import find_layout, meaning_of
from bench.data.corpora.naming import HUB, name_columns
from bench.data.fetching import Say, silent, site
from bench.data.hub import download_from_hub, repository_info
from bench.data.reading import SUFFIXES, format_of, open_table
from bench.data.reading.lines import BLOCK, Record

FORM = (
    "hub:OWNER/NAME:COLUMN (or COLUMN,COLUMN for pairs; label=score names a column; "
    "OWNER/NAME@REVISION, OWNER/NAME/FOLDER-OR-FILE, COLUMN#ROWS)"
)
NAME = re.compile(
    r"hub:(?P<repo>[^/:@]+/[^/:@]+)(@(?P<revision>[^/:]+))?(/(?P<path>[^:]*))?"
    r"(:(?P<columns>[^#]*)(#(?P<limit>0*[1-9][0-9]*))?)?"
)
ROWS = "rows.jsonl"
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
        """Raise CorpusError if the text is not such a name."""
        parts = NAME.fullmatch(text)
        columns = [part.strip() for part in (parts and parts["columns"] or "").split(",")]
        negatives = [meaning_of(column.rpartition("=")[2]) for column in columns[2:]]
        tuples = all(meaning is not None and meaning.column == "hard_neg" for meaning in negatives)
        if parts is None or (len(columns) > 3 and not tuples):
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
    """Return the file with the rows of ``text``, made now if it is not here yet, and its name with
    the revision.

    Raises CorpusError (no such column, several tables, not text), DataMissing (``offline``, and not
    here), FetchFailed or DataDamaged (it could not be downloaded).
    """
    name = HubName.of(text)
    folder = _folder_of(name, cache)
    about = folder / "about.json"
    if not about.is_file():
        if offline:
            raise DataMissing(
                f"{text} is not on this machine, and nothing is fetched (--offline)",
                f"run the same command on a machine with a network, then copy {folder} to the "
                "same path here, or below BENCH_CACHE",
            )
        folder.parent.mkdir(parents=True, exist_ok=True)
        with lock(folder.with_name(folder.name + ".lock")):
            if not about.is_file():
                _make(name, folder, say)
    return folder / ROWS, str(json.loads(about.read_text(encoding="utf-8"))["name"])


def first_fetch_of(rows: Path) -> str:
    """Return the data set and the commit that a text of the hub was made of, with the sha256 of
    each file; "" for any other file."""
    about = rows.with_name("about.json")
    if rows.name != ROWS or not about.is_file():
        return ""
    facts = json.loads(about.read_text(encoding="utf-8"))
    if "repo" not in facts:  # made by an earlier version
        return ""
    files = ", ".join(f"{file} sha256 {sha256}" for file, sha256 in facts["files"].items())
    return f"hub data set {facts['repo']} at {facts['revision']}: {files}"


def is_here(text: str) -> bool:
    """Say if the rows were fetched earlier.

    Raises CorpusError if the text is not a name of the hub.
    """
    return (_folder_of(HubName.of(text), None) / "about.json").is_file()


def _folder_of(name: HubName, cache: Path | None) -> Path:
    return (
        (cache or default_cache())
        / "hub-corpora"
        / f"{name.repo.replace('/', '--')}-{hashlib.sha256(name.text.encode()).hexdigest()[:12]}"
    )


def _make(name: HubName, folder: Path, say: Say) -> None:
    """Fill ``folder``, ``about.json`` last.

    Each file of the data set becomes a part; parts of an interrupted try are used.
    """
    earlier = folder / "revision.txt"  # of the interrupted try
    wanted = earlier.read_text().strip() if earlier.is_file() else name.revision or "main"
    listing = repository_info(site("hub", name.repo, wanted, ""))
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
    rows = 0
    most = name.limit or sys.maxsize
    parts: list[Path] = []
    files: dict[str, str] = {}
    for i, file in enumerate(chosen):
        if rows >= most:
            break
        part, aside = work / f"{i:05d}.jsonl", work / f"{i:05d}.new"
        digest = work / f"{i:05d}.sha256"  # of the file as the hub has it
        if not part.is_file():
            raw = work / f"{i:05d}.{Path(file).name}"
            download_from_hub(site("hub", name.repo, revision, file), raw)
            with aside.open("w", encoding="utf-8") as out:
                for row in itertools.islice(read_hub_rows(raw, file, name), most - rows):
                    out.write(json.dumps(row, ensure_ascii=False) + "\n")
            write_whole(digest, file_sha256(raw).encode())
            aside.replace(part)
            raw.unlink()
        with part.open("rb") as stream:
            rows += sum(1 for _ in stream)
        parts.append(part)
        files[file] = digest.read_text()
    if not rows:
        raise CorpusError(f"{name.text} has no rows", "expected one sentence in each")
    with (folder / ROWS).open("wb") as whole:
        for part in parts:
            with part.open("rb") as stream:
                shutil.copyfileobj(stream, whole, BLOCK)
    limit = f"#{name.limit}" if name.limit else ""
    path = f"/{name.path}" if name.path else ""
    about = {
        # the whole commit: a hub finds none by its beginning, and a search's recipe has this name
        "name": f"{HUB}{name.repo}@{revision}{path}:{','.join(name.columns)}{limit}",
        "revision": revision,
        "repo": name.repo,
        "files": files,
        "rows": rows,
    }
    write_whole(folder / "about.json", (json.dumps(about, indent=1) + "\n").encode())
    shutil.rmtree(work, ignore_errors=True)


def data_files(name: HubName, files: list[str]) -> list[str]:
    """Return the files to read, in their order: the training split of one table.

    Raises CorpusError if that is not clear.
    """
    readable = [
        file
        for file in files
        if format_of(file) in SUFFIXES and not Path(file).name.startswith((".", "_"))
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
            f"{name.text}: expected one table of training text, and {name.repo} has {len(tables)} "
            "there",
            f"name one, as {HUB}{name.repo}/FOLDER-OR-FILE:...; there is "
            f"{list_names(places, 8) or 'none'}",
        )
    return sorted(chosen)


def read_hub_rows(path: Path, file: str, name: HubName) -> Iterator[Record]:
    """Yield the rows of a file at ``path`` that its data set calls ``file``, without those that
    have no gold label (-1).

    Raises CorpusError if it has no such columns, or if they hold no text.
    """
    where, ours = f"{name.text}: {file}", name_columns(name.columns) or ()
    theirs = [column.partition("=")[0] for column in name.columns]

    def chosen(there: Sequence[str]) -> Sequence[str]:
        missing = [column for column in theirs if column not in there]
        if missing or not theirs:
            problem = f"no column '{missing[0]}'" if missing else "name the columns"
            raise CorpusError(
                f"{where}: {problem}; it has {' '.join(', '.join(there).split())}",
                f"for example hub:{name.repo}:{there[0] if there else 'text'}",
            )
        return theirs

    layout = None
    table = open_table(path, where)
    for number, record in table.records(chosen):
        if layout is None:
            chosen(list(record))
        absent = [their for their in theirs if their not in record]
        if absent:
            raise CorpusError(
                f"{where}: {table.word} {number} has no '{absent[0]}', but {table.word} 1 has",
                f"name columns that every {table.word} has",
            )
        row = {our: record[their] for our, their in zip(ours, theirs, strict=True)}
        if layout is None:
            layout = find_layout(where, row, exact=True, word=table.word)
        if row.get("label") not in (-1, "-1", "-"):
            layout.row(number, row)
            yield row
