"""What each data set is: files, counts, checksums, licence, source. JSON data in ``manifests/``, one file per collection.

A file of a set may exist in several text forms (``raw``, ``tokenised``); where its bytes are the same in all, or there is only
one, the form is called ``any``. Three hashes are kept of a file:

    sha256      of its bytes, as sha256sum prints it (for packed files: of what is inside)
    sha256_lf   the same with CRLF line ends written as LF; only where the original has CRLF
    content     of its cells, lower-cased, without white space and control characters: equal in every tokenisation of one text

The numbers are written by ``python tools/make_manifest.py``; the rest of a manifest is written by hand.
"""

from __future__ import annotations

import csv
import functools
import hashlib
import json
import lzma
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from bench.base.errors import DataDamaged, UnknownName
from bench.base.files import file_sha256, write_whole

ANY = "any"

# What a corpus is called on a command line and in recipes, where it is not called by its file.
BY_HASH = "sha256:"  # before the hash of a text, which is looked for whatever its file is called
TARGET = "target"  # the name of the corpus of all sentences that are scored
STSB_TRAIN = "stsb-train"  # of the pairs of STS-B's train split with their scores, 0 to 1
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
    sets: dict[str, DataSet] = {}
    folder = resources.files("bench.data.sets") / "manifests"
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".json"):
            manifest = json.loads(entry.read_text(encoding="utf-8"))
            sets |= {known.name: known for known in parse_manifest(manifest)}
    return sets


def data_set(name: str) -> DataSet:
    """The data set of that name; UnknownName with the nearest names otherwise."""
    known = data_sets()
    if name not in known:
        raise UnknownName("data set", name, known, hint="bench data list shows all of them")
    return known[name]


def parse_manifest(manifest: Mapping[str, Any]) -> list[DataSet]:
    """A manifest's sets. Raises ValueError or TypeError for a mistake in it: manifests are ours, not the user's."""
    common = manifest.get("common", {})
    return [msgspec.convert({**common, **entry}, DataSet) for entry in manifest["sets"]]


def cells(text: str, file: DataFile) -> list[list[str]]:
    """The rows of a file below its header, each cut to the columns that count. CRLF and LF are line ends, nothing else is."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
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


# --- says of one file which text form it is, by checksum, or what is wrong with it and where; and keeps receipts of what was fetched ---


OTHER = "other"


@dataclass(frozen=True)
class Found:
    """A file that was read and recognised. ``form`` is "any", a form of the manifest, or "other"."""

    file: DataFile
    path: Path
    form: str
    sha256: str
    """The manifest's hash of that form; of the bytes found, where the form is "other"."""
    text: str = ""
    """Decoded; empty of a packed file and one of ``first_use``, which may be large."""


def damaged_file(wanted: DataSet, what: str) -> DataDamaged:
    """The error that says what is wrong with a file of a set, and what gets another."""
    return DataDamaged(f"{wanted.name}: {what}", f"replace the file; to get it: {wanted.get}")


def recognise(wanted: DataSet, file: DataFile, path: Path) -> Found:
    """Reads a file and says which form it is. Raises DataDamaged with the file's name, expected and found counts or hash."""
    if file.first_use:
        return Found(file, path, ANY, recognise_first_use(wanted, file, path))
    if file.packed is not None or file.role == "archive":
        return _recognise_packed(wanted, file, path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise damaged_file(wanted, f"cannot read ({error.strerror}) in {path}") from None
    try:
        text = data.decode(file.encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = f"line {line} is not {file.encoding.upper()} in {path}"
        raise damaged_file(wanted, problem) from None
    digests = {hashlib.sha256(data).hexdigest(), hashlib.sha256(lf(data)).hexdigest()}
    for name, form in file.forms.items():
        if digests & {form.sha256, form.sha256_lf}:
            return Found(file, path, name, form.sha256, text)
    rows = cells(text, file)
    if len(rows) != file.rows:
        raise damaged_file(wanted, f"{len(rows):,} rows found, {file.rows:,} expected in {path}")
    content = content_hash(rows)
    if content != file.content:
        expected = file.content or next(iter(file.forms.values())).sha256
        problem = f"altered text: content hash {content[:12]} found, {expected[:12]} expected"
        raise damaged_file(wanted, f"{problem}, in {path}")
    if not file.varies:  # only white space differs: the manifest's hash speaks for it
        return Found(file, path, ANY, file.forms[ANY].sha256, text)
    return Found(file, path, OTHER, hashlib.sha256(lf(data)).hexdigest(), text)


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


# --- files whose checksum nobody knew when the manifest was written: held against what was recorded when they were first fetched ---


def recognise_first_use(wanted: DataSet, file: DataFile, path: Path) -> str:
    """The file's sha256, if it is one that a receipt recorded.

    A copy that was not fetched by this package has no receipt: then its rows are counted. Raises DataDamaged.
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


# --- receipts: what was fetched, from where, which revision and which bytes; a small file beside the data, so that it travels with it ---
# Where nobody could know a checksum beforehand, the first receipt is the checksum: trust on first use.


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
    """Path of a file of ours -> what is not as it was expected."""


def receipt_path(folder: Path, source: str) -> Path:
    return folder / f"{source}.receipt.json"


def read_receipt(path: Path) -> Receipt | None:
    """None where there is none. Raises DataDamaged where it cannot be read: it is what later fetches are held against."""
    if not path.exists():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=Receipt)
    except (OSError, ValueError, RecursionError) as error:
        raise DataDamaged(
            f"{path} is no receipt of a download ({error})",
            "remove it to fetch again and trust what comes",
        ) from None


def receipts_in(folder: Path) -> list[Receipt]:
    """Of every source that files in the folder were fetched from. Raises DataDamaged."""
    receipts = map(read_receipt, sorted(folder.glob("*.receipt.json")))
    return [receipt for receipt in receipts if receipt is not None]


def fetch_warning(path: Path) -> str:
    """What was not as it was expected when a file was first fetched; "" of all others."""
    found = [receipt.warnings.get(path.name, "") for receipt in receipts_in(path.parent)]
    return "; ".join(filter(None, found))


def write_receipt(path: Path, receipt: Receipt, aside: Path | None = None) -> None:
    """Add this fetch to what is known; what was known of other files of the same revision stays. ``aside``: a folder to write in, of whoever
    removes what a killed process leaves there. Raises OSError."""
    before = read_receipt(path)
    if before and before.revision == receipt.revision:
        receipt = msgspec.structs.replace(
            receipt,
            downloads=before.downloads | receipt.downloads,
            warnings=before.warnings | receipt.warnings,
        )
    write_whole(path, msgspec.json.format(msgspec.json.encode(receipt), indent=1) + b"\n", aside)
