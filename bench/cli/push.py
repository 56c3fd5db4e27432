"""``bench push``: a run's model on the hub."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import click

from bench.cli.options import json_option, plugin_option, runs_option


@click.command()
@click.argument("reference", metavar="RUN")
@click.argument("name", metavar="OWNER/NAME")
@click.option("--format", "form", default="sentence-transformers", show_default=True, help="As in bench export.")
@click.option("--private", is_flag=True, help="A repository that is made now is private.")
@click.option("--replace", is_flag=True, help="Put this export in the place of what the repository holds.")
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
    from bench.cli.export import words
    from bench.export import card, check_finished, check_form, export
    from bench.export.push import check_name, check_online, check_repository, upload
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
        (folder / "README.md").write_text(card.text(run, done, folder, place=name), encoding="utf-8")
        for line in words(done):
            click.echo(line, err=True)
        pushed = upload(folder, name, run.record.run_id, private=private)
    if as_json:
        click.echo(json.dumps({"run": run.record.run_id, "name": name, "revision": pushed.revision, "url": pushed.url}))
    else:
        click.echo(f"{pushed.url}  (revision {pushed.revision})")
