"""Who submitted a run: the form of a name, and names that look alike.

Nobody can prove here who they are. So a name must be seen and must not look like another one. What
the very same name may do is in ``bench.compare.sender_rows``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path

from bench.base.errors import DataDamaged, printable
from bench.base.paths import find_path
from bench.base.reading import read_plain_file
from bench.compare.sender_rows import NUMBERED, plain_name
from bench.compare.senders import LONGEST_NAME, SENDER_FILE

MOST_BYTES = 1024
MOST_MARKS = 2
"""Combining marks on one letter; Vietnamese needs two."""

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
"""Scripts with letters that look alike."""


def submitter_of(folder: Path) -> str:
    """Return the name of who submits the run in a folder.

    Raises DataDamaged for anything but a name on one line.
    """
    try:
        text = read_plain_file(folder / SENDER_FILE, MOST_BYTES).decode("utf-8")
    except (OSError, ValueError):
        raise DataDamaged(f"{SENDER_FILE} must contain {_EXPECTED}") from None
    return check_name(text, f"{SENDER_FILE} must contain")


_EXPECTED = f"a name of at most {LONGEST_NAME} characters, which can be read"


def check_name(text: str, must: str = "--by must be") -> str:
    """Return the name with single blanks. Raises DataDamaged for one that is empty, too long, or
    has characters that a reader cannot see.
    """
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
    if find_path(name) is not None:
        raise DataDamaged(f"{must} a name, not the absolute path of a folder")
    if NUMBERED.search(name):
        raise DataDamaged(
            f"{must} a name without a number in brackets at its end: boards add those"
        )
    for word in re.split(r"[\W\d_]+", name):
        scripts = _scripts_of(word)
        if len(scripts) > 1:
            raise DataDamaged(
                f"{must} {_EXPECTED}; '{printable(word)[:40]}' mixes {' and '.join(scripts)} "
                "letters"
            )
    return name


def _is_unseen(character: str) -> bool:
    if character == " ":
        return False
    if unicodedata.category(character) in _UNSEEN_CATEGORIES or not character.isprintable():
        return True
    return any(first <= ord(character) <= last for first, last in _UNSEEN_RANGES)


def _most_marks(name: str) -> int:
    """Count the most combining marks that follow each other."""
    most = now = 0
    for character in unicodedata.normalize("NFD", name):
        now = now + 1 if unicodedata.category(character)[0] == "M" else 0
        most = max(most, now)
    return most


def _scripts_of(word: str) -> list[str]:
    """Name the scripts of a word's letters, as far as ``_SCRIPTS`` has them: ["Cyrillic",
    "Latin"]."""
    found = set()
    for character in word:
        script = unicodedata.name(character, "").partition(" ")[0]
        if character.isalpha() and script in _SCRIPTS:
            found.add(script.capitalize())
    return sorted(found)


def skeleton(name: str) -> str:
    """Reduce a name to its shapes at a glance: names that look alike have the same skeleton."""
    plain = unicodedata.normalize("NFKD", name).casefold()
    letters = "".join(character for character in plain if character.isalnum() or character in "|!")
    letters = letters.translate(_CYRILLIC).translate(_GREEK).translate(_OTHERS)
    return letters.replace("rn", "m").replace("vv", "w")


def refuse_look_alike(name: str, known: Iterable[str]) -> None:
    """Raise DataDamaged for a name that looks like another known one without being it."""
    mine = skeleton(name)
    for other in known:
        plain = plain_name(other)
        if plain != name and skeleton(plain) == mine:
            raise DataDamaged(
                f"the sender '{printable(name)}' looks like '{printable(plain)}', "
                "who is there already",
                "write more of the name",
            )


def look_alikes_last(names: Mapping[str, str]) -> list[str]:
    """Return the ids of submitted runs in the order of their checks. ``names``: id -> sender.

    Plain names come first, so that it is the look-alike that is refused, not the one that it looks
    like.
    """
    return sorted(names, key=lambda run_id: (not names[run_id].isascii(), run_id))
