"""``bench references import``: published mteb result files as reference rows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from bench.cli.options import runs_option

FILE = "references.jsonl"  # in the runs folder


class WithImport(click.Command):
    """The command ``bench references [NAME]``, which also takes ``bench references import FILE ...``: @click.command(cls=WithImport)."""

    commands = ("import",)

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if args[:1] == ["import"]:
            return import_.make_context(f"{info_name} import", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command("import")
@click.argument("places", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@click.option("--model", help="Whose results they are, where neither model_meta.json nor the folders say so.")
@click.option("--to", "out", type=click.Path(path_type=Path), envvar="BENCH_REFERENCES", show_envvar=True,
              help=f"File that keeps the rows.  [default: {FILE} in the runs folder]")  # fmt: skip
@runs_option
def import_(places: tuple[Path, ...], model: str | None, out: Path | None, runs: Path | None) -> None:
    """Keep published mteb results as reference rows: numbers of others, shown beside runs and never counted among them.

    FILE is a result file that mteb wrote, or a folder of them (MODEL/REVISION/TASK.json, as in mteb's results repository).
    A number that is there already is replaced; all files are read before anything is written.

    \b
    Example:  bench references import results/sentence-transformers__all-MiniLM-L6-v2
    """
    from bench.errors import BenchError
    from bench.references import imported
    from bench.runs import RunsFolder
    from bench.runs.files import write_whole
    from bench.suites.mteb_data import quiet

    file = out if out is not None else RunsFolder(runs).path / FILE
    before = imported.read_imported(file)
    files = imported.result_files(places)
    with quiet(offline=True):
        read = [imported.read_mteb_file(one, model) for one in files]
    rows = [one for one in read if isinstance(one, imported.ImportedResult)]
    for one in read:
        if isinstance(one, imported.LeftOut):
            click.echo(f"left out: {one.file}: {one.why}", err=True)
    if not rows:
        raise BenchError(f"none of {len(files)} files gives a number", "see the lines above")
    kept = imported.merged(before, rows)
    write_whole(file, imported.as_lines(kept), "--to FILE, or BENCH_REFERENCES")
    new = len(kept) - len(before)
    models = len({one.backbone for one in rows})
    click.echo(
        f"{len(rows)} result{'s' * (len(rows) != 1)} of {models} model{'s' * (models != 1)}, {new} of them new; {len(kept)} in {os.fspath(file)}"
    )
