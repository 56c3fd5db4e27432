"""Every command and option that a message names is there: read from the source, compared with click's own tree."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import bench as package
import methods
from bench.cli import VERBS, main
from bench.cli.references import import_

ROOT = Path(package.__file__).parents[1]
COMMAND = re.compile(r"\bbench ((?:[a-z]+)(?: [a-z]+)?)\b(?!:)")
OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*)(?:[ =]([A-Za-z0-9][\w-]*))?")
FOREIGN = (
    *argv("iconv torchrun pip mkdir --nproc-per-node --untracked-files var(--"),
    "ray start",
    *argv("--wrap= --time=1 --mem=100M --ntasks=1 --output= --job-name= --array= --chdir="),
    *argv("--dependency= --user= --format=%"),
)
"""Tools of others, whose options are not ours to check."""
SENTENCE = [
    "call",
    "cannot",
    "is",
    "has",
    "does",
    "knows",
    "and",
    "by",
    "of",
    "itself",
    "with",
    "that",
    "never",
    "writes",
    "gives",
    "reads",
]
"""What follows the name of the program where it is no command."""
NO_VERBS = ("bench/builtin/", "tools/make_manifest.py")
"""Scripts with a command line of their own."""
RAISED_BY = {
    "bench/cli/run_all.py": ("run", "reproduce", "demo"),
    "bench/run/executors": ("run",),
    "bench/training": ("run",),
    "bench/run/plan.py": ("run",),
    "bench/run/recipes.py": ("run",),
    "bench/method/budget.py": ("run",),
    "bench/data/corpora/__init__.py": ("run",),
    "bench/run/corpus_choice.py": ("run",),
    "bench/score/suites": ("run",),
    "bench/export": ("export", "push"),
    "bench/publish": ("publish",),
    "bench/verify/submit": ("submit", "publish"),
    "bench/compare": ("compare",),
    "bench/run/reproduce": ("reproduce",),
    "bench/references": ("references",),
    "bench/verify": ("verify",),
    "methods": ("run",),
}
"""Who shows the messages of a part; of all other parts any verb may."""


def tree() -> dict[str, click.Command]:
    """ "run", "data", "data fetch", ...: every command by the words after "bench"."""
    context, found = click.Context(main), {}
    for verb in VERBS:
        command = main.get_command(context, verb)
        assert command is not None
        found[verb] = command
        if isinstance(command, click.Group):
            found |= {f"{verb} {name}": command.commands[name] for name in command.commands}
    return found | {"references import": import_}


TREE = tree()


def options(names: tuple[str, ...]) -> dict[str, list[click.Parameter]]:
    found: dict[str, list[click.Parameter]] = {"help": [], "version": []}
    for name in names:
        for command in [
            one for path, one in TREE.items() if path == name or path.startswith(name + " ")
        ]:
            for parameter in command.params:
                for text in parameter.opts:
                    found.setdefault(text.lstrip("-"), []).append(parameter)
    return found


EVERY = options(tuple(VERBS))


def strings(path: Path) -> Iterator[tuple[int, str]]:
    """Every text that the code may show: no docstrings, f-strings with {} where a value stands."""
    module = ast.parse(path.read_text(encoding="utf-8"))
    inside: set[int] = set()
    for node in ast.walk(module):
        body = getattr(node, "body", None)
        documented = (
            isinstance(body, list)
            and body
            and isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
        )
        if documented and not any(
            "command" in ast.unparse(one) for one in getattr(node, "decorator_list", [])
        ):
            inside.add(id(body[0].value))  # type: ignore[index]  # a docstring that no command shows as its help
        if (
            isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Value"
        ):  # where a recipe value comes from
            inside |= {id(one) for one in ast.walk(node)}
    for node in ast.walk(module):
        if isinstance(node, ast.JoinedStr) and id(node) not in inside:
            inside |= {id(one) for one in ast.walk(node) if isinstance(one, ast.Constant)}
            yield (
                node.lineno,
                "".join(
                    one.value if isinstance(one, ast.Constant) else "{}" for one in node.values
                ),
            )  # type: ignore[misc]
    for node in ast.walk(module):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in inside
        ):
            yield node.lineno, node.value


def wrong(text: str, scope: tuple[str, ...] = ()) -> list[str]:
    """What a text names and there is not. ``scope``: the verbs to which an option without a command belongs."""
    found = []
    if (
        any(tool in text for tool in FOREIGN)
        or text.startswith("--")
        and " " not in text
        and "=" not in text
    ):
        return found  # the name of an option, where it is declared or compared
    for part in re.split(r"[;,](?=\s)|\bor\b|   +|\n", re.sub(r"no --[a-z-]+ was", "", text)):
        named = COMMAND.search(part)
        verb = named[1].split()[0] if named else ""
        if named and verb not in VERBS:
            if verb in SENTENCE:
                named = None  # a sentence about the program
            else:
                found.append(f"bench {verb}")
                continue
        if (
            named
            and isinstance(TREE[verb], click.Group)
            and named[1] not in TREE
            and len(named[1].split()) > 1
        ):
            found.append(f"bench {named[1]}")
        known = (
            options((named[1] if named[1] in TREE else verb,))
            if named
            else options(scope)
            if scope
            else EVERY
        )
        for option in OPTION.finditer(part[named.end() :] if named else part):
            if option[1] not in known:
                found.append(f"{'bench ' + named[1] + ' ' if named else ''}--{option[1]}")
                continue
            choices = [
                one.type.choices for one in known[option[1]] if isinstance(one.type, click.Choice)
            ]
            value = option[2]
            if (
                choices
                and len(choices) == len(known[option[1]])
                and value
                and value.islower()
                and not any(value in c for c in choices)
            ):
                found.append(f"--{option[1]} {value}")
    return found


FILES = [
    path
    for folder in (Path(package.__file__).parent, Path(methods.__file__).parent)
    for path in sorted(folder.rglob("*.py"))
    if not path.relative_to(ROOT).as_posix().startswith(NO_VERBS)
]


def test_every_command_and_option_in_a_message_is_there() -> None:
    found = {}
    for path in FILES:
        where = path.relative_to(ROOT).as_posix()
        scope = next((verbs for part, verbs in RAISED_BY.items() if where.startswith(part)), ())
        for line, text in strings(path):
            if hits := wrong(text, scope):
                found[f"{where}:{line}"] = (hits, text[:120])
    assert found == {}


def test_so_is_what_data_sets_say_of_getting_them() -> None:
    from bench.data.sets import data_sets

    assert {one.name: hits for one in data_sets().values() if (hits := wrong(one.get))} == {}


@pytest.mark.parametrize(
    ("text", "hits"),
    [
        ("bench fetch sts", ["bench fetch"]),
        ("bench data get sts --data DIR", ["bench data get"]),
        ("bench show RUN --fresh", ["bench show --fresh"]),
        ("try a lower rate or --precision float32", ["--precision float32"]),
        ("--precision fp32", []),
        ("--set lr=1, or --no-such-option", ["--no-such-option"]),
        ("bench data fetch STS12 --data DIR; copy DIR here, then --data DIR", []),
        ("bench data fetch X --runs DIR", ["bench data fetch --runs"]),
    ],
)
def test_the_net_catches_what_is_not_there(text: str, hits: list[str]) -> None:
    assert wrong(text) == hits


def test_an_option_of_another_verb_is_caught() -> None:
    assert (
        wrong("--fresh trains it again", ("export",)) == ["--fresh"]
        and wrong("--fresh trains it again", ("run",)) == []
    )
