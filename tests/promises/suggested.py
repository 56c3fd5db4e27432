"""The suggestions that errors print after ``try:``: what stands in the source, and what it means.

Nothing of bench is imported: the source is read as text, for the suggestions that no case prints.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

VALUE = "\0"
"""Stands for a value in a template, {} of an f-string."""
RUNNABLE = re.compile(r"\bbench [a-z]|(?<![\w-])--[a-z]")
"""What a suggestion has if it names a command of bench or an option."""
PROSE = {
    *("lists", "creates", "writes", "makes", "gives", "shows", "then", "and", "or", "prints"),
    *("fetches", "scores", "computes", "leaves", "names", "with", "has", "says", "as", "trains"),
}
"""What follows the words of a command in a sentence."""
PLACEHOLDER = re.compile(r"\b[A-Z]{2,}\b|\bN\b|\bA,B\b|\.\.\.|=(?=\s|$)|cuda|mps")
"""What a reader fills in, and devices that are not everywhere."""
OPTION = re.compile(r"""(?<![\w-])(--[a-z-]+)(?:[ =]([^\s'"()-](?:'[^']*'|"[^"]*"|[^\s'"()])*))?""")
"""An option with its value, which may have a part in quotation marks."""
FLAGS = {
    *("--dry-run", "--fresh", "--unmerged", "--strict", "--check", "--all", "--allow-pickle"),
    *("--items", "--offline", "--json", "--remarks", "--fetch"),
}
"""Options without a value."""


@dataclass(frozen=True)
class Template:
    """A suggestion in the source; VALUE stands for each of its values."""

    file: str
    text: str

    def is_in(self, printed: str) -> bool:
        """Say if one of these lines has the suggestion."""
        pattern = ".*".join(map(re.escape, self.text.split(VALUE)))
        return re.search(" ".join(pattern.split()), printed) is not None


def templates(source: Path) -> set[Template]:
    """Return the suggestions of all errors below a folder that name a command or an option."""
    modules = {path: ast.parse(path.read_text()) for path in sorted(source.rglob("*.py"))}
    found = set()
    for path, module in modules.items():
        for text in _hints(module):
            if RUNNABLE.search(text):
                found.add(Template(str(path.relative_to(source.parent)), text))
    return found


def _hints(module: ast.Module) -> Iterator[str]:
    """Yield the texts of every argument that is a hint: the second one of an error, the fifth of
    an unknown name, or one that is called ``hint``."""
    assigned: dict[str, list[ast.expr]] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            assigned.setdefault(node.targets[0].id, []).append(node.value)
    for node in ast.walk(module):
        if not isinstance(node, ast.Call):
            continue
        hints = [keyword.value for keyword in node.keywords if keyword.arg == "hint"]
        name = getattr(node.func, "id", "")
        place = 4 if name == "UnknownName" else 1
        if name in ERRORS and len(node.args) > place:
            hints.append(node.args[place])
        for hint in hints:
            yield from _texts(hint, assigned)


ERRORS = {
    *("BenchError", "UnknownName", "DataMissing", "DataDamaged", "FetchFailed", "FetchRefused"),
    *("CorpusError", "RecordDamaged", "OtherSchema", "NotAModel", "RunLocked", "RunFailed"),
    *("RunRefused", "OutOfMemory", "PluginFailed", "DeviceLost", "Interrupted"),
}


def _texts(node: ast.expr, assigned: Mapping[str, Sequence[ast.expr]]) -> list[str]:
    """Return the texts that an expression may be, with VALUE for what only a run knows."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.JoinedStr):
        parts = [part.value if isinstance(part, ast.Constant) else VALUE for part in node.values]
        return ["".join(map(str, parts))]
    if isinstance(node, ast.IfExp):
        return [*_texts(node.body, assigned), *_texts(node.orelse, assigned)]
    if isinstance(node, ast.BoolOp):
        return [text for value in node.values for text in _texts(value, assigned)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        sides = product(_texts(node.left, assigned), _texts(node.right, assigned))
        return [left + right for left, right in sides]
    if isinstance(node, ast.Name) and node.id in assigned:
        others = {name: values for name, values in assigned.items() if name != node.id}
        return [text for value in assigned[node.id] for text in _texts(value, others)]
    return [VALUE]


@dataclass(frozen=True)
class Suggested:
    """A command that a suggestion means; ``whole``: it has nothing to fill in."""

    words: tuple[str, ...]
    whole: bool


def suggested(words: Sequence[str], printed: str) -> Iterator[Suggested]:
    """Yield the commands that a suggestion means: whole ones, and the failed one with the options
    that it names put in, or taken out."""
    same = re.search(r" \(with the same (.*)\)$", printed)
    text = printed[: same.start()] if same else printed
    for left_out in re.findall(r"\b(?:leave|omit) (.*?) out\b", text):
        changed = list(words)
        for option, value in OPTION.findall(left_out):
            changed = without(changed, option, value)
        if changed != list(words):
            yield Suggested(tuple(changed), True)
    text = re.sub(r"\b(?:leave|omit|without|outside)\b.*?(?:\bout\b|:|$)", "", text)
    for clause in split_outside_quotes(text):
        command = re.search(r"\bbench ([a-z-].*)", clause)
        if command:
            named = _before_prose(_split(command[1].strip(" ,()")))
            for option in re.findall(r"--\w+", same[1] if same else ""):
                named += [option, words[list(words).index(option) + 1]]
            yield Suggested(tuple(named), not PLACEHOLDER.search(command[1]))
        elif OPTION.search(clause):
            yield _with_options(words, clause)


def _with_options(words: Sequence[str], clause: str) -> Suggested:
    """Return the failed command with the options of a clause in the place of its own."""
    changed, is_whole = list(words), not PLACEHOLDER.search(clause)
    options = OPTION.findall(clause)
    for option, value in options:
        changed = without(changed, option, value)
    for option, value in options:
        changed.append(option)
        if option in FLAGS:
            continue
        is_whole = is_whole and value != ""
        changed += _split(value.rstrip(",."))
    return Suggested(tuple(changed), is_whole)


def split_outside_quotes(text: str) -> list[str]:
    """Split a suggestion where another one begins: at semicolons, colons, commas and "or"."""
    between = r";|:(?=\s)|\bor\b|\bthen\b|,(?=\s)"
    parts = [""]
    for piece in re.split(rf"""('[^']*'|"[^"]*"|{between})""", text):
        if piece in (";", ":", ",", "or", "then"):
            parts.append("")
        else:
            parts[-1] += piece
    return parts


def without(words: Sequence[str], option: str, value: str = "") -> list[str]:
    """Return a command without an option; of --set without the value of the same key, if that is
    named."""
    kept: list[str] = []
    rest = iter(words)
    key = value.partition("=")[0]
    for word in rest:
        if word != option:
            kept.append(word)
            continue
        given = "" if option in FLAGS else next(rest, "")
        if option == "--set" and key and given.partition("=")[0] != key:
            kept += [word, given]
    return kept


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # a quotation that goes on after the command
        return text.split()


def _before_prose(words: Sequence[str]) -> list[str]:
    places = [place for place, word in enumerate(words) if word in PROSE]
    return list(words[: places[0]] if places else words)
