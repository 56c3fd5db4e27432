"""The three pages of public names: every promised name is on one, and every docstring fits its
signature.

A parameter that a docstring describes and the signature lacks is a warning of the site's build,
which is an error there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import griffe
import pytest
import yaml

import bench

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("python", "method", "suite")


@cache
def options() -> dict[str, Any]:
    """Return what mkdocs.yml says of the pages."""
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    plugins = [plugin for plugin in config["plugins"] if isinstance(plugin, dict)]
    found: dict[str, Any] = plugins[0]["mkdocstrings"]["handlers"]["python"]["options"]
    return found


def names_on(page: str) -> list[str]:
    text = (ROOT / "docs" / "reference" / f"{page}.md").read_text(encoding="utf-8")
    return re.findall(r"^::: (\S+)$", text, flags=re.M)


@cache
def package(name: str) -> griffe.Object | griffe.Alias:
    return griffe.load(name, search_paths=[ROOT], resolve_aliases=True)


@cache
def documented() -> dict[str, griffe.Object]:
    """Return all that the pages show: path -> what has the docstring."""
    shown: dict[str, griffe.Object] = {}
    for page in PAGES:
        for name in names_on(page):
            first, _, rest = name.partition(".")
            found = package(first)[rest]
            found = found.final_target if found.is_alias else found
            shown[name] = found
            if found.is_class or found.is_module:
                shown |= {f"{name}.{member.name}": member for member in members(found)}
    return shown


def members(found: griffe.Object) -> Iterator[griffe.Object]:
    for name, member in found.members.items():
        is_shown = not name.startswith("_") or name.endswith("__")
        if is_shown and isinstance(member, griffe.Object) and member.has_docstring:
            yield member


def sections(found: griffe.Object) -> dict[str, Any]:
    """Return the sections of a docstring: kind -> what it lists."""
    assert found.docstring is not None, f"{found.path} has no docstring"
    parsed = found.docstring.parse(options()["docstring_style"], **options()["docstring_options"])
    return {section.kind.value: section.value for section in parsed}


def functions() -> Iterator[tuple[str, griffe.Function]]:
    for path, found in documented().items():
        if isinstance(found, griffe.Function):
            yield path, found


@pytest.mark.slow(seconds=5)
def test_every_parameter_is_described() -> None:
    wrong = []
    for path, function in functions():
        names = [
            {"var_positional": "*", "var_keyword": "**"}.get(parameter.kind.name, "")
            + parameter.name
            for parameter in function.parameters
            if parameter.name not in ("self", "cls")
        ]
        described = [parameter.name for parameter in sections(function).get("parameters", ())]
        if described != names:
            wrong.append((path, names, described))
    assert wrong == []


@pytest.mark.slow(seconds=5)
def test_every_value_that_is_returned_is_described() -> None:
    """By a section, or by a summary that begins with it if there is nothing else to say."""
    wrong = []
    for path, function in functions():
        assert function.docstring is not None
        returned = sections(function).get("returns", ())
        begins = function.docstring.value.startswith(("Return ", "Say if "))
        says_nothing = str(function.returns) in ("None", "Iterator[None]")
        if not (returned or says_nothing or (begins and "parameters" not in sections(function))):
            wrong.append(path)
        # a colon in the text would be read as the end of a type
        wrong += [path for one in returned if str(one.annotation) != str(function.returns)]
    assert wrong == []


@pytest.mark.slow(seconds=5)
def test_every_field_of_a_public_class_is_described() -> None:
    wrong = []
    for path, found in documented().items():
        if not found.is_class:
            continue
        described = {one.name for one in sections(found).get("attributes", ())}
        for name, member in found.members.items():
            is_field = member.is_attribute and "property" not in member.labels
            if (
                is_field
                and member.annotation
                and not name.startswith("_")
                and name not in described
            ):
                wrong.append(f"{path}.{name}")
    assert wrong == []


@pytest.mark.slow(seconds=5)
def test_every_promised_name_is_on_a_page() -> None:
    shown = {path.rpartition(".")[2] for path in documented()}
    for found in documented().values():
        if found.is_class:
            shown |= {one.name for one in sections(found).get("attributes", ())}
    text = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
    promised = text.split("## Names for a method\n")[1].split("\n## ")[0]
    of_methods = re.search(r"^- \*\*Of `bench\.methods`.*\n", promised, flags=re.M)
    assert of_methods is not None and "`bench.methods.losses`" in of_methods[0]
    words = re.findall(r"`(?:self\.)?(\w+)(?:\(\w+\))?`", promised.replace(of_methods[0], ""))
    assert len(words) > 40 and "losses" in shown
    assert set(words) - shown == set()
    assert {f"bench.{name}" for name in bench.__all__ if name != "__version__"} <= set(documented())


@pytest.mark.slow(seconds=5)
def test_every_name_is_documented_once() -> None:
    names = [name for page in PAGES for name in names_on(page)]
    assert len(names) == len(set(names)) > 40
