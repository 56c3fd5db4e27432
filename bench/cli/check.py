"""``bench check FILE...``: do methods, suites, recipes and plans keep their contracts?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NoReturn

import click

from bench.base.findings import Finding
from bench.cli.options import (
    data_option,
    json_option,
    json_text,
    parse_overrides,
    print_findings,
    warn,
)
from bench.data.sets import DataFolder
from bench.run.config import read_plan
from bench.run.plugins import discover
from bench.run.recipe_file import read_custom
from bench.run.recipes import check_values
from bench.score.suites import Suite, suite, suite_names, suite_plugin, use_files


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
    """Print what was found of each; exit code 1 where something failed. ``plugins``: files of methods that are named."""
    failed = 0
    total = 0
    for name in names:
        if name.endswith(".toml"):
            _check_toml(Path(name))
            continue
        for checked, findings in _findings(name, parse_overrides(pairs), plugins, data).items():
            failed = sum(finding.failed for finding in findings)
            total += failed
            if as_json:
                facts = {"name": checked, "findings": [asdict(finding) for finding in findings]}
                click.echo(json_text(facts))
            else:
                print_findings(findings, checked)
                click.echo(f"{failed} failed" if failed else "the contract is kept")
    raise click.exceptions.Exit(1 if total else 0)


def _findings(
    name: str, overrides: Mapping[str, str], plugins: Sequence[Path], data: Path | None
) -> dict[str, list[Finding]]:
    """Of each method and suite that a file defines, or of the one of that name."""
    from bench.run import conformance, suite_check

    folder = DataFolder(data)
    folder.check_root()
    methods, suites = [], list[Suite]()
    if name in suite_names():
        suites = [suite(name)]
    elif name.endswith(".py"):
        known = discover([Path(name)]).plugins.values()
        methods = [plugin for plugin in known if plugin.package == str(Path(name))]
        use_files([Path(name)])
        of_file = [plugin for plugin in map(suite_plugin, suite_names()) if plugin]
        suites = [plugin.suite for plugin in of_file if plugin.package == str(Path(name))]
    else:
        methods = [discover(plugins)[name]]
    checked = {plugin.name: conformance.check(plugin, overrides) for plugin in methods}
    return checked | {one.name: suite_check.check(one, folder) for one in suites}


def _check_toml(file: Path) -> None:
    """Raises BenchError for a plan or a recipe that cannot be used."""
    if file.is_file() and "[[run]]" in file.read_text(encoding="utf-8", errors="replace"):
        warn(f"{file}: a plan of {len(read_plan(file).runs)} [[run]]")
        return
    recipe = read_custom(file)
    check_values(discover()[recipe.method].cls, recipe.values, str(file))
    warn(f"{file}: a recipe of {recipe.method}")
