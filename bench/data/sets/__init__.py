"""Evaluation data and corpora: what there is, where it can be fetched from, where it lies, and whether it is whole.

``manifests/`` has the data sets as JSON, a file per collection; the numbers in it are written by ``python tools/make_manifest.py``,
the rest by hand. A file of a set may exist in several text forms (``raw``, ``tokenised``); where its bytes are the same in all, or
there is only one, the form is called ``any``. Three hashes are kept of a file:

    sha256      of its bytes, as sha256sum prints it (for packed files: of what is inside)
    sha256_lf   the same with CRLF line ends written as LF; only where the original has CRLF
    content     of its cells, lower-cased, without white space and control characters: equal in every tokenisation of one text

``sources.json`` has the sources. A source is a set of files at one site and one revision: some files of some data sets, one by
one or in an archive, with the conversion that each needs. What arrives is checked against the manifests' checksums. If nobody could
see the source when it was written down, its ``note`` says "trust on first use": the first file that arrives is recorded, and later
ones are compared with it.
"""

from __future__ import annotations

import csv
import functools
import hashlib
import json
import lzma
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec
from msgspec import Struct

from bench.base.cache import default_cache
from bench.base.errors import BenchError, DataDamaged, DataMissing, FetchFailed, UnknownName
from bench.base.files import write_whole
from bench.base.hashes import file_sha256
from bench.data.fetching import site

ANY = "any"

# Names of corpora on the command line and in recipes, apart from names of files.
TARGET = "target"  # all sentences that are scored
STSB_TRAIN = "stsb-train"  # the pairs of STS-B's train split with their scores, 0 to 1
MADE_HERE = (TARGET, STSB_TRAIN)  # corpora that are written from evaluation data
RECIPE_CORPORA = {
    "wiki1m": "wiki1m_for_simcse.txt",
    "nli": "nli_for_simcse.csv",
    "nli-labelled": "nli_labelled.csv",
    "stsb-10k": "stsbenchmark_train_10k_sents_random_sampled.txt",
}
"""Name in recipes -> name of its file in ``train/``."""
HUB_CORPORA = {
    "syncse-partial": "hub:hkust-nlp/SynCSE-partial-NLI:sent0,sent1,hard_neg",
    "syncse-scratch": "hub:hkust-nlp/SynCSE-scratch-NLI:sent0,sent1,hard_neg",
}
"""Short names of data sets of the hub."""

_NO_CONTROL = dict.fromkeys([*range(0x20), *range(0x7F, 0xA0)])


@dataclass(frozen=True, kw_only=True)
class Form:
    """One form of a file. ``bytes`` is the size on disk (about, where the file is one of ``first_use``)."""

    sha256: str
    bytes: int
    sha256_lf: str | None = None


@dataclass(frozen=True, kw_only=True)
class DataFile:
    path: str
    """Relative to a home of the set."""
    role: str
    """What a reader does with it: "pairs", "gold", "table", "text"; "archive": it is read packed, and its hash is the packed file's."""
    rows: int
    """Data rows, without the header."""
    forms: Mapping[str, Form]
    split: str = "test"
    subset: str | None = None
    header: int = 0
    """Lines before the first row."""
    columns: int = 1
    """Tab-separated cells that count; what follows them in a row is ignored. 1 = the whole line is one cell."""
    filled: int | None = None
    """Rows that are not empty, where some are (pairs that nobody annotated)."""
    content: str | None = None
    packed: str | None = None
    """"xz" where the file is compressed; hashes are then of what is inside."""
    encoding: str = "utf-8"
    exact: bool = False
    """Whether case and white space count although there is one form only: a copy that differs in them is an "other-" form."""

    first_use: bool = False
    """Whether nobody could see the file when this was written: its checksum ("" here) is recorded when it is first fetched."""

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]

    @property
    def varies(self) -> bool:
        """Whether the file has a text form (a gold file has none)."""
        return self.exact or ANY not in self.forms


