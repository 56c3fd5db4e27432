"""Everything that a user can get wrong, as one tree; each error is one line that says what, where,
and what to do.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


class BenchError(Exception):
    """Exit code 2: wrong usage or input, and nothing was changed.

    ``message`` says what is wrong and where, ``hint`` the command or setting that helps; both are
    one line.
    """

    exit_code = 2

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        """ "no run in runs (try: bench run ...)": all that Python shows of an error. The command
        line prints the two parts apart.
        """
        if not self.hint:
            return self.message
        return f"{self.message} (try: {self.hint})"


def one_line(error: BaseException, most: int = 200) -> str:
    """ "KeyError: 'name'": what another library raised, in one line of at most so many characters."""
    text = error.message if isinstance(error, BenchError) else str(error)
    return " ".join(f"{type(error).__name__}: {text}".split())[:most]


def printable(text: str) -> str:
    """Foreign text with what moves a cursor or cannot be seen as visible escapes."""
    return (
        text
        if text.isprintable()
        else "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    )


class UnknownName(BenchError):
    """A method, suite, variant, run ... that nobody registered.

    ``UnknownName("method", "simsce", ["simcse", ...])`` suggests the nearest known names, or lists
    them all if few.

    ``begins``: a name may be given by its beginning (a run's id), so that beginnings are compared,
    and long lists help nobody.
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
        names = sorted(known)
        near = (
            _nearest_beginnings(name, names)
            if begins
            else difflib.get_close_matches(name, names, n=3, cutoff=0.5)
        )
        if near:
            others = f"nearest: {', '.join(near)}"
        elif not names:
            others = "none is known"
        elif len(names) <= (3 if begins else 12):
            near, others = names, f"known: {', '.join(names)}"
        else:
            others = f"none of the {len(names)} known is like it"
        super().__init__(f"unknown {kind} '{name}'{' ' + where if where else ''}; {others}", hint)
        self.kind, self.name, self.near = kind, name, near


def _nearest_beginnings(name: str, names: Sequence[str]) -> list[str]:
    """At most three of ``names``, those first whose beginning is most like ``name``."""
    heads = {known: known[: len(name)] for known in names}
    near = difflib.get_close_matches(name, set(heads.values()), n=3, cutoff=0.6)
    return sorted(
        (known for known in names if heads[known] in near),
        key=lambda known: near.index(heads[known]),
    )[:3]


class DataMissing(BenchError):
    """An evaluation set or corpus that is not there. ``name``: the set that ``bench data fetch``
    would get, where the hint says so.
    """

    def __init__(self, message: str, hint: str | None = None, name: str | None = None) -> None:
        super().__init__(message, hint)
        self.name = name


class DataDamaged(BenchError):
    """A file that is there and is not what it should be."""


class FetchFailed(BenchError):
    """Something that could not be downloaded."""


class CorpusError(BenchError):
    """Training text that cannot be read as what it claims to be."""


class RecordDamaged(BenchError):
    """A run record that does not fit its schema."""


class NotAModel(BenchError):
    """A folder or name that is no encoder."""


class RunLocked(BenchError):
    """Another process works on this run."""


class RunFailed(BenchError):
    """A run was started and failed; the others go on."""

    exit_code = 1


class OutOfMemory(RunFailed):
    """A batch does not fit."""


class PluginFailed(RunFailed):
    """The code of a plugin raised something; the message names its file and line."""


class DeviceLost(BenchError):
    """The GPU failed so that this process can compute nothing more."""

    exit_code = 1


class Interrupted(BenchError):
    """Stopped from outside, resumable."""

    exit_code = 130
