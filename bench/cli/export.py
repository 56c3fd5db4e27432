"""``bench export``: a run's model as files that other tools load, in a folder or on the hub."""

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
from bench.export import (
    FOLDERS,
    FORMATS,
    Exported,
    ModelExport,
    describe_export,
    push_model,
    write_model,
    write_scores,
)
from bench.records.store import RunsFolder


@click.command()
@click.argument("reference", metavar="RUN")
@click.option(
    "--to", "to", type=click.Path(path_type=Path), help="A new folder; for scores alone, a file."
)
@click.option(
    "--format",
    "form",
    type=click.Choice([*FOLDERS, *FORMATS]),
    default=FOLDERS[0],
    show_default=True,
    help="The tool that will load it. The last two write a file of scores, without the model.",
)
@click.option(
    "--push", "name", metavar="OWNER/NAME", help="Send it to this repository of the hub instead."
)
@click.option(
    "--unmerged",
    is_flag=True,
    help="Of a run with LoRA: the adapter alone, as peft's files; its base has to be at hand.",
)
@click.option("--private", is_flag=True, help="With --push: a new repository is private.")
@click.option("--replace", is_flag=True, help="With --push: replace what the repository holds.")
@backbone_offline_option
@runs_option
@plugin_option
@json_option
def export(
    reference: str,
    to: Path | None,
    form: str,
    name: str | None,
    unmerged: bool,
    private: bool,
    replace: bool,
    offline: bool,
    runs: Path | None,
    plugins: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Write a finished run's model, with a model card, as a folder that other tools load without
    this package.

    RUN is an id, its beginning, or a path. The folder is loaded again and compared with the run's
    own vectors before it is put in its place or sent. --push needs a token that may write: hf auth
    login, or HF_TOKEN.

    \b
    Example:  bench export simcse-builtin-s42 --to my-model
              bench export simcse-builtin-s42 --push me/simcse-small --private
              bench export simcse-builtin-s42 --format every-eval-ever --to scores.json
    """
    if (to is None) == (name is None):
        raise BenchError("export needs either --to or --push", "--to DIR, or --push OWNER/NAME")
    if name is None and (private or replace):
        raise BenchError("--private and --replace need --push", "--push OWNER/NAME")
    store = RunsFolder(runs)
    if form in FORMATS:
        if unmerged:
            raise BenchError(f"--unmerged: {form} is a file of scores", "leave --unmerged out")
        if to is None:
            raise BenchError(f"--format {form} writes a file of scores", "--to FILE")
        _export_scores(reference, to, form, store, as_json)
        return
    wanted = ModelExport(
        reference,
        form,
        store,
        plugins=plugins,
        offline=offline,
        say=warn,
        unmerged=unmerged,
    )
    if to is not None:
        exported = write_model(wanted, to)
        _print_export(exported, {"to": str(to)}, str(to), as_json)
    else:
        exported, pushed = push_model(wanted, str(name), private=private, replace=replace)
        place = {"name": str(name), "revision": pushed.revision, "url": pushed.url}
        line = f"{pushed.url}  (revision {pushed.revision})"
        _print_export(exported, place, line, as_json)


def _print_export(exported: Exported, place: dict[str, str], line: str, as_json: bool) -> None:
    """Print the facts of an export, then its place: ``place`` in JSON, else ``line``."""
    if as_json:
        click.echo(json_text(_export_object(exported) | place))
        return
    for text in describe_export(exported):
        warn(text)
    click.echo(line)


def _export_scores(reference: str, to: Path, form: str, store: RunsFolder, as_json: bool) -> None:
    """Write the file of a run's scores, and print its place."""
    run_id = write_scores(reference, to, form, store)
    if as_json:
        click.echo(json_text({"run": run_id, "to": str(to)}))
    else:
        click.echo(to)


def _export_object(exported: Exported) -> dict[str, Any]:
    return {
        "run": exported.run_id,
        "format": exported.form,
        "dimensions": exported.dimensions,
        "difference": exported.difference,
        "module_files": list(exported.module_files),
    }