@dataclass(frozen=True, kw_only=True)
class DataSet:
    name: str
    kind: str
    """"evaluation", "corpus", "vectors" or "built-in"."""
    title: str
    suites: tuple[str, ...]
    unit: str
    """What one item is: "pairs", "sentences", "triplets"."""
    items: Mapping[str, int]
    """Items per split (scored items, for an evaluation set)."""
    licence: str
    terms: str
    source: str
    cite: str
    get: str
    homes: Mapping[str, str]
    """Form -> folder below the data folder where that form is kept."""
    also: tuple[str, ...] = ()
    """Other folders that are looked in for any form."""
    files: tuple[DataFile, ...] = field(default=())
    accept: bool = False
    """Whether a user has to accept the terms: they are shown before a download."""

    @property
    def places(self) -> tuple[str, ...]:
        """Folders to look in, relative to the data folder, most specific first."""
        return tuple(dict.fromkeys([*self.homes.values(), *self.also]))

    @property
    def forms(self) -> tuple[str, ...]:
        """Text forms that are known by checksum; empty where the set has no forms."""
        return tuple(
            dict.fromkeys(form for file in self.files for form in file.forms if form != ANY)
        )

    @property
    def bytes(self) -> int:
        """Size on disk in one form (the largest, where forms differ)."""
        return sum(max(form.bytes for form in file.forms.values()) for file in self.files)

    def split(self, *splits: str) -> tuple[DataFile, ...]:
        return tuple(file for split in splits for file in self.files if file.split == split)


@functools.cache
def data_sets() -> Mapping[str, DataSet]:
    """Every data set that the harness knows, by name, in the order of the manifests."""
    folder = resources.files("bench.data.sets") / "manifests"
    return {
        known.name: known
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(".json")
        for known in parse_manifest(json.loads(entry.read_text(encoding="utf-8")))
    }


def data_set(name: str) -> DataSet:
    """The data set of that name; UnknownName with the nearest names otherwise."""
    known = data_sets()
    if name not in known:
        raise UnknownName("data set", name, known, hint="bench data list shows all of them")
    return known[name]


def parse_manifest(manifest: Mapping[str, Any]) -> list[DataSet]:
    """A manifest's sets. Raises ValueError or TypeError for a mistake in it: manifests are ours, not the user's."""
    return [
        msgspec.convert(manifest.get("common", {}) | entry, DataSet) for entry in manifest["sets"]
    ]


def cells(text: str, file: DataFile) -> list[list[str]]:
    """The rows of a file below its header, each cut to the columns that count. CRLF and LF are line ends, nothing else is."""
    lines = text.removesuffix("\n").split("\n") if text else []
    rows = (line.removesuffix("\r") for line in lines[file.header :])
    return [row.split("\t")[: file.columns] if file.columns > 1 else [row] for row in rows]


def single_spaced(cell: str) -> str:
    """The words of a cell with one space between, as SentEval's loaders read text."""
    return " ".join(cell.split())


def content_hash(rows: list[list[str]]) -> str:
    """Hash of the cells that no tokeniser changes: it adds and removes white space, drops control characters, lowers case."""
    plain = (
        "\t".join("".join(cell.split()).translate(_NO_CONTROL).lower() for cell in row)
        for row in rows
    )
    return hashlib.sha256("\n".join(plain).encode("utf-8", "surrogatepass")).hexdigest()


