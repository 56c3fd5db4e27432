"""``bench export`` and ``bench push``: a run's model as files that other tools load, in a folder or on the hub."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench.cli.options import (
    backbone_offline_option,
    json_option,
    json_text,
    plugin_option,
    runs_option,
)

if TYPE_CHECKING:
    from bench.export import Exported

FORMATS = "sentence-transformers, transformers, mteb"  # as in bench.export, whose import can wait


@click.command()
@click.argument("reference", metavar="RUN")
@click.option("--to", "to", required=True, type=click.Path(path_type=Path), help="A new folder.")
@click.option(
    "--format", "form", default="sentence-transformers", show_default=True, help=f"{FORMATS}."
)
@backbone_offline_option
@runs_option
@plugin_option
@json_option
def export(
    reference: str,
    to: Path,
    form: str,
    offline: bool,
    runs: Path | None,
    plugins: tuple[Path, ...],
    as_json: bool,
) -> None:
    """A finished run's model as a folder that other people's tools load without this package, with a model card.

    RUN is an id, its beginning, or a path. The folder is loaded again and compared with the run's own vectors before it is
    put in its place; a method that a format has no place for is refused with the reason.

    \b
    Example:  bench export simcse-builtin-s42 --to my-model
    """
    from bench.export import check_finished, check_form, check_place
    from bench.export import export as write
    from bench.run.trained_run import find_run, load_run
    from bench.runs import RunsFolder

    check_form(form)
    check_place(to)
    run = find_run(reference, RunsFolder(runs), plugins)
    check_finished(run)
    for note in run.notes:
        click.echo(f"warning: {note}", err=True)
    done = write(run, load_run(run, offline=offline), to, form)
    if as_json:
        facts = {
            "run": done.run_id,
            "to": str(done.folder),
            "format": done.form,
            "dimensions": done.dimensions,
            "difference": done.difference,
            "module_files": list(done.module_files),
        }
        click.echo(json_text(facts))
        return
    for line in words(done):
        click.echo(line, err=True)
    click.echo(to)


def words(done: Exported) -> list[str]:
    """What was written, and what who loads it has to know."""
    lines = [
        f"{done.run_id} as {done.form}: {done.dimensions} dimensions, loaded again, largest difference {done.difference:.1g}"
    ]
    if done.module_files:
        lines.append(
            f"load it with trust_remote_code=True: {', '.join(done.module_files)} travels in the folder (its README says why)"
        )
    return lines


# --- ``bench push``: a run's model on the hub ---


@click.command()
@click.argument("reference", metavar="RUN")
@click.argument("name", metavar="OWNER/NAME")
@click.option(
    "--format",
    "form",
    default="sentence-transformers",
    show_default=True,
    help="As in bench export.",
)
@click.option("--private", is_flag=True, help="A repository that is made now is private.")
@click.option(
    "--replace", is_flag=True, help="Put this export in the place of what the repository holds."
)
@click.option("--offline", is_flag=True, help="Open no connection: the push is refused.")
@runs_option
@plugin_option
@json_option
def push(
    reference: str,
    name: str,
    form: str,
    private: bool,
    replace: bool,
    offline: bool,
    runs: Path | None,
    plugins: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Export a finished run and put it on the hub as OWNER/NAME, with its model card, in one commit.

    Needs a token that may write: hf auth login, or HF_TOKEN. Nothing is sent before the export was checked.

    \b
    Example:  bench push simcse-builtin-s42 me/simcse-small --private
    """
    from bench.export import (
        card,
        check_finished,
        check_form,
        check_name,
        check_online,
        check_repository,
        export,
        upload,
    )
    from bench.run.trained_run import find_run, load_run
    from bench.runs import RunsFolder

    check_name(name)
    check_form(form)
    check_online(offline)
    run = find_run(reference, RunsFolder(runs), plugins)
    check_finished(run)
    check_repository(name, replace=replace)
    for note in run.notes:
        click.echo(f"warning: {note}", err=True)
    with tempfile.TemporaryDirectory() as aside:
        folder = Path(aside) / "export"
        done = export(run, load_run(run, offline=offline), folder, form)
        (folder / "README.md").write_text(
            card.text(run, done, folder, place=name), encoding="utf-8"
        )
        for line in words(done):
            click.echo(line, err=True)
        pushed = upload(folder, name, run.record.run_id, private=private)
    if as_json:
        click.echo(
            json_text(
                {
                    "run": run.record.run_id,
                    "name": name,
                    "revision": pushed.revision,
                    "url": pushed.url,
                }
            )
        )
    else:
        click.echo(f"{pushed.url}  (revision {pushed.revision})")
