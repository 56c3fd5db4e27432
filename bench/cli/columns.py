"""Paragraphs, commands and tables on standard output, as wide as the terminal; foreign text cannot act as markup or control."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence

import click
from rich.console import Console

from bench.base.findings import UNCHECKED, Finding
from bench.base.text import lines
from bench.show.grid import Column, Grid, grid, terminal

NARROWEST = 24  # characters of a column of words that can still be read


def width() -> int:
    return shutil.get_terminal_size((100, 24)).columns


def say(text: str, indent: int = 0, hang: int = 0) -> None:
    """A paragraph, wrapped between words; lines after the first one ``hang`` further in."""
    line = " ".join(lines(text))
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


def print_grid(table: Grid, indent: int = 0) -> None:
    """Print a table as wide as the terminal."""
    console = Console(highlight=False, markup=False, emoji=False)
    encoding = sys.stdout.encoding or "utf-8"
    for line in terminal(table, width(), encoding, indent=indent, styled=console.is_terminal):
        console.print(line, soft_wrap=True)


def print_columns(
    rows: Iterable[Sequence[str]], *, headings: Sequence[str] = (), indent: int = 0
) -> None:
    """Print rows of equally many texts, of which the last wraps; see :func:`bench.show.grid.terminal`."""
    listed = list(rows)
    if not listed:
        return
    names = headings or [""] * len(listed[0])
    columns = [Column(name) for name in names[:-1]] + [Column(names[-1], wrap=NARROWEST)]
    print_grid(grid(columns, listed), indent)


def print_facts(facts: Iterable[Sequence[str]], indent: int = 0) -> None:
    """What is known of one thing, a line each; facts without a text are left out."""
    print_columns([fact for fact in facts if fact[1]], indent=indent)


def print_findings(findings: Sequence[Finding], title: str = "") -> None:
    """A line each: how it came out, where, which check, why, and what to do."""
    rows = [
        (
            "-"
            if finding.outcome == UNCHECKED or finding.repeats
            else ("ok" if finding.passed else "FAILED"),
            *(finding.what, finding.kind, finding.why, finding.hint),
        )
        for finding in findings
    ]
    texts = [Column("found", wrap=NARROWEST), Column("what to do", wrap=NARROWEST)]
    print_grid(grid(["", "where", "check", *texts], rows, title=title), indent=2)
