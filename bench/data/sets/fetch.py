"""Gets data sets from their sources into a data folder: checked, each file whole or not there."""

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
from functools import partial
from pathlib import Path

from bench.base.errors import DataDamaged, DataMissing, FetchFailed
from bench.base.files import file_sha256, lock, write_whole
from bench.data.fetching import Say, dataset_info, download, silent, site, unpack
from bench.data.sets.folder import DataFolder
from bench.data.sets.manifest import (
    ANY,
    DataFile,
    DataSet,
    Receipt,
    data_set,
    read_receipt,
    receipt_path,
    recognise,
    write_receipt,
)
from bench.data.sets.sources import Part, Source, sources_of

WORK = ".fetching"
"""Folder for what is on its way, inside the data folder (so that a finished file is only renamed)."""


class Fetcher:
    """Fills one data folder. What is there and whole is not fetched again; two processes that want the same take turns."""

    def __init__(self, store: Path, say: Say = silent) -> None:
        self.store, self.say = store, say

    def get(self, wanted: DataSet, text: str = ANY) -> None:
        """The set in a text form ("any": tokenised where there are forms), from the first source that has it.

        Raises DataMissing where no source is known, FetchFailed or DataDamaged where none of them gave it.
        """
        problems: list[FetchFailed | DataDamaged] = []
        for source in sources_of(wanted, text):
            if self.has(wanted, text):
                return
            for problem in problems[-1:]:
                self.say(f"{problem.message}; next source: {source.where}")
            try:
                self._from(source, wanted)
            except (FetchFailed, DataDamaged) as problem:
                problems.append(problem)
        if self.has(wanted, text):
            return
        if problems:
            first = problems[0]
            raise type(first)(f"{wanted.name}: {first.message}", first.hint) from None
        raise DataMissing(f"{wanted.name}: no source to fetch it from is known", wanted.get)

    def has(self, wanted: DataSet, text: str = ANY) -> bool:
        """Whether the folder holds a whole copy in that form. Reads every byte."""
        copies, _ = DataFolder(self.store, store=None).copies(wanted)
        return any(text == ANY or copy.form in (text, ANY) for copy in copies)

    def _from(self, source: Source, wanted: DataSet) -> None:
        """What the source has of the set (an archive: of all its sets) and is not here yet; all of it is checked before the first file
        is moved to its place."""
        place, work = self.store / source.into, self.store / WORK / source.name
        ready = work / "ready"
        try:
            ready.mkdir(parents=True, exist_ok=True)
            with lock(work.with_suffix(".lock")):
                if all((place / file.path).is_file() for file in wanted.files) and self.has(wanted):
                    return  # another process was faster, or it is there in another form
                self.say(f"fetching {wanted.name} from {source.where} into {place}")
                receipt = read_receipt(receipt_path(place, source.name))
                known = receipt.downloads if receipt else {}
                revision = receipt.revision if receipt else self._revision(source)
                fetch = self._fetch_archive if source.archive else self._fetch_files
                downloads = fetch(source, wanted, revision, ready, known)
                now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
                write_receipt(
                    receipt_path(place, source.name),
                    Receipt(
                        source=source.name,
                        url=source.address(revision),
                        revision=revision,
                        fetched=now,
                        downloads=downloads,
                    ),
                    work,
                )
                for path in [path for path in ready.rglob("*") if path.is_file()]:
                    _move(path, place / path.relative_to(ready))
                shutil.rmtree(work, ignore_errors=True)
        except OSError as error:
            raise FetchFailed(
                f"{place} cannot be written ({error.strerror or error})",
                "check the disk's free space and the folder's permissions",
            ) from None

    def _revision(self, source: Source) -> str:
        """The commit that "main" names now, for a source whose commit nobody wrote down."""
        if source.site != "hub" or source.pinned:
            return source.revision
        return str(dataset_info(source.repo, source.revision, self.say).sha)

    def _fetch_files(
        self, source: Source, wanted: DataSet, revision: str, ready: Path, known: Mapping[str, str]
    ) -> dict[str, str]:
        """Every file of the set that is missing, into ``ready``. Gives path in the source -> sha256."""
        downloads: dict[str, str] = {}
        for file in wanted.files:
            part, here = source.part(file), self.store / source.into / file.path
            if part is None or _is_right(wanted, file, here, source.form):
                continue
            if not _is_right(wanted, file, ready / file.path, source.form):
                downloads |= self._fetch_file(source, wanted, file, part, revision, ready, known)
            elif part.conversion == "as is":
                downloads[part.paths[0]] = file_sha256(ready / file.path)
        return downloads

    def _fetch_file(
        self,
        source: Source,
        wanted: DataSet,
        file: DataFile,
        part: Part,
        revision: str,
        ready: Path,
        known: Mapping[str, str],
    ) -> dict[str, str]:
        """One file of ours into ``ready``: downloaded, converted and checked."""
        expected = file.forms.get(source.form) or file.forms[ANY]
        recorded = known.get(part.paths[0]) if file.first_use else expected.sha256
        most = source.most_bytes
        if not file.first_use:
            most = 2 * (part.bytes or expected.bytes) + 1_000_000
        contents = [ready.parent / f"{i}-{file.name}" for i in range(len(part.paths))]
        downloads = {
            path: download(
                site(source.site, source.repo, revision, path),
                to,
                sha256=sha256,
                most_bytes=most,
                say=self.say,
            )
            for path, to, sha256 in zip(
                part.paths, contents, part.sha256 or (recorded,), strict=True
            )
        }
        arrived = contents[0]
        if part.conversion != "as is":
            arrived = ready.parent / f"converted-{file.name}"
            convert = CONVERSIONS[part.conversion]
            write_whole(arrived, convert([content.read_bytes() for content in contents]))
        recognise(wanted, file, arrived)
        sha256 = file_sha256(arrived)
        if file.first_use:
            downloads[file.path] = sha256  # what later copies are held against
        elif sha256 != expected.sha256:
            problem = f"{wanted.name}: {file.name} is not the {source.form} text that is known"
            raise DataDamaged(problem, None)
        _move(arrived, ready / file.path)
        return downloads

    def _fetch_archive(
        self, source: Source, wanted: DataSet, revision: str, ready: Path, known: Mapping[str, str]
    ) -> dict[str, str]:
        """Every file of every set that the archive has and that is what the set's manifest knows, into ``ready``."""
        assert source.archive is not None
        packed, unpacked = ready.parent / source.archive, ready.parent / "unpacked"
        digest = download(
            site(source.site, source.repo, revision, source.archive),
            packed,
            sha256=known.get(source.archive),
            most_bytes=source.most_bytes,
            say=self.say,
        )
        files = {
            part.paths[0]: (set_, file)
            for set_ in map(data_set, source.sets)
            for file in set_.files
            if (part := source.part(file))
        }

        def target(name: str) -> Path | None:
            ends = (path for path in files if f"/{name}".endswith(f"/{path}"))
            return next((unpacked / files[path][1].path for path in ends), None)

        unpack(packed, target, most_bytes=source.most_bytes)
        for set_, file in files.values():
            new, here = unpacked / file.path, self.store / source.into / file.path
            if not new.exists():
                self.say(f"{set_.name}: {source.name} has no {file.path}")
            elif not _is_right(set_, file, here, source.form):
                try:
                    recognise(set_, file, new)
                    _move(new, ready / file.path)
                except DataDamaged as problem:
                    self.say(f"{source.name} has another {file.path}: {problem.message}")
        return {source.archive: digest}


