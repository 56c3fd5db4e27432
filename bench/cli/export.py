"""``bench export``: a run's model as files that other tools load, in a folder or on the hub."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from bench.base.errors import BenchError
from bench.base.files import write_or_fail
from bench.base.reading import read_plain_file
from bench.cli.options import (
    backbone_offline_option,
    json_option,
    json_text,
    plugin_option,
    runs_option,
    warn,
)
from bench.export import check_export, check_repository, results, upload
from bench.export import export as write
from bench.run.plan import find_run, load_run
from bench.runs.store import Run, RunsFolder, read_record


def holds_exactly(file: Path, content: bytes) -> bool:
    """Whether a plain file of these very bytes is there."""
    try:
        return read_plain_file(file, len(content)) == content
    except OSError:
        return False


FOLDERS = ("sentence-transformers", "transformers", "mteb")


@click.command()
@click.argument("reference", metavar="RUN")
@click.option(
    "--to", "to", type=click.Path(path_type=Path), help="A new folder; for scores alone, a file."
)
@click.option(
    "--format",
    "form",
    type=click.Choice([*FOLDERS, *results.FORMATS]),
    default=FOLDERS[0],
    show_default=True,
    help="Which tool loads the folder; of the last two, who reads the file of scores.",
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
    """Write a finished run's model, with a model card, as a folder that other tools load without this package.

    RUN is an id, its beginning, or a path. The folder is loaded again and compared with the run's own vectors before it is
    put in its place or sent. --push needs a token that may write: hf auth login, or HF_TOKEN.

    \b
    Example:  bench export simcse-builtin-s42 --to my-model
              bench export simcse-builtin-s42 --push me/simcse-small --private
              bench export simcse-builtin-s42 --format every-eval-ever --to scores.json
    """
    if (to is None) == (name is None):
        raise BenchError("export needs either --to or --push", "--to DIR, or --push OWNER/NAME")
    if name is None and (private or replace):
        raise BenchError("--private and --replace need --push", "--push OWNER/NAME")
    if form in results.FORMATS:
        if to is None:
            raise BenchError(f"--format {form} writes a file of scores", "--to FILE")
        file = RunsFolder(runs).record_file(reference)
        scored = Run(read_record(file), file.parent)
        if not to.is_file():
            check_export(scored.record, to)
        text = results.results_text(scored, form).encode()
        if not holds_exactly(to, text):  # a command that was killed at its very end left it so
            check_export(scored.record, to)
            write_or_fail(to, text, hint="another --to FILE")
        click.echo(json_text({"run": file.parent.name, "to": str(to)}) if as_json else to)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = to or Path(temporary) / "export"
        run = find_run(reference, RunsFolder(runs), plugins)
        check_export(run.record, folder)
        if name is not None:
            check_repository(name, replace=replace, offline=offline)
        for note in run.notes:
            warn(f"warning: {note}")
        done = write(run, load_run(run, offline=offline), folder, form, name or "")
        about = {
            "run": done.run_id,
            "format": done.form,
            "dimensions": done.dimensions,
            "difference": done.difference,
            "module_files": list(done.module_files),
        }
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
        revision, url = upload(folder, name, run.record.run_id, private=private)
    about |= {"name": name, "revision": revision, "url": url}
    click.echo(json_text(about) if as_json else f"{url}  (revision {revision})")
