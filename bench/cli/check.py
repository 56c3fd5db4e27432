"""``bench check``: test if methods and suites keep their contracts."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import click

from bench.base.errors import BenchError
from bench.base.findings import Finding
from bench.cli.options import data_option, json_option, print_findings, print_json
from bench.cli.run_options import read_set_values
from bench.data.sets import DataFolder
from bench.method.plugins import discover
from bench.score.suites import suite, suite_names, suite_plugin, use_files


@click.command()
@click.argument("files", metavar="[FILE.py | METHOD | SUITE]...", nargs=-1, required=True)
@click.option(
    "--set", "pairs", multiple=True, metavar="KEY=VALUE", help="Recipe values that a method needs."
)
@data_option
@json_option
def check(files: tuple[str, ...], pairs: tuple[str, ...], data: Path | None, as_json: bool) -> None:
    """Check methods and suites before anything is trained.

    \b
    Example:  bench check my_loss.py my_suite.py
    """
    failures = 0
    for name in files:
        checked = _findings_by_name(name, read_set_values(pairs), data)
        for checked_name, findings in checked.items():
            failed = sum(finding.failed for finding in findings)
            failures += failed
            if as_json:
                objects = [asdict(finding) for finding in findings]
                print_json([{"name": checked_name, "findings": objects}])
                continue
            print_findings(findings, checked_name)
            click.echo(f"{failed} failed" if failed else "the contract is kept")
    raise click.exceptions.Exit(1 if failures else 0)


def _findings_by_name(
    name: str, overrides: Mapping[str, str], data: Path | None
) -> dict[str, list[Finding]]:
    """Check each method and suite that a file defines, or the one with that name."""
    from bench.run.conformance.methods import check_method
    from bench.run.conformance.suites import check_suite

    if name.endswith(".py") and not Path(name).is_file():
        raise BenchError(
            f"{name}: no such file",
            "a Python file that defines a method or a suite: docs/add-a-method.md, "
            "docs/add-a-suite.md",
        )
    if name.endswith(".toml"):
        raise BenchError(
            f"{name}: bench check tests methods and suites, not plans",
            f"bench run --plan {shlex.quote(name)} --dry-run",
        )
    folder = DataFolder(data)
    folder.check_root()
    if name in suite_names():
        return {name: check_suite(suite(name), folder)}
    if not name.endswith(".py"):
        return {name: check_method(discover()[name], overrides)}
    file = Path(name)
    methods = discover([file]).plugins.values()
    use_files([file])
    findings = {}
    for method in methods:
        if method.package == str(file):
            findings[method.name] = check_method(method, overrides)
    for suite_name in suite_names():
        plugin = suite_plugin(suite_name)
        if plugin is not None and plugin.file == str(file):
            findings[plugin.suite.name] = check_suite(plugin.suite, folder)
    return findings
