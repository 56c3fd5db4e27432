"""``bench check FILE...``: do methods, suites, recipes and plans keep their contracts?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NoReturn

import click

from bench.base.errors import Finding
from bench.base.terminal import warn
from bench.cli.options import data_option, json_option, print_findings, print_json
from bench.data.sets import DataFolder
from bench.run.config import read_plan
from bench.run.plugins import discover
from bench.run.recipes import check_values, read_custom
from bench.score.suites import suite, suite_names, suite_plugin, use_files
from bench.session.values import parse_overrides


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
    run_checks(files, pairs, data=data, as_json=as_json)


def run_checks(
    names: Iterable[str],
    pairs: Sequence[str] = (),
    plugins: Sequence[Path] = (),
    data: Path | None = None,
    *,
    as_json: bool,
) -> NoReturn:
    """Print the findings of each; exit code 1 if a check failed. ``plugins``: files of methods that are named."""
    failures = 0
    for name in names:
        if name.endswith(".toml"):
            warn(_check_toml(Path(name)))
            continue
        for checked, findings in _findings(name, parse_overrides(pairs), plugins, data).items():
            failed = sum(finding.failed for finding in findings)
            failures += failed
            if as_json:
                print_json([{"name": checked, "findings": list(map(asdict, findings))}])
            else:
                print_findings(findings, checked)
                click.echo(f"{failed} failed" if failed else "the contract is kept")
    raise click.exceptions.Exit(1 if failures else 0)


def _findings(
    name: str, overrides: Mapping[str, str], plugins: Sequence[Path], data: Path | None
) -> dict[str, list[Finding]]:
    """Of each method and suite that a file defines, or of the one with that name."""
    from bench.conformance.methods import check as check_method
    from bench.conformance.suites import check_suite

    folder, file = DataFolder(data), Path(name)
    folder.check_root()
    if name in suite_names():
        return {name: check_suite(suite(name), folder)}
    if file.suffix != ".py":
        return {name: check_method(discover(plugins)[name], overrides)}
    methods = discover([file]).plugins.values()
    use_files([file])
    return {
        one.name: check_method(one, overrides) for one in methods if one.package == str(file)
    } | {
        one.suite.name: check_suite(one.suite, folder)
        for one in filter(None, map(suite_plugin, suite_names()))
        if one.package == str(file)
    }


def _check_toml(file: Path) -> str:
    """The file, and what it is. Raises BenchError for a plan or a recipe that cannot be used."""
    if file.is_file() and "[[run]]" in file.read_text(encoding="utf-8", errors="replace"):
        return f"{file}: a plan of {len(read_plan(file).runs)} [[run]]"
    recipe = read_custom(file)
    check_values(discover()[recipe.method].cls, recipe.values, str(file))
    return f"{file}: a recipe of {recipe.method}"
