"""Gets data sets from their sources into a data folder: checked, each file whole or not there."""

from __future__ import annotations

import contextlib
import csv
import datetime
import io
import json
import os
import shutil
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from bench.base.errors import DataDamaged, DataMissing, FetchFailed
from bench.base.files import file_sha256, lock, write_whole
from bench.data.fetching import (
    Quiet,
    Report,
    Site,
    dataset_info,
    download,
    free_bytes,
    retry,
    site,
    unpack,
)
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
READY = "ready"
"""Below it: what is checked and only waits for the rest of its set."""


class Fetcher:
    """Fills one data folder. What is there and whole is not fetched again; two processes that want the same take turns."""

    def __init__(
        self,
        store: Path,
        report: Report | None = None,
        *,
        sleep: Callable[[float], None] = time.sleep,
        free: Callable[[Path], int] = free_bytes,
    ) -> None:
        self.store, self.report, self._sleep, self._free = store, report or Quiet(), sleep, free
        self._announced: set[str] = set()  # sources, each named once

    def get(self, wanted: DataSet, text: str = ANY) -> None:
        """The set in a text form ("any": tokenised where there are forms), from the first source that has it.

        Raises DataMissing where no source is known, FetchFailed or DataDamaged where none of them gave it.
        """
        order = sources_of(wanted, text)
        if not order:
            raise DataMissing(
                f"{wanted.name}: there is no source that it could be fetched from", wanted.get
            )
        problems: list[FetchFailed | DataDamaged] = []
        for source in order:
            if self.has(wanted, text):
                return
            try:
                self._from(source, wanted)
            except (FetchFailed, DataDamaged) as problem:
                problems.append(problem)
                if source is not order[-1]:
                    self.report.say(f"not from {source.where}: {problem.message}")
        if not self.has(wanted, text):
            if problems:
                raise type(problems[0])(
                    f"{wanted.name}: {problems[0].message}", problems[0].hint
                ) from None
            raise DataMissing(f"{wanted.name}: its sources do not have the {text} text", wanted.get)

    def has(self, wanted: DataSet, text: str = ANY) -> bool:
        """Whether the folder holds a whole copy in that form. Reads every byte."""
        copies, _ = DataFolder(self.store, store=None).copies(wanted)
        return any(text == ANY or copy.form in (text, ANY) for copy in copies)

    def _from(self, source: Source, wanted: DataSet) -> None:
        place, work = self.store / source.into, self.store / WORK / source.name
        try:
            work.mkdir(parents=True, exist_ok=True)
            with lock(work.with_suffix(".lock")):
                if all((place / file.path).is_file() for file in wanted.files) and self.has(wanted):
                    return  # another process was faster
                if source.name not in self._announced:
                    self._announced.add(source.name)
                    self.report.say(f"fetching from {source.where} into {self.store / source.into}")
                receipt = read_receipt(receipt_path(place, source.name))
                revision = receipt.revision if receipt else self._revision(source)
                fetch = self._fetch_archive if source.archive else self._fetch_files
                downloads = fetch(
                    source, wanted, revision, work, receipt.downloads if receipt else {}
                )
                now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
                url = (
                    site(source.site, source.repo, revision, source.archive or "").url
                    if source.repo
                    else source.where
                )
                write_receipt(
                    receipt_path(place, source.name),
                    Receipt(
                        source=source.name,
                        url=url,
                        revision=revision,
                        fetched=now,
                        downloads=downloads,
                    ),
                    work,
                )
                for left in [
                    path for path in work.iterdir() if path.name != READY
                ]:  # before: a process that is killed between the last
                    shutil.rmtree(
                        left
                    ) if left.is_dir() else left.unlink()  # move and the end would leave it for ever
                for ready in [path for path in (work / READY).rglob("*") if path.is_file()]:
                    _move(ready, place / ready.relative_to(work / READY))
                shutil.rmtree(work, ignore_errors=True)
        except OSError as error:
            raise FetchFailed(
                f"{place} cannot be written ({error.strerror or error})",
                "check the disk and the folder's permissions",
            ) from None

    def _revision(self, source: Source) -> str:
        if source.site != "hub" or source.pinned:
            return source.revision
        return str(
            retry(
                lambda: dataset_info(source.repo, source.revision).sha,
                source.name,
                self.report,
                self._sleep,
            )
        )

    def _download(self, where: Site, to: Path, sha256: str | None, most_bytes: int) -> str:
        return download(
            where,
            to,
            name=where.url.rsplit("/", 1)[-1],
            sha256=sha256,
            most_bytes=most_bytes,
            report=self.report,
            sleep=self._sleep,
            free=self._free,
        )

    def _fetch_files(
        self, source: Source, wanted: DataSet, revision: str, work: Path, known: Mapping[str, str]
    ) -> dict[str, str]:
        """Every file of the set that is missing, into ``work``/READY. Gives path in the source -> sha256."""
        downloads: dict[str, str] = {}
        for file in wanted.files:
            part = source.part(file)
            if part is None or _right(
                wanted, file, self.store / source.into / file.path, source.form
            ):
                continue
            if not _right(wanted, file, work / READY / file.path, source.form):
                downloads |= self._fetch_file(source, wanted, file, part, revision, work, known)
            elif part.conversion == "as is":
                downloads[part.paths[0]] = file_sha256(work / READY / file.path)
        return downloads

    def _fetch_file(
        self,
        source: Source,
        wanted: DataSet,
        file: DataFile,
        part: Part,
        revision: str,
        work: Path,
        known: Mapping[str, str],
    ) -> dict[str, str]:
        """One file of ours, fetched, converted and checked."""
        expected = file.forms.get(source.form) or file.forms[ANY]
        checksums = part.sha256 or (
            known.get(part.paths[0]) if file.first_use else expected.sha256,
        )
        most = (
            source.most_bytes if file.first_use else 2 * (part.bytes or expected.bytes) + 1_000_000
        )
        contents, downloads = [work / f"{i}-{file.name}" for i in range(len(part.paths))], {}
        for path, to, sha256 in zip(part.paths, contents, checksums, strict=True):
            downloads[path] = self._download(
                site(source.site, source.repo, revision, path), to, sha256, most
            )
        if part.conversion == "as is":
            arrived = contents[0]
        else:
            arrived = work / f"converted-{file.name}"
            write_whole(
                arrived,
                CONVERSIONS[part.conversion]([content.read_bytes() for content in contents]),
            )
        recognise(wanted, file, arrived)
        if not file.first_use and file_sha256(arrived) != expected.sha256:
            raise DataDamaged(
                f"{wanted.name}: {file.name} from {source.name} is not the {source.form} text that is known",
                None,
            )
        if file.first_use and part.conversion != "as is":
            downloads[file.path] = file_sha256(
                arrived
            )  # of what was built here: later copies are held against it
        _move(arrived, work / READY / file.path)
        return downloads

    def _fetch_archive(
        self, source: Source, wanted: DataSet, revision: str, work: Path, known: Mapping[str, str]
    ) -> dict[str, str]:
        """Every file of every set that the archive has and that is what the set's manifest knows, into ``work``/READY."""
        assert source.archive is not None
        where, packed = (
            site(source.site, source.repo, revision, source.archive),
            work / source.archive,
        )
        digest = self._download(where, packed, known.get(source.archive), source.most_bytes)
        files = [
            (set_, file, part)
            for set_ in map(data_set, source.sets)
            for file in set_.files
            if (part := source.part(file))
        ]
        ends = {part.paths[0]: file.path for _, file, part in files}
        unpacked = work / "unpacked"

        def target(name: str) -> Path | None:
            end = next((path for path in ends if name == path or name.endswith("/" + path)), None)
            return unpacked / ends[end] if end else None

        unpack(packed, target, most_bytes=source.most_bytes)
        for set_, file, _ in files:
            new = unpacked / file.path
            if not new.exists():
                self.report.say(f"{set_.name}: {source.name} has no {file.path}")
            elif not _right(set_, file, self.store / source.into / file.path, source.form):
                try:
                    recognise(set_, file, new)
                    _move(new, work / READY / file.path)
                except DataDamaged as problem:
                    self.report.say(f"{source.name} has another {file.path}: {problem.message}")
        return {source.archive: digest}


def _right(wanted: DataSet, file: DataFile, path: Path, form: str) -> bool:
    """Whether a file is there already, whole and in that form."""
    if not path.is_file():
        return False
    with contextlib.suppress(DataDamaged):
        return recognise(wanted, file, path).form in (ANY, form)
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
