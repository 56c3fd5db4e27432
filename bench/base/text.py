"""Numbers and names as every verb and page prints them, and foreign text made harmless in each form.

Names come from plugins, folders and other people's records: nothing in them may move a cursor, open a tag, or run a formula or a
LaTeX command.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterable
from typing import Any

from bench.base.errors import printable


def duration(seconds: float) -> str:
    """ "4.2s", "39s", "13m32s", "2h05m"; from two days on "12 days"."""
    if seconds < 59.5:
        return f"{seconds:.1f}s" if seconds < 9.95 else f"{seconds:.0f}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}m{rest:02d}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m" if hours < 48 else f"{hours / 24:,.0f} days"


def size(count: float) -> str:
    """Bytes in decimal units: "512 B", "10.6 MB"."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.95:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:,.1f} TB"


def list_names(names: Iterable[str], most: int = 4) -> str:
    """ "a", "a and b", "a, b and c"; of more than ``most``: "a, b, c, d and 3 more"."""
    known = list(names)
    shown, more = known[:most], len(known) - most
    if more > 0:
        shown.append(f"{more} more")
    return " and ".join(part for part in (", ".join(shown[:-1]), *shown[-1:]) if part)


def plural(count: int, noun: str) -> str:
    """ "1 run", "1,029 runs" """
    return f"{count:,} {noun}{'s' * (count != 1)}"


def slug(*parts: str | None, longest: int = 100) -> str:
    """Lower-case letters, digits and hyphens: "senteval-all/1" -> "senteval-all-1"; "" where nothing of that is left."""
    text = unicodedata.normalize("NFKD", " ".join(part for part in parts if part))
    plain = re.sub(r"[^a-z0-9]+", "-", text.encode("ascii", "ignore").decode().lower())
    return plain.strip("-")[:longest].strip("-")


def one_value(text: str) -> str:
    """What ``--set KEY=`` takes for one value that may hold commas."""
    return text.replace(",", "\\,")


def value_text(value: Any) -> str:
    """Of a recipe: "none", "true", 3e-05 as "3e-5"; text as it is, lists as JSON."""
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:g}".replace("e-0", "e-").replace("e+0", "e+")
    return (
        str(value)
        if isinstance(value, str) and value
        else json.dumps(value, ensure_ascii=False, default=str)
    )


def seed_ranges(seeds: Iterable[int | None]) -> str:
    """[1, 2, 3, 7] -> "1-3,7": what --seeds takes; "" where nothing is random."""
    parts: list[list[int]] = []
    for seed in sorted({seed for seed in seeds if seed is not None}):
        if parts and seed == parts[-1][-1] + 1:
            parts[-1].append(seed)
        else:
            parts.append([seed])
    return ",".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


def average_of(values: Iterable[float]) -> float:
    """The papers' "Avg.": each value rounded to two decimals, as it is printed, their mean, rounded again."""
    printed = [round(value, 2) for value in values]
    return round(math.fsum(printed) / len(printed), 2)


# --- foreign text ---

LONGEST = 300  # characters of a name that are shown


def visible(text: str, encoding: str = "utf-8", limit: int | None = LONGEST) -> str:
    """``text`` on one line, with control, format and unencodable characters as visible escapes."""
    if limit is not None and len(text) > limit:
        text = text[: limit - 1] + "…"
    shown = printable(" ".join(text.split()))
    return shown if shown.isascii() else encodable(shown, encoding)


_SIGNS = str.maketrans(
    {
        "±": "+-",
        "×": "x",
        "◆": "#",
        "▲": "^",
        "▼": "v",
        "≈": "~",
        "√": "sqrt ",
        "…": "...",
        "–": "-",
        "“": '"',
        "”": '"',
    }
)
"""Signs of tables and sentences, for a terminal that has none of them."""
_MARKS = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹][⁰¹²³⁴⁵⁶⁷⁸⁹·]*")
_DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹·", "0123456789,")