def lf(data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n")


# --- which text form a file has, by its checksum, or what is wrong with it and where ---

OTHER = "other"


@dataclass(frozen=True)
class Found:
    """A file that was read. ``form`` is "any", a form of the manifest, or "other"."""

    file: DataFile
    path: Path
    form: str
    sha256: str
    """The manifest's hash of that form; the file's own hash if the form is "other"."""
    text: str = ""
    """Decoded; empty for a packed file and one of ``first_use``, which may be large."""


def damaged_file(wanted: DataSet, what: str) -> DataDamaged:
    """The error that says what is wrong with a file of a set, and what gets another."""
    return DataDamaged(f"{wanted.name}: {what}", f"replace the file; to get it: {wanted.get}")


def recognise(wanted: DataSet, file: DataFile, path: Path) -> Found:
    """Reads a file and says which form it has. Raises DataDamaged with the path, and the expected and found counts or hash."""
    if file.first_use:
        return Found(file, path, ANY, recognise_first_use(wanted, file, path))
    if file.packed is not None or file.role == "archive":
        return _recognise_packed(wanted, file, path)
    try:
        data = path.read_bytes()
        text = data.decode(file.encoding)
    except OSError as error:
        raise damaged_file(wanted, f"cannot read {path} ({error.strerror})") from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise damaged_file(
            wanted, f"line {line} is not {file.encoding.upper()} in {path}"
        ) from None
    digests = {hashlib.sha256(data).hexdigest(), hashlib.sha256(lf(data)).hexdigest()}
    for name, form in file.forms.items():
        if digests & {form.sha256, form.sha256_lf}:
            return Found(file, path, name, form.sha256, text)
    rows = cells(text, file)
    if len(rows) != file.rows:
        raise damaged_file(wanted, f"{len(rows):,} rows found, {file.rows:,} expected in {path}")
    if (content := content_hash(rows)) != file.content:
        expected = file.content or next(iter(file.forms.values())).sha256
        raise damaged_file(
            wanted,
            f"altered text: content hash {content[:12]} found, {expected[:12]} expected, in {path}",
        )
    return (
        Found(file, path, OTHER, hashlib.sha256(lf(data)).hexdigest(), text)
        if file.varies  # else only white space differs
        else Found(file, path, ANY, file.forms[ANY].sha256, text)
    )


def _recognise_packed(wanted: DataSet, file: DataFile, path: Path) -> Found:
    try:
        with open(path, "rb") if file.packed is None else lzma.open(path, "rb") as stream:
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise damaged_file(wanted, f"{path} cannot be unpacked ({error})") from None
    for name, form in file.forms.items():
        if form.sha256 == sha256:
            return Found(file, path, name, sha256)
    raise damaged_file(wanted, f"altered: sha256 {sha256[:12]} is not known, in {path}")


# --- files whose checksum was unknown when the manifest was written: compared with the receipt of the first fetch ---
# A receipt says what was fetched, from where, at which revision; it lies beside the data, so that it is copied with it.


def recognise_first_use(wanted: DataSet, file: DataFile, path: Path) -> str:
    """The file's sha256, if a receipt has it. A copy that was not fetched by bench has no receipt: then its rows are counted.

    Raises DataDamaged.
    """
    known = {receipt.downloads.get(file.path) for receipt in receipts_in(path.parent)} - {None}
    if not known and (rows := count_rows(wanted, file, path)) != file.rows:
        raise damaged_file(wanted, f"{rows:,} rows found, {file.rows:,} expected in {path}")
    sha256 = file_sha256(path)
    if known and sha256 not in known:
        fetched = " or ".join(str(hash_)[:12] for hash_ in known)
        raise damaged_file(wanted, f"sha256 {sha256[:12]} found, {fetched} was fetched, in {path}")
    return sha256


def count_rows(wanted: DataSet, file: DataFile, path: Path) -> int:
    """Data rows of a CSV file (its fields may hold line ends), lines of any other. Raises DataDamaged."""
    try:
        with path.open(
            encoding=file.encoding, newline="" if path.suffix == ".csv" else "\n"
        ) as text:
            lines = (row for row in csv.reader(text) if row) if path.suffix == ".csv" else text
            return sum(1 for _ in lines) - file.header
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise damaged_file(wanted, f"cannot read {path} ({error})") from None


class Receipt(Struct, frozen=True, kw_only=True):
    schema: Literal["bench.receipt/1"] = "bench.receipt/1"
    source: str
    url: str
    revision: str
    fetched: str
    """Date and time, UTC, ISO 8601."""
    downloads: dict[str, str]
    """Path in the source -> sha256 of what was downloaded."""
    warnings: dict[str, str] = {}
    """Path of our file -> what was unexpected about it."""


def receipt_path(folder: Path, source: str) -> Path:
    return folder / f"{source}.receipt.json"


def read_receipt(path: Path) -> Receipt | None:
    """None if there is none. Raises DataDamaged if it cannot be read, because later fetches are compared with it."""
    if not path.exists():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=Receipt)
    except (OSError, ValueError, RecursionError) as error:
        raise DataDamaged(
            f"{path} is not a valid receipt of a download ({error})",
            "remove it to fetch again and trust what arrives",
        ) from None


