"""What is read of a method's source, against what importing it says; and sources that nobody should run."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from bench.cli.method_card import describe
from bench.run import method_reader
from bench.run.method_reader import method_description, method_descriptions
from bench.run.plugins import discover


def test_every_installed_method_says_the_same_read_as_imported() -> None:
    registry = discover()
    for name in registry:
        said, facts = method_description(name), describe(registry[name])
        assert said is not None, name
        read = {key: getattr(said, key) for key in ("name", "summary", "paper", "trains", "about")}
        assert read == {key: facts[key] for key in read}
        assert list(said.settings) == facts["settings"]
        assert {
            k: {a: list(b) if isinstance(b, tuple) else b for a, b in v.items()}
            for k, v in said.variants.items()
        } == facts["variants"]
        assert [(e.setting, e.backbone, e.variant) for e in said.file.recipes] == [
            (r["setting"], r["backbone"], r["variant"]) for r in facts["recipes"]
        ]
        assert f"{said.package} {said.version}" == facts["from"]


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Registers a module of the given source, in a package whose import fails."""

    def register(source: str, value: str = "their_package.theirs") -> None:
        package = tmp_path / "their_package"
        package.mkdir()
        (package / "__init__.py").write_text("raise SystemExit('imported')")
        (package / "theirs.py").write_text(source)
        monkeypatch.syspath_prepend(tmp_path)
        point = EntryPoint(name="theirs", value=value, group=method_reader.GROUP)
        monkeypatch.setattr(method_reader.importlib.metadata, "entry_points", lambda group: [point])

    for kept in (method_description, method_reader._source, method_reader._points):
        kept.cache_clear()
    yield register
    for kept in (method_description, method_reader._source, method_reader._points):
        kept.cache_clear()
    assert "their_package" not in sys.modules


def test_constants_are_read_and_nothing_is_run(plugin) -> None:
    plugin('''
"""About the module."""
raise SystemExit("run")
PAPER = "Somebody: " "Something"
class Base:
    summary = "of the base"
    trains = "everything"
class Theirs(Base):
    name, settings = "theirs", ("none", "unsupervised")
    paper: str = PAPER
    summary = open("/etc/passwd").read()
    variants = {"hot": {"temperature": Value(-1.5, "us"), "made": make()}, **others}
''')
    said = method_description("theirs")
    assert said is not None
    wanted = ("theirs", ("none", "unsupervised"), "Somebody: Something", "everything")
    assert (said.name, said.settings, said.paper, said.trains) == wanted
    assert (
        said.summary == ""
    )  # what is computed is not known, and the base's words are not this method's
    assert said.variants == {} and said.about == "About the module." and said.package == ""


@pytest.mark.parametrize(
    "source",
    [
        "def broken(:",
        "name = 1",
        "\0",
        "class T:\n    name = name()",
        "x = " + "(" * 5000 + ")" * 5000,
    ],
)
def test_a_source_that_says_nothing_is_no_error(source: str, plugin) -> None:
    plugin(source)
    assert method_description("theirs") is None


def test_every_installed_method_is_known_whole() -> None:
    registry, found = discover(), method_descriptions()
    assert found.whole and set(found.methods) == set(registry)
    for name, one in found.methods.items():
        cls = registry[name].cls
        assert one.whole and set(one.defaults) == set(cls.defaults) and one.fitted == cls.fitted, (
            name
        )
