"""Finds data sets in the user's folder, recognises their text form by checksum, and refuses what is incomplete or altered."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from bench.base.errors import DataDamaged, DataMissing, FetchFailed
from bench.data.sets.manifest import (
    ANY,
    OTHER,
    DataFile,
    DataSet,
    Found,
    damaged_file,
    data_sets,
    fetch_warning,
    recognise,
)
from bench.data.sets.sources import Later, SetFetcher, fetched_folder, sources_of

Problem = DataDamaged | DataMissing


@dataclass(frozen=True)
class Copy:
    """A complete, undamaged copy of (part of) a set."""

    place: Path
    form: str
    """"any" where the set has no text forms, else "tokenised", "raw" or "other-<hash>"."""
    sha256: str
    files: tuple[Found, ...]


@dataclass(frozen=True)
class State:
    """What ``bench data`` says of a set. ``status``: found, missing, damaged."""

    status: str
    forms: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


class DataFolder:
    """Where evaluation data and corpora are looked for: ``--data`` or ``BENCH_DATA`` (``None`` = the user gave nothing), then
    ``store``, what was fetched earlier. With a ``fetcher``, which fills the store, what is missing is fetched when it is opened,
    unless the user gave a folder: what is not in it is missing.
    """

    def __init__(
        self,
        root: Path | str | None,
        offline: bool = False,
        *,
        fetcher: SetFetcher | None = None,
        store: Path | str | None = "",
    ) -> None:
        self.root = Path(root).expanduser() if root is not None else None
        self.offline = offline  # nothing may be fetched
        self.fetcher = None if offline else fetcher
        store = fetched_folder() if store == "" else store
        self.store = Path(store) if store is not None else None

    @property
    def fetches(self) -> bool:
        """Whether a set that is missing is fetched when it is opened, or noted by a plan."""
        return self.fetcher is not None and (
            self.root is None or (self.later is not None and self.later.beside_root)
        )

    @property
    def later(self) -> Later | None:
        """Where a plan notes what it would fetch; None where it is no plan."""
        return self.fetcher if isinstance(self.fetcher, Later) else None

    def check_root(self) -> None:
        """Raises DataMissing where the user gave a folder that there is not."""
        if self.root is not None and not self.root.is_dir():
            raise DataMissing(
                f"the data folder {self.root} does not exist, or is no folder",
                f"check --data or BENCH_DATA; bench data fetch sts --data {self.root} makes and fills it",
            )

    @property
    def roots(self) -> tuple[Path, ...]:
        """The folders that exist, in the order in which they are looked in."""
        return tuple(
            root
            for root in dict.fromkeys([self.root, self.store])
            if root is not None and root.is_dir()
        )

    @property
    def as_it_is(self) -> DataFolder:
        """The same folders, for what would be nice to have and is not worth a download."""
        return DataFolder(self.root, self.offline, store=self.store)

    def copies(
        self, wanted: DataSet, files: tuple[DataFile, ...] | None = None
    ) -> tuple[list[Copy], list[Problem]]:
        """Every complete copy of these files of the set, and what is wrong with the others and where. Reads every byte."""
        copies: list[Copy] = []
        problems: list[Problem] = []
        for place in self._places(wanted, files):
            try:
                copies.append(_read_copy(wanted, files or wanted.files, place))
            except (DataDamaged, DataMissing) as problem:
                problems.append(problem)
        return copies, problems

    def open(
        self, wanted: DataSet, files: tuple[DataFile, ...] | None = None, *, text: str = ANY
    ) -> Copy:
        """The copy of these files in the form asked for ("any": whichever is complete, tokenised first).

        What is missing is fetched, where there is a fetcher. Raises DataDamaged where the copy that would serve is incomplete
        or altered, DataMissing where there is none and none could be fetched.
        """
        try:
            return self._open(wanted, files, text)
        except DataMissing as missing:
            if self._fetched(wanted, text, missing):
                return self._open(wanted, files, text)
            raise

    def file(self, place: str) -> Path:
        """A file by its place in the data folder, for a plugin's suite, whose data no manifest describes. Raises DataMissing."""
        if (path := self._find(place)) is not None:
            return path
        folders = " or ".join(str(root) for root in self.roots) or "any data folder"
        raise DataMissing(f"{place} is not in {folders}", "--data DIR, the folder that holds it")

    def _find(self, *places: str) -> Path | None:
        paths = (root / place for root in self.roots for place in places)
        return next((path for path in paths if path.is_file()), None)

    def corpus(self, file: str) -> Path | None:
        """A training file by its name, fetched where it is missing and a source is known; None where it is not to be had here.

        Raises DataMissing where only ``offline`` stands in the way, or where it could not be fetched.
        """
        for known in data_sets().values():
            if known.kind == "corpus" and known.files[0].path == file:
                return self._fetched_file(known, ("train",))
        return self._find(f"train/{file}")

    def vectors(self, wanted: DataSet) -> Path:
        """The file of a set of word vectors, fetched where it is missing. Raises DataMissing."""
        if (path := self._fetched_file(wanted, wanted.places)) is None:
            raise self._missing(wanted, ANY)
        return path

    def _fetched_file(self, wanted: DataSet, homes: Sequence[str]) -> Path | None:
        """The first file of a set in one of these folders, fetched where it is in none. Raises DataMissing."""
        file = wanted.files[0].path
        places = [f"{home}/{file}" for home in homes]
        if (path := self._find(*places)) is None:
            self._fetched(wanted, ANY, DataMissing(f"{wanted.name}: {file} is not on this machine"))
            path = self._find(*places)
        return path

    def _fetched(self, wanted: DataSet, text: str, missing: DataMissing) -> bool:
        """Whether the set was fetched now. Raises DataMissing with what to do elsewhere where that is forbidden."""
        if not sources_of(wanted, text):
            return False
        if self.fetcher is not None and self.fetches:
            try:
                self.fetcher.get(wanted, text)
            except FetchFailed as failure:
                raise DataMissing(f"{missing.message}; {failure.message}", failure.hint) from None
            return True
        if self.offline:
            raise DataMissing(
                f"{missing.message}; nothing is fetched (--offline, or HF_HUB_OFFLINE is set)",
                f"where there is a network: bench data fetch {wanted.name}{_form_option(wanted, text)} --data DIR; copy DIR here, then --data DIR",
                wanted.name,
            )
        return False

    def _open(self, wanted: DataSet, files: tuple[DataFile, ...] | None, text: str) -> Copy:
        copies, problems = self.copies(wanted, files)
        matching = [copy for copy in copies if text in (ANY, copy.form) or copy.form == ANY]
        if matching:
            order = {"tokenised": 0, ANY: 0, "raw": 2}
            return min(matching, key=lambda copy: order.get(copy.form, 1))
        # what is damaged matters more than what is there in another form, and that more than what is incomplete
        damaged = [problem for problem in problems if isinstance(problem, DataDamaged)]
        if damaged:
            raise damaged[0]
        if copies:
            form = copies[0].form
            there = f"{form} in {copies[0].files[0].path.parent}"
            use = form if form in wanted.forms else ANY
            raise other_form(wanted.name, text, there, use, self._get(wanted, text))
        if problems:
            raise problems[0]
        raise self._missing(wanted, text)

    def look(self, wanted: DataSet) -> State:
        """Quick: which files are there, by their names; a form is known by its folder."""
        places: list[Path] = []
        problems: list[str] = []
        for place in self._places(wanted, None):
            absent = [file.path for file in wanted.files if not (place / file.path).is_file()]
            many = f"{len(absent)} of {len(wanted.files)} files missing in {place}"
            if absent:
                problems.append(f"{many}, first {absent[0]}")
            else:
                places.append(place)
        names = [place.as_posix() for place in places]
        forms = [
            form
            for form, home in wanted.homes.items()
            if any(name.endswith(f"/{home}") for name in names)
        ]
        return State("found" if places else "missing", tuple(forms), tuple(names), tuple(problems))

    def check(self, wanted: DataSet) -> State:
        """Thorough: reads every byte of every copy."""
        copies, problems = self.copies(wanted)
        first = [
            checked_file.path
            for copy in copies
            for checked_file in copy.files
            if checked_file.file.first_use
        ]
        status = "found" if copies else "missing"
        if any(isinstance(problem, DataDamaged) for problem in problems):
            status = "damaged"
        return State(
            status,
            tuple(dict.fromkeys(copy.form for copy in copies)),
            tuple(str(copy.place) for copy in copies),
            (*(problem.message for problem in problems), *filter(None, map(fetch_warning, first))),
        )

    def entries(self, wanted: DataSet) -> list[tuple[str, int, int]]:
        """(path, bytes, time of the last change in ns) of every file of the set in every place, sorted; reads none of them."""
        paths = [place / file.path for place in self._places(wanted, None) for file in wanted.files]
        stats = [(path, path.stat()) for path in paths if path.is_file()]
        return sorted(
            (str(path.resolve()), stat.st_size, max(stat.st_mtime_ns, stat.st_ctime_ns))
            for path, stat in stats
        )

    def _places(self, wanted: DataSet, files: tuple[DataFile, ...] | None) -> list[Path]:
        """Folders that hold at least one of the files."""
        roots = (Path(str(resources.files("bench"))),) if wanted.kind == "built-in" else self.roots
        places: dict[Path, Path] = {}  # one folder may be reached by two names
        for root in roots:
            for name in wanted.places:
                place = root / name
                if any((place / file.path).exists() for file in files or wanted.files):
                    places.setdefault(place.resolve(), place)
        return list(places.values())

    def _missing(self, wanted: DataSet, text: str) -> DataMissing:
        hint = f"to get it: {self._get(wanted, text)}"
        if self.root is None:
            problem = "no data folder was given"
            return DataMissing(
                f"{wanted.name}: {problem}", f"--data DIR or BENCH_DATA; {hint}", wanted.name
            )
        homes = [wanted.homes[text]] if text in wanted.homes else list(wanted.places)
        where = " or ".join(f"{home}/{wanted.files[0].path}".removeprefix("./") for home in homes)
        problem = f"not found in {self.root}; looked for {where}"
        return DataMissing(f"{wanted.name}: {problem}", hint, wanted.name)

    def _get(self, wanted: DataSet, text: str) -> str:
        """What gets a set in a form: the command, where there is a source."""
        if not sources_of(wanted, text):
            return wanted.get
        return f"bench data fetch {wanted.name}{_form_option(wanted, text)}{f' --data {self.root}' if self.root else ''}"


