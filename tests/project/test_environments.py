"""The files that say which versions are installed agree with each other."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from bench.cli.doctor import EXTRAS

ROOT = Path(__file__).resolve().parents[2]


def pins(name: str) -> dict[str, str]:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return {
        key.lower().replace("_", "-"): version
        for key, _, version in (line.partition("==") for line in lines if "==" in line)
    }


def dependencies(extra: str | None = None) -> dict[str, str]:
    """Package -> what pyproject.toml says of its versions."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = project["optional-dependencies"][extra] if extra else project["dependencies"]
    return {
        match[1].lower(): match[2]
        for line in listed
        if (match := re.fullmatch(r"([A-Za-z0-9-]+)(.*)", line))
    }


def test_the_lowest_versions_are_those_that_are_allowed() -> None:
    tried = dependencies()
    for extra in ("publish", "lora", "4bit"):
        tried |= dependencies(extra)
    floors = {name: re.findall(r">=([\d.]+)", said)[0] for name, said in tried.items()}
    lowest = pins("constraints-lowest.txt")
    assert set(lowest) == set(floors)
    for name, version in lowest.items():
        parts = [int(part) for part in version.split(".")]
        floor = [int(part) for part in floors[name].split(".")]
        assert parts == floor + [0] * (len(parts) - len(floor)), (
            f"{name}: {version} is tried, {floors[name]} is allowed"
        )


def test_every_dependency_is_pinned() -> None:
    pinned = pins("constraints.txt")
    assert {*dependencies(), *dependencies("dev")} - set(pinned) == set()


def test_the_extras_are_told_and_tests_have_them_all() -> None:
    told = set(
        re.findall(
            r"^\| `(\w+)` \|", (ROOT / "docs/tutorial.md").read_text(encoding="utf-8"), flags=re.M
        )
    )
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    assert told == set(extras) == {*EXTRAS, "docs", "dev"}
    for extra in extras:
        assert dependencies(extra).items() <= dependencies("dev").items()
        assert set(EXTRAS.get(extra, ())) <= set(dependencies(extra))
