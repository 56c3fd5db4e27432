"""Who submitted a run: what a name may consist of, which names look alike, and what stands in a row.

Nobody can prove here who they are. So a name must be seen, must not look like another one, and never opens the row of somebody who has
the same name: a submission can neither replace a run that is there nor move its mean.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from bench.base.errors import DataDamaged, printable
from bench.base.reading import read_plain_file
from bench.compare.senders import LONGEST_NAME, SENDER_FILE
from bench.compare.statistics.rows import configuration
from bench.runs.record import RunRecord

MOST_BYTES = 1024
MOST_MARKS = 2
"""Combining marks on one letter; Vietnamese needs two."""

_NUMBERED = re.compile(r"\((?:\d+|[0-9a-f]{8})\)$")
"""How bench ends the names of rows that must stand apart."""
_UNSEEN_CATEGORIES = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
_UNSEEN_RANGES = (
    (0x00AD, 0x00AD),
    (0x034F, 0x034F),
    (0x061C, 0x061C),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0x2800, 0x2800),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFB),
    (0x16FE4, 0x16FE4),
    (0x1BCA0, 0x1BCA3),
    (0x1D159, 0x1D159),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)
"""Unicode's Default_Ignorable_Code_Point, and blanks that count as letters or symbols."""

_CYRILLIC = str.maketrans("абвгдеёзіїјкмнорсстԛухһԁԝѕѵ", "a6brgeeelljkmhopcctqyxhdwsv")
_GREEK = str.maketrans("αβγδεζηικμνορτυχω", "abydezhlkuvoptuxw")
_OTHERS = str.maketrans("օոսհցıłøđǀɑ01i|!5", "onuhgllodlaolllls")
_SCRIPTS = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE")
"""Scripts whose letters look alike."""


def sender_of(folder: Path) -> str:
    """Who submits the run in a folder. Raises DataDamaged for anything but a name on one line."""
    try:
        text = read_plain_file(folder / SENDER_FILE, MOST_BYTES).decode("utf-8")
    except (OSError, ValueError):
        raise DataDamaged(f"{SENDER_FILE} must contain {_EXPECTED}") from None
    return check_name(text, f"{SENDER_FILE} must contain")


_EXPECTED = f"a name of at most {LONGEST_NAME} characters, which can be read"


def check_name(text: str, must: str = "--by must be") -> str:
    """The name with single blanks. Raises DataDamaged for one that is empty, too long, or that a reader cannot see as it is."""
    name = unicodedata.normalize("NFC", " ".join(text.split()))
    if not name or len(name) > LONGEST_NAME:
        raise DataDamaged(f"{must} {_EXPECTED}")
    for character in name:
        if _is_unseen(character):
            raise DataDamaged(
                f"{must} {_EXPECTED}; U+{ord(character):04X} cannot be seen",
                "write it with letters, digits, blanks and plain signs",
            )
    if not any(unicodedata.category(character)[0] in "LN" for character in name):
        raise DataDamaged(f"{must} {_EXPECTED}; it has no letter and no digit")
    if _most_marks(name) > MOST_MARKS or unicodedata.category(name[0])[0] == "M":
        raise DataDamaged(f"{must} {_EXPECTED}; it has too many marks on one letter")
    if _NUMBERED.search(name):
        raise DataDamaged(
            f"{must} a name without a number in brackets at its end: boards add those"
        )
    for word in re.split(r"[\W\d_]+", name):
        scripts = _scripts_of(word)
        if len(scripts) > 1:
            raise DataDamaged(
                f"{must} {_EXPECTED}; '{printable(word)[:40]}' mixes {' and '.join(scripts)} letters"
            )
    return name


def _is_unseen(character: str) -> bool:
    if character == " ":
        return False
    if unicodedata.category(character) in _UNSEEN_CATEGORIES or not character.isprintable():
        return True
    return any(first <= ord(character) <= last for first, last in _UNSEEN_RANGES)


def _most_marks(name: str) -> int:
    """The most combining marks that follow each other."""
    most = now = 0
    for character in unicodedata.normalize("NFD", name):
        now = now + 1 if unicodedata.category(character)[0] == "M" else 0
        most = max(most, now)
    return most


def _scripts_of(word: str) -> list[str]:
    """Those of ``_SCRIPTS`` that a word's letters are of: ["Cyrillic", "Latin"]."""
    found = set()
    for character in word:
        script = unicodedata.name(character, "").partition(" ")[0]
        if character.isalpha() and script in _SCRIPTS:
            found.add(script.capitalize())
    return sorted(found)