def other_form(name: str, text: str, there: str, use: str, get: str) -> DataMissing:
    """The error where only another text form is ``there`` than ``text``; ``use``: by which ``--text`` scores it."""
    hint = f"--text {use} scores that form (kept in a column of its own); to get the {text} form: {get}"
    return DataMissing(f"{name}: no {text} text found, only {there}", hint)


def _form_option(wanted: DataSet, text: str) -> str:
    return f" --text {text}" if text in wanted.forms and text != "tokenised" else ""


def _read_copy(wanted: DataSet, files: tuple[DataFile, ...], place: Path) -> Copy:
    for file in files:
        if not (place / file.path).is_file():
            problem = f"{wanted.name}: {place / file.path} is missing; the set is incomplete"
            raise DataMissing(problem, f"to get it: {wanted.get}")
    recognised = tuple(recognise(wanted, file, place / file.path) for file in files)
    together = hashlib.sha256("\n".join(file.sha256 for file in recognised).encode()).hexdigest()
    form = _form_of(wanted, [file for file in recognised if file.file.varies])
    return Copy(place, form, together, recognised)


def _form_of(wanted: DataSet, texts: list[Found]) -> str:
    """The form of a set by its files that have one. Raises DataDamaged where they have two."""
    forms = {text.form for text in texts}
    if not texts:
        return ANY
    if OTHER in forms:
        return f"{OTHER}-{hashlib.sha256(''.join(text.sha256 for text in texts).encode()).hexdigest()[:8]}"
    if len(forms) > 1:
        odd = next(text for text in texts if text.form != texts[0].form)
        raise damaged_file(
            wanted, f"{texts[0].path} is {texts[0].form}, {odd.path.name} is {odd.form}"
        )
    return forms.pop()
