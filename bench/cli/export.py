"""``bench export``: a run's model as files that other tools load, in a folder or on the hub."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from bench.base.errors import BenchError
from bench.cli.options import (
    backbone_offline_option,
    json_option,
    json_text,
    plugin_option,
    runs_option,
    warn,
)

FORMATS = ("sentence-transformers", "transformers", "mteb")


@click.command()
@click.argument("reference", metavar="RUN")
@click.option("--to", "to", type=click.Path(path_type=Path), help="A new folder.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default=FORMATS[0],
    show_default=True,
    help="Which tool loads the folder.",
)
@click.option(
    "--push", "name", metavar="OWNER/NAME", help="Send it to this repository of the hub instead."
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
    private: bool,
    replace: bool,
    offline: bool,
    runs: Path | None,
    plugins: tuple[Path, ...],
    as_json: bool,
) -> None:
    """A finished run's model as a folder that other people's tools load without this package, with a model card.

    RUN is an id, its beginning, or a path. The folder is loaded again and compared with the run's own vectors before it is
    put in its place or sent. --push needs a token that may write: hf auth login, or HF_TOKEN.

    \b
    Example:  bench export simcse-builtin-s42 --to my-model
              bench export simcse-builtin-s42 --push me/simcse-small --private
    """
    from bench.export import card, check_finished, check_place, check_push, check_repository, upload
    from bench.export import export as write
    from bench.run.trained_run import find_run, load_run
    from bench.runs import RunsFolder

    if (to is None) == (name is None):
        raise BenchError("export needs either --to or --push", "--to DIR, or --push OWNER/NAME")
    if name is None and (private or replace):
        raise BenchError("--private and --replace need --push", "--push OWNER/NAME")
    if name is not None:
        check_push(name, offline)
    with tempfile.TemporaryDirectory() as temporary:
        folder = to or Path(temporary) / "export"
        check_place(folder)
        run = find_run(reference, RunsFolder(runs), plugins)
        check_finished(run)
        if name is not None:
            check_repository(name, replace=replace)
        for note in run.notes:
            warn(f"warning: {note}")
        done = write(run, load_run(run, offline=offline), folder, form)
        about = {"run": done.run_id, "format": done.form, "dimensions": done.dimensions}
        about |= {"difference": done.difference, "module_files": list(done.module_files)}
        if not as_json:
            warn(
                f"{done.run_id} as {form}: {done.dimensions} dimensions, loaded again, largest difference {done.difference:.1g}"
            )
        if not as_json and done.module_files:
            warn(
                f"load it with trust_remote_code=True, which runs {', '.join(done.module_files)} of the folder (its README says why)"
            )
        if name is None:
            click.echo(json_text({**about, "to": str(folder)}) if as_json else folder)
            return
        text = card.text(run, done, folder, place=name)
        (folder / "README.md").write_text(text, encoding="utf-8")
        revision, url = upload(folder, name, run.record.run_id, private=private)
    sent = {"name": name, "revision": revision, "url": url}
    click.echo(json_text({**about, **sent}) if as_json else f"{url}  (revision {revision})")
