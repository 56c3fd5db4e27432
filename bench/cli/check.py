"""``bench check FILE...``: do methods, suites, recipes and plans keep their contracts?"""

from __future__ import annotations

from pathlib import Path

import click

from bench.cli.methods import _check as check_method
from bench.cli.options import data_option, json_option, warn
from bench.cli.suites import _check as check_suite
from bench.run.config import read_plan
from bench.run.plugins import discover, from_file
from bench.run.recipe_file import read_custom
from bench.run.recipes import check_values
from bench.score.suites import suite_names


@click.command()
@click.argument(
    "files", metavar="[FILE.py | FILE.toml | METHOD | SUITE]...", nargs=-1, required=True
)
@click.option(
    "--set", "pairs", multiple=True, metavar="KEY=VALUE", help="Recipe values that a method needs."
)
@data_option
@json_option
def check(files: tuple[str, ...], pairs: tuple[str, ...], data: Path | None, as_json: bool) -> None:
    """Check methods, suites, recipes and plans before anything is trained.

    \b
    Example:  bench check my_loss.py my_suite.py runs/search-1/simcse.toml plan.toml
    """
    worst = 0
    for file in files:
        try:
            _check(file, pairs, data, as_json)
        except click.exceptions.Exit as end:
            worst = max(worst, end.exit_code)
    raise click.exceptions.Exit(worst)


def _check(file: str, pairs: tuple[str, ...], data: Path | None, as_json: bool) -> None:
    if file.endswith(".toml"):
        _check_toml(Path(file))
    elif file in suite_names():
        check_suite(file, data, as_json)
    elif not file.endswith(".py") or (Path(file).is_file() and from_file(Path(file))):
        check_method(file, pairs, (), as_json)
    else:
        check_suite(file, data, as_json)


def _check_toml(file: Path) -> None:
    """Raises BenchError for a plan or a recipe that cannot be used."""
    if file.is_file() and "[[run]]" in file.read_text(encoding="utf-8", errors="replace"):
        warn(f"{file}: a plan of {len(read_plan(file).runs)} [[run]]")
        return
    recipe = read_custom(file)
    check_values(discover()[recipe.method].cls, recipe.values, str(file))
    warn(f"{file}: a recipe of {recipe.method}")