def encodable(text: str, encoding: str) -> str:
    """The text in characters that the encoding has: our own signs become signs of ASCII ("name⁵·¹²" is "name(5,12)"), other
    characters visible escapes."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = _MARKS.sub(lambda marks: f"({marks[0].translate(_DIGITS)})", text).translate(_SIGNS)
    return text.encode(encoding, "backslashreplace").decode(encoding)


def lines(text: str) -> list[str]:
    """Without control characters; blanks inside a line, which align equations, stay."""
    return [
        "".join(
            visible(part, limit=None) if part.strip(" ") else part
            for part in re.split("( +)", line)
        )
        for line in text.splitlines()
    ]


# --- Markdown ---

_MARKDOWN = str.maketrans(
    {c: "\\" + c for c in "\\`*_{}[]#+|~$"}
    | {"<": "&lt;", ">": "&gt;", "&": "&amp;", "@": "&#64;", "^": "&#94;"}
)


def markdown(text: str, limit: int | None = LONGEST) -> str:
    """``text`` as words in a Markdown cell: no emphasis, tags, links, mentions, images or cell borders."""
    return (
        visible(text, limit=limit)
        .translate(_MARKDOWN)
        .replace("://", "&#58;//")
        .replace("www.", "www&#46;")
    )


# --- LaTeX ---

_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "[": "{[}",
    "]": "{]}",
    "±": r"$\pm$",
    "×": r"$\times$",
    "…": r"\dots{}",
    "▲": r"$\blacktriangle$",
    "▼": r"$\blacktriangledown$",
    "◆": r"$\blacklozenge$",
    "≈": r"$\approx$",
}
_ACCENTS = {
    "\u0300",
    "\u0301",
    "\u0302",
    "\u0303",
    "\u0308",
    "\u030a",
    "\u030c",
    "\u0327",
}  # those that every TeX font can set


def latex(text: str) -> str:
    """``text`` as words in LaTeX; a character that a plain pdflatex cannot set becomes its code."""
    return "".join(
        _LATEX.get(c) or (c if c.isascii() or _accented(c) else f"U+{ord(c):04X}")
        for c in visible(text)
    )


def _accented(c: str) -> bool:
    parts = unicodedata.normalize("NFD", c)
    return len(parts) == 2 and parts[0].isascii() and parts[0].isalpha() and parts[1] in _ACCENTS


# --- CSV ---


_FORMULA = "=+-@|%\u2212"
"""What begins a formula or a command in some spreadsheet, after full-width and small forms are made plain."""
_SEPARATORS = ";,|\t\r\n\"' "
_BEHIND_SEPARATOR = re.compile(
    r"([;|]\s*)(?=[=@\uff1d\uff20\ufe66\ufe6b]|[+\-\u2212\uff0b\uff0d\ufe62\ufe63](?!\d[\d.]*(?:[\s,)\]%]|$)))"
)
"""Where a program that takes ``;`` or ``|`` for the separator would begin a cell with a formula. A plain number is none."""


def csv_text(text: str, limit: int | None = LONGEST) -> str:
    """A text cell that no spreadsheet takes for a formula, whatever it takes for the separator."""
    shown = visible(text, limit=limit)
    begin = unicodedata.normalize("NFKC", shown.lstrip(_SEPARATORS)[:1])
    shown = _BEHIND_SEPARATOR.sub(r"\1'", shown)
    begins_formula = bool(begin) and begin[0] in _FORMULA
    return f"'{shown}" if begins_formula or shown[:1] in ("|", "%") else shown


def csv_value(value: object, limit: int | None = LONGEST) -> str:
    """A cell of any kind: nothing for None, "yes" and "no", numbers with all digits."""
    if value is None or isinstance(value, bool):
        return {None: "", True: "yes", False: "no"}[value]
    return csv_text(value, limit) if isinstance(value, str) else repr(value)
