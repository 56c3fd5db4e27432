"""Every help text of the command line is whole: sentences that end, brackets that close, one space
between words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
from commands import bench

from bench.cli import main


def commands(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")
        yield f"{path} {name}", command


def texts() -> Iterator[tuple[str, str]]:
    for path, command in [("bench", main), *commands(main, "bench")]:
        yield path, command.help or ""
        for param in command.params:
            if isinstance(param, click.Option) and not param.hidden:
                yield f"{path} {param.opts[0]}", param.help or ""


UNFINISHED = re.compile(r"\b(and|or|not|is|are|the|a|an|of|that|which|as)\.?$")


def problems(text: str) -> list[str]:
    """List what is wrong with a help text; blanks are kept in the part that shows a command (after
    \b).
    """
    # two blanks precede the default, as in click's own texts, and an example
    prose = re.split(r"(?:^|\s+)\[default: [^\]]*\]$|\s+Example: |\x08", text.strip())[0].strip()
    if not prose and text:
        return []
    found = []
    if re.search(r"\S {2,}(?=\S)", prose):
        found.append("two spaces inside")
    for opening, closing in ("()", "[]"):
        if prose.count(opening) != prose.count(closing):
            found.append(f"{opening} and {closing} do not match")
    if not prose.endswith((".", "?", ":")):
        found.append("no end of a sentence")
    for sentence in re.split(r"[.;:] ", prose.removesuffix(".")):
        if UNFINISHED.search(sentence.strip()):
            found.append(f"half a sentence: {sentence.strip()}")
    return found


def test_every_help_text_is_whole() -> None:
    found = {where: problems(text) for where, text in texts()}
    assert len(found) > 100
    assert {where: wrong for where, wrong in found.items() if wrong} == {}


def test_no_line_of_a_list_of_verbs_is_cut() -> None:
    for words in ((), ("data",)):
        listed = bench(*words, "--help", COLUMNS="80").stdout
        assert "..." not in listed.partition("Commands:")[2], listed
