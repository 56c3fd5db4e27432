"""``bench doctor``: what is installed, and where runs would go."""

from __future__ import annotations

import json
import platform
import shutil
from pathlib import Path
from typing import Any

import click

from bench.cli.options import data_option, json_option, runs_option


@click.command()
@data_option
@runs_option
@json_option
def doctor(data: Path | None, runs: Path | None, as_json: bool) -> None:
    """What is installed, which device is used, which plugins and data are found.

    \b
    Example:  bench doctor --data DIR
    """
    facts = diagnose(data, runs)
    if as_json:
        click.echo(json.dumps(facts))
        return
    from bench.cli.columns import print_columns

    print_columns([(key, _in_words(value)) for key, value in facts.items()])


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k} {v}" for k, v in value.items())
    return str(value) if value else "-"


def diagnose(data: Path | None, runs: Path | None) -> dict[str, Any]:
    import bench
    from bench import devices
    from bench.backbones import resolve
    from bench.corpora import default_cache
    from bench.plugins import discover
    from bench.runs import RunsFolder

    registry = discover()
    device = devices.choose_device("auto")
    store = RunsFolder(runs)
    disk = shutil.disk_usage(store.path if store.path.exists() else Path.cwd())
    return {
        "bench": bench.__version__,
        "python": platform.python_version(),
        "packages": devices.packages(),
        "device": devices.device_name(device),
        "precision": f"{devices.choose_precision('auto', device)} while training, fp32 for scores",
        "methods": ", ".join(registry),
        "left out": "; ".join(registry.warnings),
        "builtin": resolve("builtin").revision[:12],
        "data": data_state(data),
        "runs": f"{store.path.resolve()} ({len(store.ids())} records)",
        "cache": str(default_cache()),
        "disk free": f"{disk.free / 2**30:.1f} GiB",
    }


def data_state(data: Path | None) -> str:
    """One line: which suites' data is there in which form."""
    from bench.datasets import DataFolder
    from bench.errors import BenchError
    from bench.suites import suite, suite_names

    folder = DataFolder(data)
    parts = []
    for name in suite_names():
        for text in ("tokenised", "raw"):
            try:
                forms = {task.load(folder, text).form for task in suite(name).tasks}
            except BenchError as error:
                parts.append(f"{name} {text}: {error.message[:80]}")
                continue
            parts.append(f"{name}{f' {text}' if forms != {None} else ''}: found")
    return "; ".join(dict.fromkeys(parts))
