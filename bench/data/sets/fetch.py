"""Fetches data sets from their sources into a data folder: checked, each file whole or not there."""

from __future__ import annotations

import contextlib
import csv
import datetime
import io
import json
import os
import shutil
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from bench.base.errors import DataDamaged, DataMissing, FetchFailed, one_line
from bench.base.files import file_sha256, lock, write_whole
from bench.base.text import plural
from bench.data.fetching import Say, download, repository_info, silent, site, unpack
from bench.data.sets import (
    ANY,
    DataFile,
    DataFolder,
    DataSet,
    Receipt,
    Source,
    SourcePart,
    count_rows,
    data_set,
    read_receipt,
    receipt_path,
    recognise,
    sources_of,
    write_receipt,
)

WORK = ".fetching"
"""Folder for unfinished downloads inside the data folder, so that a finished file is only renamed."""


class Item(NamedTuple):
    """One file of ours that is not here yet, and how it comes out of a source."""

    wanted: DataSet
    file: DataFile
    part: SourcePart


class Fetcher:
    """Fills one data folder. A set that is there and whole is not fetched again; two processes that fetch the same one take turns."""

    def __init__(self, store: Path, say: Say = silent) -> None:
        self.store, self.say = store, say
        self._taken = set[str]()  # sources whose archive was fetched: its good files are here

    def get(self, wanted: DataSet, text: str = ANY) -> None:
        """The set in a text form ("any": tokenised if there are forms), from the first source that has it.

        Raises DataMissing if it has no source, FetchFailed or DataDamaged if no source delivered it.
        """
        problems: list[FetchFailed | DataDamaged] = []
        known = sources_of(wanted, text)
        for source in known:
            if source.name in self._taken:
                continue
            if self.has(wanted, text):
                return
            for problem in problems[-1:]:
                self.say(f"{problem.message}; next source: {source.where}")
            try:
                self._from(source, wanted)
            except FetchFailed as problem:
                problems.append(problem)
                continue
            except DataDamaged as problem:
                problems.append(problem)
            if source.archive:
                self._taken.add(source.name)
        if self.has(wanted, text):
            return
        if problems:
            first = problems[0]
            raise type(first)(f"{wanted.name}: {first.message}", first.hint) from None
        if known:
            raise DataDamaged(f"{wanted.name}: no source has the expected files", wanted.get)
        raise DataMissing(f"{wanted.name}: no source is known to fetch it from", wanted.get)

    def has(self, wanted: DataSet, text: str = ANY) -> bool:
        """Whether the folder holds a whole copy in that form. Reads every byte."""
        copies, _ = DataFolder(self.store, store=None).copies(wanted)
        return any(text == ANY or copy.form in (text, ANY) for copy in copies)

    def _from(self, source: Source, wanted: DataSet) -> None:
        """The files of the set (of an archive: of all its sets) that the source has and that are not here yet; all of them are
        checked before the first one is moved to its place."""
        place, work = self.store / source.into, self.store / WORK / source.name
        try:
            work.mkdir(parents=True, exist_ok=True)
            with lock(work.with_suffix(".lock")):
                if all((place / file.path).is_file() for file in wanted.files) and self.has(wanted):
                    return  # another process was faster
                self.say(f"fetching {wanted.name} from {source.where} into {place}")
                self._fetch(source, wanted, place, work)
                shutil.rmtree(work, ignore_errors=True)
        except OSError as error:
            raise FetchFailed(
                f"{place} cannot be written ({error.strerror or error})",
                "check the disk's free space and the folder's permissions",
            ) from None

    def _fetch(self, source: Source, wanted: DataSet, place: Path, work: Path) -> None:
        earlier = read_receipt(receipt_path(place, source.name))
        known = earlier.downloads if earlier else {}
        revision = earlier.revision if earlier else source.revision
        if not earlier and source.site == "hub" and not source.pinned:
            revision = str(self._listing(source, revision).sha)
        items = [
            Item(set_, file, self._named(source, revision, part))
            for set_ in ([data_set(name) for name in source.sets] if source.archive else [wanted])
            for file in set_.files
            if (part := source.part(file))
            and not _is_right(set_, file, place / file.path, source.form)
        ]
        contents, downloads = (self._unpack if source.archive else self._download)(
            source, revision, known, items, work
        )
        made, warnings = dict[str, Path](), dict[str, str]()
        for item in items:
            path, expected = item.file.path, item.file.rows
            try:
                made[path] = _made(source, item, contents, work)
            except DataDamaged as problem:
                if not source.archive:
                    raise
                self.say(f"{source.name} has a different {path}: {problem.message}")
                continue
            if item.file.first_use:
                downloads[path] = file_sha256(made[path])  # later copies are compared with it
                if (rows := count_rows(item.wanted, item.file, made[path])) != expected:
                    warnings[path] = f"{plural(rows, 'row')}, where {expected:,} were expected"
                    self.say(
                        f"warning: {item.wanted.name}: {path} has {warnings[path]}; it is used as it is"
                    )
        write_receipt(
            receipt_path(place, source.name),
            Receipt(
                source=source.name,
                url=" and ".join(source.urls),
                revision=revision,
                fetched=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
                downloads=downloads,
                warnings=warnings,
            ),
            work,
        )
        for path, file in made.items():
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            os.replace(file, place / path)

    def _listing(self, source: Source, revision: str) -> Any:
        return repository_info(site("hub", source.repo, revision, ""), self.say)

    def _named(self, source: Source, revision: str, part: SourcePart) -> SourcePart:
        """The part with ``*`` in the names of its files replaced."""
        if "*" not in part.paths[0]:
            return part
        names = [file.rfilename for file in self._listing(source, revision).siblings or []]
        if not (paths := sorted(name for name in names if fnmatch(name, part.paths[0]))):
            raise FetchFailed(f"{source.where} has no {part.paths[0]}", None)
        return replace(part, paths=tuple(paths))

    def _download(
        self,
        source: Source,
        revision: str,
        known: Mapping[str, str],
        items: Sequence[Item],
        work: Path,
    ) -> tuple[dict[str, Path], dict[str, str]]:
        """The source's files, one by one: path in the source -> our copy, and its sha256. Files of an interrupted try are used."""
        contents, downloads = dict[str, Path](), dict[str, str]()
        for _, file, part in items:
            form = file.forms.get(source.form) or file.forms[ANY]
            expected = part.sha256 or [
                known.get(path) if file.first_use else form.sha256 for path in part.paths
            ]
            for path, sha256 in zip(part.paths, expected, strict=True):
                contents[path] = work / quote(path, safe="")
                downloads[path] = download(
                    site(source.site, source.repo, revision, path),
                    contents[path],
                    sha256=sha256,
                    most_bytes=source.most_bytes,
                    say=self.say,
                )
        return contents, downloads

    def _unpack(
        self,
        source: Source,
        revision: str,
        known: Mapping[str, str],
        items: Sequence[Item],
        work: Path,
    ) -> tuple[dict[str, Path], dict[str, str]]:
        """As :meth:`_download`, from the source's archive, whose sha256 is returned."""
        assert source.archive is not None
        packed = work / source.archive
        digest = download(
            site(source.site, source.repo, revision, source.archive),
            packed,
            sha256=known.get(source.archive),
            most_bytes=source.most_bytes,
            say=self.say,
        )
        places = {item.part.paths[0]: work / "unpacked" / item.file.path for item in items}

        def target(name: str) -> Path | None:
            return next(
                (to for path, to in places.items() if f"/{name}".endswith(f"/{path}")), None
            )

        unpack(packed, target, most_bytes=source.most_bytes)
        return places, {source.archive: digest}


