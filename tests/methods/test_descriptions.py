"""Texts of the methods for readers: summaries that fit into a list, examples that the command line
takes.
"""

from __future__ import annotations

import inspect
import re
import shlex
from typing import Any

import click
import pytest

from bench.cli import main
from bench.method.plugins import discover

REGISTRY = discover()
EVERY = pytest.mark.parametrize("name", list(REGISTRY))


def docstring_with_example(cls: type[Any]) -> str:
    """Return the docstring of a class, or of the nearest base, that has an example."""
    for base in cls.__mro__:
        text = inspect.cleandoc(base.__doc__ or "")
        if "Example:" in text:
            return text
    raise AssertionError(f"{cls.__name__} has no example")


def example_of(cls: type[Any]) -> list[str]:
    """Return the words of the command below ``Example:``."""
    text = docstring_with_example(cls)
    block = re.search(r"Example:\n((?: {4}.*\n?)+)", text)
    assert block is not None, text
    return shlex.split(block[1].replace("\\\n", " "))


@EVERY
def test_an_example_is_a_command_and_relations_name_others(name: str) -> None:
    cls = REGISTRY[name].cls
    program, verb, *words = example_of(cls)
    assert program == "bench"
    command = main.get_command(click.Context(main), verb)
    assert command is not None
    known = {option for one in command.params for option in one.opts}
    assert {word for word in words if word.startswith("--")} <= known
    if verb == "run":
        methods = words[words.index("--method") + 1].split(",")
        assert any(method.partition("+")[0] == name for method in methods) or len(methods) > 1
        for method in methods:
            base, _, variant = method.partition("+")
            assert not variant or variant in REGISTRY[base].cls.variants
    assert "Relations:" in docstring_with_example(cls)