def skeleton(name: str) -> str:
    """What a reader sees of a name at a glance: names that look alike have the same skeleton."""
    plain = unicodedata.normalize("NFKD", name).casefold()
    letters = "".join(character for character in plain if character.isalnum() or character in "|!")
    letters = letters.translate(_CYRILLIC).translate(_GREEK).translate(_OTHERS)
    return letters.replace("rn", "m").replace("vv", "w")


def refuse_look_alike(name: str, known: Iterable[str]) -> None:
    """Raises DataDamaged for a name that looks like another known one without being it."""
    mine = skeleton(name)
    for other in known:
        plain = plain_name(other)
        if plain != name and skeleton(plain) == mine:
            raise DataDamaged(
                f"the sender '{printable(name)}' looks like '{printable(plain)}', who is there already",
                "write more of the name",
            )


def plain_name(label: str) -> str:
    """The sender's name in what stands in a row: "Ada (2)" -> "Ada"."""
    return _NUMBERED.sub("", label).rstrip()


def row_labels(
    submitted: Sequence[tuple[RunRecord, str]],
    published: Iterable[str],
    together: Mapping[str, frozenset[str]] = {},
) -> dict[str, str]:
    """Run id -> what its row says of the sender. ``submitted``: (record, name) of runs that no version has; ``published``: what the rows of
    published runs say; ``together``: run id -> what tells which runs came together (``bench.publish.together``), nothing for one alone.

    Runs under a name that the board has already get a number behind it, and with it rows of their own. Runs of one name that would share a
    row do so only if they came together and none would replace another, because the seed is the same or the code of the method is
    another. Else the beginning of a hash stands behind the name.
    """
    taken = set(published)
    numbers: dict[str, str] = {}
    for _, name in submitted:
        numbers.setdefault(name, _next_label(name, taken))
    rows: dict[tuple[str, str], list[RunRecord]] = {}
    for record, name in submitted:
        rows.setdefault((name, _row(record)), []).append(record)
    labels: dict[str, str] = {}
    for (name, _), records in rows.items():
        groups = _groups_of(records, together)
        for group in groups:
            label = numbers[name] if len(groups) == 1 else f"{name} ({_hash_of(group)})"
            for record in group:
                labels[record.run_id] = label
    return labels


def _groups_of(
    records: Sequence[RunRecord], together: Mapping[str, frozenset[str]]
) -> list[list[RunRecord]]:
    """The runs of one row and name, in groups that may share it."""
    came: dict[frozenset[str], list[RunRecord]] = {}
    groups: list[list[RunRecord]] = []
    for record in records:
        if others := together.get(record.run_id):
            came.setdefault(others, []).append(record)
        else:
            groups.append([record])
    for group in came.values():
        seeds = {record.seed for record in group}
        codes = {record.provenance.plugin.sha256 for record in group}
        if len(seeds) == len(group) and len(codes) == 1:
            groups.append(group)
        else:
            groups += [[record] for record in group]
    return groups


def _hash_of(records: Sequence[RunRecord]) -> str:
    """Eight digits that differ for any two groups of records: fingerprints may be copied."""
    digests = []
    for record in records:
        content = json.dumps(record.to_json(), sort_keys=True)
        digests.append(hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest())
    if len(digests) == 1:
        return digests[0][:8]
    return hashlib.sha256("".join(sorted(digests)).encode()).hexdigest()[:8]


def _next_label(name: str, taken: set[str]) -> str:
    """The name, or if the board has runs under it, the name with the first number that is free."""
    if not any(plain_name(label) == name for label in taken):
        return name
    number = 2
    while f"{name} ({number})" in taken:
        number += 1
    return f"{name} ({number})"


def _row(record: RunRecord) -> str:
    """What decides in which row a run stands, but for its sender: as ``bench.compare.statistics.table.rows_of`` groups runs."""
    place = (record.method, record.variant, record.setting, record.backbone_name)
    return json.dumps([place, configuration(record)], sort_keys=True)


def look_alikes_last(names: Mapping[str, str]) -> list[str]:
    """The ids of submitted runs in the order in which they are looked at. ``names``: id -> sender.

    Plain names come first, so that it is the look-alike that is refused, not the one that it looks like.
    """
    return sorted(names, key=lambda run_id: (not names[run_id].isascii(), run_id))