def _made(source: Source, item: Item, contents: Mapping[str, Path], work: Path) -> Path:
    """Our file, made of the source's files and checked. Raises DataDamaged."""
    wanted, file, part = item
    paths = [contents[path] for path in part.paths]
    if not all(path.is_file() for path in paths):
        raise DataDamaged(f"{wanted.name}: it is not in the archive", None)
    arrived = paths[0]
    if part.conversion != "as is":
        arrived = work / f"converted-{file.name}"
        write_whole(arrived, CONVERSIONS[part.conversion](*(path.read_bytes() for path in paths)))
    if not file.first_use and recognise(wanted, file, arrived).form not in (ANY, source.form):
        raise DataDamaged(f"{wanted.name}: {file.name} is not the known {source.form} text", None)
    return arrived


def _is_right(wanted: DataSet, file: DataFile, path: Path, form: str) -> bool:
    """Whether a file is there already, whole and in that form."""
    with contextlib.suppress(DataDamaged):
        return path.is_file() and recognise(wanted, file, path).form in (ANY, form)
    return False


# --- conversions: from the content of one or more files of a source to the content of our file, which is checked afterwards ---


def labelled_lines(file: bytes) -> bytes:
    """Label, tab, text: LF line ends, no blanks or tabs at line ends, a tab inside a text made a blank."""
    rows = (line.rstrip("\t ").partition("\t") for line in _lines(file))
    return _joined([f"{label}\t{text.replace(chr(9), ' ')}" for label, _, text in rows])


