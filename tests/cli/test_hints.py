"""Every verb and option that a message names is there: the texts of the source, compared with
click's own tree.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from commands import argv

import bench as package
from bench import methods
from bench.cli import VERBS, main

COMMAND = re.compile(r"\bbench ((?:[a-z]+)(?: [a-z]+)?)\b(?!:)")
OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*)")
FOREIGN = argv(
    """
    iconv torchrun pip mkdir --local-dir --query-gpu --abbrev= --nproc-per-node
    --untracked-files var(-- --wrap= --time=1 --mem=100M --ntasks=1 --output= --job-name=
    --array= --chdir= --dependency= --user= --format=% --auto-truncate
    """
)
"""Other programs and their options, which are not ours to check."""
SENTENCE = argv(
    """
    call cannot is has does knows and by of itself with that never writes gives reads scores
    makes does was are judges
    """
)
"""What follows the name of the program where it is no command."""


def tree() -> dict[str, click.Command]:
    """ "run", "data", "data fetch", ...: every command by the words after "bench"."""
    context, found = click.Context(main), dict[str, click.Command]()
    for verb in VERBS:
        command = main.get_command(context, verb)
        assert command is not None
        found[verb] = command
        if isinstance(command, click.Group):
            found |= {f"{verb} {name}": one for name, one in command.commands.items()}
    return found


TREE = tree()


def options(name: str = "") -> set[str]:
    """The options of a command and of those below it; of all commands without a name."""
    below = [
        one for path, one in TREE.items() if not name or path == name or path.startswith(name + " ")
    ]
    declared = {"help", "version"}
    for one in below:
        for parameter in one.params:
            declared |= {text.lstrip("-") for text in parameter.opts}
    return declared


def strings(path: Path) -> Iterator[tuple[int, str]]:
    """Find every text that the code may show; in an f-string {} replaces each value."""
    module = ast.parse(path.read_text(encoding="utf-8"))
    inside: set[int] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Expr | ast.JoinedStr):  # docstrings; the parts of an f-string
            inside |= {id(one) for one in ast.walk(node) if isinstance(one, ast.Constant)}
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Value":
            inside |= {id(one) for one in ast.walk(node)}  # the source of a recipe value
    for node in ast.walk(module):
        if isinstance(node, ast.JoinedStr):
            parts = (one.value if isinstance(one, ast.Constant) else "{}" for one in node.values)
            yield node.lineno, "".join(map(str, parts))
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in inside
        ):
            yield node.lineno, node.value


def wrong(text: str) -> list[str]:
    """List the commands and options that a text names and that do not exist."""
    found: list[str] = []
    declared = text.startswith("--") and " " not in text and "=" not in text
    if declared or any(tool in text for tool in FOREIGN):
        return found
    for part in re.split(r"[;,](?=\s)|\bor\b|   +|\n", re.sub(r"no --[a-z-]+ was", "", text)):
        named = COMMAND.search(part)
        verb = named[1].split()[0] if named else ""
        if named and verb in SENTENCE:
            named = None
        elif named and verb not in VERBS:
            found.append(f"bench {verb}")
            continue
        known = options(named[1] if named[1] in TREE else verb) if named else options()
        given = OPTION.findall(part[named.end() :] if named else part)
        found += [f"{named[0] + ' ' if named else ''}--{one}" for one in given if one not in known]
    return found


@pytest.mark.nightly
def test_every_command_and_option_in_a_message_is_there() -> None:
    found = {}
    folders = (Path(package.__file__).parent, Path(methods.__file__).parent)
    for path in (one for folder in folders for one in sorted(folder.rglob("*.py"))):
        if "builtin" not in path.parts:  # scripts with a command line of their own
            for line, text in strings(path):
                if hits := wrong(text):
                    found[f"{path}:{line}"] = (hits, text[:120])
    assert found == {}


def test_commands_in_the_hints_of_data_sets_exist() -> None:
    from bench.data.sets import data_sets

    assert {one.name: hits for one in data_sets().values() if (hits := wrong(one.get))} == {}