def _is_right(wanted: DataSet, file: DataFile, path: Path, form: str) -> bool:
    """Whether a file is there already, whole and in that form."""
    with contextlib.suppress(DataDamaged):
        return path.is_file() and recognise(wanted, file, path).form in (ANY, form)
    return False


def _move(old: Path, new: Path) -> None:
    new.parent.mkdir(parents=True, exist_ok=True)
    os.replace(old, new)


# --- from a source's own files to the files that the harness reads; each is checked by the manifest's checksum afterwards ---
# A conversion takes the contents of one or more source files and gives the content of one file of ours.


def labelled_lines(data: Sequence[bytes]) -> bytes:
    """Label, tab, text: LF line ends, no blanks or tabs at line ends, a tab inside a text made a blank."""
    (file,) = data
    rows = []
    for line in _lines(file):
        label, _, text = line.rstrip("\t ").partition("\t")
        rows.append(f"{label}\t{text.replace(chr(9), ' ')}")
    return _joined(rows)


def json_lines(data: Sequence[bytes]) -> bytes:
    """JSON lines with ``text`` and ``cluster``, as the authors of GSDMM keep their sets: label, tab, text without outer blanks."""
    (file,) = data
    rows = [json.loads(line) for line in _lines(file)]
    return _joined([f"{row['cluster']}\t{row['text'].strip()}" for row in rows])


def text_and_labels(data: Sequence[bytes]) -> bytes:
    """A file of texts and one of labels, joined line by line: label, tab, text without outer blanks, inner tabs made blanks.

    Raises ValueError where the two have different numbers of lines.
    """
    texts, labels = (_lines(file) for file in data)
    rows = [
        f"{label.strip()}\t{text.strip().replace(chr(9), ' ')}"
        for text, label in zip(texts, labels, strict=True)
    ]
    return _joined(rows)


def first_columns(columns: int, data: Sequence[bytes]) -> bytes:
    """The first so many columns of a table with tabs."""
    (file,) = data
    return _joined(
        [
            "\t".join(line.split("\t")[:columns])
            for line in file.decode("utf-8").removesuffix("\n").split("\n")
        ]
    )


def labelled_nli(data: Sequence[bytes]) -> bytes:
    """CSV with sent0, sent1, label out of zip archives as SNLI and MultiNLI have them: the pairs of each one's ``*_train.jsonl``, in
    their order. A pair without a gold label ("-") is left out, as SBERT and InferSent do.

    Raises DataDamaged for an archive without such a file.
    """
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(("sent0", "sent1", "label"))
    for packed in data:
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
                pairs = (json.loads(line) for line in lines)
                writer.writerows(
                    (pair["sentence1"], pair["sentence2"], pair["gold_label"])
                    for pair in pairs
                    if pair["gold_label"] != "-"
                )
    return table.getvalue().encode("utf-8")


CONVERSIONS: Mapping[str, Callable[[Sequence[bytes]], bytes]] = {
    "labelled lines": labelled_lines,
    "JSON lines": json_lines,
    "text and labels": text_and_labels,
    "first 2 columns": partial(first_columns, 2),
    "first 7 columns": partial(first_columns, 7),
    "labelled NLI": labelled_nli,
}


def _lines(data: bytes) -> list[str]:
    text = data.decode("utf-8-sig").replace("\r\n", "\n").removesuffix("\n")
    return text.split("\n")


def _joined(rows: Sequence[str]) -> bytes:
    return ("\n".join(rows) + "\n").encode("utf-8")
