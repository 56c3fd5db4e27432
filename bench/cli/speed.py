"""``bench speed``: what encoding takes, of several runs under one condition."""

from __future__ import annotations

import os
from pathlib import Path

import click

from bench.cli.options import device_option, json_option, json_text, plugin_option, runs_option, warn


@click.command()
@click.argument("references", metavar="RUN...", nargs=-1, required=True)
@device_option
@click.option("--offline", is_flag=True, help="Open no connection; a backbone that is missing is an error.")
@runs_option
@plugin_option
@json_option
def speed(references: tuple[str, ...], device: str, offline: bool, runs: Path | None, plugins: tuple[Path, ...], as_json: bool) -> None:
    """How many sentences a second each run encodes, and in how much memory, measured one after the other on this machine.

    RUN is an id, the beginning of several, or a path. Each loads in a process of its own and encodes the same 1,000
    sentences. The result is kept in the run's record, with device, threads, versions and text; bench compare --cost and the
    pages show side by side only what was measured under one condition. Leave the machine alone meanwhile.

    \b
    Example:  bench speed simcse-builtin promcse-builtin
    """
    from msgspec.structs import asdict, replace

    from bench.base import devices
    from bench.run.encoding_speed import measure
    from bench.run.trained_run import find_run
    from bench.runs import RunsFolder

    store = RunsFolder(runs)
    files = list(dict.fromkeys(file for reference in references for file in store.record_files(reference)))
    for file in files:  # all of them before the first is measured
        find_run(str(file.parent.absolute()), store, plugins)
    device = devices.choose_device(device)
    if (load := os.getloadavg()[0]) > (cores := os.cpu_count() or 1) / 2:
        warn(f"the machine is busy (load {load:.1f} on {cores} cores): measure again when it is not")
    width = max(len(file.parent.name) for file in files)
    condition = ""
    for file in files:
        run_id, own = file.parent.name, RunsFolder(file.parent.absolute().parent)
        found = measure(str(file.parent.absolute()), store, plugins, device, offline=offline)
        with own.lock(run_id):
            record = own.read(run_id)
            own.write(replace(record, cost=replace(record.cost, encoding=found)))
        condition = found.condition
        if as_json:
            click.echo(json_text({"run": run_id, **asdict(found)}))
        else:
            click.echo(f"{run_id:{width}}  {found.sentences_per_second:8,.0f} sentences/s  {found.memory_bytes / 1e6:7,.0f} MB")
    if not as_json:
        click.echo(f"measured on {condition}", err=True)