def receipts_in(folder: Path) -> list[Receipt]:
    """One for every source of the folder's files. Raises DataDamaged."""
    return list(filter(None, map(read_receipt, sorted(folder.glob("*.receipt.json")))))


def fetch_warning(path: Path) -> str:
    """What was unexpected about a file when it was first fetched; usually ""."""
    return "; ".join(
        filter(None, (receipt.warnings.get(path.name) for receipt in receipts_in(path.parent)))
    )


def write_receipt(path: Path, receipt: Receipt, aside: Path | None = None) -> None:
    """Add a fetch to the receipt; what it has of other files at the same revision stays. ``aside``: as for ``write_whole``. Raises OSError."""
    before = read_receipt(path)
    if before and before.revision == receipt.revision:
        receipt = msgspec.structs.replace(
            receipt,
            downloads=before.downloads | receipt.downloads,
            warnings=before.warnings | receipt.warnings,
        )
    write_whole(path, msgspec.json.format(msgspec.json.encode(receipt), indent=1) + b"\n", aside)


# --- sources ---


@dataclass(frozen=True, kw_only=True)
class Part:
    """How one file of ours comes out of a source."""

    paths: tuple[str, ...]
    """In the source, or in its archive; ``*`` stands for any characters in the name of a file of the hub."""
    conversion: str = "as is"
    sha256: tuple[str, ...] = ()
    """Of the source's own files, where they are converted."""


@dataclass(frozen=True, kw_only=True)
class Source:
    name: str
    title: str
    site: str
    """"hub", "github" or "web"."""
    repo: str
    """Owner and name; of "web" the address of its folder, "" where the parts name whole addresses."""
    revision: str
    """A commit; "main" where it is pinned at the first fetch."""
    into: str
    """Folder below the data folder."""
    form: str
    sets: tuple[str, ...]
    archive: str | None = None
    root: str = ""
    files: Mapping[str, Part] = field(default_factory=dict)
    """Our path -> part. Empty: all files of its sets, at ``root`` + our path (in an archive: wherever a path ends so)."""
    about_bytes: int | None = None
    most_bytes: int = 2_000_000_000
    """Bound of the download, and of what is unpacked from it."""
    note: str = ""

    @property
    def pinned(self) -> bool:
        return self.revision != "main"

    def part(self, file: DataFile) -> Part | None:
        """How a file comes out of this source; None where it does not have it."""
        return (
            self.files.get(file.path)
            if self.files
            else Part(paths=(f"{self.root}/{file.path}" if self.root else file.path,))
        )

    @property
    def where(self) -> str:
        """In words: "hub princeton-nlp/datasets-for-simcse", "github.com/owner/name (commit 1b344d9de28f)"."""
        if self.site == "web":
            return " and ".join(
                f"{self.repo}/{path}" if self.repo else path for path in self._paths
            )
        place = f"{'hub data set' if self.site == 'hub' else 'github.com'} {self.repo}"
        return f"{place} (commit {self.revision[:12]})" if self.pinned else place

    @property
    def urls(self) -> tuple[str, ...]:
        """Its address; of files of "web" that lie in several places, that of each."""
        return tuple(site(self.site, self.repo, self.revision, path).url for path in self._paths)

    @property
    def _paths(self) -> Sequence[str]:
        return (
            [path for part in self.files.values() for path in part.paths]
            if self.site == "web" and not self.archive
            else (self.archive or "",)
        )


@functools.cache
def sources() -> Mapping[str, Source]:
    """Every source by name, in the order in which they are tried."""
    text = (resources.files("bench.data.sets") / "sources.json").read_text(encoding="utf-8")
    return {
        source.name: source for source in msgspec.convert(json.loads(text)["sources"], list[Source])
    }


def sources_of(wanted: DataSet, text: str = "any") -> list[Source]:
    """The sources of a set in a text form ("any": tokenised where there are forms), best first."""
    return [
        s
        for s in sources().values()
        if wanted.name in s.sets and s.form in ("any", "tokenised" if text == "any" else text)
    ]


# --- what a plan would fetch ---

ON_ITS_PAGE = "on its page of the hub"