def json_lines(file: bytes) -> bytes:
    """JSON lines with ``text`` and ``cluster``, the format of GSDMM's authors: label, tab, text without outer blanks."""
    return _joined(
        [f"{row['cluster']}\t{row['text'].strip()}" for row in map(json.loads, _lines(file))]
    )


def parquet_text(*files: bytes) -> bytes:
    """The column ``text`` of Parquet files, one line per row."""
    import pyarrow.parquet

    try:
        tables = [pyarrow.parquet.read_table(io.BytesIO(file), columns=["text"]) for file in files]
    except (pyarrow.ArrowException, OSError) as error:
        raise DataDamaged(f"not a Parquet file with a column 'text' ({one_line(error)})") from None
    return _joined([text.rstrip("\r\n") for table in tables for text in table["text"].to_pylist()])


def text_and_labels(texts: bytes, labels: bytes) -> bytes:
    """A file of texts and one of labels, joined line by line: label, tab, text without outer blanks, inner tabs made blanks.

    Raises ValueError if the two have different numbers of lines.
    """
    return _joined(
        [
            f"{label.strip()}\t{text.strip().replace(chr(9), ' ')}"
            for text, label in zip(_lines(texts), _lines(labels), strict=True)
        ]
    )


def first_columns(columns: int, file: bytes) -> bytes:
    """The first columns of a table with tabs."""
    return _joined(
        [
            "\t".join(line.split("\t")[:columns])
            for line in file.decode("utf-8").removesuffix("\n").split("\n")
        ]
    )


def labelled_nli(*files: bytes) -> bytes:
    """CSV with sent0, sent1, label from the zip archives of SNLI and MultiNLI: the pairs of each one's ``*_train.jsonl``, in
    their order. A pair without a gold label ("-") is left out, as SBERT and InferSent do.

    Raises DataDamaged for an archive without such a file.
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
            if len(train) != 1:
                raise DataDamaged(
                    f"an archive of NLI pairs has {len(train)} files *_train.jsonl, expected one",
                    "fetch it again",
                )
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
    "parquet text": parquet_text,
    "text and labels": text_and_labels,
    "first 2 columns": partial(first_columns, 2),
    "first 7 columns": partial(first_columns, 7),
    "labelled NLI": labelled_nli,
}


def _lines(data: bytes) -> list[str]:
    return data.decode("utf-8-sig").replace("\r\n", "\n").removesuffix("\n").split("\n")


def _joined(rows: Sequence[str]) -> bytes:
    return ("\n".join(rows) + "\n").encode("utf-8")
