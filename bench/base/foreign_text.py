"""Make foreign text harmless in each form: terminal, Markdown, LaTeX, CSV.

Names come from plugins, folders and other people's records: nothing in them may move a cursor, open
a tag, or run a formula or a LaTeX command.
"""

from __future__ import annotations

import re
import unicodedata

from bench.base.errors import printable

LONGEST = 300
"""Characters of a name that are shown."""


def make_visible(text: str, encoding: str = "utf-8", limit: int | None = LONGEST) -> str:
    """Return ``text`` on one line, with control, format and unencodable characters as escapes."""
    if limit is not None and len(text) > limit:
        text = text[: limit - 1] + "…"
    shown = printable(" ".join(text.split()))
    return shown if shown.isascii() else encodable(shown, encoding)


_SIGNS = str.maketrans(
    {
        "±": "+-",
        "×": "x",
        "◆": "#",
        "²": "^2",
        "…": "...",
        "–": "-",
        "“": '"',
        "”": '"',
    }
)
"""Our own signs, for a terminal that has only ASCII."""


def encodable(text: str, encoding: str) -> str:
    """Return the text in characters of the encoding.

    Our own signs become signs of ASCII, other characters visible escapes.
    """
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.translate(_SIGNS)
    return text.encode(encoding, "backslashreplace").decode(encoding)


def printable_lines(text: str) -> list[str]:
    """Split into lines without control characters; blanks that align equations stay."""
    shown: list[str] = []
    for line in text.splitlines():
        parts = re.split("( +)", line)
        words = [make_visible(part, limit=None) if part.strip(" ") else part for part in parts]
        shown.append("".join(words))
    return shown


_MARKDOWN = str.maketrans(
    {c: "\\" + c for c in "\\`*_{}[]#+|~$"}
    | {"<": "&lt;", ">": "&gt;", "&": "&amp;", "@": "&#64;", "^": "&#94;"}
)


def escape_markdown(text: str, limit: int | None = LONGEST) -> str:
    """Escape ``text`` as words in a Markdown cell.

    It then makes no emphasis, tag, link, mention, image or cell border.
    """
    return (
        make_visible(text, limit=limit)
        .translate(_MARKDOWN)
        .replace("://", "&#58;//")
        .replace("www.", "www&#46;")
    )


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
    "◆": r"$\blacklozenge$",
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
}
"""Accents that every TeX font can set."""


def escape_latex(text: str, limit: int | None = LONGEST) -> str:
    """Escape ``text`` as words in LaTeX; characters that pdflatex cannot set become their codes."""
    written: list[str] = []
    for c in make_visible(text, limit=limit):
        if c in _LATEX:
            written.append(_LATEX[c])
        elif c.isascii() or _accented(c):
            written.append(c)
        else:
            written.append(f"U+{ord(c):04X}")
    return "".join(written)


def _accented(c: str) -> bool:
    """Tell whether a character is an ASCII letter with an accent of every TeX font."""
    parts = unicodedata.normalize("NFD", c)
    return len(parts) == 2 and parts[0].isascii() and parts[0].isalpha() and parts[1] in _ACCENTS


_FORMULA = ("=", "+", "-", "@", "|", "%")
"""Characters that begin a formula or a command in some spreadsheet."""


def escape_csv(text: str) -> str:
    """Write a text cell that no spreadsheet reads as a formula."""
    shown = make_visible(text, limit=None)
    return f"'{shown}" if shown.startswith(_FORMULA) else shown


def format_csv_value(value: object) -> str:
    """Write a cell of any kind: nothing for None, "yes" and "no", numbers with all digits."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return escape_csv(value)
    return repr(value)
