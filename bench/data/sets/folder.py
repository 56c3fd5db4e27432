"""The data folder: finds sets, and refuses incomplete and altered ones."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from shlex import quote

from bench.base.cache import default_cache
from bench.base.errors import DataDamaged, DataMissing, FetchFailed
from bench.base.files import expand_home
from bench.data.sets.first_use import count_rows, unexpected_rows
from bench.data.sets.forms import Found, recognise
from bench.data.sets.manifest import (
    ANY,
    RAW,
    TOKENISED,
    DataFile,
    DataSet,
    damaged_file,
    data_sets,
)
from bench.data.sets.pending import Later, SetFetcher
from bench.data.sets.sources import sources_of

Problem = DataDamaged | DataMissing


def fetched_folder() -> Path:
    """Return the folder for fetched data: below $BENCH_CACHE, else ~/.cache/sentence-bench.

    It is used unless the user names another one.
    """
    return default_cache() / "data"


@dataclass(frozen=True)
class Copy:
    """A complete, undamaged copy of a set, or of some of its files."""

    place: Path
    form: str
    """"any" if the set has no text forms, else "tokenised" or "raw"."""
    sha256: str
    files: tuple[Found, ...]


@dataclass(frozen=True)
class State:
    """The state of a set as ``bench data`` shows it. ``status``: found, missing, damaged."""

    status: str
    forms: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


class DataFolder:
    """The folders with evaluation data and corpora.

    First ``root``, from ``--data`` or ``BENCH_DATA`` (None if neither was set), then ``store``, the
    folder of fetched data. A ``fetcher`` fills the store: a set that is not there is fetched when
    it is opened, unless the user named a folder, which nothing is fetched into.
    """

    def __init__(
        self,
        root: Path | str | None,
        offline: bool = False,
        *,
        fetcher: SetFetcher | None = None,
        store: Path | str | None = "",
    ) -> None:
        self.root = expand_home(root) if root is not None else None
        self.offline = offline  # nothing may be fetched
        self.fetcher = None if offline else fetcher
        self.store = Path(store or fetched_folder()) if store is not None else None

    @property
    def later(self) -> Later | None:
        """The notes of a plan about missing data; None outside a plan."""
        return self.fetcher if isinstance(self.fetcher, Later) else None

    @property
    def only_looks(self) -> bool:
        """True for a plan that is shown and not run."""
        return self.later is not None and self.later.beside_root

    def check_root(self) -> None:
        """Raise DataMissing if the user named a folder that does not exist."""
        if self.root is not None and not self.root.is_dir():
            raise DataMissing(
                f"the data folder {self.root} does not exist, or is not a folder",
                f"check --data or BENCH_DATA; bench data fetch sts --data {quote(str(self.root))} "
                "creates and fills it",
            )

    @property
    def roots(self) -> tuple[Path, ...]:
        """The folders that exist, in the order of the search."""
        found = []
        for root in dict.fromkeys([self.root, self.store]):
            if root is not None and root.is_dir():
                found.append(root)
        return tuple(found)

    @property
    def as_it_is(self) -> DataFolder:
        """The same folders, without fetching: for optional data that is not worth a download."""
        return DataFolder(self.root, self.offline, store=self.store)

    def copies(
        self, wanted: DataSet, files: tuple[DataFile, ...] | None = None
    ) -> tuple[list[Copy], list[Problem]]:
        """Return every complete copy of these files of the set, and the problems of the others.

        Every byte is read.
        """
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
        """Return the copy of these files in the requested form.

        "any" is whichever form is complete, tokenised first. A missing set is fetched if there is a
        fetcher. Raises DataDamaged if the copy that would serve is incomplete or altered,
        DataMissing if there is none and none could be fetched.
        """
        try:
            return self._open(wanted, files, text)
        except DataMissing as missing:
            if self._fetched(wanted, text, missing):
                return self._open(wanted, files, text)
            raise

    def file(self, place: str) -> Path:
        """Return a file by its path in the data folder. Raises DataMissing.

        It is for suites of plugins, which have no manifest.
        """
        path = self._find(place)
        if path is not None:
            return path
        folders = " or ".join(str(root) for root in self.roots) or "any data folder"
        raise DataMissing(f"{place} is not in {folders}", "--data DIR, the folder that has it")

    def _find(self, *places: str) -> Path | None:
        for root in self.roots:
            for place in places:
                if (root / place).is_file():
                    return root / place
        return None

    def corpus(self, file: str) -> Path | None:
        """Return a training file by its name; None if it is not available here.

        It is fetched if it is missing and has a source. Raises DataMissing if only ``offline``
        prevents that, or if it could not be fetched.
        """
        for known in data_sets().values():
            if known.kind == "corpus" and known.files[0].path == file:
                return self._fetched_file(known)
        return self._find(f"train/{file}")

    def vectors(self, wanted: DataSet) -> Path:
        """Return the file of a set of word vectors, fetched if missing. Raises DataMissing."""
        path = self._fetched_file(wanted)
        if path is None:
            raise self._missing(wanted, ANY)
        return path

    def _fetched_file(self, wanted: DataSet) -> Path | None:
        """Return the first file of a set, fetched if it is missing. Raises DataMissing."""
        file = wanted.files[0].path
        places = [f"{home}/{file}" for home in wanted.places]
        path = self._find(*places)
        if path is not None:
            return path
        self._fetched(wanted, ANY, DataMissing(f"{wanted.name}: {file} is not on this machine"))
        return self._find(*places)

    def _fetched(self, wanted: DataSet, text: str, missing: DataMissing) -> bool:
        """Fetch a set if that is possible; return True if it was fetched.

        Raises DataMissing if fetching is forbidden; its hint is for a machine with a network.
        """
        if not sources_of(wanted, text):
            return False
        if self.offline:
            raise DataMissing(
                f"{missing.message}; nothing is fetched (--offline, or HF_HUB_OFFLINE is set)",
                "on a machine with a network: bench data fetch "
                f"{wanted.name}{_form_option(wanted, text)} "
                "--data DIR; copy DIR here, then --data DIR",
                wanted.name,
            )
        # nothing is fetched into a folder that the user named, but a plan may note what is missing
        if self.fetcher is None or (self.root and not self.only_looks):
            return False
        try:
            self.fetcher.get(wanted, text)
        except FetchFailed as failure:
            raise DataMissing(f"{missing.message}; {failure.message}", failure.hint) from None
        return True

    def _open(self, wanted: DataSet, files: tuple[DataFile, ...] | None, text: str) -> Copy:
        copies, problems = self.copies(wanted, files)
        matching = [copy for copy in copies if text in (ANY, copy.form) or copy.form == ANY]
        if matching:
            return min(matching, key=_preference)
        # a damaged copy matters more than one in another form, and that more than an incomplete one
        for problem in problems:
            if isinstance(problem, DataDamaged):
                raise problem
        if copies:
            raise DataMissing(
                f"{wanted.name}: no {text} text found, only {copies[0].form} in "
                f"{copies[0].files[0].path.parent}",
                f"to get the {text} text: {self._get(wanted, text)}; raw texts have protocols of "
                f"their own: bench suites {wanted.suites[0]}",
                wanted.name,
            )
        raise problems[0] if problems else self._missing(wanted, text)

    def look(self, wanted: DataSet) -> State:
        """Look which files are there, by their names alone; a form is recognised by its folder."""
        places: list[str] = []
        problems: list[str] = []
        for place in self._places(wanted, None):
            absent = [file.path for file in wanted.files if not (place / file.path).is_file()]
            if absent:
                problems.append(
                    f"{len(absent)} of {len(wanted.files)} files missing in {place}, first "
                    f"{absent[0]}"
                )
            else:
                places.append(place.as_posix())
        forms = []
        for form, home in wanted.homes.items():
            if any(place.endswith(f"/{home}") for place in places):
                forms.append(form)
        status = "found" if places else "missing"
        return State(status, tuple(forms), tuple(places), tuple(problems))

    def check(self, wanted: DataSet) -> State:
        """Check a set thoroughly: read every byte of every copy."""
        copies, problems = self.copies(wanted)
        messages = [problem.message for problem in problems]
        for copy in copies:
            for found in copy.files:
                if found.file.first_use:
                    rows = count_rows(wanted, found.file, found.path)
                    messages += filter(None, [unexpected_rows(found.file, rows)])
        status = "found" if copies else "missing"
        if any(isinstance(problem, DataDamaged) for problem in problems):
            status = "damaged"
        return State(
            status,
            tuple(dict.fromkeys(copy.form for copy in copies)),
            tuple(str(copy.place) for copy in copies),
            tuple(messages),
        )

    def entries(self, wanted: DataSet) -> list[tuple[str, int, int]]:
        """Return (path, bytes, time of the last change in ns) of every file of the set, sorted.

        Files of every place are among them; none is read.
        """
        entries = []
        for place in self._places(wanted, None):
            for file in wanted.files:
                path = place / file.path
                if path.is_file():
                    stat = path.stat()
                    changed = max(stat.st_mtime_ns, stat.st_ctime_ns)
                    entries.append((str(path.resolve()), stat.st_size, changed))
        return sorted(entries)

    def _places(self, wanted: DataSet, files: tuple[DataFile, ...] | None) -> list[Path]:
        """Return the folders that have at least one of the files."""
        roots = self.roots
        if wanted.kind == "built-in":
            roots = (Path(str(resources.files("bench"))),)
        places: dict[Path, Path] = {}  # one folder may have two names
        for root in roots:
            for name in wanted.places:
                place = root / name
                if any((place / file.path).exists() for file in files or wanted.files):
                    places.setdefault(place.resolve(), place)
        return list(places.values())

    def _missing(self, wanted: DataSet, text: str) -> DataMissing:
        hint = f"to get it: {self._get(wanted, text)}"
        if self.root is None:
            return DataMissing(
                f"{wanted.name}: no data folder was given",
                f"--data DIR or BENCH_DATA; {hint}",
                wanted.name,
            )
        homes: Sequence[str] = wanted.places
        if text in wanted.homes:
            homes = [wanted.homes[text]]
        files = [f"{home}/{wanted.files[0].path}".removeprefix("./") for home in homes]
        return DataMissing(
            f"{wanted.name}: not found in {self.root}; looked for {' or '.join(files)}",
            hint,
            wanted.name,
        )

    def _get(self, wanted: DataSet, text: str) -> str:
        """Return the command that fetches a set in a form; without a source, what else to do."""
        if not sources_of(wanted, text):
            return wanted.get
        command = f"bench data fetch {wanted.name}{_form_option(wanted, text)}"
        return f"{command} --data {quote(str(self.root))}" if self.root else command


def _preference(copy: Copy) -> bool:
    """Return the key to sort copies by if any form will do: tokenised first, raw last."""
    return copy.form == RAW


def _form_option(wanted: DataSet, text: str) -> str:
    return f" --text {text}" if text in wanted.forms and text != TOKENISED else ""


def _read_copy(wanted: DataSet, files: tuple[DataFile, ...], place: Path) -> Copy:
    """Read and check the files of a set in one folder.

    Raises DataMissing for an incomplete copy, DataDamaged for an altered one.
    """
    for file in files:
        if not (place / file.path).is_file():
            raise DataMissing(
                f"{wanted.name}: {place / file.path} is missing; the set is incomplete",
                f"to get it: {wanted.get}",
            )
    found = tuple(recognise(wanted, file, place / file.path) for file in files)
    together = hashlib.sha256("\n".join(file.sha256 for file in found).encode()).hexdigest()
    form = _form_of(wanted, [file for file in found if file.form != ANY])
    return Copy(place, form, together, found)


def _form_of(wanted: DataSet, texts: list[Found]) -> str:
    """Return the form of a set, from its files that have a form.

    Raises DataDamaged if they have two.
    """
    forms = {text.form for text in texts}
    if len(forms) > 1:
        odd = next(text for text in texts if text.form != texts[0].form)
        raise damaged_file(
            wanted, f"{texts[0].path} is {texts[0].form}, {odd.path.name} is {odd.form}"
        )
    return forms.pop() if forms else ANY
