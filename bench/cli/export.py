"""``bench export``: a run's model as a folder that other tools load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bench.base.errors import BenchError
from bench.base.terminal import warn
from bench.cli.options import (
    backbone_offline_option,
    json_option,
    json_text,
    plugin_option,
    runs_option,
)
from bench.export import Exported, describe_export, write_model
from bench.records.store import RunsFolder


@click.command()
@click.argument("reference", metavar="RUN")
@click.option("--to", "to", type=click.Path(path_type=Path), help="A new folder.")
@click.option(
    "--unmerged",
    is_flag=True,
    help="For a run with LoRA: write only the adapter, as peft saves it. Its base must be here.",
)
@backbone_offline_option
@runs_option
@plugin_option
@json_option
def export(
    reference: str,
    to: Path | None,
    unmerged: bool,
    offline: bool,
    runs: Path | None,
    plugins: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Write a finished run's model, with a model card, as a folder that sentence-transformers loads
    without this package.

    RUN is an id, its beginning, or a path. The folder is loaded again and compared with the run's
    own vectors before it is put in its place. hf upload OWNER/NAME FOLDER sends it to the hub.

    \b
    Example:  bench export simcse-builtin-s42 --to my-model
              bench export simcse-builtin-s42 --unmerged --to my-adapter
    """
    if to is None:
        raise BenchError("export needs --to", "--to DIR")
    exported = write_model(
        reference,
        to,
        store=RunsFolder(runs),
        plugins=plugins,
        offline=offline,
        say=warn,
        unmerged=unmerged,
    )
    if as_json:
        click.echo(json_text(_export_object(exported) | {"to": str(to)}))
        return
    for text in describe_export(exported):
        warn(text)
    click.echo(to)


def _export_object(exported: Exported) -> dict[str, Any]:
    return {
        "run": exported.run_id,
        "dimensions": exported.dimensions,
        "difference": exported.difference,
        "module_files": list(exported.module_files),
    }
