"""Find absolute paths in texts and replace them by names: nothing published shows a user's folders.

A path is absolute on any system, whatever this one is: ``/home/ada/x``, ``~/x``, ``$HOME/x``,
``C:\\x``, ``%APPDATA%\\x``, ``\\\\server\\x``, ``file:///x``, ``ssh://server/x``. The address of a
web page, a hub's ``owner/name``, a relative path and a token such as ``</s>`` are no absolute
paths.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

GENERIC = (".", "..", "~", "model", "checkpoint", "snapshot", "encoder", "")
"""Last parts of a path that identify nothing; the folder above is used instead."""

_BEFORE = r"(?<![^\s'\"`=:;,(\[{|<>@‘’‚“”„«»‹›\u200b-\u200f\u2060\ufeff])"
"""A path begins at the beginning of a text, or after a blank, a quote, a bracket or punctuation."""
_NOT_IN_ADDRESS = r"(?<!:)"
_PART = r"[^\s/\\'\"`,;:()<>|]"
_SCHEME = r"(?i:(?:file|smb|cifs|nfs|afp|s?ftp|ssh|scp|rsync|vscode[a-z-]*)):[/\\]+"
_VARIABLE = r"(?:\$\{?[A-Z_]{2,}\}?|(?i:\$env:\w+)|%[A-Z_]{2,}%)[\\/]"
"""A folder that the environment names: ``$HOME/``, ``${SCRATCH}/``, ``%USERPROFILE%\\``."""
_OF_PEOPLE = r"(?i:home|users|root|mnt|media|volumes|scratch)"
"""Folders at the root of a disk that hold people's own folders."""
_ROOT = (
    rf"(?:{_SCHEME}|{_BEFORE}(?:[A-Za-z]:(?:[\\/]|(?=[^\s\\/:]+\\))|~[A-Za-z0-9_.-]*[\\/]"
    rf"|{_VARIABLE}|\\\\(?=[^\s\\]+\\)|{_NOT_IN_ADDRESS}//(?={_PART}+/)))"
)
_REST = r"[^\s'\"`,;()<>|]*"

_PEOPLE = rf"(?<![\w.\\/])(?:[.\\/]*\.\.)?[\\/]{_OF_PEOPLE}[\\/]{_PART}{_REST}"
_SEVERAL_PARTS = re.compile(rf"{_ROOT}{_REST}|{_BEFORE}/{_PART}+/{_REST}|{_PEOPLE}")
"""A path of at least two parts, if it begins with a single slash: "/no_think" in a prompt is no
folder.
"""
_WHOLE = re.compile(
    rf"(?:{_ROOT}.*|{_PEOPLE}.*|~(?:[A-Za-z_][\w-]*)?$|/{_PART}+/?$|/[^\s/][^/\n]*/[^\s/].*)"
)
"""A text that is nothing but a path. Its parts may hold blanks."""
_KINDS = "vectors|own|pairs|classification|clustering|retrieval"
_VALUE = re.compile(rf"^(?:-{{1,2}}[\w-]+=|[\w.+-]+=|(?:{_KINDS}):)+")
"""The beginning of a word before a path: ``--data=``, ``teacher=``, ``NAME=``, ``vectors:``,
``retrieval:``.
"""
_PROMPTS = ("--prefix", "--prompt", "--prompt-query", "--prompt-document")


def find_path(text: str, *, is_prompt: bool = False) -> str | None:
    """Return the first absolute path in a text; None without one.

    A prompt is never a path as a whole, even if it begins like one.
    """
    found = _SEVERAL_PARTS.search(text)
    if found is None and not is_prompt:
        found = _WHOLE.match(text)
    return None if found is None else found[0]


def find_path_in_command(command: str) -> str | None:
    """Return the first absolute path in a command line; None without one.

    A folder such as "/data" counts, too.
    """
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    for before, word in zip(["", *words], words, strict=False):
        if _is_prompt(before, word):
            continue
        for part in (word, *_without_key(word).split(",")):
            value = _without_key(part)
            if _WHOLE.match(value):
                return value
    return find_path(command, is_prompt=True)


