"""Fetches data sets into a data folder: checked, and each file is complete or absent."""

from __future__ import annotations

import contextlib
import datetime
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from bench.base.errors import DataDamaged, DataMissing, FetchFailed
from bench.base.files import write_whole
from bench.base.hashes import file_sha256
from bench.base.locks import lock
from bench.base.text import plural
from bench.data.fetching import Say, download, repository_info, silent, site
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
from bench.data.sets.conversions import CONVERSIONS
from bench.data.unpacking import unpack

WORK = ".fetching"
"""Folder for unfinished downloads inside the data folder, so that a finished file is only renamed.
"""


class WantedFile(NamedTuple):
    """One file of ours that is not here yet, and how it comes out of a source."""

    wanted: DataSet
    file: DataFile
    part: SourcePart


class Fetcher:
    """Fills one data folder.

    A set that is here and complete is not fetched again; two processes that fetch the same one take
    turns.
    """

    def __init__(self, store: Path, say: Say = silent) -> None:
        self.store, self.say = store, say
        # sources with an archive that was fetched: its good files are here
        self._taken = set[str]()

    def get(self, wanted: DataSet, text: str = ANY) -> None:
        """Fetch a set in a text form, from the first source that has it.

        "any" is the tokenised form, if there are forms. Raises DataMissing if it has no source,
        FetchFailed or DataDamaged if no source delivered it.
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
        """Return True if the folder has a complete copy in that form. Reads every byte."""
        copies, _ = DataFolder(self.store, store=None).copies(wanted)
        return any(text == ANY or copy.form in (text, ANY) for copy in copies)

    def _from(self, source: Source, wanted: DataSet) -> None:
        """Fetch the files of a set that a source has and that are not here yet.

        From an archive the files of all its sets are taken. All files are checked before the first
        one is moved to its place.
        """
        place = self.store / source.into
        work = self.store / WORK / source.name
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
        sets = [wanted]
        if source.archive:  # which has other sets, too
            sets = [data_set(name) for name in source.sets]
        items = []
        for known_set in sets:
            for file in known_set.files:
                part = source.part(file)
                if part and not _is_right(known_set, file, place / file.path, source.form):
                    named = self._named(source, revision, part)
                    items.append(WantedFile(known_set, file, named))
        fetch_files = self._unpack if source.archive else self._download
        contents, downloads = fetch_files(source, revision, known, items, work)
        made: dict[str, Path] = {}
        warnings: dict[str, str] = {}
        for item in items:
            path = item.file.path
            expected = item.file.rows
            try:
                made[path] = _made(source, item, contents, work)
            except DataDamaged as problem:
                if not source.archive:
                    raise
                self.say(f"{source.name} has a different {path}: {problem.message}")
                continue
            if item.file.first_use:
                downloads[path] = file_sha256(made[path])  # later copies are compared with it
                rows = count_rows(item.wanted, item.file, made[path])
                if rows != expected:
                    warnings[path] = f"{plural(rows, 'row')}, where {expected:,} were expected"
                    self.say(
                        f"warning: {item.wanted.name}: {path} has {warnings[path]}; it is used as "
                        "it is"
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
        for path, written in made.items():
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            os.replace(written, place / path)

    def _listing(self, source: Source, revision: str) -> Any:
        return repository_info(site("hub", source.repo, revision, ""), self.say)

    def _named(self, source: Source, revision: str, part: SourcePart) -> SourcePart:
        """Return the part with ``*`` in the names of its files replaced."""
        if "*" not in part.paths[0]:
            return part
        names = [file.rfilename for file in self._listing(source, revision).siblings or []]
        paths = sorted(name for name in names if fnmatch(name, part.paths[0]))
        if not paths:
            raise FetchFailed(f"{source.where} has no {part.paths[0]}", None)
        return replace(part, paths=tuple(paths))

    def _download(
        self,
        source: Source,
        revision: str,
        known: Mapping[str, str],
        items: Sequence[WantedFile],
        work: Path,
    ) -> tuple[dict[str, Path], dict[str, str]]:
        """Return the source's files, one by one: path in the source -> our copy, and its sha256.

        Files of an interrupted try are used.
        """
        contents: dict[str, Path] = {}
        downloads: dict[str, str] = {}
        for _, file, part in items:
            form = file.forms.get(source.form) or file.forms[ANY]
            expected: list[str | None] = [*part.sha256]
            if not expected:
                for path in part.paths:
                    expected.append(known.get(path) if file.first_use else form.sha256)
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
        items: Sequence[WantedFile],
        work: Path,
    ) -> tuple[dict[str, Path], dict[str, str]]:
        """Do what :meth:`_download` does, from the source's archive; returns also its sha256."""
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
            for path, to in places.items():
                if f"/{name}".endswith(f"/{path}"):
                    return to
            return None

        unpack(packed, target, most_bytes=source.most_bytes)
        return places, {source.archive: digest}


def _made(source: Source, item: WantedFile, contents: Mapping[str, Path], work: Path) -> Path:
    """Make our file of the source's files, and check it. Raises DataDamaged."""
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
    """Return True if a file is here already, complete and in that form."""
    with contextlib.suppress(DataDamaged):
        return path.is_file() and recognise(wanted, file, path).form in (ANY, form)
    return False
