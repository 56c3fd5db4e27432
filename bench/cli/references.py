"""``bench references [PAPER[:TABLE]]``: what the papers printed, and what their tables say about themselves."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.cli.options import comma_list, json_option, json_text, runs_option

if TYPE_CHECKING:
    from bench.references import ReferenceResult


# --- ``bench references import``: published mteb result files as reference rows ---

FILE = "references.jsonl"  # in the runs folder


class WithImport(click.Command):
    """The command ``bench references [NAME]``, which also takes ``bench references import FILE ...``: @click.command(cls=WithImport)."""

    commands = ("import",)

    def make_context(self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any) -> click.Context:
        if args[:1] == ["import"]:
            return import_.make_context(f"{info_name} import", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command("import")
@click.argument("places", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@click.option("--model", help="Whose results they are, where neither model_meta.json nor the folders say so.")
@click.option(
    "--to",
    "out",
    type=click.Path(path_type=Path),
    envvar="BENCH_REFERENCES",
    show_envvar=True,
    help=f"File that keeps the rows.  [default: {FILE} in the runs folder]",
)
@runs_option
def import_(places: tuple[Path, ...], model: str | None, out: Path | None, runs: Path | None) -> None:
    """Keep published mteb results as reference rows: numbers of others, shown beside runs and never counted among them.

    FILE is a result file that mteb wrote, or a folder of them (MODEL/REVISION/TASK.json, as in mteb's results repository).
    A number that is there already is replaced; all files are read before anything is written.

    \b
    Example:  bench references import results/sentence-transformers__all-MiniLM-L6-v2
    """
    from bench.base.errors import BenchError
    from bench.base.files import write_or_fail
    from bench.references import imported
    from bench.runs import RunsFolder
    from bench.score.suites.mteb_data import quiet

    file = out if out is not None else RunsFolder(runs).path / FILE
    before = imported.read_imported(file)
    files = imported.result_files(places)
    with quiet(offline=True):
        read = [imported.read_mteb_file(path, model) for path in files]
    rows = [result for result in read if isinstance(result, imported.ImportedResult)]
    for one in read:
        if isinstance(one, imported.LeftOut):
            click.echo(f"left out: {one.file}: {one.why}", err=True)
    if not rows:
        raise BenchError(f"none of {len(files)} files gives a number", "see the lines above")
    kept = imported.merge(before, rows)
    write_or_fail(file, imported.as_lines(kept), "--to FILE, or BENCH_REFERENCES")
    new = len(kept) - len(before)
    models = len({row.backbone for row in rows})
    click.echo(
        f"{len(rows)} result{'s' * (len(rows) != 1)} of {models} model{'s' * (models != 1)}, {new} of them new; {len(kept)} in {os.fspath(file)}"
    )


@click.command(cls=WithImport)
@click.argument("name", metavar="[PAPER[:TABLE]]", required=False)
@click.option("--method", help="Only rows of these methods (a,b), as the tables or as bench call them.")
@click.option("--backbone", help="Only rows of these backbones.")
@click.option("--setting", help="Only rows of these settings: unsupervised, supervised, other.")
@click.option("--task", help="Only these tasks.")
@click.option("--own", is_flag=True, help="Only what a paper ran itself: no copied rows.")
@click.option("--audit", is_flag=True, help="What does not fit: averages, quotations, best-of-n, protocols; computed from the cells.")
@click.option("--kind", help="With --audit: only these kinds of remarks (the words before each list).")
@json_option
def references(
    name: str | None,
    method: str | None,
    backbone: str | None,
    setting: str | None,
    task: str | None,
    own: bool,
    audit: bool,
    kind: str | None,
    as_json: bool,
) -> None:
    """What papers printed, as data; never mixed up with runs.

    Without a name: the papers and their tables. With one: the table as it is printed, with remarks.

    \b
    Example:  bench references promcse:1
              bench references promcse:1 --setting supervised --backbone roberta-base
              bench references --audit
    """
    from bench.references.rows import split_name

    paper, table = split_name(name) if name else (None, None)
    wanted = {
        "method": comma_list(method),
        "backbone": comma_list(backbone),
        "setting": comma_list(setting),
        "task": comma_list(task),
    }
    found = chosen(paper, table, wanted, own)
    if audit:
        _audit(found, comma_list(kind), as_json)
    elif as_json:
        _print_json(found)
    elif name is None and not own and not any(wanted.values()):
        from bench.cli.printed_table import show_overview

        show_overview()
    else:
        from bench.cli.printed_table import show_tables

        show_tables(found)


def chosen(paper: str | None, table: str | None, wanted: dict[str, tuple[str, ...]], own: bool) -> list[ReferenceResult]:
    """The printed numbers that fit; UnknownName, with the nearest, for a name that no number has."""
    from bench.base.errors import BenchError, UnknownName
    from bench.references import results
    from bench.references.ours import meaning

    def names(r: ReferenceResult, key: str) -> set[str]:
        return {str(getattr(r, key))} | ({meaning(r.method, r.variant, r.setting).method} if key == "method" else set())

    found = [r for r in results(paper=paper) if table in (None, r.table)]
    for key, values in wanted.items():
        have = {name for r in found for name in names(r, key) if name}
        for value in values:
            if value not in have:
                raise UnknownName(key, value, have, "among these printed numbers", "bench references")
        found = [r for r in found if not values or names(r, key) & set(values)]
    found = [r for r in found if r.own_result or not own]
    if not found:
        raise BenchError("no printed number fits all of that", "bench references, with fewer conditions")
    return found


def _print_json(found: Sequence[ReferenceResult]) -> None:
    from dataclasses import asdict

    from bench.references.audit import remarks

    for r in found:
        told = [{"kind": remark.kind, "text": remark.text} for remark in remarks(r)]
        click.echo(json_text({**asdict(r), "remarks": told}))


def _audit(found: Sequence[ReferenceResult], kinds: Sequence[str], as_json: bool) -> None:
    from dataclasses import asdict

    from bench.base.errors import UnknownName
    from bench.cli.printed_table import show_audit
    from bench.references.audit import KINDS, remarks

    for kind in kinds:
        if kind not in KINDS:
            raise UnknownName("kind", kind, KINDS, "of remark")
    every = dict.fromkeys(remark for r in found for remark in remarks(r) if not kinds or remark.kind in kinds)
    if as_json:
        for remark in every:
            click.echo(json_text(asdict(remark)))
    else:
        show_audit(list(every), found)