class SetFetcher(Protocol):
    """What fetches a set that is missing; see bench.data.sets.fetch."""

    def get(self, wanted: DataSet, text: str) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Pending:
    """Something that is needed, is not on this machine, and can be fetched."""

    name: str
    kind: str
    """"data", "corpus" or "backbone"."""
    where: str
    """In words."""
    urls: tuple[str, ...]
    """Where it could come from; one of them is enough."""
    bytes: int | None = None
    """Of the download, about; None where only the server knows."""
    licence: str = ON_ITS_PAGE
    terms: str = ""
    """What is accepted by fetching it."""
    notes: tuple[str, ...] = ()
    archives: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Archive -> the sets that arrive with it."""


class NotFetchedYet(BenchError):
    """A plan needs something that would be fetched now if the plan were run."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is not on this machine yet")


class Later:
    """Stands in for a fetcher: notes what has to be fetched, in the order in which it is needed, and opens no connection.

    ``beside_root``: also what is missing from a folder that the user named, into which nothing is fetched: for --dry-run.
    """

    def __init__(self, beside_root: bool = False) -> None:
        self.beside_root = beside_root
        self.pending: tuple[Pending, ...] = ()

    def note(self, item: Pending) -> None:
        if item.name not in [noted.name for noted in self.pending]:
            self.pending = (*self.pending, item)

    def get(self, wanted: DataSet, text: str) -> None:
        """Raises NotFetchedYet."""
        self.note(pending_set(wanted, text))
        raise NotFetchedYet(wanted.name)


def pending_set(wanted: DataSet, text: str) -> Pending:
    """What would be fetched, and from which sources, if none fails: for each file the first source that has it."""
    every = sources_of(wanted, text)
    missing, first = {file.path for file in wanted.files}, list[Source]()
    for source in every:
        if here := missing & {file.path for file in wanted.files if source.part(file)}:
            first.append(source)
            missing -= here
    return Pending(
        name=wanted.name,
        kind="corpus" if wanted.kind == "corpus" else "data",
        where=" and ".join(source.where for source in first),
        urls=tuple(url for source in every for url in source.urls),
        bytes=max(wanted.bytes, sum(source.about_bytes or 0 for source in first)),
        licence=wanted.licence,
        terms=wanted.terms if wanted.accept else "",
        notes=tuple(f"{source.name}: {source.note}" for source in first if source.note),
        archives={source.name: source.sets for source in first if source.archive},
    )


# --- the data folder: finds sets, and refuses what is incomplete or altered ---

Problem = DataDamaged | DataMissing


def fetched_folder() -> Path:
    """The folder for fetched data, unless the user names one: below $BENCH_CACHE, else ~/.cache/sentence-bench."""
    return default_cache() / "data"


@dataclass(frozen=True)
class Copy:
    """A complete, undamaged copy of a set, or of some of its files."""

    place: Path
    form: str
    """"any" if the set has no text forms, else "tokenised", "raw" or "other-<hash>"."""
    sha256: str
    files: tuple[Found, ...]


@dataclass(frozen=True)
class State:
    """What ``bench data`` shows for a set. ``status``: found, missing, damaged."""

    status: str
    forms: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


