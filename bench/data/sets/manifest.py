"""The data sets that bench knows: their files, sizes, checksums, licences and homes.

``manifests/`` has them as JSON, a file per collection; ``python tools/make_manifest.py`` writes the
numbers in it, people write the rest. A file of a set may exist in several text forms (``raw``,
``tokenised``). If its bytes are the same in all of them, or there is only one, the form is called
``any``. Two hashes are kept of a file:

    sha256      of its bytes, as sha256sum prints it (for packed files: of the content)
    sha256_lf   the same with CRLF line ends written as LF; only if the original has CRLF
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

import msgspec

from bench.base.errors import DataDamaged, UnknownName

ANY = "any"
TOKENISED, RAW = "tokenised", "raw"
"""The forms of a set that has two: the text that the papers scored, and that of its authors."""


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


@dataclass(frozen=True, kw_only=True)
class Form:
    """One form of a file.

    ``bytes`` is the size on disk (about, if the file is one of ``first_use``).
    """

    sha256: str
    bytes: int
    sha256_lf: str | None = None


@dataclass(frozen=True, kw_only=True)
class DataFile:
    path: str
    """Relative to a home of the set."""
    role: str
    """What a reader does with it: "pairs", "gold", "table", "text"; "archive": it is read packed,
    and its hash is the packed file's."""
    rows: int
    """Data rows, without the header."""
    forms: Mapping[str, Form]
    split: str = "test"
    subset: str | None = None
    header: int = 0
    """Lines before the first row."""
    columns: int = 1
    """Tab-separated cells that count; what follows them in a row is ignored. 1 = the whole line is
    one cell."""
    filled: int | None = None
    """Rows that are not empty, where some are (pairs that nobody annotated)."""
    packed: str | None = None
    """"xz" if the file is compressed; hashes are then of its content."""
    encoding: str = "utf-8"
    first_use: bool = False
    """Whether nobody could see the file when this was written: its checksum ("" here) is recorded
    when it is first fetched."""

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]


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
    """Form -> its folder below the data folder."""
    also: tuple[str, ...] = ()
    """Other folders that are looked in for any form."""
    files: tuple[DataFile, ...] = field(default=())
    accept: bool = False
    """Whether a user has to accept the terms: they are shown before a download."""
    languages: tuple[str, ...] = ("en",)
    """Languages of an evaluation set's sentences, as ISO 639-1 codes."""
    classes: Mapping[str, str] = field(default_factory=dict)
    """Of a labelled set: each label as the files write it -> the name of its class, in the order of
    the classes' numbers."""
    cells: tuple[str, ...] = ("text",)
    """What the cells of a labelled set's rows are: "label"; "text", twice for a pair; what is
    called otherwise is not read. Without a label all rows of a file are of the class that its role
    names."""
    separators: str = "\t"
    """Characters that end a cell of a labelled set's rows; the last cell goes on to the line's end.
    """

    @property
    def places(self) -> tuple[str, ...]:
        """Folders to look in, relative to the data folder, most specific first."""
        return tuple(dict.fromkeys([*self.homes.values(), *self.also]))

    @property
    def forms(self) -> tuple[str, ...]:
        """Text forms that are known by checksum; () if the set has no forms."""
        forms: dict[str, None] = {}
        for file in self.files:
            forms |= dict.fromkeys(file.forms)
        forms.pop(ANY, None)
        return tuple(forms)

    @property
    def bytes(self) -> int:
        """Size on disk in one form (the largest, if forms differ)."""
        return sum(max(form.bytes for form in file.forms.values()) for file in self.files)

    def split(self, *splits: str) -> tuple[DataFile, ...]:
        """Return the files of these splits, in the order of the splits."""
        files = []
        for split in splits:
            files += [file for file in self.files if file.split == split]
        return tuple(files)


@functools.cache
def data_sets() -> Mapping[str, DataSet]:
    """Return every data set that the harness knows, by name, in the order of the manifests."""
    folder = resources.files("bench.data.sets") / "manifests"
    known = {}
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".json"):
            for found in parse_manifest(json.loads(entry.read_text(encoding="utf-8"))):
                known[found.name] = found
    return known


def data_set(name: str) -> DataSet:
    """Return the data set of that name. Raises UnknownName, with the nearest names."""
    known = data_sets()
    if name not in known:
        raise UnknownName("data set", name, known, hint="bench data list shows all of them")
    return known[name]


def parse_manifest(manifest: Mapping[str, Any]) -> list[DataSet]:
    """Return a manifest's sets.

    Raises ValueError or TypeError for a mistake in it: manifests are ours, not the user's.
    """
    return [
        msgspec.convert(manifest.get("common", {}) | entry, DataSet) for entry in manifest["sets"]
    ]


def damaged_file(wanted: DataSet, what: str) -> DataDamaged:
    """Return the error that says what is wrong with a file of a set, and what gets another."""
    return DataDamaged(f"{wanted.name}: {what}", f"replace the file; to get it: {wanted.get}")