def _is_prompt(before: str, word: str) -> bool:
    """Tell whether a word of a command is a prompt, which is no path.

    ``before``: the word before it.
    """
    return before in _PROMPTS or bool(
        re.match(
            r"(--set=)?prompts?(_query|_document)?=|--(prefix|prompt|prompt-query|prompt-document)=",
            word,
        )
    )


def _without_key(word: str) -> str:
    """Return the part after ``--data=``, ``teacher=`` or ``vectors:``."""
    behind = _VALUE.match(word)
    return word[behind.end() :] if behind else word


def path_name(path: str) -> str:
    """Return the last telling part of a path: "/home/ada/mini/checkpoint" -> "mini"."""
    parts = [part for part in re.split(r"[/\\]+", path) if part not in GENERIC]
    for part in reversed(parts):
        if not part.endswith((":", "%")) and not part.startswith(("~", "$")):
            return part
    return "local folder"


def recorded_path(path: str) -> str:
    """Return the name of a file or folder in a record.

    It is relative to the working directory, and outside of that the last part only. A text that is
    no path of this machine, such as a hub's ``owner/name``, is unchanged.
    """
    leads_out = ".." in re.split(r"[/\\]", path)
    if _WHOLE.match(path) is None and not leads_out:
        return path
    inside = _relative(path)
    return path_name(path) if inside is None else inside


def _relative(path: str) -> str | None:
    """Return the path from the working directory; None if it is outside of it."""
    folder = Path.cwd()
    typed = os.path.expanduser(path)
    if ":" in path.partition("/")[0] or "\\" in path or path.startswith(("$", "%")):
        return None  # of another system, or of another environment
    expanded = os.path.normpath(folder / typed)
    for base in (os.path.normpath(folder), os.path.realpath(folder)):
        if expanded == base:
            return "."
        if expanded.startswith(base.rstrip(os.sep) + os.sep):
            return os.path.relpath(expanded, base)
    return None


def hide_paths(text: str) -> str:
    """Replace each absolute path in a sentence by its name in a record.

    Paths with blanks are recognised inside the working directory and inside the user's home.
    """
    # a user without a home has "~"
    for known in (Path.cwd(), Path(os.path.expanduser("~"))):
        if len(known.parts) > 1:
            text = text.replace(f"{known}{os.sep}", "")
    return _SEVERAL_PARTS.sub(lambda found: _hidden(found[0]), text)


def _hidden(found: str) -> str:
    """Return a path in a sentence as a record names it; the punctuation after it stays."""
    path = found.rstrip(".:")
    return recorded_path(path) + found[len(path) :]


def recorded_command(words: Sequence[str]) -> str:
    """Return a command line as a record holds it, without absolute paths.

    Paths are found in each word, after ``KEY=`` and between commas, too. A prompt is no path.
    """
    written: list[str] = []
    for before, word in zip(["", *words], words, strict=False):
        if not _is_prompt(before, word):
            word = recorded_word(word)
        written.append(word)
    return shlex.join(written)


def recorded_word(word: str) -> str:
    """Return one word of a command as a record holds it: ``vectors:/a/x`` -> ``vectors:x``."""
    behind = _VALUE.match(word)
    begin = behind[0] if behind else ""
    value = word.removeprefix(begin)
    if " " not in value:
        parts = [_recorded_part(part) for part in value.split(",")]
        return begin + ",".join(parts)
    if _WHOLE.match(value):  # a path with blanks
        return begin + recorded_path(value)
    return begin + hide_paths(value)


def _recorded_part(part: str) -> str:
    """Return one value between commas, which may have a name before it: ``mini=/models/mini``."""
    behind = _VALUE.match(part)
    begin = behind[0] if behind else ""
    return begin + recorded_path(part.removeprefix(begin))


def hidden_values(value: Any) -> Any:
    """Return a JSON value without absolute paths in its texts."""
    if isinstance(value, str):
        found = find_path(value)
        if found is None:
            return value
        return recorded_path(value) if found == value else hide_paths(value)
    if isinstance(value, Mapping):
        return {key: hidden_values(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [hidden_values(item) for item in value]
    return value