class DataFolder:
    """Where evaluation data and corpora are: ``--data`` or ``BENCH_DATA`` (``None`` = neither was set), then ``store``, the
    folder of fetched data. With a ``fetcher``, which fills the store, a missing set is fetched when it is opened, unless the
    user named a folder: then it is missing.
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
        self.store = Path(store or fetched_folder()) if store is not None else None

    @property
    def later(self) -> Later | None:
        """Where a plan notes what it would fetch; None outside a plan."""
        return self.fetcher if isinstance(self.fetcher, Later) else None

    def check_root(self) -> None:
        """Raises DataMissing if the user named a folder that does not exist."""
        if self.root is not None and not self.root.is_dir():
            raise DataMissing(
                f"the data folder {self.root} does not exist, or is not a folder",
                f"check --data or BENCH_DATA; bench data fetch sts --data {self.root} creates and fills it",
            )

    @property
    def roots(self) -> tuple[Path, ...]:
        """The folders that exist, in the order in which they are searched."""
        return tuple(
            root for root in dict.fromkeys([self.root, self.store]) if root and root.is_dir()
        )

    @property
    def as_it_is(self) -> DataFolder:
        """The same folders, without fetching: for optional data that is not worth a download."""
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
        """The copy of these files in the requested form ("any": whichever is complete, tokenised first).

        A missing set is fetched if there is a fetcher. Raises DataDamaged if the copy that would serve is incomplete or
        altered, DataMissing if there is none and none could be fetched.
        """
        try:
            return self._open(wanted, files, text)
        except DataMissing as missing:
            if self._fetched(wanted, text, missing):
                return self._open(wanted, files, text)
            raise

    def file(self, place: str) -> Path:
        """A file by its path in the data folder, for a plugin's suite, whose data has no manifest. Raises DataMissing."""
        if (path := self._find(place)) is not None:
            return path
        folders = " or ".join(str(root) for root in self.roots) or "any data folder"
        raise DataMissing(f"{place} is not in {folders}", "--data DIR, the folder that has it")

    def _find(self, *places: str) -> Path | None:
        return next(
            (path for root in self.roots for place in places if (path := root / place).is_file()),
            None,
        )

    def corpus(self, file: str) -> Path | None:
        """A training file by its name, fetched if it is missing and has a source; None if it cannot be had here.

        Raises DataMissing if only ``offline`` prevents that, or if it could not be fetched.
        """
        for known in data_sets().values():
            if known.kind == "corpus" and known.files[0].path == file:
                return self._fetched_file(known)
        return self._find(f"train/{file}")

    def vectors(self, wanted: DataSet) -> Path:
        """The file of a set of word vectors, fetched if it is missing. Raises DataMissing."""
        if (path := self._fetched_file(wanted)) is None:
            raise self._missing(wanted, ANY)
        return path

    def _fetched_file(self, wanted: DataSet) -> Path | None:
        """The first file of a set, fetched if it is missing. Raises DataMissing."""
        file = wanted.files[0].path
        places = [f"{home}/{file}" for home in wanted.places]
        if (path := self._find(*places)) is None:
            self._fetched(wanted, ANY, DataMissing(f"{wanted.name}: {file} is not on this machine"))
            path = self._find(*places)
        return path

    def _fetched(self, wanted: DataSet, text: str, missing: DataMissing) -> bool:
        """Whether the set was fetched now. Raises DataMissing, with what to do on another machine, if that is forbidden."""
        if not sources_of(wanted, text):
            return False
        if self.offline:
            raise DataMissing(
                f"{missing.message}; nothing is fetched (--offline, or HF_HUB_OFFLINE is set)",
                f"where there is a network: bench data fetch {wanted.name}{_form_option(wanted, text)} --data DIR; copy DIR here, then --data DIR",
                wanted.name,
            )
        # into a folder that the user named nothing is fetched, but a plan may note what it lacks
        if self.fetcher is None or (self.root and not (self.later and self.later.beside_root)):
            return False
        try:
            self.fetcher.get(wanted, text)
        except FetchFailed as failure:
            raise DataMissing(f"{missing.message}; {failure.message}", failure.hint) from None
        return True

    def _open(self, wanted: DataSet, files: tuple[DataFile, ...] | None, text: str) -> Copy:
        copies, problems = self.copies(wanted, files)
        if matching := [copy for copy in copies if text in (ANY, copy.form) or copy.form == ANY]:
            return min(
                matching, key=lambda copy: {"tokenised": 0, ANY: 0, "raw": 2}.get(copy.form, 1)
            )
        # a damaged copy matters more than one in another form, and that more than an incomplete one
        for problem in problems:
            if isinstance(problem, DataDamaged):
                raise problem
        if copies:
            form = copies[0].form
            raise other_form(
                wanted.name,
                text,
                f"{form} in {copies[0].files[0].path.parent}",
                form if form in wanted.forms else ANY,
                self._get(wanted, text),
            )
        raise problems[0] if problems else self._missing(wanted, text)

    def look(self, wanted: DataSet) -> State:
        """Quick: which files are there, by their names; a form is recognised by its folder."""
        places: list[str] = []
        problems: list[str] = []
        for place in self._places(wanted, None):
            if absent := [f.path for f in wanted.files if not (place / f.path).is_file()]:
                problems.append(
                    f"{len(absent)} of {len(wanted.files)} files missing in {place}, first {absent[0]}"
                )
            else:
                places.append(place.as_posix())
        return State(
            "found" if places else "missing",
            tuple(
                form
                for form, home in wanted.homes.items()
                if any(place.endswith(f"/{home}") for place in places)
            ),
            tuple(places),
            tuple(problems),
        )

    def check(self, wanted: DataSet) -> State:
        """Thorough: reads every byte of every copy."""
        copies, problems = self.copies(wanted)
        warnings = [
            fetch_warning(one.path) for copy in copies for one in copy.files if one.file.first_use
        ]
        damaged = any(isinstance(problem, DataDamaged) for problem in problems)
        return State(
            "damaged" if damaged else "found" if copies else "missing",
            tuple(dict.fromkeys(copy.form for copy in copies)),
            tuple(str(copy.place) for copy in copies),
            (*(problem.message for problem in problems), *filter(None, warnings)),
        )

    def entries(self, wanted: DataSet) -> list[tuple[str, int, int]]:
        """(path, bytes, time of the last change in ns) of every file of the set in every place, sorted; reads none of them."""
        paths = [place / file.path for place in self._places(wanted, None) for file in wanted.files]
        return sorted(
            (str(path.resolve()), stat.st_size, max(stat.st_mtime_ns, stat.st_ctime_ns))
            for path in paths
            if path.is_file()
            for stat in [path.stat()]
        )

    def _places(self, wanted: DataSet, files: tuple[DataFile, ...] | None) -> list[Path]:
        """Folders that have at least one of the files."""
        roots = (Path(str(resources.files("bench"))),) if wanted.kind == "built-in" else self.roots
        places: dict[Path, Path] = {}  # one folder may have two names
        for place in (root / name for root in roots for name in wanted.places):
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
        files = [
            f"{home}/{wanted.files[0].path}".removeprefix("./")
            for home in ([wanted.homes[text]] if text in wanted.homes else wanted.places)
        ]
        return DataMissing(
            f"{wanted.name}: not found in {self.root}; looked for {' or '.join(files)}",
            hint,
            wanted.name,
        )

    def _get(self, wanted: DataSet, text: str) -> str:
        """How to get a set in a form: the command, if there is a source."""
        return (
            wanted.get
            if not sources_of(wanted, text)
            else f"bench data fetch {wanted.name}{_form_option(wanted, text)}{f' --data {self.root}' if self.root else ''}"
        )


