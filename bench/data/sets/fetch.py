"""Fetches data sets into a data folder: checked, and each file is complete or absent."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from bench.base.errors import DataDamaged, DataMissing, FetchFailed
from bench.base.files import write_whole
from bench.base.locks import lock
from bench.data.fetching import DISK_HINT, Say, download, silent, site
from bench.data.hub import download_from_hub
from bench.data.sets import (
    ANY,
    DataFile,
    DataFolder,
    DataSet,
    Source,
    SourcePart,
    count_rows,
    data_set,
    recognise,
    sources_of,
    unexpected_rows,
)
from bench.data.sets.conversions import CONVERSIONS
from bench.data.sets.first_use import NOTE, note_origin
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

    def get(self, wanted: DataSet, text: str = ANY) -> None:
        """Fetch a set in a text form, from the first source that has it.

        "any" is the tokenised form, if there are forms. Raises DataMissing if it has no source,
        FetchFailed or DataDamaged if no source delivered it.
        """
        known = sources_of(wanted, text)
        if not known:
            raise DataMissing(f"{wanted.name}: no source is known to fetch it from", wanted.get)
        problems: list[FetchFailed | DataDamaged] = []
        for source in known:
            for problem in problems[-1:]:
                self.say(f"{problem.message}; next source: {source.where}")
            try:
                self._from(source, wanted)
            except (FetchFailed, DataDamaged) as problem:
                problems.append(problem)
            if self.has(wanted, text):
                return
        if not problems:
            raise DataDamaged(f"{wanted.name}: no source has the expected files", wanted.get)
        first = problems[0]
        raise type(first)(f"{wanted.name}: {first.message}", first.hint)

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
                if all(_is_right(wanted, file, place, source) for file in wanted.files):
                    return  # another process was faster
                self.say(f"fetching {wanted.name} from {source.where} into {place}")
                try:
                    if source.archive:
                        made = self._from_archive(source, source.archive, place, work)
                    else:
                        made = self._one_by_one(source, _missing(wanted, place, source), work)
                except DataDamaged:  # what arrived whole stays only if the network failed
                    shutil.rmtree(work, ignore_errors=True)
                    raise
                for path, written in made.items():
                    (place / path).parent.mkdir(parents=True, exist_ok=True)
                    os.replace(written, place / path)
                shutil.rmtree(work, ignore_errors=True)
        except OSError as error:
            raise FetchFailed(
                f"{place} cannot be written ({error.strerror or error})", DISK_HINT
            ) from None

    def _one_by_one(
        self, source: Source, items: Sequence[WantedFile], work: Path
    ) -> dict[str, Path]:
        """Return our path -> the checked file, for files that the source has one by one.

        Files of an interrupted try are used.
        """
        made: dict[str, Path] = {}
        for item in items:
            form = item.file.forms.get(source.form) or item.file.forms[ANY]
            expected: Sequence[str | None] = item.part.sha256 or [form.sha256 or None]
            contents: dict[str, Path] = {}
            origin = ""
            for path, sha256 in zip(item.part.paths, expected, strict=True):
                contents[path] = work / quote(path, safe="")
                origin = self._download(source, path, contents[path], sha256)
            written = _made(source, item, contents, work)
            if item.file.first_use:
                self._look_at_rows(item, written)
                if origin:
                    made[item.file.path + NOTE] = note_origin(written, origin)
            made[item.file.path] = written
        return made

    def _from_archive(
        self, source: Source, archive: str, place: Path, work: Path
    ) -> dict[str, Path]:
        """Return our path -> the checked file, for files of all sets in an archive.

        What is different there is left out, with a line.
        """
        items: list[WantedFile] = []
        for name in source.sets:
            items += _missing(data_set(name), place, source)
        packed = work / quote(archive, safe="")
        self._download(source, archive, packed, None)
        contents = {item.part.paths[0]: work / "unpacked" / item.file.path for item in items}

        def target(name: str) -> Path | None:
            for path, to in contents.items():
                if f"/{name}".endswith(f"/{path}"):
                    return to
            return None

        unpack(packed, target, most_bytes=source.most_bytes)
        made: dict[str, Path] = {}
        for item in items:
            try:
                made[item.file.path] = _made(source, item, contents, work)
            except DataDamaged as problem:
                self.say(f"{source.name} has a different {item.file.path}: {problem.message}")
        return made

    def _download(self, source: Source, path: str, to: Path, sha256: str | None) -> str:
        """Fetch a file of a source, and return its address with the commit, "" outside the hub."""
        where = site(source.site, source.repo, source.revision, path)
        if not where.repo:
            download(where.url, to, sha256=sha256, most_bytes=source.most_bytes)
            return ""
        commit = download_from_hub(where, to)
        return f"hf://datasets/{where.repo}@{commit}/{path}"

    def _look_at_rows(self, item: WantedFile, path: Path) -> None:
        """Warn of another number of rows than the authors'."""
        unexpected = unexpected_rows(item.file, count_rows(item.wanted, item.file, path))
        if unexpected:
            self.say(
                f"warning: {item.wanted.name}: {item.file.path} has {unexpected}; it is used as "
                "it is"
            )


def _missing(wanted: DataSet, place: Path, source: Source) -> list[WantedFile]:
    """Return the files of a set that a source has and that are not right in ``place``."""
    items = []
    for file in wanted.files:
        part = source.part(file)
        if part is not None and not _is_right(wanted, file, place, source):
            items.append(WantedFile(wanted, file, part))
    return items


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


def _is_right(wanted: DataSet, file: DataFile, place: Path, source: Source) -> bool:
    """Return True if a file is here already, complete and in the form of the source."""
    path = place / file.path
    with contextlib.suppress(DataDamaged, DataMissing):
        return path.is_file() and recognise(wanted, file, path).form in (ANY, source.form)
    return False
