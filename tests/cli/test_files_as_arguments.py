"""FILE.py among the arguments of a verb is a plugin file, and every option that is printed
somewhere is in the help.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import click
import pytest
from commands import bench, error_line

from bench.cli import VERBS, main
from bench.cli.verbs import TAKES_PLUGINS, with_plugin_options

ROOT = Path(__file__).resolve().parents[2]


def command_of(verb: str) -> click.Command:
    command = main.get_command(click.Context(main), verb)
    assert command is not None
    return command


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("MODEL pairs.py", "MODEL --plugin pairs.py"),
        ("--plugin pairs.py MODEL", "--plugin pairs.py MODEL"),
        ("MODEL --runs odd.py a.py b.py", "MODEL --runs odd.py --plugin a.py --plugin b.py"),
        ("MODEL --plugin=pairs.py", "MODEL --plugin=pairs.py"),
    ],
)
def test_a_python_file_among_the_arguments_is_a_plugin(words: str, expected: str) -> None:
    assert with_plugin_options(command_of("evaluate"), words.split()) == expected.split()


@pytest.mark.parametrize("verb", TAKES_PLUGINS)
def test_every_verb_that_takes_plugin_files_has_the_option(verb: str) -> None:
    assert "--plugin" in {name for param in command_of(verb).params for name in param.opts}


def test_a_missing_plugin_file_is_one_line(tmp_path: Path) -> None:
    assert "nowhere.py" in error_line(bench("compare", "nowhere.py", "--runs", tmp_path))


def test_data_among_the_models_is_for_the_option_suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pairs.tsv").write_text("sentence1\tsentence2\tscore\na\tb\t1\n")
    done = bench("evaluate", "builtin", "pairs.tsv")
    assert error_line(done) == "error: pairs.tsv is a file of data, and no model"
    assert "--suite pairs.tsv scores on it" in done.stderr


def test_options_on_the_pages_are_in_the_help() -> None:
    """Every option of a command in README and docs is in the help of its verb.

    docs/promises.md also names what is promised and not there yet.
    """
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    pages.remove(ROOT / "docs" / "promises.md")
    hidden = {}
    help_of = cache(lambda verb: bench(verb, "--help").stdout)
    for page in pages:
        for line in re.findall(r"\bbench ([a-z]+)([^\n`|#]*)", page.read_text(encoding="utf-8")):
            verb, rest = line
            command = main.get_command(click.Context(main), verb)
            if command is None or isinstance(command, click.Group):
                continue
            shown = help_of(verb)
            for name in re.findall(r"(?<![\w-])--[a-z][a-z-]+", rest):
                if name not in shown:
                    hidden[f"{page.name}: bench {verb}"] = name
    assert hidden == {}


def test_the_nearest_option_is_suggested() -> None:
    assert "--suite" in bench("run", "simcse", "--suit", "check").stderr


def test_no_option_is_hidden() -> None:
    for verb in VERBS:
        for param in command_of(verb).params:
            assert not getattr(param, "hidden", False), f"bench {verb} {param.name}"
