"""Plain columns for the terminal: the last one wraps, nothing is cut, and foreign text cannot act as markup or control."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console

    from bench.base.contract import CheckResult

NARROWEST = 24  # characters of a column of words that can still be read


def width() -> int:
    return shutil.get_terminal_size((100, 24)).columns


def plain_console() -> Console:
    """Standard output, on which foreign text is nothing but text."""
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False)


def say(text: str, indent: int = 0, hang: int = 0) -> None:
    """A paragraph, wrapped between words; lines after the first one ``hang`` further in."""
    from bench.compare.formatting import lines

    (line,) = lines(text) or [""]
    click.echo(
        "\n".join(
            textwrap.wrap(
                line,
                max(width(), 40),
                initial_indent=" " * indent,
                subsequent_indent=" " * (indent + hang),
                break_on_hyphens=False,
            )
        )
    )


def title(text: str, blank: bool = True) -> None:
    if blank:
        click.echo()
    say(text)


def print_command(command: str, label: str = "") -> None:
    """A command that can be copied: broken between words alone, each line but the last with a backslash at its end."""
    from bench.compare.formatting import visible

    words = re.findall(r"(?:[^\s']|'[^']*')+|\S+", visible(command, limit=None))
    lines, room = [label], width() - 2
    for word in words:
        begun = lines[-1].strip() and lines[-1] != label
        if begun and len(lines[-1]) + 1 + len(word) > room:
            lines.append(" " * (len(label) + 2) + word)
        else:
            lines[-1] += (" " if begun else "") + word
    click.echo(" \\\n".join(lines))


def print_columns(
    rows: Iterable[Sequence[str]], *, headings: Sequence[str] = (), indent: int = 0
) -> None:
    """Print rows of equally many cells; every column but the last is as wide as its longest cell, and the last wraps between words.

    Where that would leave it less than a column of words, or a word of a row does not fit into it, it stands below the others,
    further in. No word is broken.
    """
    from rich.cells import cell_len

    encoding = sys.stdout.encoding or "utf-8"
    listed = [[visible_indent(cell, encoding) for cell in row] for row in rows]
    if not listed:
        return
    shown = (
        [[visible_indent(heading, encoding) for heading in headings], *listed]
        if headings
        else listed
    )
    widths = [max(cell_len(row[i]) for row in shown) + 2 for i in range(len(shown[0]) - 1)]
    room = width() - indent - sum(widths)
    always = bool(widths) and room < min(max(cell_len(row[-1]) for row in shown), NARROWEST)
    for row in shown:
        ahead = "".join(
            cell + " " * (wide - cell_len(cell))
            for cell, wide in zip(row[:-1], widths, strict=True)
        )
        if always or (widths and any(cell_len(word) > room for word in row[-1].split())):
            first = (
                wrap(" ".join(row[:-1]), width() - indent)
                if cell_len(ahead.rstrip()) > width() - indent
                else [ahead]
            )
            lines = [
                *first,
                *("    " + line for line in wrap(row[-1], width() - indent - 4) if row[-1]),
            ]
        else:
            lines = [
                (ahead if not i else " " * sum(widths)) + line
                for i, line in enumerate(wrap(row[-1], room))
            ]
        click.echo("\n".join((" " * indent + line).rstrip() for line in lines))


def wrap(text: str, room: int) -> list[str]:
    """In lines of ``room`` columns, between words; a longer word has a line of its own. At least one line."""
    from rich.cells import cell_len

    lines = [" " * (len(text) - len(text.lstrip(" ")))]
    for word in text.split():
        if lines[-1].strip() and cell_len(lines[-1]) + 1 + cell_len(word) > room:
            lines.append(word)
        else:
            lines[-1] += (" " if lines[-1].strip() else "") + word
    return lines


def visible_indent(cell: str, encoding: str) -> str:
    """``cell`` made harmless; leading blanks, which show that a row belongs to the one above, stay."""
    from bench.compare.formatting import visible

    inside = cell.lstrip(" ")
    return " " * (len(cell) - len(inside)) + visible(inside, encoding, limit=None)


def as_findings(results: Sequence[CheckResult], about: str) -> list[dict[str, object]]:
    """What the checks of a plugin found as JSON; ``about``: "setting" of a method, "task" of a suite."""
    return [
        {
            about: result.about,
            "check": result.check,
            "passed": result.passed,
            "seen": result.seen,
            **({"repeats": result.repeats} if result.repeats else {}),
        }
        for result in results
    ]


def show_results(name: str, results: Sequence[CheckResult]) -> None:
    """The same, a line each."""
    click.echo(name)
    print_columns(
        [
            (
                "ok" if result.passed else "FAILED" if result.failed else "-",
                result.about,
                result.check,
                result.seen,
            )
            for result in results
        ],
        indent=2,
    )


def end_check(failed: int, as_json: bool) -> None:
    """The last line of a check; exit code 1 where something failed."""
    if not as_json:
        click.echo(f"{failed} failed" if failed else "the contract is kept")
    if failed:
        raise click.exceptions.Exit(1)
