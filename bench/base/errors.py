"""The errors for mistakes that a user can make, as one tree.

Each error is one line that says what is wrong, where, and what to do.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


class BenchError(Exception):
    """Exit code 2: wrong usage or input, and nothing was changed.

    Args:
        message: What is wrong and where, one line.
        hint: The command or setting that helps, one line.
    """

    exit_code = 2

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        """Return "no run in runs (try: bench run ...)", which is all that Python shows of an error.

        The command line prints the two parts on two lines.
        """
        if not self.hint:
            return self.message
        return f"{self.message} (try: {self.hint})"


def one_line(error: BaseException, most: int = 200) -> str:
    """Return another library's error as one line, such as "KeyError: 'name'".

    ``most``: characters of the line.
    """
    text = error.message if isinstance(error, BenchError) else str(error)
    return " ".join(f"{type(error).__name__}: {text}".split())[:most]


def printable(text: str) -> str:
    """Return foreign text with invisible characters, and those that move a cursor, as escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class UnknownName(BenchError):
    """An unknown name of a method, suite, variant, run, ...

    ``UnknownName("method", "simsce", ["simcse", ...])`` suggests the nearest known names, or lists
    all if they are few.

    Args:
        kind: What it is the name of: "method".
        name: The unknown name.
        known: The known ones.
        where: Where it was looked for: "in suite sts".
        hint: The command that helps.
        begins: Names may be given by their beginning, such as a run's id; then beginnings are
            compared, and long lists are left out.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        known: Iterable[str],
        where: str = "",
        hint: str | None = None,
        *,
        begins: bool = False,
    ) -> None:
        name = str(name)  # Python may hand over anything
        names = sorted(known)
        if begins:
            near = nearest_beginnings(name, names)
            most_listed = 3
        else:
            near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
            if not near:
                near = _nearest_but_for_case(name, names)
            most_listed = 12
        if near:
            others = f"nearest: {', '.join(near)}"
        elif not names:
            others = "none is known"
        elif len(names) <= most_listed:
            near = names
            others = f"known: {', '.join(names)}"
        else:
            others = f"none of the {len(names)} known is like it"
        unknown = f"unknown {kind} '{name}'"
        if where:
            unknown += f" {where}"
        super().__init__(f"{unknown}; {others}", hint)


def _nearest_but_for_case(name: str, names: Sequence[str]) -> list[str]:
    """Return at most three names that are near if capitals and small letters are the same."""
    folded = {known.casefold(): known for known in names}
    near = difflib.get_close_matches(name.casefold(), folded, n=3, cutoff=0.5)
    return [folded[known] for known in near]


def nearest_beginnings(name: str, names: Sequence[str]) -> list[str]:
    """Return at most three names, those with the most similar beginning first."""
    heads = {known: known[: len(name)] for known in names}
    near = difflib.get_close_matches(name, set(heads.values()), n=3, cutoff=0.6)
    return sorted(
        (known for known in names if heads[known] in near),
        key=lambda known: near.index(heads[known]),
    )[:3]


class DataMissing(BenchError):
    """An evaluation set or corpus that is not here.

    ``name``: the set that ``bench data fetch`` would get, if the hint says so.
    """

    def __init__(self, message: str, hint: str | None = None, name: str | None = None) -> None:
        super().__init__(message, hint)
        self.name = name


class DataDamaged(BenchError):
    """A file with other content than it should have."""


class FetchFailed(BenchError):
    """A download that failed."""


class FetchRefused(FetchFailed):
    """A download that its server refuses, because it is not there, or not public."""


class CorpusError(BenchError):
    """Training text, or a file of one's own, that cannot be read as the form that it claims."""


class RecordDamaged(BenchError):
    """A run record that does not fit its schema."""


class OtherSchema(RecordDamaged):
    """A run record that another version of bench wrote, and that only it reads."""


class NotAModel(BenchError):
    """A folder or name that holds no encoder."""


class RunLocked(BenchError):
    """A run that another process works on."""


class RunFailed(BenchError):
    """A run that was started and failed; the others go on."""

    exit_code = 1


class RunRefused(RunFailed):
    """A run that cannot begin, for a reason that only its built model shows. It leaves nothing."""

    exit_code = 2


class OutOfMemory(RunFailed):
    """A batch that does not fit into memory."""


class PluginFailed(RunFailed):
    """An error in a plugin's code; the message names its file and line."""


class DeviceLost(BenchError):
    """A failure of the GPU after which this process can compute nothing more."""

    exit_code = 1


class Interrupted(BenchError):
    """A stop from outside; the command can be resumed."""

    exit_code = 130