def other_form(name: str, text: str, there: str, use: str, get: str) -> DataMissing:
    """The error if there is only another text form (``there``) than ``text``; ``use``: the ``--text`` that scores it."""
    return DataMissing(
        f"{name}: no {text} text found, only {there}",
        f"--text {use} scores that form (stored in a column of its own); to get the {text} form: {get}",
    )


def _form_option(wanted: DataSet, text: str) -> str:
    return f" --text {text}" if text in wanted.forms and text != "tokenised" else ""


def _read_copy(wanted: DataSet, files: tuple[DataFile, ...], place: Path) -> Copy:
    for file in files:
        if not (place / file.path).is_file():
            raise DataMissing(
                f"{wanted.name}: {place / file.path} is missing; the set is incomplete",
                f"to get it: {wanted.get}",
            )
    found = tuple(recognise(wanted, file, place / file.path) for file in files)
    together = hashlib.sha256("\n".join(one.sha256 for one in found).encode()).hexdigest()
    return Copy(place, _form_of(wanted, [one for one in found if one.file.varies]), together, found)


def _form_of(wanted: DataSet, texts: list[Found]) -> str:
    """The form of a set by those of its files that have one. Raises DataDamaged if they have two."""
    forms = {text.form for text in texts}
    if OTHER in forms:
        return f"{OTHER}-{hashlib.sha256(''.join(text.sha256 for text in texts).encode()).hexdigest()[:8]}"
    if len(forms) > 1:
        odd = next(text for text in texts if text.form != texts[0].form)
        raise damaged_file(
            wanted, f"{texts[0].path} is {texts[0].form}, {odd.path.name} is {odd.form}"
        )
    return forms.pop() if forms else ANY
